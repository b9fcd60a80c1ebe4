//! What holds the fleet's hand: settling after a start, silent sites, clocks that drift apart, sources that shrink or
//! fail, freezes, modes; as stops of pools for the planner, and once more before an act. The breaker is no stop: drains go
//! on, and `breaker` holds at the very act.
//!
//! Called by the cycle before planning and by `execute`. Only ever takes away.

use super::cycle::{Control, Round};
use super::events::Happening;
use super::observe::GROW_AGE;
use crate::config::PoolConfig;
use crate::ports::demand::DemandReading;
use crate::records::{FreezeRecord, PoolRecord};
use drover_core::model::{Lifecycle, Millis, Mode, PoolId, PoolKind, SiteId, Stop, UnixMs};
use drover_core::rules::idle::lost_half;
use drover_core::rules::launch::MISSES_TO_PAUSE;
use drover_core::rules::{clock, site};
use std::collections::BTreeMap;

/// A source that shrank must say the same for this long.
const CONFIRM: Millis = Millis(60_000);
/// A reading older than this is not removed by.
const REMOVE_AGE: Millis = Millis(60_000);

impl Control {
    /// The mode in force: the run-time one before the config's.
    pub(super) fn mode(&self, round: &Round, pool: &PoolId) -> Mode {
        let (settings, _) = round.ledger.pool(pool);
        let config = self
            .config
            .pool(pool)
            .map_or(Mode::Observe, |pool| pool.mode);
        settings.mode.unwrap_or(config)
    }

    /// The fleet's freeze, or the pool's.
    pub(super) fn freeze_of<'r>(
        &self,
        round: &'r Round,
        pool: &PoolId,
    ) -> Option<&'r FreezeRecord> {
        let freezes = &round.ledger.freezes;
        freezes
            .get("*")
            .or_else(|| freezes.get(pool.as_str()))
            .map(|held| &held.value)
    }

    /// Frozen by a person, or by its group's tag.
    pub(super) fn is_frozen(&self, round: &Round, pool: &PoolId) -> bool {
        self.freeze_of(round, pool).is_some()
            || round.readings.get(pool).is_some_and(|reading| {
                reading
                    .stops
                    .iter()
                    .any(|stop| matches!(stop, Stop::Frozen { .. } | Stop::NotOurs { .. }))
            })
    }

    /// Why nothing of the pool may be removed now; `None`: it may.
    pub(super) fn removal_forbidden(&self, round: &Round, pool: &PoolId) -> Option<String> {
        let config = self.config.pool(pool)?;
        self.stops(round, config)
            .iter()
            .find_map(|stop| match stop {
                Stop::Frozen { .. }
                | Stop::SiteSilent
                | Stop::Stale { .. }
                | Stop::NotOurs { .. } => Some(drover_core::planner::render_stop(stop)),
                Stop::NoRemoval { why } => Some(why.clone()),
                _ => None,
            })
    }

    /// Everything that stops a pool now.
    pub(super) fn stops(&self, round: &Round, pool: &PoolConfig) -> Vec<Stop> {
        let mut stops = Vec::new();
        let (settings, _) = round.ledger.pool(&pool.name);
        if let Some(freeze) = self.freeze_of(round, &pool.name) {
            stops.push(Stop::Frozen {
                by: freeze.by.clone(),
                why: freeze.reason.clone(),
            });
        }
        stops.extend(own_stops(&settings));
        // Else its idle nodes would be drained and taken back again and again.
        if let (Some(said), true) = (
            self.seen.refused_leaves.get(&pool.name),
            settings.failed.is_some(),
        ) {
            stops.push(Stop::NoRemoval {
                why: format!("the provider refused to end an instance: {said}"),
            });
        }
        if let Some((said, until)) = self.seen.held_leaves.get(&pool.name)
            && round.mono < *until
        {
            stops.push(Stop::NoRemoval {
                why: format!("the provider refused to end an instance, tried again later: {said}"),
            });
        }
        if let Some((why, _, until)) = self.seen.held_growth.get(&pool.name)
            && round.mono < *until
        {
            stops.push(Stop::Stale {
                may_grow: false,
                why: why.clone(),
            });
        }
        let gone = self.gone(&pool.name);
        match (round.readings.get(&pool.name), gone) {
            (Some(_), Some(why)) => stops.extend(super::gone::stops(why)),
            (Some(reading), None) => stops.extend(reading.stops.iter().cloned()),
            (None, _) => {}
        }
        if !self.seen.settled {
            stops.push(Stop::Stale {
                may_grow: false,
                why: "agents have not had time to return after the start".to_owned(),
            });
        }
        if gone.is_none() || !round.readings.contains_key(&pool.name) {
            stops.extend(self.stale(round, pool));
        }
        if self.seen.silent_sites.contains_key(&pool.site) {
            stops.push(Stop::SiteSilent);
        }
        if let Some((at, drift)) = self.seen.drifted
            && round.mono.0.saturating_sub(at.0) < pool.idle_after.0
        {
            stops.push(Stop::NoRemoval {
                why: format!("the clocks drifted apart by {} s", drift.0 / 1_000),
            });
        }
        for (why, _) in self.seen.doubtful.values() {
            stops.push(Stop::NoRemoval { why: why.clone() });
        }
        stops
    }

    fn stale(&self, round: &Round, pool: &PoolConfig) -> Option<Stop> {
        let watch = self.pools.watch(&pool.name)?;
        let age = Millis(round.mono.0.saturating_sub(watch.read_mono.0));
        let error = watch.error.as_ref().map(|error| error.message.clone());
        match (&watch.reading, error) {
            (None, error) => Some(Stop::Stale {
                may_grow: false,
                why: error.unwrap_or_else(|| "not read yet".to_owned()),
            }),
            (Some(_), Some(why)) => Some(Stop::Stale {
                may_grow: age < GROW_AGE,
                why,
            }),
            (Some(_), None) if age > REMOVE_AGE => Some(Stop::Stale {
                may_grow: age < GROW_AGE,
                why: format!("read {} s ago", age.0 / 1_000),
            }),
            _ => None,
        }
    }

    /// Looks at clocks, sites and the start; tells what changed.
    pub(super) fn guard(&mut self, round: &mut Round) {
        self.guard_start(round);
        self.guard_clocks(round);
        self.guard_sites(round);
        self.guard_pools(round);
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
                .any(|held| held.value.pool == *pool && held.value.instances.is_empty());
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

    /// A source that fails, or that loses half of what it reported a cycle ago, holds shrinking until it is confirmed.
    /// Drover's own requests are exact and need no confirming.
    pub(super) fn guard_source(
        &mut self,
        round: &mut Round,
        name: &str,
        reading: Result<&DemandReading, &str>,
        left: u64,
    ) {
        match reading {
            Err(message) => {
                let why = format!("source {name} cannot be read");
                let news = self
                    .seen
                    .doubtful
                    .insert(name.to_owned(), (why, round.mono))
                    .is_none();
                if news {
                    round.events.push(Happening::SourceFailed {
                        source: name.to_owned(),
                        message: message.to_owned(),
                    });
                }
            }
            Ok(reading) => {
                let units = reading
                    .classes
                    .iter()
                    .fold(0_u32, |sum, class| sum.saturating_add(class.count));
                let before = self.seen.units.insert(name.to_owned(), units);
                let left_before = self.seen.left.insert(name.to_owned(), left);
                let gone = left.saturating_sub(left_before.unwrap_or(left));
                let gone = u32::try_from(gone).unwrap_or(u32::MAX);
                let shrank = name != crate::ports::demand::REQUESTS
                    && before.is_some_and(|before| lost_half(before, units.saturating_add(gone)));
                if shrank {
                    let before = before.unwrap_or_default();
                    let why = format!("source {name} fell from {before} to {units} units");
                    self.seen
                        .doubtful
                        .insert(name.to_owned(), (why, round.mono));
                    round.events.push(Happening::SourceShrunk {
                        source: name.to_owned(),
                        before,
                        now: units,
                    });
                    return;
                }
                let failed = self
                    .seen
                    .doubtful
                    .get(name)
                    .is_some_and(|(why, _)| why.ends_with("cannot be read"));
                let confirmed =
                    self.seen.doubtful.get(name).is_some_and(|(_, since)| {
                        round.mono.0.saturating_sub(since.0) >= CONFIRM.0
                    });
                if failed || confirmed {
                    self.seen.doubtful.remove(name);
                    round.events.push(Happening::SourceBack {
                        source: name.to_owned(),
                    });
                }
            }
        }
    }
}

/// Stops that are in the pool's own record.
fn own_stops(settings: &PoolRecord) -> Vec<Stop> {
    let mut stops = Vec::new();
    if let Some((by, why, _)) = &settings.paused {
        stops.push(Stop::Paused {
            by: by.clone(),
            why: why.clone(),
        });
    }
    if settings.misses >= MISSES_TO_PAUSE {
        stops.push(Stop::NeverJoined {
            misses: settings.misses,
        });
    }
    if let Some((failure, why, _)) = &settings.failed {
        stops.push(Stop::Failed {
            failure: *failure,
            why: why.clone(),
        });
    }
    stops
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
