//! A node's life: which step follows which. Called by control when it joins what it heard into node records; conditions
//! (unreachable, faulty, cordons) stand beside it and never change it.

use crate::model::Lifecycle;

/// What was heard or done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The provider has it (an instance id, a host that was powered on).
    Provided,
    /// Its agent enrolled or opened a session.
    AgentSpoke,
    /// All that it should have is there (its GPUs, too).
    Complete,
    /// A drain was ordered.
    DrainOrdered,
    /// The agent confirmed that it is empty.
    DrainConfirmed,
    /// The drain was refused, cancelled, rolled back or ran out.
    DrainUndone,
    /// Termination or power-off was begun.
    RemovalBegun,
    /// The provider refused the removal.
    RemovalRefused,
    /// The provider says that it is no more, or has no power.
    Ended,
}

/// An event that does not belong to a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} does not follow {state:?}")]
pub struct Unexpected {
    /// State.
    pub state: Lifecycle,
    /// Event.
    pub event: Event,
}

/// The state after an event. A repeated event changes nothing. A physical node ends in `off` and may come back.
///
/// # Errors
/// When the event does not belong there; the state stays.
pub const fn step(state: Lifecycle, event: Event, physical: bool) -> Result<Lifecycle, Unexpected> {
    use Lifecycle as L;
    Ok(match (state, event) {
        (L::Gone, Event::Ended) => L::Gone,
        (_, Event::Ended) => {
            if physical {
                L::Off
            } else {
                L::Gone
            }
        }
        (L::Gone, _) => return Err(Unexpected { state, event }),
        (L::Requested | L::Off, Event::Provided) => L::Launched,
        // An agent may speak before its provider does, and a host may be switched on by hand.
        (L::Requested | L::Launched | L::Off, Event::AgentSpoke) => L::Joined,
        (L::Joined, Event::Complete) => L::Ready,
        (L::Joined | L::Ready, Event::DrainOrdered) => L::Draining,
        (L::Draining, Event::DrainConfirmed) => L::Drained,
        (L::Draining | L::Drained, Event::DrainUndone) => L::Ready,
        (L::Drained, Event::RemovalBegun) => L::Leaving,
        (L::Leaving, Event::RemovalRefused) => L::Drained,
        // What was heard before, or says nothing new.
        (_, Event::Provided | Event::AgentSpoke)
        | (L::Ready | L::Draining | L::Drained | L::Leaving, Event::Complete)
        | (L::Draining | L::Drained, Event::DrainOrdered)
        | (L::Drained, Event::DrainConfirmed)
        | (L::Ready, Event::DrainUndone)
        | (L::Leaving, Event::RemovalBegun) => state,
        _ => return Err(Unexpected { state, event }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Event as E;
    use Lifecycle as L;

    #[test]
    fn every_edge() {
        let edges = [
            (L::Requested, E::Provided, L::Launched),
            (L::Requested, E::AgentSpoke, L::Joined),
            (L::Launched, E::AgentSpoke, L::Joined),
            (L::Joined, E::Complete, L::Ready),
            (L::Joined, E::DrainOrdered, L::Draining),
            (L::Ready, E::DrainOrdered, L::Draining),
            (L::Draining, E::DrainConfirmed, L::Drained),
            (L::Draining, E::DrainUndone, L::Ready),
            (L::Drained, E::DrainUndone, L::Ready),
            (L::Drained, E::RemovalBegun, L::Leaving),
            (L::Leaving, E::RemovalRefused, L::Drained),
            (L::Leaving, E::Ended, L::Gone),
            (L::Off, E::Provided, L::Launched),
            (L::Off, E::AgentSpoke, L::Joined),
        ];
        for (from, event, to) in edges {
            assert_eq!(step(from, event, false), Ok(to), "{from:?} {event:?}");
        }
        for state in [
            L::Requested,
            L::Launched,
            L::Joined,
            L::Ready,
            L::Draining,
            L::Drained,
            L::Leaving,
            L::Off,
        ] {
            assert_eq!(
                step(state, E::Ended, false),
                Ok(L::Gone),
                "an instance may end at any time"
            );
            assert_eq!(
                step(state, E::Ended, true),
                Ok(L::Off),
                "a host may lose power at any time"
            );
        }
    }

    #[test]
    fn i1_nothing_is_removed_that_was_not_drained() {
        for state in [
            L::Requested,
            L::Launched,
            L::Joined,
            L::Ready,
            L::Draining,
            L::Off,
        ] {
            assert!(step(state, E::RemovalBegun, false).is_err(), "{state:?}");
        }
        assert!(step(L::Ready, E::DrainConfirmed, false).is_err());
        assert!(
            step(L::Leaving, E::DrainUndone, false).is_err(),
            "too late to take back"
        );
    }

    #[test]
    fn repeats_change_nothing_and_the_gone_stay_gone() {
        for (state, event) in [
            (L::Ready, E::AgentSpoke),
            (L::Ready, E::Complete),
            (L::Draining, E::AgentSpoke),
            (L::Draining, E::DrainOrdered),
            (L::Drained, E::DrainConfirmed),
            (L::Leaving, E::RemovalBegun),
            (L::Leaving, E::AgentSpoke),
        ] {
            assert_eq!(step(state, event, false), Ok(state), "{state:?} {event:?}");
        }
        for event in [
            E::Provided,
            E::AgentSpoke,
            E::Complete,
            E::DrainOrdered,
            E::DrainUndone,
        ] {
            assert!(step(L::Gone, event, false).is_err(), "{event:?}");
        }
    }
}
