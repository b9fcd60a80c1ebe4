//! Room for the work of nodes that their cloud takes, before it waits anywhere: planned like demand, in the cycle in which
//! the notice came, and asked for once.
//!
//! Called while the planner's input is made, and where launches are asked for and joined. The work itself is not touched:
//! it waits as its scheduler says once it is ended, and then this is no longer here. What requests hold on a node that
//! ends was given up with the notice; on one that only may be taken it stays, and room is made beside it where the pool
//! says `replace`. **Invariant:** once a node that was asked for has joined, nothing more is asked for that notice.

use super::cycle::{Control, CycleError, Round};
use super::events::Happening;
use super::fleet::FleetNode;
use super::input::Named;
use super::tx::Tx;
use crate::config::OnRebalance;
use crate::ports::demand::Occupied;
use crate::records::{NoticeKind, NoticeRecord, Room, wants};
use drover_core::model::{
    Class, Constraints, LaunchId, NodeId, PlanInput, Planned, Resources, Run, Source, Target,
    UnixMs,
};
use drover_core::planner::is_model;
use std::collections::{BTreeMap, BTreeSet};

/// Its name among the sources of demand.
const NOTICES: &str = "notices";
/// Label of such demand: the node whose work it is.
const ROOM_LABEL: &str = "drover.dev/room-for";

impl Control {
    /// Classes for such work, each with the node it is on.
    pub(super) fn replacements(
        &self,
        round: &Round,
        running: &[BTreeMap<NodeId, Occupied>],
    ) -> Vec<(Class, Named)> {
        let mut found = Vec::new();
        for node in &round.fleet {
            let Some(notice) = self.replaced_for(node).filter(|n| n.room != Room::Over) else {
                continue;
            };
            let told = running.iter().filter_map(|source| source.get(&node.id));
            for work in told.flat_map(|here| &here.workloads) {
                let mut room = class(node, work.unit.clone(), work.count, notice.at);
                if work.unit.gpus > 0 || work.unit.gpu_milli > 0 {
                    room.constraints.gpu_model = model(round, node);
                }
                room.labels.extend(work.labels.clone());
                room.namespace.clone_from(&work.namespace);
                room.team.clone_from(&work.team);
                found.push((room, named(node)));
            }
            for held in &node.reserved {
                let Some(request) = round.ledger.requests.get(&held.request) else {
                    continue;
                };
                let (request, spec) = (&request.value, &request.value.spec);
                let mut room = class(node, spec.whole_unit(), held.units, notice.at);
                room.whole_node = spec.whole_nodes;
                room.constraints = Constraints {
                    // Those that it is spread among are there still, and it would count among them twice.
                    spread: Vec::new(),
                    ..wants::constraints(request)
                };
                room.labels.extend(wants::label(request));
                room.team.clone_from(&held.team);
                found.push((room, named(node)));
            }
        }
        found
    }

    /// The notice for which room is made for the work of a node; `None`: none is.
    fn replaced_for<'n>(&self, node: &'n FleetNode) -> Option<&'n NoticeRecord> {
        let policy = &self.config.pool(node.pool.as_ref()?)?.notices;
        let taken = node.taken.as_ref()?;
        node.notices.iter().find(|notice| match notice.kind {
            NoticeKind::SpotInterruption
            | NoticeKind::LifecycleTerminating
            | NoticeKind::BlockEnd => taken.doomed,
            NoticeKind::Rebalance => policy.rebalance == OnRebalance::Replace,
            NoticeKind::ScheduledEvent => false,
        })
    }

    /// Adds to the change that intends a launch: it is the answer to these nodes' notices.
    pub(super) fn note_rooms(
        &self,
        round: &Round,
        tx: &mut Tx,
        nodes: &BTreeSet<NodeId>,
        launch: &LaunchId,
    ) {
        for notice in nodes.iter().filter_map(|id| round.node(id)) {
            let Some(notice) = self.replaced_for(notice) else {
                continue;
            };
            change(round, tx, notice, |room| match room {
                Room::None => Some(Room::Asked([launch.clone()].into())),
                Room::Asked(launches) => {
                    let mut launches = launches.clone();
                    launches.insert(launch.clone());
                    Some(Room::Asked(launches))
                }
                Room::Joined(_) | Room::Over => None,
            });
        }
    }

    /// Launches of the plan, by index, that would be asked only for notices which have had their answer. Where that answer
    /// takes work and there is no room all the same, the notice's demand ends, and that is told.
    pub(super) async fn had_their_room(
        &mut self,
        round: &mut Round,
        input: &PlanInput,
        planned: &Planned,
    ) -> Result<BTreeSet<u32>, CycleError> {
        let mut refused: BTreeSet<u32> = BTreeSet::new();
        let mut wanted: BTreeSet<u32> = BTreeSet::new();
        let mut over: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        for run in &planned.plan.runs {
            let Target::New {
                action,
                would: false,
                ..
            } = run.target
            else {
                continue;
            };
            let node = room_of(input, run).and_then(|id| round.node(&id));
            let notice = node.and_then(|node| self.replaced_for(node));
            match (node, notice.map(|notice| &notice.room)) {
                (Some(node), Some(Room::Joined(joined))) => {
                    refused.insert(action);
                    // One that is not ready yet may still do.
                    if round.node(joined).is_none_or(FleetNode::is_ready) {
                        over.insert(node.id.clone(), joined.clone());
                    }
                }
                _ => {
                    wanted.insert(action);
                }
            }
        }
        for (id, joined) in over {
            let Some(node) = round.node(&id).cloned() else {
                continue;
            };
            let (Some(pool), Some(notice)) = (node.pool.clone(), self.replaced_for(&node)) else {
                continue;
            };
            let name = round.node(&joined).map_or(joined.0.as_str(), |n| &n.name);
            let message = format!(
                "{name} was asked for to take over from {}, and has no room for its work: no other node is asked for that",
                node.name
            );
            let mut tx = Tx::new();
            change(round, &mut tx, notice, |_| Some(Room::Over));
            tx.event(Happening::PoolWarning { pool, message });
            self.commit(round, tx).await?;
        }
        Ok(refused.difference(&wanted).copied().collect())
    }
}

/// Adds to a change: a node of this launch has joined, and that is the answer to the notices that it was asked for.
pub(super) fn note_joined(round: &Round, tx: &mut Tx, launch: &LaunchId, node: &NodeId) {
    for held in round.ledger.notices.values() {
        change(round, tx, &held.value, |room| match room {
            Room::Asked(launches) if launches.contains(launch) => Some(Room::Joined(node.clone())),
            _ => None,
        });
    }
}

/// Nodes for whose work these runs make room.
pub(super) fn rooms<'r>(
    input: &PlanInput,
    runs: impl Iterator<Item = &'r Run>,
) -> BTreeSet<NodeId> {
    runs.filter_map(|run| room_of(input, run)).collect()
}

fn room_of(input: &PlanInput, run: &Run) -> Option<NodeId> {
    let class = input.classes.get(usize::try_from(run.class).ok()?)?;
    let ours = matches!(&class.source, Source::Scheduler(name) if name == NOTICES);
    let node = class.labels.get(ROOM_LABEL).filter(|_| ours)?;
    Some(NodeId(node.clone()))
}

/// Adds to a change what becomes of a notice's room.
fn change(
    round: &Round,
    tx: &mut Tx,
    notice: &NoticeRecord,
    room: impl FnOnce(&Room) -> Option<Room>,
) {
    let same = |other: &NoticeRecord| {
        (other.kind, &other.instance, &other.node) == (notice.kind, &notice.instance, &notice.node)
    };
    let mut all = round.ledger.notices.iter();
    let Some((key, held)) = all.find(|(_, held)| same(&held.value)) else {
        return;
    };
    if let Some(room) = room(&held.value.room) {
        let record = NoticeRecord {
            room,
            ..held.value.clone()
        };
        tx.put_notice(&round.ledger, key, record);
    }
}

/// The GPU's model as its agent says it, in the words of the offering that means it: a driver's name says more ("NVIDIA
/// A10G" where offerings say "a10g"), and no offering would have it. Empty: it has told none.
fn model(round: &Round, node: &FleetNode) -> String {
    let facts = node.agent.as_ref().map(|view| &view.facts);
    let Some(gpu) = facts.and_then(|facts| facts.gpus.first()) else {
        return String::new();
    };
    let offered = round.readings.values().flat_map(|of| &of.offerings);
    let meant = offered
        .map(|of| &of.gpu_model)
        .filter(|offered| !offered.is_empty() && is_model(&gpu.name, offered));
    meant
        .max_by_key(|offered| offered.len())
        .unwrap_or(&gpu.name)
        .clone()
}

fn class(node: &FleetNode, unit: Resources, count: u32, submitted: UnixMs) -> Class {
    Class {
        source: Source::Scheduler(NOTICES.to_owned()),
        unit,
        whole_node: false,
        count,
        constraints: Constraints::default(),
        gang: None,
        priority: 0,
        submitted,
        labels: [(ROOM_LABEL.to_owned(), node.id.0.clone())].into(),
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
