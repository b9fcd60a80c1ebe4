//! Who places waiting jobs on nodes: the planner's hypothesis, or a model of the default scheduler of Kubernetes.
//!
//! Called by the engine after each cycle. **Invariant:** a job starts whole (an elastic gang with its minimum), on open
//! nodes, within what they have free.

mod filter;
mod kube;
mod planner;

use super::config::Placer;
use super::stage::Stage;
use super::stage::jobs::{Key, Place};
use drover_core::model::{PlanInput, Planned};

/// Starts what can start now. True: something did.
pub(super) fn place(
    stage: &mut Stage,
    placer: Placer,
    told: &[Key],
    plan: Option<&(PlanInput, Planned)>,
) -> bool {
    match (placer, plan) {
        (Placer::Planner, Some((input, planned))) => planner::place(stage, told, input, planned),
        (Placer::Planner, None) => false,
        (Placer::KubeDefault { gpu_bin_packing }, _) => kube::place(stage, gpu_bin_packing),
    }
}

/// Room that a job still needs on a node has been promised to another one in this round: keeps count.
#[derive(Default)]
struct Promised(Vec<Place>);

impl Promised {
    /// Units of a job that still have room on a node, after what was promised to the same job there. A node that was
    /// promised to a whole-node unit has none.
    fn room(&self, stage: &Stage, job: usize, node: usize, rest: bool) -> u32 {
        let found = &stage.jobs.all[job];
        let here: Vec<&Place> = self.0.iter().filter(|place| place.node == node).collect();
        let node = &stage.nodes[node];
        if here.is_empty() {
            return match (&found.rest, rest) {
                (Some(unit), true) => node.room(unit, false),
                (None, true) => 0,
                (_, false) => node.room(&found.unit, found.whole_node),
            };
        }
        if found.whole_node {
            return 0;
        }
        // What the job itself was promised here is not free any more.
        let mut after = node.clone();
        for place in here {
            let unit = match (&found.rest, place.rest) {
                (Some(unit), true) => unit,
                _ => &found.unit,
            };
            after.promise(unit, place.units);
        }
        match (&found.rest, rest) {
            (Some(unit), true) => after.room(unit, false),
            (None, true) => 0,
            (_, false) => after.room(&found.unit, false),
        }
    }
}
