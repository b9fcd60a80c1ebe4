//! What an agent says in its session: taken into the view of its node, and whether a cycle is worth it.
//!
//! Called by the session's task in `serve/agents`.

use super::{Ending, LinkError, SessionLink};
use crate::adapters::link::slot::{NOTICES, Pending, Slot};
use crate::ports::link::AgentView;
use drover_proto::v1;
use std::sync::Arc;

impl SessionLink {
    /// Changes the view; false from `change` means that no cycle is worth it.
    fn change(
        &mut self,
        change: impl FnOnce(&mut Slot, &mut AgentView) -> Result<bool, LinkError>,
    ) -> Result<(), LinkError> {
        let now = self.hub.clock.wall();
        let mono = self.hub.clock.mono().0;
        let mut table = self.hub.lock();
        let slot = table.slots.get_mut(&self.node).ok_or(Ending::Forgotten)?;
        match &slot.open {
            Some(open) if open.id == self.id => {
                if let Some(why) = open.ending {
                    return Err(why.into());
                }
            }
            Some(_) => return Err(Ending::Replaced.into()),
            None => return Err(Ending::Forgotten.into()),
        }
        let Some(mut view) = slot.view.take() else {
            return Err(Ending::Forgotten.into());
        };
        // In place, unless a reader holds what was said before.
        let said = Arc::make_mut(&mut view);
        said.last_seen = now;
        said.last_seen_mono = mono;
        let worth = change(slot, said);
        slot.view = Some(view);
        let worth = worth?;
        drop(table);
        if worth {
            self.hub.wake();
        }
        Ok(())
    }

    /// A report: full ones replace, others change what they name.
    ///
    /// # Errors
    /// The session is over.
    pub fn report(&mut self, report: v1::Report) -> Result<(), LinkError> {
        self.change(|_, view| {
            let mut worth = false;
            if let Some(facts) = report.facts
                && *view.facts != facts
            {
                view.facts = Arc::new(facts);
                worth = true;
            }
            if let Some(telemetry) = report.telemetry {
                view.telemetry = Some(Arc::new(telemetry));
            }
            match report.workloads {
                Some(list) => {
                    if view.workloads.as_deref() != Some(&list) {
                        let before = view.workloads.replace(Arc::new(list));
                        worth |= !same_work(before.as_deref(), view.workloads.as_deref());
                    }
                    view.workloads_at = view.last_seen;
                }
                // The word of an agent that knows no list: not an empty one.
                None if report.full => worth |= view.workloads.take().is_some(),
                None => {}
            }
            let conditions = report.conditions.map(|list| list.items);
            if let Some(conditions) = conditions.or_else(|| report.full.then(Vec::new))
                && view.conditions != conditions
            {
                worth |= !same_conditions(&view.conditions, &conditions);
                view.conditions = conditions;
            }
            if report.actual.is_some() && view.actual != report.actual {
                view.actual = report.actual;
                worth = true;
            }
            Ok(worth)
        })
    }

    /// A notice: handed to control once, acknowledged when control has settled it.
    ///
    /// # Errors
    /// The session is over, or too many wait.
    pub fn notice(&mut self, seq: u64, notice: v1::Notice) -> Result<(), LinkError> {
        let session = self.id;
        let taken = self.hub.clock.mono().0;
        self.change(|slot, _| {
            if slot.settled.contains(&notice.id) {
                return Ok(false);
            }
            let known = slot.notices.iter_mut().find(|p| p.notice.id == notice.id);
            if let Some(pending) = known {
                pending.seq = Some((session, seq));
                return Ok(false);
            }
            if slot.notices.len() >= NOTICES {
                return Err(LinkError::Notices);
            }
            slot.notices.push_back(Pending {
                notice,
                taken,
                seq: Some((session, seq)),
            });
            Ok(true)
        })?;
        self.unacked.push_back(seq);
        Ok(())
    }

    /// What became of an order. Acknowledged at once: an agent says it again when the order is repeated.
    ///
    /// # Errors
    /// The session is over.
    pub fn order_status(&mut self, seq: u64, status: v1::OrderStatus) -> Result<(), LinkError> {
        self.change(|_, view| {
            if view.order_status.as_ref() == Some(&status) {
                return Ok(false);
            }
            view.order_status = Some(status);
            Ok(true)
        })?;
        self.unacked.push_back(seq);
        Ok(())
    }
}

/// Alike in all that a decision depends on. What a process holds of its GPU's memory changes with every report: a fleet
/// whose jobs breathe must not plan all the time.
fn same_work(before: Option<&v1::WorkloadList>, now: Option<&v1::WorkloadList>) -> bool {
    let (Some(before), Some(now)) = (before, now) else {
        return before.is_none() && now.is_none();
    };
    let same = |(a, b): (&v1::Workload, &v1::Workload)| {
        a.kind == b.kind
            && a.id == b.id
            && a.user == b.user
            && a.command == b.command
            && a.gpus == b.gpus
            && a.request == b.request
    };
    before.witnesses == now.witnesses
        && before.unreadable == now.unreadable
        && before.items.len() == now.items.len()
        && before.items.iter().zip(&now.items).all(same)
}

/// The same trouble about the same things, whatever the words (they count seconds).
fn same_conditions(before: &[v1::Condition], now: &[v1::Condition]) -> bool {
    let same = |(a, b): (&v1::Condition, &v1::Condition)| {
        a.kind == b.kind && a.subject == b.subject && a.faulty == b.faulty
    };
    before.len() == now.len() && before.iter().zip(now).all(same)
}
