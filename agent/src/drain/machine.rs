//! What a node should do next so that it becomes what its order asks. Pure.
//!
//! Called by `drain`, which carries out the one action that this asks for and tells how it went. The state is
//! written to disk before an action is begun and everything here is by level, not by edge: after a restart the
//! same state asks for the same action again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::status::{Blocker, BlockerKind, Phase, Status};
use crate::clock::BootMs;
use crate::order::{Desired, DrainSpec, OrderId, Policy};

/// A failed executor or hook is tried again after this.
const RETRY_MS: u64 = 10_000;
/// Under force, KILL comes at least this long before the deadline.
const FORCE_MARGIN_MS: u64 = 5_000;
/// A workload that outlives KILL by this is said to be stuck.
const STUCK_MS: u64 = 10_000;
/// Empty looks in a row that make a node empty.
const EMPTY_LOOKS: u8 = 2;

/// What does not change while the agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How old the coordinator's word may be for a destructive step.
    pub word_limit_ms: u64,
}

/// How a workload is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum How {
    /// It may clean up.
    Term,
    /// It is ended.
    Kill,
}

impl How {
    /// As on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Term => "TERM",
            Self::Kill => "KILL",
        }
    }
}

/// One thing to do. At most one is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Take no new work.
    Cordon,
    /// Let the workloads save themselves; done by `by` if that is given.
    Checkpoint {
        /// Leave off at this time.
        by: Option<BootMs>,
    },
    /// Ask workloads to end.
    Evict {
        /// Which.
        ids: Vec<String>,
        /// How.
        how: How,
    },
    /// Tell that the node is empty (unmount, say).
    Announce,
    /// Undo ours, in reverse; the cordon stays if `keep_cordon`.
    Undo {
        /// The order before wanted a cordon.
        keep_cordon: bool,
    },
}

/// Name of an action, for what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    /// [`Action::Cordon`]
    Cordon,
    /// [`Action::Checkpoint`]
    Checkpoint,
    /// [`Action::Evict`]
    Evict,
    /// [`Action::Announce`]
    Announce,
    /// [`Action::Undo`]
    Undo,
}

impl Action {
    /// Its name.
    #[must_use]
    pub fn did(&self) -> Did {
        match self {
            Self::Cordon => Did::Cordon,
            Self::Checkpoint { .. } => Did::Checkpoint,
            Self::Evict { .. } => Did::Evict,
            Self::Announce => Did::Announce,
            Self::Undo { .. } => Did::Undo,
        }
    }
}

/// A workload, as far as a drain cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// Stable while it runs.
    pub id: String,
    /// For people: "process 4711 (alice) python train.py holds 2 GPUs".
    pub text: String,
    /// Why no executor may end it; `None` if one may.
    pub protected: Option<String>,
}

/// One look at the node. Each has a later number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// Number.
    pub number: u64,
    /// What runs.
    pub work: Vec<Work>,
    /// Witnesses that could not be read, with why.
    pub unreadable: Vec<(String, String)>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An order was taken, or is in force after a start.
    Ordered {
        /// Which one.
        id: OrderId,
        /// What it asks.
        desired: Desired,
        /// Its drain's deadline on the boot-time clock.
        deadline: Option<BootMs>,
    },
    /// The coordinator still meant the order in force at this moment.
    Word(BootMs),
    /// The cloud or the hardware takes the node at this time: word is not needed, and the deadline is no later.
    Emergency(Option<BootMs>),
    /// The node was looked at.
    Looked(Look),
    /// An action ended. Failures name the hook or executor.
    Did(Did, Result<(), Blocker>),
    /// root ran `release` (true) or `resume` (false).
    Released(bool),
    /// The clock.
    Tick,
}

/// A thing to be done once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Once {
    #[default]
    Open,
    Done,
    Failed {
        blocker: Blocker,
        again: BootMs,
    },
}

impl Once {
    fn take(&mut self, result: Result<(), Blocker>, now: BootMs) {
        *self = match result {
            Ok(()) => Self::Done,
            Err(blocker) => Self::Failed {
                blocker,
                again: now.plus(RETRY_MS),
            },
        };
    }

    fn is_due(&self, now: BootMs) -> bool {
        match self {
            Self::Open => true,
            Self::Done => false,
            Self::Failed { again, .. } => now >= *again,
        }
    }

    fn blocker(&self) -> Option<&Blocker> {
        match self {
            Self::Failed { blocker, .. } => Some(blocker),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Asked {
    how: How,
    at: BootMs,
}

/// One drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    spec: DrainSpec,
    deadline: Option<BootMs>,
    /// The order before it wanted a cordon: that is what a roll-back restores.
    cordoned_before: bool,
    phase: Phase,
    at_start: Option<u32>,
    now: u32,
    checkpoint: Once,
    announce: Once,
    asked: BTreeMap<String, Asked>,
    ended: BTreeMap<String, How>,
    reason: String,
    #[serde(skip)]
    empty_looks: u8,
    #[serde(skip)]
    blockers: Vec<Blocker>,
    /// Nothing that is still there can be ended.
    #[serde(skip)]
    stands_still: bool,
    /// Why the last eviction did not reach everything.
    #[serde(skip)]
    trouble: Option<Blocker>,
}

impl Run {
    fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Cancelled | Phase::RolledBack)
    }
}

/// Everything the node's drain side knows. Starts empty on a new node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    order: OrderId,
    desired: Want,
    run: Option<Run>,
    /// Ours may stand on the host.
    touched: bool,
    /// The executors took the cordon.
    cordoned: bool,
    /// root said so; orders wait.
    released: bool,
    cordon: Once,
    undo: Once,
    emergency: bool,
    emergency_by: Option<BootMs>,
    #[serde(skip)]
    word: Option<BootMs>,
    #[serde(skip)]
    look: Option<Look>,
    /// Number of the last look when the cordon came to stand.
    #[serde(skip)]
    cordoned_at_look: u64,
    #[serde(skip)]
    busy: Option<Did>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Want {
    #[default]
    Active,
    Cordoned,
    Draining,
}

/// One step: what follows from an event, and the action that is now to be begun, if none is under way.
#[must_use]
pub fn step(
    mut state: State,
    event: Event,
    now: BootMs,
    settings: Settings,
) -> (State, Option<Action>) {
    state.apply(event, now);
    state.advance(now, settings);
    let action = match state.busy {
        Some(_) => None,
        None => state.next(now, settings),
    };
    if let Some(action) = &action {
        state.begin(action, now);
    }
    (state, action)
}

impl State {
    /// The executors hold the node cordoned for us.
    #[must_use]
    pub fn is_cordoned(&self) -> bool {
        self.cordoned
    }

    /// root released the host.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.released
    }

    /// Something of ours may stand on the host.
    #[must_use]
    pub fn is_touched(&self) -> bool {
        self.touched
    }

    /// The action under way is no longer wanted: it should leave off.
    #[must_use]
    pub fn unwanted(&self) -> bool {
        let for_run = matches!(
            self.busy,
            Some(Did::Checkpoint | Did::Announce | Did::Evict)
        );
        let for_cordon = self.busy == Some(Did::Cordon);
        (for_run && self.run.as_ref().is_none_or(Run::is_over))
            || (for_cordon && !self.wants_cordon())
    }

    /// A restart in a new boot: marks of processes of before mean nothing, and boot time began anew.
    pub fn new_boot(&mut self, now: BootMs) {
        self.released = false;
        self.emergency = false;
        self.emergency_by = None;
        // Asserted again: what a hook did may not outlive a boot.
        self.cordoned = false;
        for once in [&mut self.cordon, &mut self.undo] {
            if matches!(once, Once::Failed { .. }) {
                *once = Once::Open;
            }
        }
        if let Some(run) = &mut self.run {
            run.asked.clear();
            for once in [&mut run.checkpoint, &mut run.announce] {
                if let Once::Failed { again, .. } = once {
                    *again = now;
                }
            }
        }
    }

    /// How far the order in force is.
    #[must_use]
    pub fn status(&self) -> Status {
        let mut status = Status {
            order: self.order,
            ..Status::default()
        };
        let Some(run) = &self.run else {
            return status;
        };
        status.drain_id.clone_from(&run.spec.id);
        status.phase = Some(shown(run));
        status.blockers.clone_from(&run.blockers);
        status.workloads_at_start = run.at_start.unwrap_or(0);
        status.workloads_now = run.now;
        status.reason.clone_from(&run.reason);
        status.ended = run
            .ended
            .iter()
            .map(|(id, how)| format!("{id} {}", how.as_str()))
            .collect();
        status
    }

    fn wants_cordon(&self) -> bool {
        if self.released {
            return false;
        }
        match (self.desired, &self.run) {
            (Want::Active, _) => false,
            (Want::Cordoned, _) => true,
            (Want::Draining, Some(run)) => !run.is_over() || run.cordoned_before,
            (Want::Draining, None) => false,
        }
    }

    fn apply(&mut self, event: Event, now: BootMs) {
        match event {
            Event::Ordered {
                id,
                desired,
                deadline,
            } => self.ordered(id, desired, deadline),
            Event::Word(at) => self.word = self.word.max(Some(at)),
            Event::Emergency(deadline) => {
                self.emergency = true;
                self.emergency_by = earlier(self.emergency_by, deadline);
                if let Some(run) = &mut self.run {
                    run.deadline = earlier(run.deadline, deadline);
                }
            }
            Event::Looked(look) => self.looked(look),
            Event::Did(did, result) => self.did(did, result, now),
            Event::Released(released) => {
                self.released = released;
                match &mut self.run {
                    Some(run) if released && !run.is_over() => {
                        end(run, Phase::Cancelled, "released by root on the host");
                    }
                    // The order in force is given again, and begins anew.
                    Some(run) if !released && run.is_over() => self.run = None,
                    _ => {}
                }
            }
            Event::Tick => {}
        }
    }

    fn ordered(&mut self, id: OrderId, desired: Desired, deadline: Option<BootMs>) {
        let cordoned_before = match (self.desired, &self.run) {
            (Want::Cordoned, _) => true,
            (Want::Draining, Some(run)) => run.cordoned_before,
            _ => false,
        };
        self.order = id;
        match desired {
            Desired::Active | Desired::Cordoned => {
                self.desired = if desired == Desired::Active {
                    Want::Active
                } else {
                    Want::Cordoned
                };
                self.emergency = false;
                self.emergency_by = None;
                if let Some(run) = &mut self.run {
                    if run.is_over() {
                        self.run = None;
                    } else {
                        let reason = if run.phase == Phase::Drained {
                            "taken back after it was done"
                        } else {
                            "taken back by a later order"
                        };
                        end(run, Phase::Cancelled, reason);
                    }
                }
            }
            Desired::Draining(spec) => {
                self.desired = Want::Draining;
                let deadline = earlier(deadline, self.emergency_by);
                if self.released {
                    self.run = None;
                    return;
                }
                match &mut self.run {
                    Some(run) if run.spec.id == spec.id && resumes(run, &spec) => {
                        run.deadline = deadline;
                        run.spec = spec;
                    }
                    _ => {
                        self.run = Some(start(spec, deadline, cordoned_before));
                        self.undo = Once::Open;
                    }
                }
            }
        }
    }

    fn looked(&mut self, look: Look) {
        if let Some(run) = &mut self.run {
            let empty = look.work.is_empty() && look.unreadable.is_empty();
            run.empty_looks = if empty {
                run.empty_looks.saturating_add(1)
            } else {
                0
            };
            run.now = u32::try_from(look.work.len()).unwrap_or(u32::MAX);
            for id in run.asked.keys() {
                let gone = !look.work.iter().any(|work| work.id == *id);
                if gone && look.unreadable.is_empty() {
                    run.ended.insert(id.clone(), run.asked[id].how);
                }
            }
            run.asked.retain(|id, _| !run.ended.contains_key(id));
        }
        self.look = Some(look);
    }

    fn did(&mut self, did: Did, result: Result<(), Blocker>, now: BootMs) {
        self.busy = None;
        match did {
            Did::Cordon => {
                self.cordoned = result.is_ok();
                self.cordoned_at_look = self.look.as_ref().map_or(0, |look| look.number);
                self.cordon.take(result, now);
                if let Some(run) = &mut self.run {
                    run.empty_looks = 0;
                }
            }
            Did::Undo => {
                if result.is_ok() {
                    self.touched = self.wants_cordon();
                    self.cordoned = self.cordoned && self.touched;
                    self.cordon = Once::Open;
                }
                self.undo.take(result, now);
            }
            Did::Checkpoint => {
                if let Some(run) = &mut self.run {
                    run.checkpoint.take(result, now);
                }
            }
            Did::Announce => {
                if let Some(run) = &mut self.run {
                    run.announce.take(result, now);
                }
            }
            // What is still there in the next look is asked again.
            Did::Evict => {
                if let Some(run) = &mut self.run {
                    run.trouble = result.err();
                }
            }
        }
    }

    /// Moves the drain to the phase that what is known gives, and lists what is in its way.
    fn advance(&mut self, now: BootMs, settings: Settings) {
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
            end(run, Phase::RolledBack, "not empty at its deadline");
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
            confirm(run);
            return;
        }
        // Also after `drained`: what landed since then must not be lost.
        run.announce = Once::Open;
        run.phase = match run.spec.policy {
            Policy::Wait => Phase::Waiting,
            Policy::Evict | Policy::Force => Phase::Evicting,
        };
        block(run, look, now);
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

    fn is_fresh(&self, now: BootMs, settings: Settings) -> bool {
        let fresh = |at: BootMs| now.since(at) <= settings.word_limit_ms;
        self.emergency || self.word.is_some_and(fresh)
    }

    /// The action that is wanted now.
    fn next(&self, now: BootMs, settings: Settings) -> Option<Action> {
        let wants_cordon = self.wants_cordon();
        let ended_run = self.run.as_ref().is_some_and(Run::is_over);
        if self.touched && (!wants_cordon || ended_run) && self.undo.is_due(now) {
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
                    let again = asked.how == How::Kill && now.since(asked.at) < STUCK_MS;
                    if now >= at && !again {
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

    fn begin(&mut self, action: &Action, now: BootMs) {
        self.busy = Some(action.did());
        match action {
            Action::Cordon => {
                self.touched = true;
                self.undo = Once::Open;
            }
            Action::Evict { ids, how } => {
                if let Some(run) = &mut self.run {
                    for id in ids {
                        let asked = Asked { how: *how, at: now };
                        run.asked.insert(id.clone(), asked);
                    }
                }
            }
            Action::Checkpoint { .. } | Action::Announce | Action::Undo { .. } => {}
        }
    }
}

/// Whether a drain that is told again goes on. One that was given up begins anew only with another deadline.
fn resumes(run: &Run, spec: &DrainSpec) -> bool {
    match run.phase {
        Phase::Cancelled => false,
        Phase::RolledBack => spec.deadline_unix_ms == run.spec.deadline_unix_ms,
        _ => true,
    }
}

fn earlier(one: Option<BootMs>, other: Option<BootMs>) -> Option<BootMs> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn start(spec: DrainSpec, deadline: Option<BootMs>, cordoned_before: bool) -> Run {
    Run {
        spec,
        deadline,
        cordoned_before,
        phase: Phase::Requested,
        at_start: None,
        now: 0,
        checkpoint: Once::Open,
        announce: Once::Open,
        asked: BTreeMap::new(),
        ended: BTreeMap::new(),
        reason: String::new(),
        empty_looks: 0,
        blockers: Vec::new(),
        stands_still: false,
        trouble: None,
    }
}

fn end(run: &mut Run, phase: Phase, reason: &str) {
    run.phase = phase;
    run.empty_looks = 0;
    // What was in the way at a deadline stays readable in the reason.
    run.reason = match run.blockers.first() {
        Some(first) if phase == Phase::RolledBack => format!("{reason}: {}", first.message),
        _ => reason.to_owned(),
    };
    run.blockers.clear();
}

fn confirm(run: &mut Run) {
    if run.phase == Phase::Drained {
        return;
    }
    run.phase = Phase::Confirming;
    if run.empty_looks < EMPTY_LOOKS {
        return;
    }
    match &run.announce {
        Once::Done => run.phase = Phase::Drained,
        Once::Failed { blocker, .. } => run.blockers.push(blocker.clone()),
        Once::Open => {}
    }
}

fn block(run: &mut Run, look: &Look, now: BootMs) {
    for (witness, why) in &look.unreadable {
        run.blockers.push(Blocker {
            kind: BlockerKind::UnreadableGpu,
            subject: witness.clone(),
            message: format!("{witness} cannot be read: {why}"),
        });
    }
    run.stands_still = !look.work.is_empty();
    for work in &look.work {
        let stuck = run
            .asked
            .get(&work.id)
            .is_some_and(|asked| asked.how == How::Kill && now.since(asked.at) >= STUCK_MS);
        run.stands_still &= stuck || work.protected.is_some();
        let message = match &work.protected {
            Some(why) => format!("{}; not ended: {why}", work.text),
            None if stuck => format!("{}; does not end after KILL", work.text),
            None => work.text.clone(),
        };
        run.blockers.push(Blocker {
            kind: BlockerKind::Workload,
            subject: work.id.clone(),
            message,
        });
    }
}

/// `Blocked` is how a drain looks when more than workloads that end, or may be ended, is in its way.
fn shown(run: &Run) -> Phase {
    let other = run
        .blockers
        .iter()
        .any(|blocker| blocker.kind != BlockerKind::Workload);
    let stuck = run.phase == Phase::Evicting && run.stands_still;
    if !run.is_over() && run.phase != Phase::Drained && (other || stuck) {
        Phase::Blocked
    } else {
        run.phase
    }
}

#[cfg(test)]
mod tests;
