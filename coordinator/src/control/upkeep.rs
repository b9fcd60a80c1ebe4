//! What a pool's provider needs of us beside asking and leaving: protection on members that lack it, and giving back
//! what an ask wanted and the provider did not bring (DESIGN 5).
//!
//! Called by the cycle: protection before anything else is done to a pool, giving back after launches were followed.
//! Never in `observe`, never while frozen.

use super::cycle::{Control, CycleError, Round};
use super::deeds::{Deed, Done};
use super::events::Happening;
use super::input::coming;
use super::launches::{joined_count, may_be_of, unseen};
use super::requests::drop_assignments;
use super::tx::Tx;
use crate::ports::actuate::{
    ActuateError, Instance, InstanceState, PoolReading, ProviderFailure, Way, Withdrawal,
};
use crate::records::{AssignmentTarget, LaunchRecord, LaunchState};
use drover_core::model::{FailureKind, LaunchId, Millis, Mode, OfferingId, PoolId, UnixMs};

/// How far a provider's clock may be behind ours when instances are looked for.
pub(super) const CLOCK_SLACK: Millis = Millis::minutes(1);
/// And when a failure is laid to an ask.
pub(super) const SKEW: Millis = Millis::seconds(5);

impl Control {
    /// Members without scale-in protection get it before anything else is done to their pool.
    pub(super) async fn protect_members(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let bare = self.tended(round, |_, reading| {
            reading.instances.iter().any(|instance| {
                instance.protected == Some(false) && instance.state == InstanceState::Running
            })
        });
        for pool in bare {
            let deed = Deed::Guard(pool.clone());
            let Some(actuator) = self.driver(&pool).filter(|_| !self.is_at_work(&deed)) else {
                continue;
            };
            self.deeds.begin(deed, async move {
                let result = actuator.guard(&pool).await;
                Done::Guarded(pool, result)
            });
        }
        self.take_deeds(round).await
    }

    /// Gives back what no launch waits for any more, step by step.
    pub(super) async fn withdraw_wishes(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let due = self.tended(round, |pool, reading| {
            let asking = self.asks.flying().any(|id| {
                let launch = round.ledger.launches.get(id);
                launch.is_some_and(|held| held.value.pool == *pool)
            });
            !asking && (reading.withdrawing || nobodys_wish(round, pool, reading))
        });
        for pool in due {
            let deed = Deed::Withdraw(pool.clone());
            let Some(actuator) = self.driver(&pool).filter(|_| !self.is_at_work(&deed)) else {
                continue;
            };
            self.deeds.begin(deed, async move {
                let result = actuator.withdraw(&pool).await;
                Done::Withdrawn(pool, result)
            });
        }
        self.take_deeds(round).await
    }

    /// Writes down how far giving back is.
    pub(super) async fn withdrawn(
        &mut self,
        round: &mut Round,
        pool: &PoolId,
        result: Result<Withdrawal, ActuateError>,
    ) -> Result<(), CycleError> {
        match result {
            Ok(Withdrawal::Nothing) => {}
            Ok(Withdrawal::Waits { why }) => {
                tracing::info!(pool = %pool, why, "an unfilled wish is being withdrawn");
            }
            Ok(Withdrawal::Done { from, to }) => {
                let mut tx = Tx::new();
                tx.event(Happening::Withdrawn {
                    pool: pool.clone(),
                    from,
                    to,
                });
                tx.audit("pool.withdraw", pool.as_str(), format!("{from} to {to}"));
                lower_raised(round, &mut tx, pool, to);
                self.commit(round, tx).await?;
                self.pools.stale(pool);
                round.again = true;
            }
            Err(error) => {
                tracing::warn!(pool = %pool, error = %error, "an unfilled wish could not be withdrawn");
            }
        }
        Ok(())
    }

    /// Pools that were read just now, that we may change, and that need it.
    fn tended(&self, round: &Round, needs: impl Fn(&PoolId, &PoolReading) -> bool) -> Vec<PoolId> {
        let all = round.read.iter().filter(|pool| {
            round
                .readings
                .get(*pool)
                .is_some_and(|reading| needs(pool, reading))
                && self.mode(round, pool) != Mode::Observe
                && !self.is_frozen(round, pool)
        });
        all.cloned().collect()
    }

    fn driver(&self, pool: &PoolId) -> Option<std::sync::Arc<dyn crate::ports::actuate::Actuator>> {
        self.pools.actuator(self.config.pool(pool)?.kind())
    }
}

/// What was given back is not what launches of the pool are waited for any more: who wishes for it now is somebody else.
fn lower_raised(round: &Round, tx: &mut Tx, pool: &PoolId, to: u32) {
    let all = round.ledger.launches.iter();
    for (id, held) in all.filter(|(_, held)| held.value.pool == *pool) {
        let mut launch = held.value.clone();
        if let Some(raise) = launch.raised.as_mut().filter(|raise| raise.to > to) {
            raise.to = to.max(raise.from);
            tx.put_launch(&round.ledger, id, launch);
        }
    }
}

/// Whether it is there and stays.
pub(super) fn lives(instance: &&Instance) -> bool {
    matches!(
        instance.state,
        InstanceState::Pending | InstanceState::Running
    )
}

/// Whether the provider is to bring more than any launch of ours waits for.
fn nobodys_wish(round: &Round, pool: &PoolId, reading: &PoolReading) -> bool {
    let live = reading.instances.iter().filter(lives).count();
    let live = u32::try_from(live).unwrap_or(u32::MAX);
    let below_min = reading.provider_min.unwrap_or(0).saturating_sub(live);
    if reading.unfilled <= below_min {
        return false;
    }
    let flying: Vec<&LaunchRecord> = round
        .ledger
        .launches
        .values()
        .map(|held| &held.value)
        .filter(|launch| launch.pool == *pool && coming(launch) > 0)
        .collect();
    if flying
        .iter()
        .any(|launch| launch.state == LaunchState::Intended)
    {
        return false;
    }
    let Some(oldest) = flying.iter().map(|launch| launch.asked).min() else {
        return true;
    };
    // What is there already and has not joined is what these launches wait for.
    let from = UnixMs(oldest.0.saturating_sub(CLOCK_SLACK.0));
    let there = reading.instances.iter().filter(lives).filter(|instance| {
        instance.launched.is_none_or(|at| at >= from)
            && !round
                .fleet
                .iter()
                .any(|node| node.joined() && node.instance_id.as_ref() == Some(&instance.id))
    });
    let wanted: u32 = flying.iter().map(|launch| coming(launch)).sum();
    u32::try_from(there.count()).unwrap_or(u32::MAX) >= wanted
}

/// Adds to a change: a provider that says it has no more will not bring what launches without ids still wait for. Gives
/// what was missed, by pool and offering. `of`: the launch of each failure, where that is known.
pub(super) fn give_up_unfilled(
    round: &Round,
    tx: &mut Tx,
    pool: &PoolId,
    failures: &[ProviderFailure],
    of: &[Option<LaunchId>],
) -> Vec<(PoolId, OfferingId, u32)> {
    let mut fell = Vec::new();
    let mut rest = round
        .readings
        .get(pool)
        .map_or(0, |reading| reading.unfilled);
    let has_none = |failure: &ProviderFailure| {
        use FailureKind::{Price, Quota, Shortage, Transient};
        matches!(failure.kind, Shortage | Quota | Price | Transient)
    };
    let told = || failures.iter().zip(of).filter(|(said, _)| has_none(said));
    let mut open: Vec<(&LaunchRecord, String)> = round
        .ledger
        .launches
        .values()
        .map(|held| &held.value)
        .filter(|launch| {
            launch.pool == *pool
                && launch.state == LaunchState::Asked
                && launch.way == Some(Way::SetDesiredCapacity)
        })
        .filter_map(|launch| {
            let mut may = told().filter(|(said, of)| may_be_of(launch, said, of.as_ref()));
            let (said, of) = may.next()?;
            Some((launch, why_given_up(said, of.is_some())))
        })
        .collect();
    open.sort_by_key(|(launch, _)| std::cmp::Reverse(launch.asked));
    let mut cut: Vec<(LaunchRecord, u32, String)> = Vec::new();
    for (launch, why) in open {
        // What has been seen is there, whoever else misses something.
        let missing = unseen(launch).min(rest);
        if missing == 0 {
            continue;
        }
        rest -= missing;
        fell.push((pool.clone(), launch.offering.clone(), missing));
        let granted = launch.granted.unwrap_or(launch.count);
        let less = LaunchRecord {
            granted: Some(granted.saturating_sub(missing)),
            ..launch.clone()
        };
        cut.push((less, granted, why));
    }
    let why = cut.first().map_or("", |(_, _, why)| why).to_owned();
    // One pass over all of them: a request may wait for several.
    drop_assignments(round, tx, &why, |target| {
        cut.iter().any(|(launch, ..)| {
            matches!(target, AssignmentTarget::Launch(of, n)
                if *of == launch.id && *n >= launch.granted.unwrap_or(0))
        })
    });
    for (launch, before, why) in cut {
        let id = launch.id.clone();
        let granted = launch.granted.unwrap_or(0);
        tx.event(Happening::LaunchLost {
            pool: pool.clone(),
            launch: id.clone(),
            missing: before.saturating_sub(granted),
            why,
        });
        if granted <= joined_count(&launch) {
            tx.delete_launch(&round.ledger, &id);
        } else {
            tx.put_launch(&round.ledger, &id, launch);
        }
    }
    fell
}

/// Why what a launch waits for is given up. What somebody else may have asked for as well is not laid to it.
fn why_given_up(said: &ProviderFailure, its_own: bool) -> String {
    if its_own {
        return said.message.clone();
    }
    format!("{} ({})", said.message, super::events::OF_NO_ASK)
}
