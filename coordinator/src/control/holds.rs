//! Since when gangs of schedulers hold partial capacity (I8). Requests have it in their record; a scheduler's gang has no
//! record of ours, so it is remembered here, by its source and its first member, in one small record: a restart or another
//! coordinator must not begin its hold time anew.
//!
//! Called by the cycle around planning. Decides nothing.

use super::cycle::{Control, CycleError};
use super::input::Named;
use crate::ports::store::{CommitError, Guard, Op};
use crate::records::keys;
use drover_core::model::{Class, Millis, PlanInput, Planned, Source, UnixMs};
use std::collections::BTreeSet;

/// Less than this is no jump of the wall clock.
const JUMP: Millis = Millis::seconds(1);

/// Gangs that are written at most: one per place holds at a time, so that this is far away.
const MOST: usize = 1_000;

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
    /// Reads what a coordinator before this one wrote. What cannot be read now is tried again in the next cycle.
    pub(super) async fn read_holds(&mut self) {
        if self.seen.holds_written.is_some() {
            return;
        }
        let entry = match self.journal.store().get(keys::HOLDS).await {
            Ok(entry) => entry,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "hold times of gangs cannot be read");
                return;
            }
        };
        let read: Result<Option<Vec<(GangKey, UnixMs)>>, _> = entry
            .map(|entry| serde_json::from_slice(&entry.value))
            .transpose();
        let read = read.unwrap_or_else(|error| {
            tracing::warn!(key = keys::HOLDS, %error, "hold times cannot be understood: begun anew");
            None
        });
        for (key, since) in read.unwrap_or_default() {
            self.seen.holds.insert(key, since);
        }
        self.seen.holds_written = Some(self.seen.holds.clone());
    }

    /// Hold times are spans: when the wall clock jumps, they jump with it.
    pub(super) fn move_holds(&mut self, now: UnixMs, mono: Millis) {
        let Some((then, before)) = self.seen.holds_at.replace((now, mono)) else {
            return;
        };
        let passed = mono.0.saturating_sub(before.0);
        let expected = then.0.saturating_add(passed);
        let (ahead, behind) = (
            now.0.saturating_sub(expected),
            expected.saturating_sub(now.0),
        );
        if ahead.max(behind) < JUMP.0 {
            return;
        }
        for since in self.seen.holds.values_mut() {
            *since = UnixMs(since.0.saturating_add(ahead).saturating_sub(behind));
        }
    }

    /// Writes them when they changed.
    pub(super) async fn keep_holds(&mut self) -> Result<(), CycleError> {
        let Some(written) = &self.seen.holds_written else {
            return Ok(());
        };
        if *written == self.seen.holds {
            return Ok(());
        }
        let list: Vec<(&GangKey, &UnixMs)> = self.seen.holds.iter().take(MOST).collect();
        let Ok(value) = serde_json::to_vec(&list) else {
            return Ok(());
        };
        let store = self.journal.store().clone();
        let none: [Guard; 0] = [];
        let op = Op::Put(keys::HOLDS.to_owned(), value);
        match store.commit(store.fence(), &none, &[op]).await {
            Ok(_) => self.seen.holds_written = Some(self.seen.holds.clone()),
            Err(error @ CommitError::Fenced { .. }) => return Err(CycleError::Fenced(error)),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "hold times of gangs were not written");
            }
        }
        Ok(())
    }

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
