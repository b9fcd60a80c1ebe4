//! The least world that a plan needs to be followed: nodes that are up or boot, work on them, jobs that wait. A job binds
//! when all its units have a node that is up; what boots is asked for once and comes on time.

use super::Result;
use super::traces::{Job, Type};
use drover_core::model::{
    Action, Anticipate, Busy, Class, Constraints, Gang, LaunchId, LaunchInFlight, Learnt,
    Lifecycle, Locality, Market, MicroUsd, Millis, Mode, NodeId, NodeInput, Offering, PLAN_VERSION,
    PlanInput, Planned, Policy, PoolInput, PoolKind, Quota, Resources, Running, Source, Steering,
    Target, UnixMs,
};
use drover_core::{planner, rules::lives};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

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

    /// One plan, followed. True when it asked for nodes that are up at once, so that the next one can use them.
    fn plan(&mut self) -> Result<bool> {
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

impl Node {
    /// What the planner sees after its work changed.
    fn refresh(&mut self, now: UnixMs, stated: bool) {
        let mut used = Resources::default();
        self.input.workloads.clear();
        for (_, unit, start, end) in &self.work {
            used = used.plus(unit);
            self.input.workloads.push(Running {
                count: 1,
                unit: unit.clone(),
                labels: BTreeMap::new(),
                namespace: String::new(),
                team: String::new(),
                host_ports: BTreeSet::new(),
                anti_affinity: Vec::new(),
                started: Some(ms(*start)),
                ends: stated.then(|| ms(*end)),
                movable: false,
            });
        }
        self.input.used = used;
        let idle = matches!(self.input.busy, Busy::Idle { .. });
        if self.work.is_empty() && !idle {
            self.input.busy = Busy::Idle { since: now };
        } else if !self.work.is_empty() {
            let what = vec!["job".to_owned()];
            self.input.busy = Busy::Working {
                what,
                movable: false,
            };
        }
    }
}

fn input(types: &[Type], setup: &Setup) -> PlanInput {
    let offering = |t: &Type| Offering {
        id: format!("cloud/{}/a/on_demand", t.name).as_str().into(),
        instance_type: t.name.clone(),
        zone: "a".to_owned(),
        market: Market::OnDemand,
        price: MicroUsd(t.price),
        allocatable: Some(t.size.clone()),
        gpu_model: String::new(),
        boot: setup.boot,
        available: None,
    };
    let pool = PoolInput {
        id: "cloud".into(),
        kind: PoolKind::Sim,
        site: "site".into(),
        mode: Mode::Full,
        stops: Vec::new(),
        min: 0,
        floor: 0,
        max: 100_000,
        spare: 0,
        idle_after: setup.idle_after,
        anticipate: setup.anticipate.clone(),
        expire_after: None,
        quota: Quota::Percent(100),
        disruption: Vec::new(),
        rank: 0,
        labels: BTreeMap::new(),
        taints: BTreeMap::new(),
        offerings: types.iter().map(offering).collect(),
        steering: Steering::Zone,
        removable: true,
        unmanaged: 0,
        read_at: ms(0),
    };
    PlanInput {
        version: PLAN_VERSION,
        now: ms(0),
        seed: 1,
        pools: vec![pool],
        nodes: Vec::new(),
        classes: Vec::new(),
        launches: Vec::new(),
        memory: Vec::new(),
        policy: Policy::default(),
        learnt: Learnt::default(),
    }
}

fn node(
    pool: &PoolInput,
    offering: usize,
    name: String,
    launched: UnixMs,
    up: UnixMs,
) -> NodeInput {
    let offering = &pool.offerings[offering];
    NodeInput {
        id: NodeId::new(name.clone()),
        name,
        pool: Some(pool.id.clone()),
        site: Some(pool.site.clone()),
        zone: offering.zone.clone(),
        instance: None,
        offering: Some(offering.id.clone()),
        lifecycle: Lifecycle::Ready,
        cordon: None,
        unreachable: false,
        faulty: None,
        allocatable: offering.allocatable.clone().unwrap_or_default(),
        used: Resources::default(),
        gpu_shares: Vec::new(),
        workloads: Vec::new(),
        reserved: Vec::new(),
        gpu_model: String::new(),
        labels: BTreeMap::new(),
        taints: BTreeMap::new(),
        busy: Busy::Idle { since: up },
        drain: None,
        price: offering.price,
        launched: Some(launched),
        last_ran: None,
    }
}

/// A job's classes: whole nodes as a gang, and the unit that is smaller than a node.
fn classes(at: usize, job: &Job, stated: bool) -> Vec<Class> {
    let one = Class {
        source: Source::Scheduler(format!("job-{at}")),
        unit: job.unit.clone(),
        whole_node: false,
        count: 1,
        constraints: Constraints::default(),
        gang: None,
        priority: 0,
        submitted: ms(job.submit),
        labels: BTreeMap::new(),
        namespace: String::new(),
        team: String::new(),
        run_time: stated.then(|| Millis::seconds(job.seconds)),
        max_wait: None,
        deadline: None,
    };
    let gang = Gang {
        min: job.nodes,
        assigned: 0,
        locality: Locality::Any,
        hold: Millis::minutes(60),
        holding_since: None,
    };
    let mut all = Vec::new();
    if job.nodes > 0 {
        all.push(Class {
            unit: Resources {
                gpus: 8,
                ..Resources::default()
            },
            whole_node: true,
            count: job.nodes,
            gang: (job.nodes > 1).then_some(gang),
            ..one.clone()
        });
    }
    if !job.unit.is_zero() {
        all.push(one);
    }
    all
}
