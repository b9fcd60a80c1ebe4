//! Silence of a whole site (I6, SC-26): one alarm, nothing bought and nothing removed there. Called by observe.

/// What is heard of one site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heard {
    /// Nodes whose agents should speak (enrolled, not leaving, gone or off).
    pub expected: u32,
    /// Of them those that are silent.
    pub silent: u32,
}

/// Below this one silent node is a node, not a site.
const LEAST: u32 = 2;

/// All nodes silent at once: a network fault.
#[must_use]
pub const fn is_silent(heard: Heard) -> bool {
    heard.expected >= LEAST && heard.silent >= heard.expected
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The site fell silent: one alarm.
    Fell,
    /// It is back.
    Returned,
}

/// The state from cycle to cycle is whether the site was silent.
#[must_use]
pub const fn step(was_silent: bool, heard: Heard) -> (bool, Option<Change>) {
    let now = is_silent(heard);
    let change = match (was_silent, now) {
        (false, true) => Some(Change::Fell),
        (true, false) => Some(Change::Returned),
        _ => None,
    };
    (now, change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sc_26_a_site_falls_silent_and_returns() {
        let mut was = false;
        for (expected, silent, now, change, case) in [
            (20, 0, false, None, "all speak"),
            (20, 1, false, None, "one box"),
            (20, 19, false, None, "all but one"),
            (20, 20, true, Some(Change::Fell), "all: one alarm"),
            (20, 20, true, None, "no second alarm"),
            (20, 3, false, Some(Change::Returned), "back"),
            (1, 1, false, None, "a single node is a node"),
            (0, 0, false, None, "nothing there"),
        ] {
            let (after, said) = step(was, Heard { expected, silent });
            assert_eq!((after, said), (now, change), "{case}");
            was = after;
        }
    }
}
