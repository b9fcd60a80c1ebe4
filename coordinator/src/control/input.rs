//! The planner's input, from the fleet as joined and the demand as read.
//!
//! Called by the cycle after bookkeeping. **Invariant:** an instance is counted once: as a node, as coming, or as unmanaged.

use super::cycle::{Control, Round};
use super::fleet::{FleetNode, marks};
use super::launches::life;
use super::orders::DROVER;
use crate::config::{PoolConfig, PoolSource};
use crate::ports::actuate::{InstanceState, PoolReading};
use crate::ports::demand::Occupied;
use crate::records::{
    AssignmentTarget, DrainStep, LaunchRecord, REQUEST_LABEL, RequestState, Then,
};
use drover_core::model::{
    Anticipate, Class, Cordon, DrainInfo, InstanceId, LaunchInFlight, Learnt, Lifecycle, MicroUsd,
    Millis, NodeId, NodeInput, Offering, OfferingId, PLAN_VERSION, PlanInput, Policy, PoolInput,
    PoolKind, RequestName, Resources, Steering, UnixMs,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Names of a class's members, at most [`NAMED`], and how many there are.
#[derive(Debug, Clone, Default)]
pub(super) struct Named {
    pub(super) first: Vec<String>,
}

/// Members that are named.
const NAMED: usize = 10;

impl Control {
    /// Reads every source and builds the input, with the names of each class's members.
    pub(super) async fn input(&mut self, round: &mut Round) -> (PlanInput, Vec<Named>) {
        let mut demand = self.demand(round).await;
        let running: Vec<BTreeMap<NodeId, Occupied>> = self
            .sources
            .iter()
            .filter_map(|source| source.running())
            .collect();
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
            nodes: round
                .fleet
                .iter()
                .filter(|node| node.joined())
                .map(|node| occupied(node_input(node), &running))
                .collect(),
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

    async fn demand(&mut self, round: &mut Round) -> Vec<(Class, Named)> {
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

    fn pool_input(&self, round: &Round, pool: &PoolConfig, rank: usize) -> PoolInput {
        let (settings, _) = round.ledger.pool(&pool.name);
        let reading = round.readings.get(&pool.name);
        let max = settings.max.unwrap_or(pool.max);
        let provider = reading.and_then(|reading| reading.provider_max);
        let boot = median(&settings.boots_ms);
        PoolInput {
            disruption: pool
                .disruption
                .iter()
                .filter_map(|budget| budget.in_force(round.now))
                .collect(),
            expire_after: pool.expire_after,
            id: pool.name.clone(),
            kind: pool.kind(),
            site: pool.site.clone(),
            mode: self.mode(round, &pool.name),
            stops: self.stops(round, pool),
            min: settings.min.unwrap_or(pool.min),
            floor: reading
                .and_then(|reading| reading.provider_min)
                .map_or(0, |least| least.saturating_sub(unmanaged(round, pool))),
            max: provider.map_or(max, |most| max.min(most)),
            spare: settings.spare.unwrap_or(pool.spare),
            idle_after: pool.idle_after,
            anticipate: pool.anticipate.then(Anticipate::default),
            quota: pool.quota,
            rank: u32::try_from(rank).unwrap_or(u32::MAX),
            labels: marks::labels(pool, reading.map(AsRef::as_ref)),
            taints: marks::taints(pool, reading.map(AsRef::as_ref)),
            offerings: reading
                .map(|reading| offerings(round, pool, reading, boot))
                .unwrap_or_default(),
            steering: reading.map_or(Steering::Group, |reading| reading.steering),
            removable: reading.is_some_and(|reading| reading.removable),
            unmanaged: unmanaged(round, pool),
            read_at: reading.map_or(UnixMs(0), |reading| reading.read_at),
        }
    }
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

fn median(boots: &[u64]) -> Option<Millis> {
    let mut sorted = boots.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().map(Millis)
}

/// What can be asked, with the config's prices; of a static pool only the hosts that are off.
fn offerings(
    round: &Round,
    pool: &PoolConfig,
    reading: &PoolReading,
    boot: Option<Millis>,
) -> Vec<Offering> {
    let mut offerings = reading.offerings.clone();
    for offering in &mut offerings {
        if let Some(price) = pool.prices.get(&offering.instance_type) {
            offering.price = *price;
        }
        if let Some(boot) = boot {
            offering.boot = boot;
        }
        if pool.kind() == PoolKind::Static {
            let off = u32::try_from(hosts_off(round, pool).len()).unwrap_or(u32::MAX);
            offering.available = Some(off);
        }
    }
    offerings
}

/// Hosts of a static pool that could be powered on now, in the order of the config.
pub(super) fn hosts_off(round: &Round, pool: &PoolConfig) -> Vec<InstanceId> {
    let PoolSource::Static(fixed) = &pool.source else {
        return Vec::new();
    };
    if fixed.power.on.is_none() {
        return Vec::new();
    }
    let asked: BTreeSet<&InstanceId> = round
        .ledger
        .launches
        .values()
        .filter(|held| held.value.pool == pool.name)
        .flat_map(|held| &held.value.hosts)
        .collect();
    let off: BTreeSet<&InstanceId> = round
        .fleet
        .iter()
        .filter(|node| node.pool.as_ref() == Some(&pool.name) && node.lifecycle == Lifecycle::Off)
        .filter_map(|node| node.instance_id.as_ref())
        .collect();
    fixed
        .hosts
        .iter()
        .filter(|host| !asked.contains(host) && off.contains(host))
        .cloned()
        .collect()
}

/// Nodes of a launch that are still to come.
pub(super) fn coming(launch: &LaunchRecord) -> u32 {
    life(launch).coming()
}

fn in_flight(round: &Round, launch: &LaunchRecord) -> Option<LaunchInFlight> {
    let count = coming(launch);
    if count == 0 || launch.deadline <= round.now {
        return None;
    }
    let reserved: Vec<(RequestName, u32)> = round
        .ledger
        .requests
        .values()
        .filter(|held| {
            matches!(
                held.value.state,
                RequestState::Pending | RequestState::Served
            )
        })
        .filter_map(|held| {
            let units: u32 = held
                .value
                .assignments
                .iter()
                .filter(|found| {
                    matches!(&found.target, AssignmentTarget::Launch(id, _) if *id == launch.id)
                })
                .map(|found| found.units)
                .sum();
            (units > 0).then(|| (held.value.name.clone(), units))
        })
        .collect();
    Some(LaunchInFlight {
        id: launch.id.clone(),
        pool: launch.pool.clone(),
        offering: offering_now(round, launch),
        count,
        asked: launch.asked,
        deadline: launch.deadline,
        reserved,
    })
}

/// The offering that the planner knows a launch by. A group that turns out to need another way of asking offers its
/// capacity under other names: a pool's nodes are interchangeable, so any of them tells what is coming.
fn offering_now(round: &Round, launch: &LaunchRecord) -> OfferingId {
    let offerings = round
        .readings
        .get(&launch.pool)
        .map(|reading| reading.offerings.as_slice())
        .unwrap_or_default();
    let known = offerings.iter().any(|found| found.id == launch.offering);
    match offerings.first() {
        Some(first) if !known => first.id.clone(),
        _ => launch.offering.clone(),
    }
}

/// Instances of a cloud pool that are neither a node nor covered by a launch in flight.
fn unmanaged(round: &Round, pool: &PoolConfig) -> u32 {
    if pool.kind() == PoolKind::Static {
        return 0;
    }
    let flying: Vec<&LaunchRecord> = round
        .ledger
        .launches
        .values()
        .map(|held| &held.value)
        .filter(|launch| {
            launch.pool == pool.name && launch.deadline > round.now && coming(launch) > 0
        })
        .collect();
    let named: BTreeSet<&InstanceId> = flying.iter().flat_map(|launch| &launch.instances).collect();
    // Launches whose way tells no ids, or whose answer is not known: their instances may be there already.
    let nameless: u32 = flying
        .iter()
        .filter(|launch| launch.instances.is_empty())
        .map(|launch| coming(launch))
        .sum();
    let loose = round
        .fleet
        .iter()
        .filter(|node| {
            node.pool.as_ref() == Some(&pool.name)
                && !node.joined()
                && node
                    .instance
                    .as_ref()
                    .is_some_and(|found| found.state != InstanceState::Gone)
                && node
                    .instance_id
                    .as_ref()
                    .is_some_and(|id| !named.contains(id))
        })
        .count();
    u32::try_from(loose)
        .unwrap_or(u32::MAX)
        .saturating_sub(nameless)
}

/// Adds what sources know of the work on a node. What the agent has measured counts where it is more.
fn occupied(mut node: NodeInput, running: &[BTreeMap<NodeId, Occupied>]) -> NodeInput {
    let mut asked = Resources::default();
    let mut told = Vec::new();
    for here in running.iter().filter_map(|source| source.get(&node.id)) {
        for work in &here.workloads {
            asked = asked.plus(&work.unit.scaled(work.count));
        }
        let shared = u32::try_from(here.gpu_shares.len()).unwrap_or(u32::MAX);
        asked.gpus = asked.gpus.saturating_add(shared);
        // Processes that its agent names are those of this work; what requests hold is their own.
        node.workloads
            .retain(|known| known.labels.contains_key(REQUEST_LABEL));
        told.extend(here.workloads.iter().cloned());
        node.gpu_shares.extend(&here.gpu_shares);
    }
    node.workloads.extend(told);
    asked.gpu_milli = 0;
    node.gpu_shares.sort_unstable();
    node.used = Resources {
        cpu: node.used.cpu.max(asked.cpu),
        memory: node.used.memory.max(asked.memory),
        gpus: node.used.gpus.max(asked.gpus),
        ..asked
    };
    node
}

fn node_input(node: &FleetNode) -> NodeInput {
    // Drained for a person who keeps it: in the planner's eyes a cordoned node like any other.
    let kept = node.drain.as_ref().is_some_and(|drain| {
        drain.step == DrainStep::Drained && drain.by != DROVER && drain.then != Then::Leave
    });
    NodeInput {
        gpu_shares: node.gpu_shares.clone(),
        workloads: node.workloads.clone(),
        launched: node.launched,
        last_ran: None,
        id: node.id.clone(),
        name: node.name.clone(),
        pool: node.pool.clone(),
        site: node.site.clone(),
        zone: node.zone.clone(),
        instance: node.instance_id.clone(),
        offering: node.offering.clone(),
        lifecycle: if kept {
            Lifecycle::Ready
        } else {
            node.lifecycle
        },
        // What it ends is its own, like what a person keeps: neither supply nor the planner's to empty.
        cordon: match &node.taken {
            Some(taken) if taken.doomed && node.drain.is_none() => Some(Cordon::Person {
                who: "its cloud".to_owned(),
                why: taken.why.clone(),
            }),
            _ => node.cordon.clone(),
        },
        unreachable: node.unreachable,
        // What the cloud may take is as little supply as what is broken, and goes once empty.
        faulty: node.faulty.clone().or_else(|| {
            let taken = node.taken.as_ref().filter(|taken| !taken.doomed);
            taken.map(|taken| taken.why.clone())
        }),
        allocatable: node.allocatable.clone(),
        used: node.used.clone(),
        reserved: node.reserved.clone(),
        gpu_model: node.gpu_model.clone(),
        labels: node.labels.clone(),
        taints: node.taints.clone(),
        busy: node.busy.clone(),
        drain: node
            .drain
            .as_ref()
            .filter(|_| !kept)
            .map(|drain| DrainInfo {
                id: drain.id.clone(),
                own_idle: drain.own_idle,
                moving: drain.moving.is_some(),
                since: drain.since,
                reason: drain.reason.clone(),
            }),
        price: node.price.unwrap_or(MicroUsd::ZERO),
    }
}
