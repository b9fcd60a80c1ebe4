//! Probes of groups that are asked for a size: the answer names no instance, so what they gave is what is seen to appear.
//!
//! Called by the cycle after instances were tied. Hands what providers show to capacity memory; never asks.

use super::open_places;
use crate::control::cycle::{Control, CycleError, Round};
use crate::control::failures;
use crate::control::tx::Tx;
use crate::records::{LaunchRecord, LaunchState};

/// Nodes of a launch of which an instance was seen, joined or not.
pub(in crate::control) fn seen(launch: &LaunchRecord) -> u32 {
    let granted = launch.granted.unwrap_or(launch.count);
    let known = granted.saturating_sub(open_places(launch));
    known.saturating_add(launch.appeared).min(granted)
}

impl Control {
    /// An instance that appeared after a probe was asked shows that there is capacity, long before its agent joins.
    pub(in crate::control) async fn take_shown(
        &mut self,
        round: &mut Round,
    ) -> Result<(), CycleError> {
        let all = round.ledger.launches.values().map(|held| &held.value);
        let more: Vec<LaunchRecord> = all
            .filter(|launch| launch.state == LaunchState::Asked && launch.tells_no_ids())
            .filter(|launch| seen(launch) > launch.shown && is_probe(round, launch))
            .cloned()
            .collect();
        for launch in more {
            let all = seen(&launch);
            let mut tx = Tx::new();
            failures::gave(round, &mut tx, &launch.offering, all - launch.shown);
            let id = launch.id.clone();
            let launch = LaunchRecord {
                shown: all,
                ..launch
            };
            tx.put_launch(&round.ledger, &id, launch);
            self.commit(round, tx).await?;
        }
        Ok(())
    }
}

/// It was asked after its offering failed.
fn is_probe(round: &Round, launch: &LaunchRecord) -> bool {
    let memory = round.ledger.memory.get(&launch.offering);
    memory.is_some_and(|held| launch.asked > held.value.entry.failed)
}
