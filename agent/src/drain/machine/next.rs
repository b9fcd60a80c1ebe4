//! The second half of a step: the phase that what is known gives, and the action that is wanted now. Pure.
//!
//! Used by the drain machine alone.

use super::super::status::{Blocker, BlockerKind, Phase};
use super::State;
use super::event::{Action, How, Settings};
use super::run::{Asked, EMPTY_LOOKS, End, Once, Run, STUCK_MS};
use crate::clock::BootMs;
use crate::order::Policy;

/// Under force, KILL comes at least this long before the deadline.
const FORCE_MARGIN_MS: u64 = 5_000;

impl State {
    /// Moves the drain to the phase that what is known gives, and lists what is in its way.
    pub(super) fn advance(&mut self, now: BootMs, settings: Settings) {
        let fresh = self.is_fresh(now, settings);
        let cordoned = self.cordoned;
        let looked_since = self
            .look
            .as_ref()
            .filter(|look| cordoned && look.number > self.cordoned_at_look);
        let Some(run) = &mut self.run else {
            return;
        };
        if run.is_over() {
            run.blockers.clear();
            if let Some(blocker) = self.undo.blocker() {
                run.blockers.push(blocker.clone());
            }
            return;
        }
        let expired = run.deadline.is_some_and(|deadline| now >= deadline);
        if expired && run.spec.policy != Policy::Force && run.phase != Phase::Drained {
            run.end(End::Deadline);
            return;
        }
        run.blockers.clear();
        if !cordoned {
            run.phase = Phase::Cordoning;
            run.blockers.extend(self.cordon.blocker().cloned());
            return;
        }
        let Some(look) = looked_since else {
            if run.phase == Phase::Requested {
                run.phase = Phase::Cordoning;
            }
            return;
        };
        let count = u32::try_from(look.work.len()).unwrap_or(u32::MAX);
        run.at_start.get_or_insert(count);
        run.now = count;
        if look.work.is_empty() && look.unreadable.is_empty() {
            run.confirm();
            return;
        }
        // Also after `drained`: what landed since then must not be lost.
        run.announce = Once::Open;
        run.phase = match run.spec.policy {
            Policy::Wait => Phase::Waiting,
            Policy::Evict | Policy::Force => Phase::Evicting,
        };
        run.block(look, now);
        if run.phase == Phase::Evicting && !look.work.is_empty() {
            if !fresh {
                run.blockers.push(Blocker {
                    kind: BlockerKind::NoFreshWord,
                    subject: String::new(),
                    message:
                        "the coordinator has not confirmed this drain lately: nothing is ended"
                            .into(),
                });
            }
            if run.spec.policy != Policy::Force {
                run.blockers.extend(run.checkpoint.blocker().cloned());
            }
            run.blockers.extend(run.trouble.clone());
        }
    }

    pub(super) fn is_fresh(&self, now: BootMs, settings: Settings) -> bool {
        let fresh = |at: BootMs| now.since(at) <= settings.word_limit_ms;
        self.emergency || self.word.is_some_and(fresh)
    }

    /// The action that is wanted now.
    pub(super) fn next(&self, now: BootMs, settings: Settings) -> Option<Action> {
        let wants_cordon = self.wants_cordon();
        let failed_lately = matches!(&self.undo, Once::Failed { again, .. } if now < *again);
        // With the cordon kept, what a drain did is undone once; else until nothing of ours stands.
        let undone = wants_cordon && matches!(self.undo, Once::Done);
        let ended_run = self.run.as_ref().is_some_and(Run::is_over);
        if self.touched && (!wants_cordon || ended_run) && !undone && !failed_lately {
            return Some(Action::Undo {
                keep_cordon: wants_cordon,
            });
        }
        if wants_cordon && !self.cordoned {
            return self.cordon.is_due(now).then_some(Action::Cordon);
        }
        let run = self.run.as_ref().filter(|_| !self.released)?;
        match run.phase {
            Phase::Confirming if run.empty_looks >= EMPTY_LOOKS => {
                run.announce.is_due(now).then_some(Action::Announce)
            }
            Phase::Evicting => self.evict(run, now, settings),
            _ => None,
        }
    }

    fn evict(&self, run: &Run, now: BootMs, settings: Settings) -> Option<Action> {
        let look = self.look.as_ref()?;
        if look.work.is_empty() || !self.is_fresh(now, settings) {
            return None;
        }
        let force = run.spec.policy == Policy::Force;
        // Under force the time for TERM and grace is kept free, whatever the hooks do.
        let by = run.deadline.filter(|_| force).map(|deadline| {
            BootMs(
                deadline
                    .0
                    .saturating_sub(run.spec.grace_ms + FORCE_MARGIN_MS),
            )
        });
        let late = by.is_some_and(|by| now >= by);
        match &run.checkpoint {
            Once::Open if !late => return Some(Action::Checkpoint { by }),
            Once::Failed { again, .. } if !force => {
                return (now >= *again).then_some(Action::Checkpoint { by });
            }
            _ => {}
        }
        let mut term = Vec::new();
        let mut kill = Vec::new();
        for work in look.work.iter().filter(|work| work.protected.is_none()) {
            match run.asked.get(&work.id) {
                None => term.push(work.id.clone()),
                Some(asked) => {
                    let mut at = asked.at.plus(run.spec.grace_ms);
                    if let (true, Some(deadline)) = (force, run.deadline) {
                        at = at.min(BootMs(deadline.0.saturating_sub(FORCE_MARGIN_MS)));
                    }
                    let lately = asked.how == How::Kill && now.since(asked.last) < STUCK_MS;
                    if now >= at && !lately {
                        kill.push(work.id.clone());
                    }
                }
            }
        }
        if !term.is_empty() {
            return Some(Action::Evict {
                ids: term,
                how: How::Term,
            });
        }
        (!kill.is_empty()).then_some(Action::Evict {
            ids: kill,
            how: How::Kill,
        })
    }

    pub(super) fn begin(&mut self, action: &Action, now: BootMs) {
        self.busy = Some(action.did());
        match action {
            Action::Cordon => {
                self.touched = true;
                self.undo = Once::Open;
            }
            Action::Evict { ids, how } => {
                if let Some(run) = &mut self.run {
                    for id in ids {
                        let before = run.asked.get(id).filter(|asked| asked.how == *how);
                        let asked = Asked {
                            how: *how,
                            at: before.map_or(now, |asked| asked.at),
                            last: now,
                        };
                        run.asked.insert(id.clone(), asked);
                    }
                }
            }
            Action::Undo { keep_cordon } => self.undo_keeps = *keep_cordon,
            Action::Checkpoint { .. } | Action::Announce => {}
        }
    }
}
