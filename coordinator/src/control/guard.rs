//! What holds the fleet's hand: settling after a start, silent sites, clocks that drift apart, sources that shrink or
//! fail, freezes, modes; as stops of pools for the planner, and once more before an act. The breaker is no stop: drains go
//! on, and `breaker` holds at the very act.
//!
//! Called by the cycle before planning and by `execute`. Only ever takes away.

mod source;
mod stops;

use super::cycle::{Control, Round};
use super::events::Happening;
use super::journal::EVENT_TAIL;
use super::launches::open_places;
use crate::records::{LaunchRecord, LaunchState};
use drover_core::model::{InstanceId, Lifecycle, Millis, PoolKind, SiteId, UnixMs};
use drover_core::rules::{clock, site};
use std::collections::BTreeMap;

/// Whether what is new in a pool may be what this launch asked for.
fn awaits(launch: &LaunchRecord) -> bool {
    match launch.state {
        LaunchState::Intended => true,
        LaunchState::Asked => open_places(launch) > 0,
        LaunchState::Missed => false,
    }
}

impl Control {
    /// Looks at clocks, sites and the start; tells what changed.
    pub(super) async fn guard(&mut self, round: &mut Round) {
        self.recall_adopted().await;
        self.guard_start(round);
        self.guard_clocks(round);
        self.guard_sites(round);
        self.guard_pools(round);
    }

    /// What was told as adopted before a restart is not told again.
    async fn recall_adopted(&mut self) {
        if std::mem::replace(&mut self.seen.recalled, true) {
            return;
        }
        let events = self.journal.events(0, "", EVENT_TAIL).await;
        let adopted = events.iter().filter(|event| event.what == "adopted");
        let names = adopted.flat_map(|event| &event.names);
        let ids = names.map(|name| InstanceId::new(name.as_str()));
        self.seen.adopted.extend(ids);
    }

    fn guard_start(&mut self, round: &Round) {
        if self.seen.settled {
            return;
        }
        let waited = Millis(round.mono.0.saturating_sub(self.seen.started_mono.0));
        let all = round
            .fleet
            .iter()
            .filter(|node| node.joined() && node.lifecycle != Lifecycle::Off)
            .all(|node| node.agent.as_ref().is_some_and(|agent| agent.connected));
        self.seen.settled = all || waited >= self.config.control.settle;
    }

    fn guard_clocks(&mut self, round: &mut Round) {
        let longest = self.config.pools.iter().map(|pool| pool.idle_after).max();
        let longest = longest.unwrap_or_default();
        let reading = clock::Reading {
            wall: round.now,
            mono: round.mono,
        };
        let was_frozen = self.seen.clocks.frozen_until.is_some();
        let (guard, drift) = clock::step(self.seen.clocks, reading, longest);
        self.seen.clocks = guard;
        if let Some(drift) = drift {
            self.seen.drifted = Some((round.mono, drift));
            round.events.push(Happening::ClockDrift {
                drift,
                until: round.now.after(longest),
            });
        } else if was_frozen && guard.frozen_until.is_none() {
            self.seen.drifted = None;
            round.events.push(Happening::ClockTrusted);
        }
    }

    /// All nodes of a site silent at once is a network fault (I6). One node alone is no site.
    fn guard_sites(&mut self, round: &mut Round) {
        if !self.seen.settled {
            return;
        }
        let mut sites: BTreeMap<SiteId, site::Heard> = BTreeMap::new();
        for node in &round.fleet {
            // Whom we do not listen to tells nothing of the network.
            let there = node.joined()
                && node.quarantine().is_none()
                && !matches!(
                    node.lifecycle,
                    Lifecycle::Off | Lifecycle::Gone | Lifecycle::Leaving
                );
            if let (Some(site), true) = (&node.site, there) {
                let heard = sites.entry(site.clone()).or_default();
                heard.expected += 1;
                heard.silent += u32::from(node.unreachable);
            }
        }
        for (site, heard) in &sites {
            let was = self.seen.silent_sites.contains_key(site);
            match site::step(was, *heard).1 {
                Some(site::Change::Fell) => {
                    self.seen.silent_sites.insert(site.clone(), round.now);
                    round.events.push(Happening::SiteSilent {
                        site: site.clone(),
                        nodes: heard.expected,
                    });
                }
                Some(site::Change::Returned) => {
                    self.seen.silent_sites.remove(site);
                    round
                        .events
                        .push(Happening::SiteBack { site: site.clone() });
                }
                None => {}
            }
        }
        self.seen
            .silent_sites
            .retain(|site, _| sites.contains_key(site));
    }

    fn guard_pools(&mut self, round: &mut Round) {
        for node in round.fleet.iter().filter(|node| !node.joined()) {
            let (Some(pool), Some(instance)) = (&node.pool, &node.instance_id) else {
                continue;
            };
            let cloud = self
                .config
                .pool(pool)
                .is_some_and(|pool| pool.kind() != PoolKind::Static);
            // While an answer is not known, what is new may well be ours.
            let asking = round
                .ledger
                .launches
                .values()
                .any(|held| held.value.pool == *pool && awaits(&held.value));
            if cloud
                && !asking
                && node.launch.is_none()
                && node.lifecycle == Lifecycle::Launched
                && self.seen.adopted.insert(instance.clone())
            {
                round.events.push(Happening::Adopted {
                    pool: pool.clone(),
                    instance: instance.clone(),
                });
            }
        }
        for pool in &self.config.pools {
            let error = self
                .pools
                .watch(&pool.name)
                .and_then(|watch| watch.error.as_ref());
            match error {
                Some(error) => {
                    if self.seen.unreadable.insert(pool.name.clone()) {
                        round.events.push(Happening::PoolUnreadable {
                            pool: pool.name.clone(),
                            message: error.message.clone(),
                        });
                    }
                }
                None => {
                    if self.seen.unreadable.remove(&pool.name) {
                        round.events.push(Happening::PoolReadable {
                            pool: pool.name.clone(),
                        });
                    }
                }
            }
            let warnings = round
                .readings
                .get(&pool.name)
                .map(|reading| reading.warnings.as_slice())
                .unwrap_or_default();
            for warning in warnings {
                if self
                    .seen
                    .warned
                    .insert((pool.name.clone(), warning.clone()))
                {
                    round.events.push(Happening::PoolWarning {
                        pool: pool.name.clone(),
                        message: warning.clone(),
                    });
                }
            }
        }
    }
}

/// Since when an alarm holds; remembered by its kind and subject.
pub(super) fn since(
    seen: &mut BTreeMap<(&'static str, String), UnixMs>,
    kind: &'static str,
    subject: &str,
    now: UnixMs,
) -> UnixMs {
    *seen.entry((kind, subject.to_owned())).or_insert(now)
}
