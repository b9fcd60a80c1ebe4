//! One cycle's view of the world: how it is read, joined, and kept in step with what is committed.

use super::{Control, CycleError};
use crate::control::chance::Chance;
use crate::control::events::Happening;
use crate::control::fleet::{FleetNode, Sources, join};
use crate::control::ledger::Ledger;
use crate::control::tx::Tx;
use crate::ports::actuate::PoolReading;
use crate::ports::link::AgentView;
use crate::ports::store::{CommitError, ReadError, Revision};
use drover_core::model::{Millis, NodeId, PoolId, UnixMs};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One cycle's view of the world.
pub(in crate::control) struct Round {
    pub(in crate::control) now: UnixMs,
    pub(in crate::control) mono: Millis,
    pub(in crate::control) woken: u64,
    pub(in crate::control) ledger: Ledger,
    pub(in crate::control) agents: BTreeMap<NodeId, Arc<AgentView>>,
    pub(in crate::control) readings: BTreeMap<PoolId, Arc<PoolReading>>,
    /// Pools that were read in this cycle.
    pub(in crate::control) read: BTreeSet<PoolId>,
    pub(in crate::control) fleet: Vec<FleetNode>,
    /// Records have changed since the fleet was joined.
    pub(in crate::control) stale: bool,
    pub(in crate::control) chance: Arc<Chance>,
    /// Another cycle should follow at once.
    pub(in crate::control) again: bool,
    /// Told at the end, in batches.
    pub(in crate::control) events: Vec<Happening>,
}

impl Round {
    pub(in crate::control) fn node(&self, id: &NodeId) -> Option<&FleetNode> {
        self.fleet
            .binary_search_by(|node| node.id.cmp(id))
            .ok()
            .and_then(|at| self.fleet.get(at))
    }
}

impl Control {
    pub(super) async fn observe(&mut self) -> Result<Round, ReadError> {
        let woken = self.wake.count();
        let (now, mono) = (self.clock.wall(), self.clock.mono());
        let ledger = Ledger::read(self.journal.store().as_ref()).await?;
        let coming: BTreeSet<PoolId> = ledger
            .launches
            .values()
            .map(|held| held.value.pool.clone())
            .collect();
        let config = self.config.clone();
        let read = self
            .pools
            .read(&config, mono, |pool| coming.contains(pool))
            .await;
        let agents = self
            .link
            .views()
            .into_iter()
            .map(|view| (view.node.clone(), view))
            .collect();
        let mut round = Round {
            now,
            mono,
            woken,
            ledger,
            agents,
            readings: self.pools.readings(),
            read: read.into_iter().collect(),
            fleet: Vec::new(),
            stale: true,
            chance: self.chance.clone(),
            again: false,
            events: Vec::new(),
        };
        self.rejoin(&mut round);
        Ok(round)
    }

    /// Joins again if records changed: all else that is joined stays as it is for the whole cycle.
    pub(in crate::control) fn rejoin(&self, round: &mut Round) {
        if !std::mem::take(&mut round.stale) {
            return;
        }
        round.fleet = join(&Sources {
            config: &self.config,
            ledger: &round.ledger,
            views: &round.agents,
            readings: &round.readings,
            now: round.now,
            mono: round.mono,
        });
    }

    /// Commits and keeps the ledger in step. `None`: somebody else was faster, or it failed and was logged; the rest of
    /// the cycle goes on.
    pub(in crate::control) async fn commit(
        &self,
        round: &mut Round,
        tx: Tx,
    ) -> Result<Option<Revision>, CycleError> {
        if tx.is_empty() {
            return Ok(None);
        }
        let (change, apply) = tx.take();
        match self.journal.commit(change).await {
            Ok(revision) => {
                round.stale |= !apply.is_empty();
                for step in apply {
                    step(&mut round.ledger, revision);
                }
                Ok(Some(revision))
            }
            Err(error @ CommitError::Fenced { .. }) => Err(CycleError::Fenced(error)),
            Err(CommitError::Conflict { key }) => {
                tracing::debug!(key, "changed meanwhile: decided again in the next cycle");
                round.again = true;
                Ok(None)
            }
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "a change was not committed"
                );
                Ok(None)
            }
        }
    }
}
