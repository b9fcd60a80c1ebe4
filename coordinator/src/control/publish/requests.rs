//! Requests as they are shown: what is ready, what comes, what is held up and by what, what is missing.
//!
//! Called by `publish`. **Invariant:** only what can still come is called coming; a node that was ready and is not now is
//! named, with why.

use super::advice::would_ask;
use crate::control::cycle::{Control, Round};
use crate::control::events::time;
use crate::control::fleet::FleetNode;
use crate::control::requests::assigned;
use crate::control::view::{AssignmentView, RequestShown, RequestView, UnitState, units};
use crate::records::{AssignmentTarget, LaunchState, RequestRecord, RequestState};
use drover_core::model::{
    Cordon, Lifecycle, NodeId, PlanInput, Planned, PoolId, Reason, RequestName, Source,
};
use std::collections::{BTreeMap, BTreeSet};

/// Assignments by the node that they are on.
pub(super) fn held_by(round: &Round) -> BTreeMap<NodeId, Vec<AssignmentView>> {
    let mut held: BTreeMap<NodeId, Vec<AssignmentView>> = BTreeMap::new();
    for request in round.ledger.requests.values() {
        for view in assignment_views(round, &request.value) {
            if let Some(node) = &view.node {
                held.entry(node.clone()).or_default().push(view);
            }
        }
    }
    held
}

fn assignment_views(round: &Round, request: &RequestRecord) -> Vec<AssignmentView> {
    request
        .assignments
        .iter()
        .map(|found| {
            let name: RequestName = request.name.clone();
            match &found.target {
                AssignmentTarget::Node(id) => {
                    let node = round.node(id);
                    let state =
                        node.map_or_else(|| UnitState::Unavailable("is gone".to_owned()), state_on);
                    AssignmentView {
                        request: name,
                        node: Some(id.clone()),
                        node_name: node.map_or_else(|| id.0.clone(), |node| node.name.clone()),
                        instance: node.and_then(|node| node.instance_id.clone()),
                        pool: node.and_then(|node| node.pool.clone()),
                        units: found.units,
                        gpus: found.amount.gpus,
                        kept: node
                            .filter(|_| state == UnitState::Ready)
                            .and_then(|node| node.kept())
                            .unwrap_or_default()
                            .to_owned(),
                        state,
                    }
                }
                AssignmentTarget::Launch(id, _) => {
                    let launch = round.ledger.launches.get(id).map(|held| &held.value);
                    let late = launch.is_none_or(|launch| launch.state == LaunchState::Missed);
                    AssignmentView {
                        request: name,
                        node: None,
                        node_name: id.0.clone(),
                        instance: None,
                        pool: launch.map(|launch| launch.pool.clone()),
                        units: found.units,
                        gpus: found.amount.gpus,
                        kept: String::new(),
                        state: if late {
                            UnitState::Unavailable("never joined".to_owned())
                        } else {
                            UnitState::Coming("is asked for, has not joined".to_owned())
                        },
                    }
                }
            }
        })
        .collect()
}

/// How units on a node are: it takes work, it will for the first time, or it did and does not now.
fn state_on(node: &FleetNode) -> UnitState {
    if node.serves() {
        return UnitState::Ready;
    }
    let because = |what: String, why: &str| {
        UnitState::Unavailable(match why {
            "" => what,
            why => format!("{what}: {why}"),
        })
    };
    if let Some(drain) = &node.drain {
        return because(format!("is drained by {}", drain.by), &drain.reason);
    }
    match node.lifecycle {
        Lifecycle::Draining | Lifecycle::Drained | Lifecycle::Leaving => {
            return UnitState::Unavailable("leaves".to_owned());
        }
        Lifecycle::Gone => return UnitState::Unavailable("is gone".to_owned()),
        Lifecycle::Off => return UnitState::Unavailable("is off".to_owned()),
        _ => {}
    }
    if let Some(taken) = node.taken.as_ref().filter(|taken| taken.doomed) {
        return because("is ended by its cloud".to_owned(), &taken.why);
    }
    if let Some(what) = &node.faulty {
        return because("is faulty".to_owned(), what);
    }
    if let Some(Cordon::Person { who, why }) = &node.cordon {
        return because(format!("is cordoned by {who}"), why);
    }
    let once = node
        .record
        .as_ref()
        .is_some_and(|record| record.ready_at.is_some());
    if !once {
        let what = "has joined, is not ready yet";
        return UnitState::Coming(match &node.lacks {
            Some(lacks) => format!("{what}: {lacks}"),
            None => what.to_owned(),
        });
    }
    if node.unreachable {
        return UnitState::Unavailable(match &node.agent {
            Some(agent) => format!("is unreachable since {}", time(agent.last_seen)),
            None => "is unreachable since the coordinator started".to_owned(),
        });
    }
    if node.cordon.is_some() {
        return UnitState::Coming("is taken back from Drover's own cordon".to_owned());
    }
    UnitState::Unavailable("is not ready any more".to_owned())
}

/// "16 of 20 units on ready nodes; waits for nodes of cloud, rack".
fn waits_for(assignments: &[AssignmentView], ready: u32, wanted: u32) -> String {
    let pools: BTreeSet<&str> = assignments
        .iter()
        .filter(|found| matches!(found.state, UnitState::Coming(_)))
        .map(|found| found.pool.as_ref().map_or("no pool", PoolId::as_str))
        .collect();
    let pools: Vec<&str> = pools.into_iter().collect();
    format!(
        "{ready} of {} on ready nodes; waits for nodes of {}",
        units(wanted),
        pools.join(", ")
    )
}

/// "4 units are unavailable: host-7 is drained by admin/ada: new disk".
fn held_up(assignments: &[AssignmentView]) -> impl Iterator<Item = String> + '_ {
    assignments.iter().filter_map(|found| {
        let UnitState::Unavailable(why) = &found.state else {
            return None;
        };
        let verb = if found.units == 1 { "is" } else { "are" };
        let count = units(found.units);
        Some(format!(
            "{count} {verb} unavailable: {} {why}",
            found.node_name
        ))
    })
}

/// The cause that a person should know first: the first reason is all that a table shows. Best is what would be asked once
/// somebody lets a pool. What it needs, and pools that differ or are too small for it, explain nothing alone while something
/// else stands in the way; nor does a pool of which nobody knows whether it could serve.
fn cause_first(reasons: &[Reason], would_ask: impl Fn(&PoolId) -> bool) -> Vec<Reason> {
    let aside = |reason: &Reason| match reason {
        Reason::PoolMode { pool, .. } if would_ask(pool) => 0,
        Reason::UnknownType { .. } => 2,
        Reason::PoolDiffers { .. } | Reason::PoolTooSmall { .. } => 3,
        Reason::Needs { .. } | Reason::More { .. } => 4,
        _ => 1,
    };
    let first = reasons.iter().enumerate().min_by_key(|(_, r)| aside(r));
    let mut all = reasons.to_vec();
    if let Some((at, _)) = first {
        let cause = all.remove(at);
        all.insert(0, cause);
    }
    all
}

/// "4 units are on host-7, which takes no new work: rebalance recommendation, counts until 12:30".
fn kept(assignments: &[AssignmentView]) -> impl Iterator<Item = String> + '_ {
    let kept = assignments.iter().filter(|found| !found.kept.is_empty());
    kept.map(|found| {
        let verb = if found.units == 1 { "is" } else { "are" };
        format!(
            "{} {verb} on {}, which takes no new work: {}",
            units(found.units),
            found.node_name,
            found.kept
        )
    })
}

pub(super) fn request_view(
    control: &Control,
    round: &Round,
    request: &RequestRecord,
    input: &PlanInput,
    planned: &Planned,
) -> RequestView {
    let assignments = assignment_views(round, request);
    let sum = |which: &dyn Fn(&UnitState) -> bool| -> u32 {
        let found = assignments.iter().filter(|found| which(&found.state));
        found.map(|found| found.units).sum()
    };
    let ready = sum(&|state| matches!(state, UnitState::Ready));
    let coming = sum(&|state| matches!(state, UnitState::Coming(_)));
    let away = sum(&|state| matches!(state, UnitState::Unavailable(_)));
    let missing = request.spec.units.saturating_sub(assigned(request));
    let source = Source::Request(request.name.clone());
    let outcome = input
        .classes
        .iter()
        .zip(&planned.report.classes)
        .find(|(class, _)| class.source == source)
        .map(|(_, outcome)| outcome);
    let mut reasons: Vec<String> = held_up(&assignments).collect();
    if missing > 0 {
        // Else nothing is left to plan for it: what it waits for is told below.
        let asks = |pool: &PoolId| would_ask(planned, &source, pool) > 0;
        let why = outcome.map(|outcome| cause_first(&outcome.reasons, asks));
        reasons.extend(
            why.map(|why| control.advised(round, planned, &source, &why))
                .unwrap_or_default(),
        );
    }
    let impossible = outcome.is_some_and(|outcome| outcome.impossible) && missing > 0;
    let all_ready = missing == 0 && ready >= request.spec.units;
    let shown = match request.state {
        RequestState::Ended => RequestShown::Ended,
        RequestState::Cancelled => RequestShown::Cancelled,
        _ if impossible => RequestShown::Impossible,
        RequestState::Served if missing == 0 => RequestShown::Served,
        // Recorded in the next cycle.
        RequestState::Pending if all_ready => RequestShown::Served,
        _ if ready > 0 => RequestShown::Partial,
        _ => RequestShown::Pending,
    };
    let lasts = request.spec.duration.map(|span| round.now.after(span));
    let begins = shown == RequestShown::Served && request.state == RequestState::Pending;
    if let Some((at, by)) = &request.closed {
        reasons.push(format!("closed {} by {by}", time(*at)));
    } else if let Some(ends) = request.ends.or(lasts.filter(|_| begins)) {
        reasons.push(format!("held until {}", time(ends)));
    } else if shown == RequestShown::Served {
        reasons.push("held until cancelled".to_owned());
    } else if missing == 0 && coming > 0 {
        reasons.push(waits_for(&assignments, ready, request.spec.units));
    }
    reasons.extend(kept(&assignments));
    let over = matches!(shown, RequestShown::Ended | RequestShown::Cancelled);
    RequestView {
        record: request.clone(),
        shown,
        units_ready: ready,
        units_coming: coming,
        units_unavailable: away,
        units_missing: if over { 0 } else { missing },
        assignments,
        reasons,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drover_core::model::{Locality, Mode, Resources};

    #[test]
    fn the_short_reason_is_the_cause_and_not_what_is_needed() {
        let needs = Reason::Needs {
            unit: Resources::default(),
            whole_node: true,
            gang: None,
            locality: Locality::Any,
        };
        let differs = Reason::PoolDiffers {
            pool: "b".into(),
            what: "disk".to_owned(),
        };
        let unread = Reason::PoolUnread {
            pool: "a".into(),
            why: "no credentials".to_owned(),
        };
        let first = |all: &[Reason]| cause_first(all, |pool| pool.as_str() == "c");
        let all = [needs.clone(), differs.clone(), unread.clone()];
        assert_eq!(
            first(&all),
            [unread.clone(), needs.clone(), differs.clone()]
        );
        assert_eq!(first(&all[..2]), [differs, needs.clone()]);
        assert_eq!(first(&all[..1]), std::slice::from_ref(&needs));
        assert!(first(&[]).is_empty());
        // What would be asked is better to know than what is broken elsewhere.
        let unknown = Reason::UnknownType {
            pool: "d".into(),
            instance_type: "zz9.huge".to_owned(),
        };
        let mode = |pool: &str| Reason::PoolMode {
            pool: pool.into(),
            mode: Mode::Observe,
        };
        let all = [needs, unknown, unread.clone(), mode("b"), mode("c")];
        assert_eq!(first(&all)[0], mode("c"));
        assert_eq!(first(&all[..4])[0], unread);
        assert_eq!(first(&[all[1].clone(), mode("b")])[0], mode("b"));
    }
}
