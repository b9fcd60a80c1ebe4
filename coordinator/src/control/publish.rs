//! The snapshot of a cycle: what every reader is shown.
//!
//! Called at the end of each cycle. Decides nothing.

mod advice;
mod alarms;
mod pools;
mod requests;
mod reserved;
mod silent;
mod strays;

use super::cycle::{Control, Round};
use super::fleet::FleetNode;
use super::input::Named;
use super::view::{AssignmentView, DemandView, FleetView, NodeView, RequestShown, RequestView};
use crate::records::NodeRecord;
use drover_core::model::{
    Busy, Cordon, Lifecycle, MicroUsd, NodeId, PlanInput, Planned, Reason, Source,
};
use drover_core::planner::render;
use requests::{held_by, request_view};
use std::collections::BTreeMap;
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
            .map(|node| node_view(round, node, &reasons, &held, self.waits(round, node)))
            .collect();
        let pools = self.pool_views(round, planned);
        let requests: Vec<RequestView> = round
            .ledger
            .requests
            .values()
            .map(|held| request_view(self, round, &held.value, input, planned))
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
                reasons: self.advised(round, planned, &class.source, &outcome.reasons),
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
            readings: round.readings.clone(),
            plan: Some(plan.clone()),
        };
        self.tell_impossible(round, &view);
        // Nobody looks: fine.
        let _ = self.views.send_replace(Arc::new(view));
    }

    /// What a drained node, or an instance that never joined, waits for.
    fn waits(&self, round: &Round, node: &FleetNode) -> Option<String> {
        if node.lifecycle == Lifecycle::Drained {
            let approval = super::breaker::waits_for(round, &node.id)?;
            let id = &approval.id;
            return Some(format!(
                "drained; its removal waits for `drover approve {id}`"
            ));
        }
        self.fate(round, node)
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
    waits: Option<String>,
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
            _ if node.quarantine().is_some() => {
                let why = node.quarantine().unwrap_or_default();
                format!("in quarantine: {why}")
            }
            _ if waits.is_some() => waits.unwrap_or_default(),
            // A person's drain, in the person's words.
            Some(Reason::CordonedByPerson { who }) if node.drain.is_some() => {
                let why = node.drain.as_ref().map_or("", |drain| &drain.reason);
                format!("draining for {who}: {why}")
            }
            // Not broken: taken by its cloud.
            Some(Reason::Faulty { .. }) if node.faulty.is_none() => node
                .taken
                .as_ref()
                .map_or_else(String::new, |taken| taken.why.clone()),
            Some(Reason::CordonedByPerson { .. })
                if node.drain.is_none() && node.taken.as_ref().is_some_and(|t| t.doomed) =>
            {
                node.taken
                    .as_ref()
                    .map_or_else(String::new, |taken| taken.why.clone())
            }
            // With what is missing, and since it may wait long, with whose it is.
            Some(reason @ (Reason::NotReady | Reason::HeldBy { .. }))
                if node.faulty.is_none() && node.lacks.is_some() =>
            {
                let lacks = node.lacks.as_deref().unwrap_or_default();
                match reason {
                    Reason::NotReady => format!("joined, not ready: {lacks}"),
                    held => format!("joined, not ready: {lacks}; {}", render(held, round.now)),
                }
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
        enrolled_with: node.record.as_ref().map_or(String::new(), enrolled_with),
        quarantine: node.quarantine().map(str::to_owned),
    }
}

fn enrolled_with(record: &NodeRecord) -> String {
    match (&record.token, &record.proven) {
        (Some(token), _) => format!("join token {token}"),
        (None, Some(proven)) => format!(
            "instance identity of account {}, image {}",
            proven.account, proven.image
        ),
        (None, None) => "a certificate that the store did not know".to_owned(),
    }
}
