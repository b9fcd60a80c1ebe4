//! Since when gangs of schedulers hold partial capacity (I8). Requests have it in their record; a scheduler's gang has no
//! record of ours, so it is remembered here, by its source and its first member. A restart begins its hold time anew.
//!
//! Called by the cycle around planning. Decides nothing.

use super::cycle::Control;
use super::input::Named;
use drover_core::model::{Class, PlanInput, Planned, Source, UnixMs};
use std::collections::BTreeSet;

/// A gang: source and first member.
pub(super) type GangKey = (String, String);

fn key(class: &Class, members: &Named) -> Option<GangKey> {
    class.gang.as_ref()?;
    match &class.source {
        Source::Scheduler(name) => Some((name.clone(), members.first.first()?.clone())),
        Source::Request(_) => None,
    }
}

impl Control {
    /// Tells each gang since when it holds; what waits no more is forgotten.
    pub(super) fn recall_holds(&mut self, classes: &mut [Class], members: &[Named]) {
        let mut waiting: BTreeSet<GangKey> = BTreeSet::new();
        for (class, members) in classes.iter_mut().zip(members) {
            let Some(key) = key(class, members) else {
                continue;
            };
            if let Some(gang) = &mut class.gang
                && gang.holding_since.is_none()
            {
                gang.holding_since = self.seen.holds.get(&key).copied();
            }
            waiting.insert(key);
        }
        // A source that could not be read is not a source without gangs.
        let doubtful = &self.seen.doubtful;
        self.seen
            .holds
            .retain(|key, _| waiting.contains(key) || doubtful.contains_key(&key.0));
    }

    /// Remembers gangs for which the plan holds capacity.
    pub(super) fn note_holds(
        &mut self,
        input: &PlanInput,
        planned: &Planned,
        members: &[Named],
        now: UnixMs,
    ) {
        let outcomes = input.classes.iter().zip(&planned.report.classes);
        for ((class, outcome), members) in outcomes.zip(members) {
            if outcome.held > 0
                && let Some(key) = key(class, members)
            {
                self.seen.holds.entry(key).or_insert(now);
            }
        }
    }
}
