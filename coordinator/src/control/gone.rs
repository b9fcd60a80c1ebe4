//! Groups that are gone: their provider answered that there is no such group. What they had coming cannot come; what
//! waited for it waits again, and goes to other pools in the same cycle.
//!
//! Called by the cycle before misses are counted. **Invariant:** only positive answers count, several of them, and only for
//! what was asked before the last (I4, I6): a group that cannot be read may well be there. Nodes that have joined are left alone, and an instance
//! that turns up all the same is adopted like any other.

use super::cycle::{Control, CycleError, Round};
use super::events::Happening;
use super::launches::life;
use super::requests::drop_assignments;
use super::tx::Tx;
use crate::ports::actuate::PoolReading;
use crate::records::{AssignmentTarget, LaunchRecord};
use drover_core::model::{FailureKind, InstanceId, PoolId, Stop, UnixMs};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Neither growth nor removal: there is nothing to ask and nobody to end.
pub(super) fn stops(why: &str) -> [Stop; 2] {
    let failed = Stop::Failed {
        failure: FailureKind::Config,
        why: why.to_owned(),
    };
    let kept = Stop::NoRemoval {
        why: "its group is gone".to_owned(),
    };
    [failed, kept]
}

impl Control {
    /// What its provider says of a pool whose group is gone.
    pub(super) fn gone(&self, pool: &PoolId) -> Option<&str> {
        let gone = self.pools.watch(pool)?.gone.as_ref();
        gone.map(|gone| gone.why.as_str())
    }

    /// Drops what cannot come any more.
    pub(super) async fn take_gone(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let gone: Vec<(PoolId, UnixMs, String)> = self
            .config
            .pools
            .iter()
            .filter_map(|pool| {
                let gone = self.pools.watch(&pool.name)?.gone.as_ref()?;
                let ago = round.mono.minus(gone.last);
                let said = UnixMs(round.now.0.saturating_sub(ago.0));
                let told = (pool.name.clone(), said, gone.why.clone());
                gone.certainly().then_some(told)
            })
            .collect();
        for (pool, said, why) in gone {
            self.forget_instances(round, &pool);
            let held = round.ledger.launches.values().map(|held| &held.value);
            let lost = held.filter(|launch| launch.pool == pool && launch.asked < said);
            let lost: Vec<LaunchRecord> = lost
                .filter(|launch| !self.asks.flying().any(|id| *id == launch.id))
                .cloned()
                .collect();
            for launch in lost {
                self.lose_launch(round, &launch, &why).await?;
            }
        }
        Ok(())
    }

    async fn lose_launch(
        &mut self,
        round: &mut Round,
        launch: &LaunchRecord,
        why: &str,
    ) -> Result<(), CycleError> {
        let missing = life(launch).coming();
        let id = &launch.id;
        let mut tx = Tx::new();
        drop_assignments(
            round,
            &mut tx,
            &format!("the nodes that they were to run on cannot come: {why}"),
            |target| matches!(target, AssignmentTarget::Launch(launch, _) if launch == id),
        );
        tx.delete_launch(&round.ledger, id);
        if missing > 0 {
            tx.event(Happening::LaunchLost {
                pool: launch.pool.clone(),
                launch: id.clone(),
                missing,
                why: why.to_owned(),
            });
        }
        if self.commit(round, tx).await?.is_some() {
            self.seen.retry.remove(id);
            if missing > 0 {
                let fell = (launch.pool.clone(), launch.offering.clone(), missing);
                self.seen.fell.push(fell);
            }
            round.again = true;
        }
        Ok(())
    }

    /// Instances that nobody speaks for went with their group; of what it offered the names stay.
    fn forget_instances(&mut self, round: &mut Round, pool: &PoolId) {
        let Some(reading) = round.readings.get(pool) else {
            return;
        };
        let joined: BTreeSet<&InstanceId> = round
            .fleet
            .iter()
            .filter(|node| node.joined())
            .filter_map(|node| node.instance_id.as_ref())
            .collect();
        let speaks = |id: &InstanceId| joined.contains(id);
        if reading.instances.iter().all(|found| speaks(&found.id)) && reading.unfilled == 0 {
            return;
        }
        let mut left = PoolReading::clone(reading);
        left.instances.retain(|found| speaks(&found.id));
        left.dead.clear();
        left.unfilled = 0;
        left.withdrawing = false;
        let left = Arc::new(left);
        self.pools.correct(pool, left.clone());
        round.readings.insert(pool.clone(), left);
        round.stale = true;
    }
}
