//! One plan made and followed: what it asks for is asked for, what it removes goes, and jobs whose units all have a place
//! start. Called by the replay at each moment at which something changes.

use super::input::classes;
use super::{World, ms};
use crate::Result;
use drover_core::model::{Action, LaunchId, LaunchInFlight, Millis, NodeId, Planned, Target};
use drover_core::{planner, rules::lives};
use std::collections::BTreeMap;
use std::time::Instant;

impl World<'_> {
    /// One plan, followed. True when it asked for nodes that are up at once, so that the next one can use them.
    pub(super) fn plan(&mut self) -> Result<bool> {
        self.input.now = ms(self.now);
        self.input.nodes = self.nodes.values().map(|n| n.input.clone()).collect();
        self.whose.clear();
        self.input.classes.clear();
        for job in &self.waiting {
            for class in classes(*job, &self.jobs[*job], self.setup.stated) {
                self.input.classes.push(class);
                self.whose.push(*job);
            }
        }
        let began = Instant::now();
        let planned = planner::plan(&self.input);
        self.out.longest = self.out.longest.max(began.elapsed());
        self.out.plans += 1;
        if let Some(dropped) = planned.report.dropped.first() {
            return Err(format!("the check dropped {dropped:?}").into());
        }
        for pool in &planned.report.pools {
            if let Some(demanded) = &pool.demanded {
                let (pool, demanded) = (pool.pool.clone(), demanded.clone());
                lives::step(
                    &mut self.input.learnt,
                    &lives::Event::Demanded { pool, demanded },
                );
            }
        }
        self.start(&planned)?;
        let mut again = false;
        for action in &planned.plan.actions {
            match action {
                Action::Launch {
                    pool,
                    offering,
                    count,
                    ..
                } => {
                    self.next_node += 1;
                    self.input.launches.push(LaunchInFlight {
                        id: LaunchId::new(format!("l{:06}", self.next_node)),
                        pool: pool.clone(),
                        offering: offering.clone(),
                        count: *count,
                        shown: 0,
                        asked: self.input.now,
                        deadline: self.input.now.after(Millis::minutes(1_000)),
                        reserved: Vec::new(),
                    });
                }
                Action::Drain { node, .. } => self.remove(node)?,
                Action::Leave { .. } | Action::Uncordon { .. } | Action::Release { .. } => {}
            }
        }
        if self.setup.boot == Millis::ZERO && !self.input.launches.is_empty() {
            self.boot();
            again = true;
        }
        Ok(again)
    }

    /// Starts the jobs whose units all have a node that is up.
    fn start(&mut self, planned: &Planned) -> Result<()> {
        let mut placed: BTreeMap<usize, Vec<(NodeId, u32, usize)>> = BTreeMap::new();
        for run in &planned.plan.runs {
            if let Target::Node(id) = &run.target {
                let class = run.class as usize;
                let all = placed.entry(self.whose[class]).or_default();
                all.push((id.clone(), run.count, class));
            }
        }
        for (job, runs) in placed {
            let units: u32 = runs.iter().map(|r| r.1).sum();
            let spec = &self.jobs[job];
            if units < spec.nodes + u32::from(!spec.unit.is_zero()) {
                continue;
            }
            for (id, count, class) in runs {
                let unit = self.input.classes[class].unit.clone();
                let node = self
                    .nodes
                    .get_mut(&id)
                    .ok_or("a run names an unknown node")?;
                for _ in 0..count {
                    node.work
                        .push((job, unit.clone(), self.now, self.now + spec.seconds));
                }
                node.refresh(self.input.now, self.setup.stated);
            }
            self.waiting.remove(&job);
        }
        Ok(())
    }
}
