//! The coordinator's side of a drain (DESIGN 7): what an agent's word, landed work, a deadline, a person or a provider does
//! to it. Called by control each cycle with what it sees, and before each act; the agent's own machine is in the agent. An
//! undone drain restores the state before it.

use crate::model::{Millis, UnixMs};

/// After its deadline a drain is given up by the coordinator when the agent has not said so itself.
pub const PATIENCE: Millis = Millis::minutes(1);

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
}

/// One drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drain {
    /// Stage.
    pub stage: Stage,
    /// Drover's own, for idleness.
    pub own_idle: bool,
    /// Drover's own, whatever for.
    pub ours: bool,
    /// Work may end by itself; nothing is evicted.
    pub waits: bool,
    /// Once empty it goes back to work, instead of staying cordoned or leaving.
    pub returns: bool,
    /// Until when; absent: for ever.
    pub deadline: Option<UnixMs>,
}

/// What the agent says of this very drain, in the words of its order status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// At it, whatever the step.
    Working,
    /// Empty, confirmed.
    Drained,
    /// It undid the drain itself.
    Undone,
}

/// What is seen of a drained node in one look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// The agent's word; absent: none on this drain.
    pub said: Option<Word>,
    /// The agent refused the order for good (a stale one is raised and sent again).
    pub refused: bool,
    /// Somebody else keeps work off the node as well.
    pub taken_over: bool,
    /// Work came before the cordon took effect, and was seen after it did.
    pub landed: bool,
    /// Its agent is silent: nothing can be concluded from that.
    pub silent: bool,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Somebody looked.
    Look(Look),
    /// A person or the planner takes it back.
    Cancel,
    /// Its removal begins.
    RemovalBegun,
    /// The provider refused the removal for good.
    RemovalRefused,
}

/// Why a drain is undone; for events and audit.
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

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// As it was.
    Stay,
    /// It goes on here.
    To(Stage),
    /// Order the state before, exactly (a person's cordon stays, a faulty node stays out).
    Undo(Undone),
    /// Empty, and wanted back: order the state before.
    Return,
    /// Whoever else keeps work off keeps the node: ours is taken back, theirs is not touched (I7).
    Theirs,
    /// It cannot be: too early, or too late.
    Refuse,
}

/// One step.
#[must_use]
pub fn step(drain: Drain, event: Event, now: UnixMs) -> Turn {
    match (drain.stage, event) {
        (Stage::Leaving, Event::RemovalRefused) => Turn::Undo(Undone::RemovalRefused),
        // Only a drained node is removed (I1), and a removal that was begun is not taken back.
        (Stage::Drained, Event::RemovalBegun) => Turn::To(Stage::Leaving),
        (_, Event::RemovalBegun | Event::RemovalRefused) | (Stage::Leaving, Event::Cancel) => {
            Turn::Refuse
        }
        (_, Event::Cancel) => Turn::Undo(Undone::Cancelled),
        (Stage::Leaving, Event::Look(_)) => Turn::Stay,
        (_, Event::Look(look)) => looked(drain, look, now),
    }
}

fn looked(drain: Drain, look: Look, now: UnixMs) -> Turn {
    if drain.ours && drain.own_idle && look.taken_over {
        return Turn::Theirs;
    }
    if look.refused {
        return Turn::Undo(Undone::Refused);
    }
    // Any other drain is there to let work end.
    if drain.own_idle && drain.waits && look.landed {
        return Turn::Undo(Undone::WorkLanded);
    }
    match (look.said, drain.stage) {
        (Some(Word::Undone), _) => return Turn::Undo(Undone::RolledBack),
        (Some(Word::Drained), Stage::Drained) if drain.returns => return Turn::Return,
        (Some(Word::Drained), Stage::Drained) => return Turn::Stay,
        (Some(Word::Drained), _) => return Turn::To(Stage::Drained),
        // Work came after it had been drained (somebody passed by the cordon): it is not drained any more.
        (Some(Word::Working), Stage::Drained | Stage::Requested) => {
            return Turn::To(Stage::Running);
        }
        _ => {}
    }
    let over = drain.deadline.is_some_and(|at| now > at.after(PATIENCE));
    if over && drain.stage < Stage::Drained && !look.silent {
        return Turn::Undo(Undone::Expired);
    }
    Turn::Stay
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMs = UnixMs(1_000_000);

    fn drain(stage: Stage, own_idle: bool) -> Drain {
        Drain {
            stage,
            own_idle,
            ours: own_idle,
            waits: true,
            returns: false,
            deadline: Some(UnixMs(NOW.0 - PATIENCE.0 - 1)),
        }
    }

    fn said(word: Word) -> Event {
        Event::Look(Look {
            said: Some(word),
            ..Look::default()
        })
    }

    #[test]
    fn every_edge() {
        use Stage::*;
        let look = |change: fn(&mut Look)| {
            let mut look = Look::default();
            change(&mut look);
            Event::Look(look)
        };
        let refused = look(|look| look.refused = true);
        let taken = look(|look| look.taken_over = true);
        let silent = look(|look| look.silent = true);
        for (from, own, event, turn) in [
            (Requested, true, said(Word::Working), Turn::To(Running)),
            (Requested, true, said(Word::Drained), Turn::To(Drained)),
            (Running, true, said(Word::Drained), Turn::To(Drained)),
            (Drained, true, said(Word::Drained), Turn::Stay),
            (Drained, false, said(Word::Working), Turn::To(Running)),
            (
                Running,
                true,
                said(Word::Undone),
                Turn::Undo(Undone::RolledBack),
            ),
            (Requested, false, refused, Turn::Undo(Undone::Refused)),
            (Leaving, true, refused, Turn::Stay),
            (Running, true, taken, Turn::Theirs),
            (Running, false, taken, Turn::Undo(Undone::Expired)),
            (
                Running,
                false,
                Event::Look(Look::default()),
                Turn::Undo(Undone::Expired),
            ),
            (Running, false, silent, Turn::Stay),
            (Drained, false, Event::Look(Look::default()), Turn::Stay),
            (Drained, true, Event::RemovalBegun, Turn::To(Leaving)),
            (Running, true, Event::RemovalBegun, Turn::Refuse),
            (Leaving, true, Event::RemovalBegun, Turn::Refuse),
            (
                Leaving,
                true,
                Event::RemovalRefused,
                Turn::Undo(Undone::RemovalRefused),
            ),
            (Drained, true, Event::RemovalRefused, Turn::Refuse),
            (Leaving, true, Event::Cancel, Turn::Refuse),
            (Drained, true, Event::Cancel, Turn::Undo(Undone::Cancelled)),
            (
                Requested,
                false,
                Event::Cancel,
                Turn::Undo(Undone::Cancelled),
            ),
        ] {
            assert_eq!(
                step(drain(from, own), event, NOW),
                turn,
                "{from:?} {event:?}"
            );
        }
    }

    #[test]
    fn sc_17_work_that_landed_rolls_an_idle_drain_back() {
        let landed = Event::Look(Look {
            landed: true,
            said: Some(Word::Working),
            ..Look::default()
        });
        for stage in [Stage::Requested, Stage::Running, Stage::Drained] {
            let turn = step(drain(stage, true), landed, NOW);
            assert_eq!(turn, Turn::Undo(Undone::WorkLanded), "{stage:?}");
            // Any other drain is there to let it end.
            let other = step(drain(stage, false), landed, NOW);
            assert_ne!(other, Turn::Undo(Undone::WorkLanded), "{stage:?}");
        }
    }

    #[test]
    fn a_deadline_that_has_not_come_changes_nothing() {
        let seen = Event::Look(Look::default());
        let before = Drain {
            deadline: Some(UnixMs(NOW.0 - PATIENCE.0)),
            ..drain(Stage::Running, false)
        };
        assert_eq!(step(before, seen, NOW), Turn::Stay);
        let endless = Drain {
            deadline: None,
            ..before
        };
        assert_eq!(step(endless, seen, UnixMs(u64::MAX)), Turn::Stay);
    }

    #[test]
    fn an_empty_node_that_is_wanted_back_returns() {
        let back = Drain {
            returns: true,
            ..drain(Stage::Drained, false)
        };
        assert_eq!(step(back, said(Word::Drained), NOW), Turn::Return);
    }
}
