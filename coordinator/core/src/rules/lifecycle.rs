//! Where a node is in its life, from what is known of it now: its drain, its provider, its agent. Levels and no events:
//! whoever forgets and looks again comes to the same answer. Called by control's join; conditions (unreachable, faulty,
//! cordons) stand beside it and never change it.

use super::drain::Stage;
use crate::model::Lifecycle;

/// What the provider says of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provider {
    /// It boots or runs.
    There,
    /// Being ended.
    Leaving,
    /// Ended.
    Gone,
}

/// All that the answer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    /// An agent has enrolled for it.
    pub joined: bool,
    /// Drain under way.
    pub drain: Option<Stage>,
    /// What the provider says; absent: nothing, or it is not known.
    pub provider: Option<Provider>,
    /// A physical host: no provider ends it.
    pub physical: bool,
    /// Without power, by our doing or before its agent ever spoke.
    pub off: bool,
    /// All that it should have has been there (its GPUs, too).
    pub complete: bool,
}

/// The answer. What was begun (a drain, its leaving) goes before what the provider says, which may be old.
#[must_use]
pub const fn of(levels: Levels) -> Lifecycle {
    match levels.drain {
        Some(Stage::Leaving) => return Lifecycle::Leaving,
        Some(Stage::Drained) => return Lifecycle::Drained,
        Some(Stage::Requested | Stage::Running) => return Lifecycle::Draining,
        None => {}
    }
    if levels.off {
        return Lifecycle::Off;
    }
    match levels.provider {
        Some(Provider::Gone) if !levels.physical => Lifecycle::Gone,
        Some(Provider::Leaving) if !levels.physical => Lifecycle::Leaving,
        _ if !levels.joined => Lifecycle::Launched,
        _ if levels.complete => Lifecycle::Ready,
        _ => Lifecycle::Joined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: Levels = Levels {
        joined: true,
        drain: None,
        provider: Some(Provider::There),
        physical: false,
        off: false,
        complete: true,
    };

    #[test]
    fn every_level_has_its_place() {
        let unjoined = Levels {
            joined: false,
            complete: false,
            ..READY
        };
        let drains = |stage| Levels {
            drain: Some(stage),
            provider: Some(Provider::Gone),
            off: true,
            ..READY
        };
        let host = Levels {
            physical: true,
            provider: Some(Provider::Gone),
            ..READY
        };
        for (levels, wanted) in [
            (READY, Lifecycle::Ready),
            (
                Levels {
                    complete: false,
                    ..READY
                },
                Lifecycle::Joined,
            ),
            // The provider may not be readable: an agent that speaks is there.
            (
                Levels {
                    provider: None,
                    ..READY
                },
                Lifecycle::Ready,
            ),
            (unjoined, Lifecycle::Launched),
            (
                Levels {
                    provider: Some(Provider::Gone),
                    ..READY
                },
                Lifecycle::Gone,
            ),
            (
                Levels {
                    provider: Some(Provider::Leaving),
                    ..unjoined
                },
                Lifecycle::Leaving,
            ),
            (host, Lifecycle::Ready),
            (Levels { off: true, ..host }, Lifecycle::Off),
            (
                Levels {
                    joined: false,
                    off: true,
                    ..host
                },
                Lifecycle::Off,
            ),
            (drains(Stage::Requested), Lifecycle::Draining),
            (drains(Stage::Running), Lifecycle::Draining),
            (drains(Stage::Drained), Lifecycle::Drained),
            (drains(Stage::Leaving), Lifecycle::Leaving),
        ] {
            assert_eq!(of(levels), wanted, "{levels:?}");
        }
    }
}
