//! Which nodes are held for a gang and run nothing: kept back by the plan, or up already while the gang's other nodes
//! boot. Written into the history after each step; decides nothing.

use super::Stage;
use super::node::State;
use drover_core::model::{PlanInput, Planned, Reason, Target};
use std::collections::BTreeSet;

impl Stage {
    /// Begins and ends such spans, after jobs were placed by this plan.
    pub(in crate::sim) fn note_held(&mut self, input: &PlanInput, planned: &Planned) {
        let for_gangs = planned.plan.runs.iter().filter_map(|run| {
            let class = input.classes.get(usize::try_from(run.class).ok()?)?;
            match &run.target {
                Target::Node(node) if class.gang.is_some() => Some(node),
                _ => None,
            }
        });
        let kept = planned.report.nodes.iter().filter_map(|outcome| {
            matches!(outcome.reason, Reason::KeptForGang { .. }).then_some(&outcome.node)
        });
        let held: BTreeSet<usize> = for_gangs
            .chain(kept)
            .filter_map(|node| self.agents.get(node).copied())
            .filter(|at| self.nodes[*at].state == State::Up && self.nodes[*at].is_empty())
            .collect();
        self.end_held(|at| !held.contains(&at));
        let now = self.elapsed();
        for at in held {
            self.held_since.entry(at).or_insert(now);
        }
    }

    /// Ends the spans of these nodes.
    pub(in crate::sim) fn end_held(&mut self, over: impl Fn(usize) -> bool) {
        let now = self.elapsed();
        let ended = self.held_since.extract_if(.., |at, _| over(*at));
        for (at, since) in ended {
            if now > since {
                self.history.nodes[at].gang_held.push((since, now));
            }
        }
    }
}
