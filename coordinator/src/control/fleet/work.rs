//! What runs on a node, as the planner's input says it: workloads that agents name, units that requests hold there, and
//! the GPUs that such units share. Called by the join; pure.

use crate::control::ledger::Ledger;
use crate::ports::link::AgentView;
use crate::records::{REQUEST_LABEL, RequestState};
use drover_core::model::{RequestName, Reserved, Resources, Running, UnixMs};
use drover_proto::v1::Workload;
use std::collections::{BTreeMap, BTreeSet};

/// Clock ticks of /proc/PID/stat are a hundredth of a second for every program of Linux (USER_HZ).
const TICK_MS: u64 = 10;
/// Starts are told to the minute: what began together stays together in the list.
const MINUTE_MS: u64 = 60_000;
/// A whole GPU.
const WHOLE: u32 = 1_000;

/// What is known of a request that work names.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    team: String,
    served: Option<UnixMs>,
    ends: Option<UnixMs>,
}

/// Every request that is not over, by name.
pub(super) fn asked(ledger: &Ledger) -> BTreeMap<RequestName, Asked> {
    ledger
        .requests
        .iter()
        .filter(|(_, held)| {
            matches!(
                held.value.state,
                RequestState::Pending | RequestState::Served
            )
        })
        .map(|(name, held)| {
            let asked = Asked {
                team: held.value.spec.team.clone(),
                served: held.value.served,
                ends: held.value.ends,
            };
            (name.clone(), asked)
        })
        .collect()
}

/// Workloads that the agent names, and units that requests hold; alike ones together. Units that are held have no
/// amount here: that is in `reserved`.
pub(super) fn running(
    view: Option<&AgentView>,
    reserved: &[Reserved],
    asked: &BTreeMap<RequestName, Asked>,
) -> Vec<Running> {
    let mut found: Vec<Running> = Vec::new();
    let mut add = |one: Running| {
        let alike = found.iter_mut().find(|other| {
            Running {
                count: one.count,
                ..(*other).clone()
            } == one
        });
        match alike {
            Some(other) => other.count = other.count.saturating_add(one.count),
            None => found.push(one),
        }
    };
    for held in reserved {
        add(of_request(
            &held.request,
            asked.get(&held.request),
            held.units,
        ));
    }
    let Some(view) = view else { return found };
    let Some(list) = &view.workloads else {
        return found;
    };
    // A GPU that several hold is counted with the first.
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    for work in &list.items {
        let name = RequestName(work.request.clone());
        if reserved.iter().any(|held| held.request == name) {
            continue;
        }
        let gpus = work.gpus.iter().filter(|gpu| taken.insert(gpu.as_str()));
        let gpus = u32::try_from(gpus.count()).unwrap_or(u32::MAX);
        let known = asked.get(&name);
        let mut one = match work.request.is_empty() {
            true => blank(1),
            false => of_request(&name, known, 1),
        };
        one.unit.gpus = gpus;
        one.started = started(view, work).or(one.started);
        one.movable = work.movable;
        add(one);
    }
    found
}

fn blank(count: u32) -> Running {
    Running {
        count,
        unit: Resources::default(),
        labels: BTreeMap::new(),
        namespace: String::new(),
        team: String::new(),
        host_ports: BTreeSet::new(),
        anti_affinity: Vec::new(),
        started: None,
        ends: None,
        movable: false,
    }
}

fn of_request(name: &RequestName, asked: Option<&Asked>, count: u32) -> Running {
    Running {
        labels: [(REQUEST_LABEL.to_owned(), name.0.clone())].into(),
        team: asked.map(|asked| asked.team.clone()).unwrap_or_default(),
        started: asked.and_then(|asked| asked.served),
        ends: asked.and_then(|asked| asked.ends),
        ..blank(count)
    }
}

/// When a process began, by our clock; absent when its host has not told how long it is up.
fn started(view: &AgentView, work: &Workload) -> Option<UnixMs> {
    let ticks: u64 = work.id.rsplit_once(':')?.1.parse().ok()?;
    let telemetry = view.telemetry.as_ref()?;
    let uptime = telemetry.uptime_s?.checked_mul(1_000)?;
    let told = i64::try_from(telemetry.at_unix_ms).ok()?;
    let told = u64::try_from(told.checked_sub(view.clock_offset_ms)?).ok()?;
    let began = told
        .checked_sub(uptime)?
        .checked_add(ticks.checked_mul(TICK_MS)?)?;
    (telemetry.at_unix_ms > 0).then_some(UnixMs(began - began % MINUTE_MS))
}

/// GPUs that shares of requests use in part: how many, and what is free of each, smallest first. Which GPU a share is on
/// is not known: each goes where it leaves the least.
pub(super) fn shares(reserved: &[Reserved]) -> Vec<u32> {
    let mut units: Vec<u32> = reserved
        .iter()
        .filter(|held| held.units > 0 && held.amount.gpu_milli > 0)
        .flat_map(|held| {
            let one = (held.amount.gpu_milli / held.units).min(WHOLE);
            std::iter::repeat_n(one, held.units as usize)
        })
        .collect();
    units.sort_unstable_by(|a, b| b.cmp(a));
    let mut free: Vec<u32> = Vec::new();
    for unit in units {
        let fits = free.iter_mut().filter(|room| **room >= unit);
        match fits.min() {
            Some(room) => *room -= unit,
            None => free.push(WHOLE - unit),
        }
    }
    free.sort_unstable();
    free
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::testing::view;
    use drover_proto::v1::Telemetry;
    use std::sync::Arc;

    fn held(request: &str, units: u32, milli: u32) -> Reserved {
        Reserved {
            request: RequestName::from(request),
            units,
            amount: Resources {
                gpu_milli: milli * units,
                ..Resources::default()
            },
            team: String::new(),
            ends: None,
        }
    }

    #[test]
    fn shares_are_packed_tightly_and_the_rest_is_told_by_gpu() {
        assert!(shares(&[held("whole", 3, 0)]).is_empty());
        assert_eq!(shares(&[held("a", 3, 250)]), [250]);
        assert_eq!(shares(&[held("a", 2, 600), held("b", 1, 300)]), [100, 400]);
        assert_eq!(shares(&[held("a", 1, 500), held("b", 1, 500)]), [0]);
    }

    #[test]
    fn work_is_told_with_its_request_and_its_start() {
        let mut view = view("n1");
        view.clock_offset_ms = 5_000;
        view.telemetry = Some(Arc::new(Telemetry {
            // The host's clock is 5 s ahead; it is up for 1,000 s.
            at_unix_ms: 10_000_000 + 5_000,
            uptime_s: Some(1_000),
            ..Telemetry::default()
        }));
        let work = |id: &str, gpus: &[&str], request: &str| Workload {
            id: id.to_owned(),
            gpus: gpus.iter().map(|gpu| (*gpu).to_owned()).collect(),
            request: request.to_owned(),
            ..Workload::default()
        };
        let list = Arc::make_mut(view.workloads.as_mut().expect("listed"));
        list.items = vec![
            work("7:60000", &["GPU-0", "GPU-1"], ""),
            work("8:60001", &["GPU-1", "GPU-2"], ""),
            work("9:60002", &["GPU-3"], "job"),
            work("10:1", &["GPU-4"], "served"),
            work("login:ann", &[], ""),
        ];
        let asked: BTreeMap<RequestName, Asked> = ["job", "served"]
            .map(|name| {
                let asked = Asked {
                    team: "vision".to_owned(),
                    served: Some(UnixMs(77)),
                    ends: Some(UnixMs(20_000_000)),
                };
                (RequestName::from(name), asked)
            })
            .into();
        let found = running(Some(&view), &[held("served", 4, 0)], &asked);
        let told: Vec<_> = found
            .iter()
            .map(|one| {
                let request = one.labels.get(REQUEST_LABEL).map_or("", String::as_str);
                (
                    one.count,
                    one.unit.gpus,
                    request,
                    one.started.map(|at| at.0),
                )
            })
            .collect();
        // 10,000 s - 1,000 s + 600 s = 9,600 s, to the minute.
        assert_eq!(
            told,
            [
                (4, 0, "served", Some(77)),
                (1, 2, "", Some(9_600_000)),
                (1, 1, "", Some(9_600_000)),
                (1, 1, "job", Some(9_600_000)),
                (1, 0, "", None),
            ]
        );
        assert_eq!(
            (found[3].team.as_str(), found[3].ends),
            ("vision", Some(UnixMs(20_000_000)))
        );
        // Without the host's word nothing is made up.
        view.telemetry = None;
        let found = running(Some(&view), &[], &BTreeMap::new());
        assert!(found.iter().all(|one| one.started.is_none()));
    }
}
