//! What must hold after every step of a simulation (ARCHITECTURE.md, "What must always hold").
//!
//! Called by the engine; each violation is told once, in `History::violations`. Looks at the truth of the stage, never at
//! what control believes. I1 is watched where instances end.

use super::stage::node::State;
use super::stage::{START, Stage};
use crate::control::view::FleetView;
use drover_core::model::{Lifecycle, Millis, UnixMs};
use std::collections::{BTreeMap, BTreeSet};

/// What is remembered from step to step.
#[derive(Default)]
pub(super) struct Watch {
    told: BTreeSet<(String, String)>,
    /// Since when a gang of this job has room held for it.
    holds: BTreeMap<String, UnixMs>,
}

impl Stage {
    /// Writes a violation down.
    pub(super) fn violated(&mut self, which: &str, what: String) {
        let at = self.now.since(START);
        self.history.violations.push((at, which.to_owned(), what));
    }
}

impl Watch {
    /// Checks everything.
    pub(super) fn after_step(&mut self, stage: &mut Stage, view: &FleetView, hold: Millis) {
        let mut found = Vec::new();
        limits(stage, &mut found);
        asked_once(stage, view, &mut found);
        silence(stage, view, &mut found);
        self.gangs(stage, view, hold, &mut found);
        idle(stage, view, &mut found);
        for (which, what) in found {
            if self.told.insert((which.to_owned(), what.clone())) {
                stage.violated(which, what);
            }
        }
    }

    /// The store is of an earlier time: hold times that were written since are lost with it, and begin anew.
    pub(super) fn store_lost(&mut self) {
        self.holds.clear();
    }

    /// I8: a gang is whole or waits, and nothing is held for it beyond its time.
    fn gangs(
        &mut self,
        stage: &Stage,
        view: &FleetView,
        hold: Millis,
        found: &mut Vec<(&'static str, String)>,
    ) {
        for &at in &stage.jobs.running {
            let job = &stage.jobs.all[at];
            let units: u32 = stage.history.jobs[at]
                .on
                .iter()
                .map(|(_, units)| units)
                .sum();
            if units < job.min_units + u32::from(job.rest.is_some()) {
                let what = format!(
                    "job {} runs with {units} of {} units",
                    job.id, job.min_units
                );
                found.push(("I8 gang_whole", what));
            }
        }
        let Some(plan) = &view.plan else { return };
        let (input, planned) = plan.as_ref();
        let mut held = BTreeSet::new();
        for ((class, outcome), demand) in input
            .classes
            .iter()
            .zip(&planned.report.classes)
            .zip(&view.demand)
        {
            if let (Some(_), true, Some(first)) =
                (&class.gang, outcome.held > 0, demand.members.first())
            {
                held.insert(first.clone());
            }
        }
        self.holds.retain(|gang, _| held.contains(gang));
        for gang in held {
            let since = *self.holds.entry(gang.clone()).or_insert(stage.now);
            // One step of grace: the end of the hold is seen by the step that is due then.
            if stage.now.since(since) > hold {
                let what =
                    format!("gang {gang} holds a part of its nodes for longer than its hold time");
                found.push(("I8 gang_whole", what));
            }
        }
    }
}

/// I3: no pool above its maximum.
fn limits(stage: &Stage, found: &mut Vec<(&'static str, String)>) {
    for pool in stage.pools.values() {
        let alive = stage.world.alive_in(&pool.group).count();
        if alive > usize::try_from(pool.max).unwrap_or(usize::MAX) {
            let what = format!(
                "pool {} has {alive} nodes, at most {} may be",
                pool.id, pool.max
            );
            found.push(("I3 never_beyond_limits", what));
        }
    }
}

/// I4: nothing is granted twice for one token, and control counts what boots as coming.
fn asked_once(stage: &Stage, view: &FleetView, found: &mut Vec<(&'static str, String)>) {
    let booting = stage.booting.iter().map(|at| &stage.nodes[*at].instance);
    let booting: BTreeSet<&str> = booting.map(String::as_str).collect();
    let Some(plan) = &view.plan else { return };
    let coming: u32 = plan.0.launches.iter().map(|launch| launch.count).sum();
    let unmanaged: u32 = plan.0.pools.iter().map(|pool| pool.unmanaged).sum();
    let seen_booting = view
        .nodes
        .iter()
        .filter(|node| node.joined.is_none())
        .filter(|node| {
            let id = node.instance.as_ref().map(|id| id.as_str());
            id.is_some_and(|id| booting.contains(id))
        })
        .count();
    let counted = usize::try_from(coming + unmanaged).unwrap_or(usize::MAX);
    if counted < seen_booting {
        let what = format!("{seen_booting} instances boot and {counted} count as coming");
        found.push(("I4 ask_once", what));
    }
}

/// I6: who speaks is not silent, and whose agent is silent is not ended on that alone (watched where instances end).
fn silence(stage: &Stage, view: &FleetView, found: &mut Vec<(&'static str, String)>) {
    for node in &view.nodes {
        let speaks = stage
            .agents
            .get(&node.id)
            .is_some_and(|at| !stage.is_silent(*at));
        if node.unreachable && speaks {
            let what = format!("{} speaks and is called unreachable", node.id);
            found.push(("I6 silence_is_not_death", what));
        }
    }
}

/// I13: a node with work is not idle. `view` is of the moment before jobs were placed in this step.
fn idle(stage: &Stage, view: &FleetView, found: &mut Vec<(&'static str, String)>) {
    for node in &view.nodes {
        let Some(&at) = stage.agents.get(&node.id) else {
            continue;
        };
        let truth = &stage.nodes[at];
        let leaves = matches!(node.lifecycle, Lifecycle::Drained | Lifecycle::Leaving);
        if truth.state == State::Up && leaves && !truth.is_empty() {
            let what = format!("{} has work and counts as drained", node.id);
            found.push(("I13 idle_needs_witnesses", what));
        }
    }
}
