//! Fills the cluster: who places, and what is left.
//!
//! Called by the example. The state of a node is the planner's own input; a share goes to the fullest GPU that has room,
//! as the planner counts it.

use super::trace::{Cluster, Dice, Pod};
use drover_core::model::{
    Asked, Busy, Bytes, Class, Constraints, Learnt, Lifecycle, MicroUsd, MilliCpu, NodeId,
    NodeInput, PLAN_VERSION, PlanInput, Policy, Requirement, Resources, Source, Target, UnixMs,
};
use drover_core::{planner, rules};
use std::collections::BTreeMap;

/// Who places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placer {
    /// One plan for each arrival.
    Planner,
    /// Least left over, each amount by its share of the largest node.
    BestFit,
    /// Any node with room.
    Random,
}

impl Placer {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::BestFit => "best fit",
            Self::Random => "random",
        }
    }
}

const NOW: UnixMs = UnixMs(1_767_225_600_000);
const MODEL: &str = "gpu-model";
const MIB: u64 = 1 << 20;

/// GPUs, when the arrived load reaches the capacity.
#[derive(Clone, Copy)]
pub(crate) struct Filled {
    /// That nobody has.
    pub left: f64,
    /// That pods of eight asked for and did not get: a cluster full of crumbs leaves few GPUs and serves no large pod.
    pub large_dropped: f64,
}

/// Places one arrival after the other.
pub(crate) fn fill(cluster: &Cluster, placer: Placer, seed: u64) -> Filled {
    let mut dice = Dice(seed);
    let arrivals = cluster.arrivals(&mut dice);
    let mut input = input(cluster, seed);
    let (mut arrived, mut large_dropped) = (0, 0);
    for pod in arrivals {
        arrived += pod.load();
        let class = class(pod);
        let node = match placer {
            Placer::Planner => planned(&mut input, &class),
            Placer::BestFit => best_fit(&input.nodes, &class),
            Placer::Random => random(&input.nodes, &class, &mut dice),
        };
        if let Some(node) = node {
            take(&mut input.nodes[node], &class.unit);
        } else if class.unit.gpus >= 8 {
            large_dropped += class.unit.gpus;
        }
        if arrived >= cluster.capacity() {
            break;
        }
    }
    let left: u64 = input.nodes.iter().map(free_milli).sum();
    Filled {
        left: left as f64 / 1_000.0,
        large_dropped: f64::from(large_dropped),
    }
}

fn input(cluster: &Cluster, seed: u64) -> PlanInput {
    let nodes = cluster
        .nodes
        .iter()
        .enumerate()
        .map(|(at, node)| NodeInput {
            id: NodeId::new(format!("n{at:04}")),
            name: format!("n{at:04}"),
            pool: None,
            site: None,
            zone: String::new(),
            instance: None,
            offering: None,
            lifecycle: Lifecycle::Ready,
            cordon: None,
            unreachable: false,
            faulty: None,
            allocatable: Resources {
                cpu: MilliCpu(node.cpu),
                memory: Bytes(node.mib * MIB),
                gpus: node.gpus,
                ..Resources::default()
            },
            used: Resources::default(),
            gpu_shares: Vec::new(),
            workloads: Vec::new(),
            reserved: Vec::new(),
            gpu_model: node.model.clone(),
            labels: BTreeMap::from([(MODEL.to_owned(), node.model.clone())]),
            taints: BTreeMap::new(),
            busy: Busy::Idle { since: NOW },
            drain: None,
            price: MicroUsd(0),
            launched: None,
            last_ran: None,
        });
    PlanInput {
        version: PLAN_VERSION,
        now: NOW,
        seed,
        pools: Vec::new(),
        nodes: nodes.collect(),
        classes: Vec::new(),
        launches: Vec::new(),
        memory: Vec::new(),
        policy: Policy::default(),
        learnt: Learnt {
            asked: Asked::default(),
            ..Learnt::default()
        },
    }
}

fn class(pod: &Pod) -> Class {
    let models = pod.models.iter().cloned().collect();
    let rule = Requirement {
        key: MODEL.to_owned(),
        any_of: models,
        ..Requirement::default()
    };
    let constraints = Constraints {
        requirements: if pod.models.is_empty() {
            Vec::new()
        } else {
            vec![rule]
        },
        ..Constraints::default()
    };
    Class {
        source: Source::Scheduler("trace".to_owned()),
        unit: Resources {
            cpu: MilliCpu(pod.cpu),
            memory: Bytes(pod.mib * MIB),
            gpus: pod.gpus,
            gpu_milli: pod.milli,
            ..Resources::default()
        },
        whole_node: false,
        count: 1,
        constraints,
        gang: None,
        priority: 0,
        submitted: NOW,
        labels: BTreeMap::new(),
        namespace: String::new(),
        team: String::new(),
        run_time: None,
        max_wait: None,
        deadline: None,
    }
}

fn planned(input: &mut PlanInput, class: &Class) -> Option<usize> {
    rules::learn::step(&mut input.learnt.asked, [(class, 1)]);
    input.classes = vec![class.clone()];
    let planned = planner::plan(input);
    let dropped = &planned.report.dropped;
    assert!(dropped.is_empty(), "the check dropped {:?}", dropped[0]);
    let Target::Node(id) = &planned.plan.runs.first()?.target else {
        return None;
    };
    let found = input.nodes.binary_search_by(|node| node.id.cmp(id));
    let node = found.expect("nodes are by id");
    assert!(fits(&input.nodes[node], class), "{id:?} has no room");
    Some(node)
}

fn fits(node: &NodeInput, class: &Class) -> bool {
    let unit = &class.unit;
    let free = node.allocatable.minus(&node.used);
    let allowed = class.constraints.requirements.iter().all(|rule| {
        let value = node.labels.get(&rule.key);
        rule.holds(value.map(String::as_str))
    });
    let share = unit.gpu_milli == 0
        || free.gpus > 0
        || node.gpu_shares.iter().any(|free| *free >= unit.gpu_milli);
    allowed && unit.cpu <= free.cpu && unit.memory <= free.memory && unit.gpus <= free.gpus && share
}

fn take(node: &mut NodeInput, unit: &Resources) {
    node.used.cpu = node.used.cpu.plus(unit.cpu);
    node.used.memory = node.used.memory.plus(unit.memory);
    node.used.gpus += unit.gpus;
    node.busy = Busy::Working {
        what: Vec::new(),
        movable: false,
    };
    if unit.gpu_milli == 0 {
        return;
    }
    let shares = &mut node.gpu_shares;
    let at = shares.iter().position(|free| *free >= unit.gpu_milli);
    let had = match at {
        Some(at) => shares.remove(at),
        None => {
            node.used.gpus += 1;
            1_000
        }
    };
    if had > unit.gpu_milli {
        shares.push(had - unit.gpu_milli);
        shares.sort_unstable();
    }
}

/// Thousandths of GPUs that nobody has.
fn free_milli(node: &NodeInput) -> u64 {
    let whole = u64::from(node.allocatable.gpus - node.used.gpus) * 1_000;
    whole
        + node
            .gpu_shares
            .iter()
            .map(|part| u64::from(*part))
            .sum::<u64>()
}

fn best_fit(nodes: &[NodeInput], class: &Class) -> Option<usize> {
    let most = |what: fn(&NodeInput) -> u64| nodes.iter().map(what).max().unwrap_or(1).max(1);
    let (cpu, memory, gpus) = (
        most(|n| n.allocatable.cpu.0),
        most(|n| n.allocatable.memory.0),
        most(|n| u64::from(n.allocatable.gpus) * 1_000),
    );
    let left = |node: &NodeInput| {
        let free = node.allocatable.minus(&node.used);
        let part = |left: u64, all: u64| left.saturating_mul(1_000_000) / all;
        part(free.cpu.0 - class.unit.cpu.0, cpu)
            + part(free.memory.0 - class.unit.memory.0, memory)
            + part(free_milli(node), gpus)
    };
    (0..nodes.len())
        .filter(|at| fits(&nodes[*at], class))
        .min_by_key(|at| left(&nodes[*at]))
}

fn random(nodes: &[NodeInput], class: &Class, dice: &mut Dice) -> Option<usize> {
    let all: Vec<usize> = (0..nodes.len())
        .filter(|at| fits(&nodes[*at], class))
        .collect();
    (!all.is_empty()).then(|| all[dice.below(all.len())])
}
