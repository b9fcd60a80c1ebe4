//! The least world that a plan needs to be followed: nodes that are up or boot, work on them, jobs that wait. A job binds
//! when all its units have a node that is up; what boots is asked for once and comes on time. What it tells the planner is in `input`, how a plan is followed in `follow`.

#[path = "world/follow.rs"]
mod follow;
#[path = "world/input.rs"]
mod input;

use super::Result;
use super::traces::{Job, Type};
use drover_core::model::{
    Anticipate, Busy, LaunchInFlight, Millis, NodeId, NodeInput, PlanInput, Resources, UnixMs,
};
use drover_core::rules::lives;
use input::{input, node};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How the replay is set up.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) stated: bool,
    pub(crate) boot: Millis,
    pub(crate) idle_after: Millis,
    pub(crate) anticipate: Option<Anticipate>,
    /// Run times of what has ended are forgotten.
    pub(crate) forgets: bool,
}

/// What came of it.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) jobs: u64,
    /// Jobs that did not start when they were submitted.
    pub(crate) waited: u64,
    pub(crate) node_seconds: u64,
    pub(crate) micro_usd: u128,
    pub(crate) plans: u64,
    pub(crate) longest: Duration,
}

struct Node {
    launched: u64,
    /// Job, unit, its GPUs, start, end.
    work: Vec<(usize, Resources, u64, u64)>,
    input: NodeInput,
}

struct World<'a> {
    jobs: &'a [Job],
    setup: &'a Setup,
    now: u64,
    input: PlanInput,
    nodes: BTreeMap<NodeId, Node>,
    /// Job of each class of the input.
    whose: Vec<usize>,
    waiting: BTreeSet<usize>,
    next_node: u32,
    out: Outcome,
}

/// Times of the trace begin here: the planner's are absolute.
const START: u64 = 1_700_000_000;

fn ms(seconds: u64) -> UnixMs {
    UnixMs((START + seconds) * 1_000)
}

pub(crate) fn replay(types: &[Type], jobs: &[Job], setup: &Setup) -> Result<Outcome> {
    let mut world = World {
        jobs,
        setup,
        now: 0,
        input: input(types, setup),
        nodes: BTreeMap::new(),
        whose: Vec::new(),
        waiting: BTreeSet::new(),
        next_node: 0,
        out: Outcome::default(),
    };
    let mut arrived = 0;
    while let Some(now) = world.next(arrived) {
        world.now = now;
        world.end();
        world.boot();
        let first = arrived;
        while jobs.get(arrived).is_some_and(|job| job.submit <= now) {
            world.waiting.insert(arrived);
            arrived += 1;
        }
        // Until nothing starts any more: what is asked for with no boot is there at once.
        while world.plan()? {}
        let late = world.waiting.range(first..).count();
        world.out.jobs += (arrived - first) as u64;
        world.out.waited += late as u64;
    }
    if let Some(job) = world.waiting.first() {
        return Err(format!("job {job} never started").into());
    }
    let left: Vec<NodeId> = world.nodes.keys().cloned().collect();
    for id in left {
        world.remove(&id)?;
    }
    Ok(world.out)
}

impl World<'_> {
    /// The next moment at which something changes.
    fn next(&self, arrived: usize) -> Option<u64> {
        let job = self.jobs.get(arrived).map(|job| job.submit);
        let end = self
            .nodes
            .values()
            .flat_map(|n| n.work.iter().map(|w| w.3))
            .min();
        // The replay is over with the last job: what is idle then goes.
        let over = job.is_none() && end.is_none() && self.waiting.is_empty();
        let boot = self.input.launches.iter().map(|l| self.up_at(l)).min();
        let idle = self
            .nodes
            .values()
            .filter_map(|n| self.due(n))
            .filter(|at| *at > self.now)
            .min();
        let first = [job, end, boot, idle].into_iter().flatten().min();
        first.filter(|_| !over)
    }

    fn up_at(&self, launch: &LaunchInFlight) -> u64 {
        launch.asked.after(self.setup.boot).0.div_ceil(1_000) - START
    }

    /// When an idle node may first go.
    fn due(&self, node: &Node) -> Option<u64> {
        let Busy::Idle { since } = node.input.busy else {
            return None;
        };
        let after = since.after(self.setup.idle_after).0;
        let anticipate = self.setup.anticipate.as_ref();
        let held = anticipate
            .and_then(|a| lives::held_until(a, since, node.input.last_ran))
            .map_or(0, |at| at.0);
        let spare = anticipate.and_then(|a| {
            let last = self.input.learnt.demanded.values().next()?;
            Some(last.at.after(a.spare_for).0)
        });
        let all = [Some(after), Some(held), spare];
        let at = |t: u64| t.div_ceil(1_000).saturating_sub(START);
        all.into_iter()
            .flatten()
            .map(at)
            .filter(|t| *t > self.now)
            .min()
    }

    fn end(&mut self) {
        let (now, at) = (self.now, ms(self.now));
        for node in self.nodes.values_mut() {
            let before = node.work.len();
            for (_, unit, start, end) in node.work.extract_if(.., |w| w.3 <= now) {
                let ran = Millis::seconds(end - start);
                if !self.setup.forgets {
                    let gpus = unit.gpus;
                    lives::step(&mut self.input.learnt, &lives::Event::Ended { gpus, ran });
                }
                node.input.last_ran = Some(ran);
            }
            if node.work.len() != before {
                node.refresh(at, self.setup.stated);
            }
        }
    }

    fn boot(&mut self) {
        let launches = std::mem::take(&mut self.input.launches);
        let (up, rest): (Vec<_>, Vec<_>) = launches
            .into_iter()
            .partition(|l| self.up_at(l) <= self.now);
        self.input.launches = rest;
        for launch in up {
            let offering = self.input.pools[0]
                .offerings
                .iter()
                .position(|o| o.id == launch.offering);
            let asked = launch.asked.0 / 1_000 - START;
            for _ in 0..launch.count {
                self.add(offering.unwrap_or(0), asked);
            }
        }
    }

    fn add(&mut self, offering: usize, launched: u64) -> NodeId {
        let name = format!("n{:06}", self.next_node);
        self.next_node += 1;
        let id = NodeId::new(name.clone());
        let input = node(
            &self.input.pools[0],
            offering,
            name,
            ms(launched),
            ms(self.now),
        );
        let node = Node {
            launched,
            work: Vec::new(),
            input,
        };
        self.nodes.insert(id.clone(), node);
        id
    }

    fn remove(&mut self, id: &NodeId) -> Result<()> {
        let node = self.nodes.remove(id).ok_or("an unknown node goes")?;
        if !node.work.is_empty() {
            return Err(format!("{id} goes with its work").into());
        }
        let seconds = self.now - node.launched;
        self.out.node_seconds += seconds;
        self.out.micro_usd += u128::from(node.input.price.0) * u128::from(seconds) / 3_600;
        Ok(())
    }
}
