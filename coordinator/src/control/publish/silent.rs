//! Machines that cost money while nobody hears of them and no source knows work on them: told with what they cost.
//!
//! Called by `publish` for alarms and pools. Decides nothing: silence is not death (I6), a person looks.

use crate::control::cycle::{Control, Round};
use crate::control::fleet::FleetNode;
use crate::ports::actuate::InstanceState;
use drover_core::model::{MicroUsd, Millis, PoolId, PoolKind};

/// Silent and empty for so long is worth a person.
const SILENT: Millis = Millis::minutes(30);

/// Machines of one pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Silent {
    count: u32,
    cost: MicroUsd,
}

impl Silent {
    /// "2 machines are silent and empty for more than 30 min and cost 43.20 USD/h".
    pub(super) fn told(self) -> Option<String> {
        let (noun, verb) = if self.count == 1 {
            ("machine is", "costs")
        } else {
            ("machines are", "cost")
        };
        let cents = self.cost.0 / 10_000;
        (self.count > 0).then(|| {
            format!(
                "{} {noun} silent and without known work for more than {} min and {verb} {}.{:02} USD/h",
                self.count,
                SILENT.0 / 60_000,
                cents / 100,
                cents % 100
            )
        })
    }
}

impl Control {
    /// Of a pool that costs money by the hour.
    pub(super) fn silent(&self, round: &Round, pool: &PoolId) -> Silent {
        let mut found = Silent::default();
        let cloud = self.config.pool(pool).map(|pool| pool.kind());
        if cloud.is_none_or(|kind| kind == PoolKind::Static) {
            return found;
        }
        for node in &round.fleet {
            if node.pool.as_ref() == Some(pool) && self.is_silent(round, node) {
                found.count += 1;
                found.cost = found.cost.plus(node.price.unwrap_or_default());
            }
        }
        found
    }

    fn is_silent(&self, round: &Round, node: &FleetNode) -> bool {
        let runs = node.instance.as_ref().is_some_and(|found| {
            matches!(found.state, InstanceState::Pending | InstanceState::Running)
        });
        let since = match (&node.record, &node.agent) {
            // Its agent spoke, and has fallen silent.
            (Some(_), Some(view)) => Some(Millis(view.last_seen_mono)),
            // Not heard since the start of this process.
            (Some(_), None) => Some(self.seen.started_mono),
            // Launched by us, and nobody ever spoke for it. What we did not launch may well do without an agent.
            (None, _) => {
                let old = node
                    .launched
                    .is_some_and(|at| round.now.since(at) >= SILENT);
                return runs && old && node.launch.is_some();
            }
        };
        let long = since.is_some_and(|at| round.mono.minus(at) >= SILENT);
        runs && long && node.unreachable && node.reserved.is_empty() && !self.has_work(node)
    }

    /// A scheduler knows work there.
    fn has_work(&self, node: &FleetNode) -> bool {
        self.sources.iter().any(|source| {
            source
                .running()
                .and_then(|running| running.get(&node.id).cloned())
                .is_some_and(|here| !here.workloads.is_empty())
        })
    }
}
