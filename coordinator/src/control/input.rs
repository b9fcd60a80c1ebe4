//! The planner's input, from the fleet as joined and the demand as read.
//!
//! Called by the cycle after bookkeeping. **Invariant:** an instance is counted once: as a node, as coming, or as unmanaged.

mod launches;
mod nodes;
mod pools;

pub(super) use launches::{coming, probes};
pub(super) use pools::hosts_off;

use super::cycle::{Control, Round};
use crate::ports::demand::Occupied;
use drover_core::model::{Class, Learnt, NodeId, NodeInput, PLAN_VERSION, PlanInput, Policy};
use launches::in_flight;
use nodes::{node_input, occupied};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Names of a class's members, at most [`NAMED`], and how many there are.
#[derive(Debug, Clone, Default)]
pub(super) struct Named {
    pub(super) first: Vec<String>,
}

/// Members that are named.
const NAMED: usize = 10;

impl Control {
    /// Builds the input around what every source says that waits, with the names of each class's members.
    pub(super) async fn input(
        &mut self,
        round: &mut Round,
        mut demand: Vec<(Class, Named)>,
    ) -> (PlanInput, Vec<Named>) {
        let running = self.running();
        demand.extend(self.replacements(round, &running));
        by_rank(&mut demand);
        let (mut classes, members): (Vec<Class>, Vec<Named>) = demand.into_iter().unzip();
        self.read_holds().await;
        self.move_holds(round.now, round.mono);
        self.recall_holds(&mut classes, &members);
        let control = &self.config.control;
        let mut input = PlanInput {
            version: PLAN_VERSION,
            now: round.now,
            seed: self.seen.cycle,
            pools: self
                .config
                .pools
                .iter()
                .enumerate()
                .map(|(rank, pool)| self.pool_input(round, pool, rank))
                .collect(),
            nodes: occupied_nodes(round, &running).collect(),
            classes,
            launches: round
                .ledger
                .launches
                .values()
                .filter_map(|held| in_flight(round, &held.value))
                .collect(),
            memory: round
                .ledger
                .memory
                .values()
                .map(|held| held.value.entry.clone())
                .collect(),
            learnt: Learnt::default(),
            policy: Policy {
                headroom: control.headroom.clone(),
                teams: control.teams.clone(),
                max_cost: control.max_cost,
                max_gpus: control.max_gpus,
                settle: control.settle,
                consolidate: control.consolidate,
            },
        };
        self.recall_learnt(round, &mut input).await;
        (input, members)
    }

    /// Work that sources know of, by node; as of their last reading.
    pub(super) fn running(&self) -> Vec<BTreeMap<NodeId, Occupied>> {
        let sources = self.sources.iter();
        sources.filter_map(|source| source.running()).collect()
    }

    /// Reads what waits from every source.
    pub(super) async fn demand(&mut self, round: &mut Round) -> Vec<(Class, Named)> {
        let sources = self.sources.clone();
        let reads = sources.iter().map(|source| source.read(round.now));
        let results = futures::future::join_all(reads).await;
        let mut found = Vec::new();
        for (source, result) in sources.iter().zip(results) {
            match result {
                Ok(reading) => {
                    self.guard_source(round, source.name(), Ok(&reading), source.left());
                    for (id, why) in &reading.rejected {
                        tracing::warn!(
                            source = source.name(),
                            id,
                            why,
                            "demand that is not understood"
                        );
                    }
                    self.seen.arrivals(source.name(), &reading);
                    let mut members = reading.members.into_iter();
                    for class in reading.classes {
                        let names = members.next().unwrap_or_default().0;
                        found.push((
                            class,
                            Named {
                                first: names.into_iter().take(NAMED).collect(),
                            },
                        ));
                    }
                }
                Err(error) => {
                    self.guard_source(round, source.name(), Err(&error.message), source.left())
                }
            }
        }
        found
    }
}

/// Nodes that have joined, with the work on them.
pub(super) fn occupied_nodes<'r>(
    round: &'r Round,
    running: &'r [BTreeMap<NodeId, Occupied>],
) -> impl Iterator<Item = NodeInput> + 'r {
    let joined = round.fleet.iter().filter(|node| node.joined());
    joined.map(|node| occupied(node_input(node), running))
}

/// As the planner takes them: by priority, then by age.
fn by_rank(demand: &mut [(Class, Named)]) {
    demand.sort_by(|(a, _), (b, _)| {
        (Reverse(a.priority), a.submitted, &a.source).cmp(&(
            Reverse(b.priority),
            b.submitted,
            &b.source,
        ))
    });
}
