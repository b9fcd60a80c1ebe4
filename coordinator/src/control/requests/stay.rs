//! Which places of a request stay its own, by the state of the node.
//!
//! Called by `requests` once per cycle, before planning: what is given up is placed anew in the same cycle. Decides nothing
//! about nodes. **Invariant:** where work of the request may still run it keeps its place: silence is not death (I6), and
//! nothing here ends a job (I1).
//!
//! | the node | the units on it |
//! |---|---|
//! | a launch in flight | stay; its deadline and the end of its instance are looked at by `launches` |
//! | gone, leaving, off | are placed anew |
//! | draining, to leave | stay: their work may still run there |
//! | drained, to leave, and nothing has landed since | are placed anew: its agent has confirmed that nothing runs |
//! | draining or drained, and kept by a person | stay: the person gives it back |
//! | cordoned by a person | stay |
//! | taken some time by its cloud | stay; those whose work has not begun are placed anew by `notices` |
//! | never ready, its time to become ready is not over | stay; or go to a ready node that is free, see `swap` |
//! | never ready in its time, and faulty | are placed anew: nothing of the request can have started there |
//! | never ready in its time, and silent alone | are placed anew, the same way; a coordinator that has just started waits for the agents first |
//! | never ready in its time, and neither (its agent does not tell what runs) | stay: it is supply still, and may become ready |
//! | was ready, and is faulty or silent now | stay: their work may still run there; a person's drain moves them |
//!
//! Its time is the pool's deadline, counted from when it joined: GPUs and drivers may come late.

use super::super::cycle::{Control, Round};
use super::super::fleet::FleetNode;
use crate::records::{AssignmentTarget, Then};
use drover_core::model::{Busy, Lifecycle, Millis};

impl Control {
    /// Why a request gives up its units in a place; `None`: they stay.
    pub(in crate::control) fn given_up(
        &self,
        round: &Round,
        target: &AssignmentTarget,
    ) -> Option<String> {
        let gone = || Some("the node is gone".to_owned());
        let node = match target {
            AssignmentTarget::Launch(launch, _) => {
                let flies = round.ledger.launches.contains_key(launch);
                return if flies { None } else { gone() };
            }
            AssignmentTarget::Node(id) => round.node(id),
        };
        let Some(node) = node else { return gone() };
        match node.lifecycle {
            Lifecycle::Gone | Lifecycle::Leaving | Lifecycle::Off => gone(),
            Lifecycle::Drained => {
                let drain = node.drain.as_ref().filter(|d| d.then == Then::Leave)?;
                let landed = matches!(node.busy, Busy::Working { .. });
                (!landed).then(|| format!("{} is drained by {} and leaves", node.name, drain.by))
            }
            Lifecycle::Requested
            | Lifecycle::Launched
            | Lifecycle::Draining
            | Lifecycle::Joined
            | Lifecycle::Ready => self.never_ready(round, node),
        }
    }

    /// It joined, was not ready in its time, and is no supply: why.
    pub(in crate::control) fn never_ready(
        &self,
        round: &Round,
        node: &FleetNode,
    ) -> Option<String> {
        let record = node.record.as_ref().filter(|r| r.ready_at.is_none())?;
        let pool = node.pool.as_ref().and_then(|pool| self.config.pool(pool));
        let kind = node.instance.as_ref().map_or("", |i| &i.instance_type);
        let time = pool.map_or(Millis::ZERO, |pool| pool.deadline_of(kind));
        if node.lifecycle == Lifecycle::Ready || round.now <= record.joined.after(time) {
            return None;
        }
        let name = &node.name;
        if let Some(what) = &node.faulty {
            return Some(format!("{name} was never ready and is faulty: {what}"));
        }
        let site = node.site.as_ref();
        let dark = site.is_some_and(|site| self.seen.silent_sites.contains_key(site));
        (node.unreachable && self.seen.settled && !dark)
            .then(|| format!("{name} was never ready and is silent"))
    }
}
