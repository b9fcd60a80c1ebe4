//! What the virtual ports share: the cloud, the machines in it with their agents, and the jobs. The truth of a
//! simulation, of which control sees only what the ports show.
//!
//! Changed by the ports, by the placers and by the engine as time passes. Deterministic; knows no clock but `now`.

mod held;
mod hello;
pub(super) mod jobs;
pub(super) mod mishaps;
pub(super) mod node;

use super::config::{Durations, SimConfig};
use super::history::{History, NodeHistory};
use super::trace::Trace;
use crate::config::PoolSource;
use crate::ports::link::AgentNotice;
use crate::world::{Ask, Granted, World, WorldError, WorldEvent};
use drover_core::model::{Millis, NodeId, PoolId, UnixMs};
use drover_proto::v1;
use jobs::Jobs;
use node::{Node, State};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Simulations begin on Monday, 4 January 2027, 00:00 UTC.
pub(super) const START: UnixMs = UnixMs(1_799_020_800_000);
/// Ended instances are shown for so long, as EC2 does.
const SHOWN: Millis = Millis::minutes(10);

/// Something that will happen of itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A job's work is done, if it is still that start of it.
    JobEnd { job: usize, start: u32 },
    /// A node's agent comes up.
    Join { node: usize },
    /// An agent acts on its newest order.
    Obey { node: usize },
    /// A job is submitted.
    Submit { job: usize },
}

/// A pool, as the cloud and the placers need it.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    pub(super) id: PoolId,
    pub(super) group: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: BTreeMap<String, String>,
    pub(super) idle_after: Millis,
    pub(super) max: u32,
    pub(super) prices: BTreeMap<String, drover_core::model::MicroUsd>,
}

/// The truth.
pub(super) struct Stage {
    pub(super) now: UnixMs,
    pub(super) world: World,
    pub(super) pools: BTreeMap<PoolId, Pool>,
    /// Every node that ever was, in the order of asking; the same index as in the history.
    pub(super) nodes: Vec<Node>,
    /// Nodes whose agent is up.
    pub(super) agents: BTreeMap<NodeId, usize>,
    pub(super) by_instance: BTreeMap<String, usize>,
    /// Nodes that are held for a gang and run nothing, since when.
    held_since: BTreeMap<usize, Millis>,
    /// Nodes that boot.
    pub(super) booting: BTreeSet<usize>,
    pub(super) jobs: Jobs,
    pub(super) history: History,
    /// What will happen, by time.
    pub(super) queue: BTreeSet<(UnixMs, Event)>,
    /// Grows with every change that control may not have seen.
    pub(super) version: u64,
    /// Ended lately, by pool: when, which.
    pub(super) ended: BTreeMap<PoolId, Vec<(UnixMs, usize)>>,
    pub(super) stated: bool,
    join_delay: Millis,
    pub(super) order_delay: Millis,
    /// Agents that came up and have no record yet.
    pub(super) enrolling: Vec<usize>,
    /// Agents that have said no Hello to the coordinator of now.
    pub(super) greeting: BTreeSet<usize>,
    /// What is amiss now.
    pub(super) mishaps: mishaps::Mishaps,
    /// What agents have told and nobody has settled.
    pub(super) notices: Vec<AgentNotice>,
}

/// The stage behind a lock: ports are shared.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Stage>>);

impl Shared {
    pub(super) fn new(stage: Stage) -> Self {
        Self(Arc::new(Mutex::new(stage)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Stage> {
        // A panic ends the simulation.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stage {
    pub(super) fn new(trace: &Trace, setup: &SimConfig, seed: u64) -> Self {
        let pools = setup.config.pools.iter().filter_map(|pool| {
            let PoolSource::Sim(sim) = &pool.source else {
                return None;
            };
            let found = Pool {
                id: pool.name.clone(),
                group: sim.group.clone(),
                labels: pool.labels.clone(),
                taints: pool.taints.clone(),
                idle_after: pool.idle_after,
                max: pool.max,
                prices: pool.prices.clone(),
            };
            Some((pool.name.clone(), found))
        });
        let queue = trace
            .jobs
            .iter()
            .enumerate()
            .map(|(job, found)| (START.after(found.submit), Event::Submit { job }));
        let stated = setup.simulate.durations == Durations::Stated;
        Self {
            now: START,
            world: World::new(setup.world.clone(), seed, START.0),
            pools: pools.collect(),
            nodes: Vec::new(),
            agents: BTreeMap::new(),
            by_instance: BTreeMap::new(),
            held_since: BTreeMap::new(),
            booting: BTreeSet::new(),
            jobs: Jobs::new(trace, stated),
            history: History {
                policy: "drover".to_owned(),
                jobs: vec![super::history::JobHistory::default(); trace.jobs.len()],
                ..History::default()
            },
            queue: queue.collect(),
            version: 0,
            ended: BTreeMap::new(),
            stated,
            join_delay: setup.simulate.join_delay,
            order_delay: setup.simulate.order_delay,
            enrolling: Vec::new(),
            greeting: BTreeSet::new(),
            mishaps: mishaps::Mishaps::default(),
            notices: Vec::new(),
        }
    }

    /// Time since the start.
    pub(super) fn elapsed(&self) -> Millis {
        self.now.since(START)
    }

    /// The next moment at which something happens of itself.
    pub(super) fn next(&self) -> Option<UnixMs> {
        let queued = self.queue.first().map(|(at, _)| *at);
        let boot = self.world.next_event_ms().map(UnixMs);
        [queued, boot].into_iter().flatten().min()
    }

    /// Everything that is due now: ends of jobs first, then boots and orders, then new jobs.
    pub(super) fn advance(&mut self) {
        for event in self.world.step(self.now.0) {
            self.happen(event);
        }
        while let Some((at, _)) = self.queue.first()
            && *at <= self.now
        {
            let Some((_, event)) = self.queue.pop_first() else {
                break;
            };
            match event {
                Event::JobEnd { job, start } => self.end_job(job, start),
                Event::Join { node } => self.join(node),
                Event::Obey { node } => self.obey(node),
                Event::Submit { job } => {
                    self.jobs.submit(job, self.now);
                    self.version += 1;
                }
            }
        }
    }

    /// An agent acts on its newest order: keeps work off, and makes what runs move where the order says so.
    fn obey(&mut self, at: usize) {
        let Some(node) = self.nodes.get_mut(at) else {
            return;
        };
        node.obey();
        self.version += 1;
        if node.evicts() {
            let jobs: Vec<usize> = node.jobs().collect();
            for job in jobs {
                self.move_job(job);
            }
        }
    }

    /// What the cloud did.
    fn happen(&mut self, event: WorldEvent) {
        self.version += 1;
        match event {
            WorldEvent::Running(id) => {
                let joins = self.world.instance(&id).is_some_and(|(i, ..)| i.joins);
                if let (Some(&node), true) = (self.by_instance.get(&id), joins) {
                    let at = self.now.after(self.join_delay);
                    self.queue.insert((at, Event::Join { node }));
                }
            }
            WorldEvent::Notice(id, ends) => {
                let Some(node) = self.by_instance.get(&id).and_then(|at| self.nodes.get(*at))
                else {
                    return;
                };
                if node.state == State::Up {
                    self.notices.push(AgentNotice {
                        node: node.id.clone(),
                        notice: v1::Notice {
                            id: format!("spot-{id}"),
                            kind: "spot_interruption".to_owned(),
                            at_unix_ms: self.wall().0,
                            deadline_unix_ms: ends.saturating_add(self.mishaps.ahead.0),
                            subject: id,
                            message: "the spot market takes the instance back".to_owned(),
                            ..v1::Notice::default()
                        },
                    });
                }
            }
            WorldEvent::Interrupted(id) => {
                if let Some(&at) = self.by_instance.get(&id) {
                    self.end_node(at, "the spot market took its node back");
                }
            }
        }
    }

    /// Asks the cloud; each instance granted is a node from now on.
    pub(super) fn launch(&mut self, pool: &PoolId, ask: &Ask) -> Result<Granted, WorldError> {
        let granted = self.world.launch(ask, self.now.0)?;
        for id in &granted.instances {
            if self.by_instance.contains_key(id) {
                continue;
            }
            let Some((record, group, offering)) = self.world.instance(id) else {
                continue;
            };
            let Some(pool) = self.pools.get(pool) else {
                continue;
            };
            let node = Node::new(record, group, offering, pool, self.now);
            self.history.nodes.push(NodeHistory {
                pool: pool.id.to_string(),
                instance_type: offering.instance_type.clone(),
                zone: offering.zone.clone(),
                price: node.price,
                allocatable: node.allocatable.clone(),
                launched: self.now.since(START),
                ..NodeHistory::default()
            });
            self.by_instance.insert(id.clone(), self.nodes.len());
            self.booting.insert(self.nodes.len());
            self.nodes.push(node);
            self.version += 1;
        }
        Ok(granted)
    }

    /// An agent comes up: its record is written by the engine, as enrolment does.
    fn join(&mut self, at: usize) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(at) else {
            return;
        };
        if node.state != State::Booting {
            return;
        }
        node.state = State::Up;
        self.booting.remove(&at);
        self.agents.insert(node.id.clone(), at);
        self.enrolling.push(at);
        if let Some(history) = self.history.nodes.get_mut(at) {
            history.ready = Some(now.since(START));
        }
        self.version += 1;
    }

    /// An instance ends, whoever wanted it. What runs there is killed.
    pub(super) fn end_node(&mut self, at: usize, why: &str) -> Vec<usize> {
        let Some(node) = self.nodes.get_mut(at) else {
            return Vec::new();
        };
        if node.state == State::Ended {
            return Vec::new();
        }
        node.state = State::Ended;
        self.booting.remove(&at);
        // Ended already is what was wanted.
        let _ = self.world.terminate(&node.instance, self.now.0);
        let shown = self.ended.entry(node.pool.clone()).or_default();
        shown.retain(|(since, _)| self.now.since(*since) < SHOWN);
        shown.push((self.now, at));
        let killed: Vec<usize> = node.jobs().collect();
        if let Some(history) = self.history.nodes.get_mut(at) {
            history.ended = Some(self.now.since(START));
        }
        self.version += 1;
        for job in &killed {
            self.kill_job(*job, why);
        }
        killed
    }

    /// Writes down what happened, for people.
    pub(super) fn note(&mut self, what: String) {
        const MOST: usize = 5_000;
        if self.history.notes.len() < MOST {
            let at = self.elapsed();
            self.history.notes.push((at, what));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::sim::config;
    use crate::world::MarketSpec;

    /// A stage with one node of 8 GPUs that is up.
    pub(in crate::sim) fn stage() -> (Stage, usize) {
        let text = "[[pool]]\nname = \"p\"\nkind = \"sim\"\nsite = \"s\"\ngroup = \"g\"\nmax = 9\n\
                    [[group]]\nname = \"g\"\nregion = \"r\"\nmax = 9\n[[group.offering]]\ninstance_type = \"t\"\n\
                    zone = \"a\"\nprice_micro_usd_per_hour = 1\ncpus = 64\nmemory_gib = 64\ngpus = 8\n\
                    gpu_model = \"a100\"\nboot_ms = 0\n";
        let setup = config::parse(text).expect("sound");
        let mut stage = Stage::new(&Trace::default(), &setup, 1);
        let ask = Ask {
            group: "g".into(),
            instance_type: "t".into(),
            zone: "a".into(),
            market: MarketSpec::OnDemand,
            count: 1,
            token: "t".into(),
        };
        stage.launch(&"p".into(), &ask).expect("granted");
        stage.advance();
        assert_eq!(stage.agents.len(), 1);
        (stage, 0)
    }
}
