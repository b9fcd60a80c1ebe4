//! Room for the work of nodes that their cloud takes, before it waits anywhere: planned like demand, in the cycle in which
//! the notice came.
//!
//! Called while the planner's input is made. The work itself is not touched: it waits as its scheduler says once it is
//! ended, and then this is no longer here. What requests hold on a node that ends was given up with the notice; on one
//! that only may be taken it stays, and room is made beside it where the pool says `replace`.

use super::cycle::{Control, Round};
use super::fleet::FleetNode;
use super::input::Named;
use crate::config::OnRebalance;
use crate::ports::demand::Occupied;
use crate::records::NoticeKind;
use drover_core::model::{Class, Constraints, NodeId, Resources, Source, UnixMs};
use std::collections::{BTreeMap, BTreeSet};

/// Its name among the sources of demand.
const NOTICES: &str = "notices";

impl Control {
    /// Classes for such work, each with the node it is on.
    pub(super) fn replacements(
        &self,
        round: &Round,
        running: &[BTreeMap<NodeId, Occupied>],
    ) -> Vec<(Class, Named)> {
        let mut found = Vec::new();
        for node in &round.fleet {
            let Some(since) = self.replaced_since(node) else {
                continue;
            };
            let model = model(round, node);
            let told = running.iter().filter_map(|source| source.get(&node.id));
            for work in told.flat_map(|here| &here.workloads) {
                let room = Class {
                    labels: work.labels.clone(),
                    namespace: work.namespace.clone(),
                    team: work.team.clone(),
                    ..class(&model, work.unit.clone(), work.count, since)
                };
                found.push((room, named(node)));
            }
            for held in &node.reserved {
                let pools = round
                    .ledger
                    .requests
                    .get(&held.request)
                    .map(|request| request.value.spec.pools.iter().cloned().collect())
                    .unwrap_or_default();
                let mut room = class(&model, held.amount.clone(), 1, since);
                room.constraints.pools = pools;
                room.team.clone_from(&held.team);
                found.push((room, named(node)));
            }
        }
        found
    }

    /// Since when room is made for the work of a node; `None`: none is.
    fn replaced_since(&self, node: &FleetNode) -> Option<UnixMs> {
        let policy = &self.config.pool(node.pool.as_ref()?)?.notices;
        let taken = node.taken.as_ref()?;
        let notice = node.notices.iter().find(|notice| match notice.kind {
            NoticeKind::SpotInterruption
            | NoticeKind::LifecycleTerminating
            | NoticeKind::BlockEnd => taken.doomed,
            NoticeKind::Rebalance => policy.rebalance == OnRebalance::Replace,
            NoticeKind::ScheduledEvent => false,
        })?;
        Some(notice.at)
    }
}

/// The GPU's model as the node's offering names it, by which another is chosen: a driver's name says more ("NVIDIA A10G"
/// where the offering says "a10g"), and no offering would have it.
fn model(round: &Round, node: &FleetNode) -> String {
    let offered = node.pool.as_ref().zip(node.offering.as_ref());
    let offered = offered.and_then(|(pool, id)| {
        let reading = round.readings.get(pool)?;
        reading.offerings.iter().find(|of| of.id == *id)
    });
    let model = offered.map_or(&node.gpu_model, |of| &of.gpu_model);
    model.clone()
}

fn class(model: &str, unit: Resources, count: u32, submitted: UnixMs) -> Class {
    Class {
        source: Source::Scheduler(NOTICES.to_owned()),
        unit,
        whole_node: false,
        count,
        constraints: Constraints {
            gpu_model: model.to_owned(),
            pools: BTreeSet::new(),
            ..Constraints::default()
        },
        gang: None,
        priority: 0,
        submitted,
        labels: BTreeMap::new(),
        namespace: String::new(),
        team: String::new(),
        run_time: None,
        max_wait: None,
        deadline: None,
    }
}

fn named(node: &FleetNode) -> Named {
    Named {
        first: vec![format!("work of {}", node.name)],
    }
}
