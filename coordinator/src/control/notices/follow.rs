//! What notices that hold ask for: a forced drain on a spot notice, a cordon where the cloud may take a node, new places for
//! what requests hold there; and the end of all that once they do not hold any more.
//!
//! Called by the cycle with notices taken. By level: what is done already is not done again. `observe` changes nothing;
//! `grow` only keeps new work off.

use super::super::cycle::{Control, CycleError, Round};
use super::super::events::Happening;
use super::super::fleet::{FleetNode, expires};
use super::super::orders::{self, DROVER, OWN_DRAIN};
use super::super::requests::{drop_assignments, drop_units};
use super::super::tx::Tx;
use crate::records::{
    AssignmentTarget, DesiredState, DrainPolicy, DrainRecord, DrainStep, HookOn, NoticeKind,
    NoticeRecord, RequestRecord, Then,
};
use drover_core::model::{Busy, DrainId, Millis, Mode, UnixMs};

/// A forced drain ends this long before the notice's own end.
const MARGIN: Millis = Millis(15_000);
/// Without a time: AWS tells two minutes ahead.
const SPOT_LEAD: Millis = Millis::minutes(2);
/// A notice about a node that is nowhere is kept this long: readings may lag.
const UNFOUND: Millis = Millis::minutes(10);
/// How the reason of a cordon for a notice begins.
const NOTICE_CORDON: &str = "notice: ";

impl Control {
    pub(super) async fn follow_notices(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let all: Vec<(String, NoticeRecord)> = round
            .ledger
            .notices
            .iter()
            .map(|(key, held)| (key.clone(), held.value.clone()))
            .collect();
        for (key, notice) in all {
            let mut tx = Tx::new();
            match self.about(round, &notice) {
                Some(node) => self.act(round, &mut tx, &key, &notice, &node),
                None if round.now.since(notice.at) > UNFOUND => {
                    tx.delete_notice(&round.ledger, &key);
                }
                None => {}
            }
            self.commit(round, tx).await?;
        }
        self.rejoin(round);
        self.keep_notice_cordons(round).await?;
        self.rejoin(round);
        Ok(())
    }

    /// The node that a notice is about.
    fn about(&self, round: &Round, notice: &NoticeRecord) -> Option<FleetNode> {
        let found = round.node(&notice.node).or_else(|| {
            let instance = notice.instance.as_ref()?;
            let mut nodes = round.fleet.iter();
            nodes.find(|node| node.instance_id.as_ref() == Some(instance))
        });
        found.filter(|node| node.pool.is_some()).cloned()
    }

    fn act(
        &self,
        round: &Round,
        tx: &mut Tx,
        key: &String,
        notice: &NoticeRecord,
        node: &FleetNode,
    ) {
        let Some(pool) = node.pool.as_ref() else {
            return;
        };
        let Some(config) = self.config.pool(pool) else {
            return;
        };
        if expires(notice, &config.notices).is_some_and(|at| at <= round.now) {
            tx.delete_notice(&round.ledger, key);
            tx.event(Happening::NoticeOver {
                node: node.id.clone(),
                kind: notice.kind.word(),
                why: "expired".to_owned(),
            });
            return;
        }
        let mode = self.mode(round, pool);
        if mode == Mode::Observe || self.is_frozen(round, pool) || !node.joined() {
            return;
        }
        if notice.kind == NoticeKind::SpotInterruption {
            if mode == Mode::Full && notice.drain.is_none() {
                self.force(round, tx, key, notice, node);
            }
            move_requests(round, tx, node, "spot notice");
        }
        if notice.kind == NoticeKind::BlockEnd
            && notice
                .ends
                .is_some_and(|ends| round.now.after(config.notices.block_lead) >= ends)
        {
            if mode == Mode::Full && notice.drain.is_none() {
                self.force(round, tx, key, notice, node);
            }
            move_requests(round, tx, node, "its capacity block ends");
        }
        // Without a hook the group waits for nobody.
        let hookless = || {
            self.known_hooks(pool, HookOn::Terminating)
                .is_some_and(|hooks| hooks.is_empty())
        };
        if notice.kind == NoticeKind::LifecycleTerminating
            && mode == Mode::Full
            && notice.drain.is_none()
            && hookless()
        {
            self.force(round, tx, key, notice, node);
        }
    }

    /// The time that is left, by force: the cloud does not wait (I1: it says so, and the record names it).
    fn force(
        &self,
        round: &Round,
        tx: &mut Tx,
        key: &String,
        notice: &NoticeRecord,
        node: &FleetNode,
    ) {
        let before = match &node.drain {
            Some(drain)
                if drain.policy == DrainPolicy::Force || drain.step == DrainStep::Leaving =>
            {
                return;
            }
            Some(drain) => drain.before.clone(),
            None => node.order.clone().map(Box::new),
        };
        let ends = notice.ends.unwrap_or(notice.at.after(SPOT_LEAD));
        let deadline = UnixMs(ends.0.saturating_sub(MARGIN.0));
        let grace = node.pool.as_ref().and_then(|pool| self.config.pool(pool));
        let drain = DrainRecord {
            id: DrainId(format!("{OWN_DRAIN}{:016x}", self.chance.next())),
            node: node.id.clone(),
            policy: DrainPolicy::Force,
            by: DROVER.to_owned(),
            reason: match notice.kind {
                NoticeKind::BlockEnd => "its capacity block ends",
                NoticeKind::LifecycleTerminating => "its group terminates it, and has no hook",
                _ => "spot notice",
            }
            .to_owned(),
            own_idle: false,
            since: round.now,
            deadline: Some(deadline.max(round.now)),
            grace: grace.map_or(Millis::seconds(30), |pool| pool.grace),
            then: Then::Cordoned,
            step: DrainStep::Requested,
            moving: None,
            before,
        };
        let noted = NoticeRecord {
            drain: Some(drain.id.clone()),
            ..notice.clone()
        };
        tx.put_notice(&round.ledger, key, noted);
        begin(round, tx, node, drain);
    }

    /// Our own cordon on what the cloud may take, in every mode but `observe`; taken back once nothing holds (I7).
    async fn keep_notice_cordons(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let nodes: Vec<FleetNode> = round
            .fleet
            .iter()
            .filter(|node| node.joined() && node.drain.is_none())
            .filter(|node| {
                let ours = is_notice_cordon(node);
                match &node.taken {
                    Some(_) => node.cordon.is_none(),
                    None => ours,
                }
            })
            .cloned()
            .collect();
        for node in nodes {
            let Some(pool) = &node.pool else { continue };
            if self.mode(round, pool) == Mode::Observe || self.is_frozen(round, pool) {
                continue;
            }
            let (current, epoch) = (node.order.as_ref(), node.highest_epoch());
            let mut tx = Tx::new();
            match &node.taken {
                Some(taken) => {
                    let reason = format!("{NOTICE_CORDON}{}", taken.why);
                    let order = orders::cordoned(current, epoch, DROVER, &reason);
                    tx.put_order(&round.ledger, &node.id, order);
                    let why = format!("{} takes no new work: {}", node.name, taken.why);
                    drop_units(round, &mut tx, &why, |request, target| {
                        let here = matches!(target, AssignmentTarget::Node(id) if *id == node.id);
                        here && !begun(&node, request)
                    });
                    tx.event(Happening::Cordoned {
                        node: node.id.clone(),
                        by: DROVER.to_owned(),
                        reason: reason.clone(),
                    });
                    tx.audit("node.cordon", node.id.as_str(), reason);
                }
                None => {
                    let why = "the notice does not hold any more";
                    let order = orders::active(current, epoch, why);
                    tx.put_order(&round.ledger, &node.id, order);
                    tx.event(Happening::Uncordoned {
                        node: node.id.clone(),
                        by: DROVER.to_owned(),
                        reason: why.to_owned(),
                    });
                    tx.audit("node.uncordon", node.id.as_str(), why);
                }
            }
            self.commit(round, tx).await?;
        }
        Ok(())
    }
}

/// The order in force is our cordon for a notice.
fn is_notice_cordon(node: &FleetNode) -> bool {
    node.order.as_ref().is_some_and(|order| {
        order.desired == DesiredState::Cordoned
            && order.by == DROVER
            && order.reason.starts_with(NOTICE_CORDON)
    })
}

/// Work of a request runs on the node, as far as anybody can tell: work that names no request may be anybody's.
fn begun(node: &FleetNode, request: &RequestRecord) -> bool {
    let ever = node
        .record
        .as_ref()
        .is_some_and(|record| record.ready_at.is_some());
    match &node.busy {
        Busy::Idle { .. } => false,
        Busy::Unknown { .. } => ever,
        Busy::Working { .. } => {
            let list = node.agent.as_ref().and_then(|view| view.workloads.as_ref());
            let mut items = list.iter().flat_map(|list| &list.items).peekable();
            let named = |name: &str| name.is_empty() || name == request.name.as_str();
            items.peek().is_none() || items.any(|work| named(&work.request))
        }
    }
}

/// Adds to a change: a drain begins.
pub(in crate::control) fn begin(round: &Round, tx: &mut Tx, node: &FleetNode, drain: DrainRecord) {
    let order = orders::draining(node.order.as_ref(), node.highest_epoch(), &drain);
    tx.event(Happening::DrainStarted {
        node: node.id.clone(),
        policy: drain.policy,
        by: drain.by.clone(),
        reason: drain.reason.clone(),
    });
    tx.audit("node.drain", node.id.as_str(), drain.reason.clone());
    tx.put_drain(&round.ledger, &node.id, drain);
    tx.put_order(&round.ledger, &node.id, order);
}

/// Adds to a change: what requests hold on a node that ends waits again, and is planned in this very cycle.
pub(in crate::control) fn move_requests(round: &Round, tx: &mut Tx, node: &FleetNode, why: &str) {
    drop_assignments(
        round,
        tx,
        why,
        |target| matches!(target, AssignmentTarget::Node(id) if *id == node.id),
    );
}
