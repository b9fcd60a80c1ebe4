//! The snapshot of a cycle: what every reader is shown.
//!
//! Called at the end of each cycle. Decides nothing.

mod alarms;
mod requests;

use super::cycle::{Control, Round};
use super::fleet::FleetNode;
use super::input::{Named, coming};
use super::view::{
    AssignmentView, DemandView, FleetView, NodeView, PoolView, RequestShown, RequestView,
};
use crate::config::PoolConfig;
use drover_core::model::{
    Busy, Cordon, Lifecycle, MicroUsd, Mode, NodeId, PlanInput, Planned, PoolId, Reason, Source,
};
use drover_core::planner::{render, render_stop};
use requests::{held_by, request_view};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Control {
    pub(super) fn publish(
        &mut self,
        round: &mut Round,
        plan: &Arc<(PlanInput, Planned)>,
        members: &[Named],
    ) {
        let (input, planned) = (&plan.0, &plan.1);
        let reasons: BTreeMap<&NodeId, &Reason> = planned
            .report
            .nodes
            .iter()
            .map(|outcome| (&outcome.node, &outcome.reason))
            .collect();
        let held = held_by(round);
        let nodes: Vec<NodeView> = round
            .fleet
            .iter()
            .map(|node| node_view(round, node, &reasons, &held))
            .collect();
        let pools = self.pool_views(round, planned);
        let requests: Vec<RequestView> = round
            .ledger
            .requests
            .values()
            .map(|held| request_view(round, &held.value, input, planned))
            .collect();
        let demand = input
            .classes
            .iter()
            .zip(&planned.report.classes)
            .enumerate()
            .map(|(at, (class, outcome))| DemandView {
                source: match &class.source {
                    Source::Request(name) => format!("request {name}"),
                    Source::Scheduler(name) => name.clone(),
                },
                class: class.clone(),
                members: members
                    .get(at)
                    .map(|named| named.first.clone())
                    .unwrap_or_default(),
                placed: outcome.fitted + outcome.coming + outcome.grown,
                unplaced: outcome.unplaced,
                reasons: rendered(&outcome.reasons, round),
            })
            .collect();
        let alarms = self.alarms(round);
        let took = self.clock.mono().0.saturating_sub(round.mono.0);
        let view = FleetView {
            cycle: self.seen.cycle,
            woken: round.woken,
            at: round.now,
            took_us: took.saturating_mul(1_000),
            started: self.seen.started,
            freezes: round
                .ledger
                .freezes
                .values()
                .map(|held| held.value.clone())
                .collect(),
            alarms,
            approvals: round
                .ledger
                .approvals
                .values()
                .filter(|held| held.value.approved.is_none())
                .map(|held| held.value.clone())
                .collect(),
            coming: pools.iter().map(|pool| pool.coming).sum(),
            cost: round
                .fleet
                .iter()
                .filter(|node| !matches!(node.lifecycle, Lifecycle::Gone | Lifecycle::Off))
                .fold(MicroUsd::ZERO, |sum, node| {
                    sum.plus(node.price.unwrap_or_default())
                }),
            nodes,
            pools,
            requests,
            demand,
            plan: Some(plan.clone()),
        };
        self.tell_impossible(round, &view);
        // Nobody looks: fine.
        let _ = self.views.send_replace(Arc::new(view));
    }

    fn tell_impossible(&mut self, round: &mut Round, view: &FleetView) {
        for request in &view.requests {
            let name = &request.record.name;
            if request.shown != RequestShown::Impossible {
                self.seen.impossible.remove(name);
            } else if self.seen.impossible.insert(name.clone()) {
                round
                    .events
                    .push(super::events::Happening::RequestImpossible {
                        request: name.clone(),
                        why: request.reasons.join("; "),
                    });
            }
        }
    }

    fn pool_views(&self, round: &Round, planned: &Planned) -> Vec<PoolView> {
        let mut views: Vec<PoolView> = self
            .config
            .pools
            .iter()
            .map(|pool| self.pool_view(round, pool, planned))
            .collect();
        for name in orphans(self, round) {
            views.push(orphan_view(round, &name));
        }
        views
    }

    fn pool_view(&self, round: &Round, pool: &PoolConfig, planned: &Planned) -> PoolView {
        let (settings, _) = round.ledger.pool(&pool.name);
        let reading = round.readings.get(&pool.name);
        let mine: Vec<&FleetNode> = round
            .fleet
            .iter()
            .filter(|node| node.pool.as_ref() == Some(&pool.name))
            .collect();
        let count = |which: &dyn Fn(&FleetNode) -> bool| {
            let found = mine.iter().filter(|node| which(node)).count();
            u32::try_from(found).unwrap_or(u32::MAX)
        };
        let launches: Vec<_> = round
            .ledger
            .launches
            .values()
            .filter(|held| held.value.pool == pool.name)
            .map(|held| held.value.clone())
            .collect();
        let named: BTreeSet<_> = launches
            .iter()
            .filter(|launch| coming(launch) > 0)
            .flat_map(|launch| launch.instances.clone())
            .collect();
        let mut reasons: Vec<String> = planned
            .report
            .pools
            .iter()
            .filter(|outcome| outcome.pool == pool.name)
            .flat_map(|outcome| rendered(&outcome.reasons, round))
            .collect();
        if let Some(reading) = reading {
            reasons.extend(reading.warnings.iter().cloned());
        }
        let error = self
            .pools
            .watch(&pool.name)
            .and_then(|watch| watch.error.as_ref());
        PoolView {
            name: pool.name.clone(),
            kind: Some(pool.kind()),
            site: Some(pool.site.clone()),
            mode: self.mode(round, &pool.name),
            min: settings.min.unwrap_or(pool.min),
            max: settings.max.unwrap_or(pool.max),
            spare: settings.spare.unwrap_or(pool.spare),
            nodes: count(&|node| node.joined() && node.lifecycle != Lifecycle::Off),
            ready: count(&FleetNode::is_available),
            idle: count(&|node| {
                node.is_ready()
                    && node.reserved.is_empty()
                    && matches!(node.busy, Busy::Idle { .. })
            }),
            draining: count(&|node| node.drain.is_some()),
            coming: launches.iter().map(coming).sum(),
            unreachable: count(&|node| node.joined() && node.unreachable),
            unmanaged: count(&|node| {
                !node.joined()
                    && matches!(node.lifecycle, Lifecycle::Launched | Lifecycle::Leaving)
                    && node
                        .instance_id
                        .as_ref()
                        .is_some_and(|id| !named.contains(id))
            }),
            stopped: self.stops(round, pool).iter().map(render_stop).collect(),
            frozen: self.freeze_of(round, &pool.name).cloned(),
            read_error: error.map(|error| error.message.clone()),
            offerings: reading
                .map(|reading| {
                    reading
                        .offerings
                        .iter()
                        .map(|offering| {
                            let memory = round.ledger.memory.get(&offering.id);
                            (
                                offering.clone(),
                                memory.map(|held| held.value.entry.clone()),
                            )
                        })
                        .collect()
                })
                .unwrap_or_default(),
            reasons,
            orphaned: false,
            misses: settings.misses,
            launches,
        }
    }
}

/// Pools that nodes, launches or settings name and the config does not.
pub(super) fn orphans(control: &Control, round: &Round) -> BTreeSet<PoolId> {
    let nodes = round
        .ledger
        .nodes
        .values()
        .filter_map(|held| held.value.pool.clone());
    let launches = round
        .ledger
        .launches
        .values()
        .map(|held| held.value.pool.clone());
    nodes
        .chain(launches)
        .chain(round.ledger.pools.keys().cloned())
        .filter(|pool| control.config.pool(pool).is_none())
        .collect()
}

fn orphan_view(round: &Round, name: &PoolId) -> PoolView {
    let nodes = round
        .ledger
        .nodes
        .values()
        .filter(|held| held.value.pool.as_ref() == Some(name))
        .count();
    PoolView {
        name: name.clone(),
        kind: None,
        site: None,
        mode: Mode::Observe,
        min: 0,
        max: 0,
        spare: 0,
        nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
        ready: 0,
        idle: 0,
        draining: 0,
        coming: 0,
        unreachable: 0,
        unmanaged: 0,
        stopped: vec!["no longer in the config file: reported, never drained".to_owned()],
        frozen: None,
        read_error: None,
        offerings: Vec::new(),
        reasons: Vec::new(),
        orphaned: true,
        misses: 0,
        launches: round
            .ledger
            .launches
            .values()
            .filter(|held| held.value.pool == *name)
            .map(|held| held.value.clone())
            .collect(),
    }
}

fn rendered(reasons: &[Reason], round: &Round) -> Vec<String> {
    reasons
        .iter()
        .map(|reason| render(reason, round.now))
        .collect()
}

fn node_view(
    round: &Round,
    node: &FleetNode,
    reasons: &BTreeMap<&NodeId, &Reason>,
    held: &BTreeMap<NodeId, Vec<AssignmentView>>,
) -> NodeView {
    let known = node.joined() || node.allocatable.gpus > 0;
    let held_gpus = node
        .reserved
        .iter()
        .fold(0_u32, |sum, found| sum.saturating_add(found.amount.gpus));
    NodeView {
        id: node.id.clone(),
        name: node.name.clone(),
        pool: node.pool.clone(),
        site: node.site.clone(),
        lifecycle: node.lifecycle,
        cordon: node.cordon.as_ref().map(|cordon| match cordon {
            Cordon::Drover => (
                super::orders::DROVER.to_owned(),
                node.order
                    .as_ref()
                    .map(|order| order.reason.clone())
                    .unwrap_or_default(),
            ),
            Cordon::Person { who, why } => (who.clone(), why.clone()),
        }),
        unreachable: node.unreachable,
        foreign: node.pool.is_none(),
        faulty: node.faulty.clone(),
        reason: match reasons.get(&node.id) {
            // A person's drain, in the person's words.
            Some(Reason::CordonedByPerson { who }) if node.drain.is_some() => {
                let why = node.drain.as_ref().map_or("", |drain| &drain.reason);
                format!("draining for {who}: {why}")
            }
            Some(reason) => render(reason, round.now),
            None if node.lifecycle == Lifecycle::Off => "off".to_owned(),
            None if node.launch.is_some() => "launched, its agent has not enrolled".to_owned(),
            None => "no agent speaks for it: never touched".to_owned(),
        },
        agent: node.agent.clone(),
        instance: node.instance_id.clone(),
        instance_type: node.instance_type.clone(),
        zone: node.zone.clone(),
        price: node.price,
        joined: node.record.as_ref().map(|record| record.joined),
        last_seen: node.agent.as_ref().map(|agent| agent.last_seen),
        idle_since: match node.busy {
            Busy::Idle { .. } if node.reserved.is_empty() => node.idle_since,
            _ => None,
        },
        busy: match &node.busy {
            Busy::Idle { .. } => node
                .reserved
                .iter()
                .map(|held| format!("held by request {}", held.request))
                .collect(),
            Busy::Working { what, .. } => what.clone(),
            Busy::Unknown { why } => vec![why.clone()],
        },
        drain: node.drain.clone(),
        assignments: held.get(&node.id).cloned().unwrap_or_default(),
        gpus: known.then_some(node.allocatable.gpus),
        gpus_free: known.then(|| {
            node.allocatable
                .gpus
                .saturating_sub(node.used.gpus)
                .saturating_sub(held_gpus)
        }),
        gpu_model: node.gpu_model.clone(),
        desired: node.order.clone(),
        labels: node.labels.clone(),
    }
}
