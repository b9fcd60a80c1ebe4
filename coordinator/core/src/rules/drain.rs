//! The coordinator's side of a drain (DESIGN 7): what an agent's word, landed work, a deadline or a person does to it.
//! Called by control; the agent's own machine is in the agent. An undone drain restores the state before it.

use crate::model::UnixMs;

/// How far it is, as the coordinator knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Ordered; the agent has not confirmed.
    Requested,
    /// The agent is at it (cordoning, waiting, evicting, confirming, blocked).
    Running,
    /// Confirmed empty.
    Drained,
    /// Termination or power-off was begun: no way back.
    Leaving,
    /// Ended.
    Ended,
}

/// What follows an empty node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It leaves: terminated, or powered off.
    Leave,
    /// It stays cordoned.
    Cordoned,
    /// It goes back to ready.
    Return,
}

/// One drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drain {
    /// Stage.
    pub stage: Stage,
    /// Drover's own, for idleness.
    pub own_idle: bool,
    /// What follows.
    pub then: Then,
    /// Until when; absent: for ever.
    pub deadline: Option<UnixMs>,
}

/// What the agent says, in the words of its order status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// At it, whatever the step.
    Working,
    /// Empty, confirmed.
    Drained,
    /// It refused the order (stale, contradicting, invalid).
    Refused,
    /// It undid the drain itself.
    RolledBack,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The agent's word on this very drain.
    Agent(Word),
    /// A witness sees work on the node.
    WorkSeen,
    /// A person or the planner takes it back.
    Cancel,
    /// Its removal was begun.
    RemovalBegun,
    /// The provider refused the removal.
    RemovalRefused,
    /// The node is gone.
    Gone,
    /// Time passed.
    Tick,
}

/// Why a drain was undone; for events and audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undone {
    /// Work landed before the cordon took effect.
    WorkLanded,
    /// Somebody took it back.
    Cancelled,
    /// The agent refused it.
    Refused,
    /// The agent undid it.
    RolledBack,
    /// Its deadline passed.
    Expired,
    /// The provider did not take the node.
    RemovalRefused,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Order the state before, exactly (a person's cordon stays, a faulty node stays out).
    Restore(Undone),
    /// Idle-since is forgotten: the idle time starts anew when the work ends.
    IdleAnew,
    /// The node may leave, once the planner says so in a plan.
    MayLeave,
    /// Keep it cordoned: the drain is done.
    KeepCordoned,
    /// Order it back to work: the drain is done.
    Return,
    /// It is too late; said to whoever asked.
    TooLate,
}

/// One step.
#[must_use]
pub fn step(mut drain: Drain, event: Event, now: UnixMs) -> (Drain, Vec<Act>) {
    let undo = |drain: &mut Drain, why: Undone| {
        drain.stage = Stage::Ended;
        vec![Act::Restore(why)]
    };
    let acts = match (drain.stage, event) {
        (Stage::Ended, _) => Vec::new(),
        (_, Event::Gone) => {
            drain.stage = Stage::Ended;
            Vec::new()
        }
        (Stage::Leaving, Event::Cancel) => vec![Act::TooLate],
        (Stage::Leaving, Event::RemovalRefused) => undo(&mut drain, Undone::RemovalRefused),
        (Stage::Leaving, _) => Vec::new(),
        (Stage::Drained, Event::RemovalBegun) => {
            drain.stage = Stage::Leaving;
            Vec::new()
        }
        // Only a drained node is removed (I1).
        (_, Event::RemovalBegun | Event::RemovalRefused) => Vec::new(),
        (_, Event::Cancel) => undo(&mut drain, Undone::Cancelled),
        (_, Event::Agent(Word::Refused)) => undo(&mut drain, Undone::Refused),
        (_, Event::Agent(Word::RolledBack)) => undo(&mut drain, Undone::RolledBack),
        (_, Event::WorkSeen) if drain.own_idle => {
            let mut acts = undo(&mut drain, Undone::WorkLanded);
            acts.push(Act::IdleAnew);
            acts
        }
        // Any other drain is there to let work end; on a drained node it means: not drained.
        (Stage::Drained, Event::WorkSeen) => {
            drain.stage = Stage::Running;
            Vec::new()
        }
        (_, Event::WorkSeen) => Vec::new(),
        (Stage::Requested, Event::Agent(Word::Working)) => {
            drain.stage = Stage::Running;
            Vec::new()
        }
        (Stage::Requested | Stage::Running, Event::Agent(Word::Drained)) => finish(&mut drain),
        (Stage::Requested | Stage::Running, Event::Tick)
            if drain.deadline.is_some_and(|d| now >= d) =>
        {
            undo(&mut drain, Undone::Expired)
        }
        (_, Event::Agent(_) | Event::Tick) => Vec::new(),
    };
    (drain, acts)
}

fn finish(drain: &mut Drain) -> Vec<Act> {
    match drain.then {
        Then::Leave => {
            drain.stage = Stage::Drained;
            vec![Act::MayLeave]
        }
        Then::Cordoned => {
            drain.stage = Stage::Ended;
            vec![Act::KeepCordoned]
        }
        Then::Return => {
            drain.stage = Stage::Ended;
            vec![Act::Return]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(stage: Stage, own_idle: bool) -> Drain {
        Drain {
            stage,
            own_idle,
            then: Then::Leave,
            deadline: Some(UnixMs(100)),
        }
    }

    #[test]
    fn every_edge() {
        use Stage::*;
        let word = Event::Agent;
        for (from, own, event, to, acts) in [
            (Requested, true, word(Word::Working), Running, vec![]),
            (
                Requested,
                true,
                word(Word::Drained),
                Drained,
                vec![Act::MayLeave],
            ),
            (
                Running,
                true,
                word(Word::Drained),
                Drained,
                vec![Act::MayLeave],
            ),
            (Drained, true, word(Word::Drained), Drained, vec![]),
            (Drained, true, Event::RemovalBegun, Leaving, vec![]),
            (Running, true, Event::RemovalBegun, Running, vec![]),
            (Leaving, true, Event::Gone, Ended, vec![]),
            (Leaving, true, Event::Cancel, Leaving, vec![Act::TooLate]),
            (Leaving, true, Event::WorkSeen, Leaving, vec![]),
            (
                Leaving,
                true,
                Event::RemovalRefused,
                Ended,
                vec![Act::Restore(Undone::RemovalRefused)],
            ),
            (
                Requested,
                false,
                Event::Cancel,
                Ended,
                vec![Act::Restore(Undone::Cancelled)],
            ),
            (
                Drained,
                true,
                Event::Cancel,
                Ended,
                vec![Act::Restore(Undone::Cancelled)],
            ),
            (
                Requested,
                false,
                word(Word::Refused),
                Ended,
                vec![Act::Restore(Undone::Refused)],
            ),
            (
                Running,
                true,
                word(Word::RolledBack),
                Ended,
                vec![Act::Restore(Undone::RolledBack)],
            ),
            (Running, false, Event::WorkSeen, Running, vec![]),
            (Drained, false, Event::WorkSeen, Running, vec![]),
            (
                Running,
                false,
                Event::Tick,
                Ended,
                vec![Act::Restore(Undone::Expired)],
            ),
            (Drained, false, Event::Tick, Drained, vec![]),
            (Ended, false, Event::Cancel, Ended, vec![]),
        ] {
            let (after, did) = step(drain(from, own), event, UnixMs(100));
            assert_eq!((after.stage, did), (to, acts), "{from:?} {event:?}");
        }
    }

    #[test]
    fn sc_17_work_that_landed_rolls_an_idle_drain_back() {
        for stage in [Stage::Requested, Stage::Running, Stage::Drained] {
            let (after, acts) = step(drain(stage, true), Event::WorkSeen, UnixMs(1));
            assert_eq!(after.stage, Stage::Ended, "{stage:?}");
            assert_eq!(acts, vec![Act::Restore(Undone::WorkLanded), Act::IdleAnew]);
        }
    }

    #[test]
    fn a_deadline_that_has_not_come_changes_nothing() {
        let before = drain(Stage::Running, false);
        assert_eq!(step(before, Event::Tick, UnixMs(99)), (before, vec![]));
        let endless = Drain {
            deadline: None,
            ..before
        };
        assert_eq!(
            step(endless, Event::Tick, UnixMs(u64::MAX)),
            (endless, vec![])
        );
    }

    #[test]
    fn what_follows_an_empty_node() {
        for (then, stage, act) in [
            (Then::Leave, Stage::Drained, Act::MayLeave),
            (Then::Cordoned, Stage::Ended, Act::KeepCordoned),
            (Then::Return, Stage::Ended, Act::Return),
        ] {
            let before = Drain {
                then,
                ..drain(Stage::Running, false)
            };
            let (after, acts) = step(before, Event::Agent(Word::Drained), UnixMs(1));
            assert_eq!((after.stage, acts), (stage, vec![act]));
        }
    }
}
