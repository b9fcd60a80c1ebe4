//! What stops a pool now, and the mode in force. Asked before planning and once more before an act; changes nothing.

use crate::config::PoolConfig;
use crate::control::cycle::{Control, Round};
use crate::control::observe::GROW_AGE;
use crate::records::{FreezeRecord, PoolRecord};
use drover_core::model::{Millis, Mode, PoolId, Stop};
use drover_core::rules::launch::MISSES_TO_PAUSE;

/// A reading older than this is not removed by.
const REMOVE_AGE: Millis = Millis(60_000);

impl Control {
    /// The mode in force: the run-time one before the config's.
    pub(in crate::control) fn mode(&self, round: &Round, pool: &PoolId) -> Mode {
        let (settings, _) = round.ledger.pool(pool);
        let config = self
            .config
            .pool(pool)
            .map_or(Mode::Observe, |pool| pool.mode);
        settings.mode.unwrap_or(config)
    }

    /// The fleet's freeze, or the pool's.
    pub(in crate::control) fn freeze_of<'r>(
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
    pub(in crate::control) fn is_frozen(&self, round: &Round, pool: &PoolId) -> bool {
        self.freeze_of(round, pool).is_some()
            || round.readings.get(pool).is_some_and(|reading| {
                reading
                    .stops
                    .iter()
                    .any(|stop| matches!(stop, Stop::Frozen { .. } | Stop::NotOurs { .. }))
            })
    }

    /// Why nothing of the pool may be removed now; `None`: it may.
    pub(in crate::control) fn removal_forbidden(
        &self,
        round: &Round,
        pool: &PoolId,
    ) -> Option<String> {
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
    pub(in crate::control) fn stops(&self, round: &Round, pool: &PoolConfig) -> Vec<Stop> {
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
            (Some(_), Some(why)) => stops.extend(crate::control::gone::stops(why)),
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
