//! Capacity memory: what a failure of an offering teaches, and how it is forgotten (DESIGN 5, I11). Called by control with
//! every answer of a provider; the planner reads the entries. Durable: an entry ends by success or by its expiry only.

use crate::model::{FailureKind, MemoryEntry, Millis, OfferingId, UnixMs};

/// Pause before the n-th probe after a shortage, in minutes (DESIGN 5).
const PAUSES_MIN: [u64; 6] = [1, 2, 4, 8, 16, 30];
/// Pause before the n-th try after passing trouble, in seconds.
const TRANSIENT_S: [u64; 7] = [5, 10, 20, 40, 80, 160, 300];
/// What a person mends elsewhere is looked at hourly.
const HOURLY: Millis = Millis::minutes(60);
/// A type that its zone does not have at all (Unsupported) is remembered for a day.
const DAY: Millis = Millis::minutes(24 * 60);
/// An entry that was due for so long, and that nobody has probed, is forgotten.
const FORGOTTEN_AFTER: Millis = Millis::minutes(120);
/// A ration that would grow beyond this is open again.
const OPEN_ABOVE: u32 = 16;

/// One offering's entry and how often it failed in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// What the planner sees.
    pub entry: MemoryEntry,
    /// Failures in a row; each probe counts once.
    pub failures: u32,
}

/// What was learnt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An ask failed, wholly or in part.
    Failed {
        /// How.
        kind: FailureKind,
        /// The zone does not have the type at all.
        unsupported: bool,
        /// Nodes that the same ask gave all the same.
        granted: u32,
        /// Text of the provider, in full.
        message: String,
    },
    /// An ask gave all that was asked.
    Gave {
        /// Nodes.
        nodes: u32,
    },
    /// Time passed.
    Tick,
}

/// What else follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// The pool stops until a person, its template or its config changes it; with `retry`, it is looked at hourly.
    StopPool {
        /// Hourly again.
        retry: bool,
    },
    /// A person must be told.
    Alert,
    /// Wait before the next call to this provider; nothing was learnt about capacity.
    SlowDown,
}

/// One step. `jitter` in thousandths (0 to 1000) lengthens a pause by at most a tenth; the caller draws it.
#[must_use]
pub fn step(
    before: Option<Known>,
    offering: &OfferingId,
    event: &Event,
    now: UnixMs,
    jitter: u32,
) -> (Option<Known>, Vec<Act>) {
    match event {
        Event::Failed {
            kind: FailureKind::Throttle,
            ..
        } => (before, vec![Act::SlowDown]),
        Event::Failed {
            kind: FailureKind::Config | FailureKind::Suspended,
            ..
        } => (before, vec![Act::StopPool { retry: false }, Act::Alert]),
        Event::Failed {
            kind: FailureKind::Permission,
            ..
        } => (before, vec![Act::StopPool { retry: true }, Act::Alert]),
        Event::Failed {
            kind,
            unsupported,
            granted,
            message,
        } => {
            let failures = match &before {
                // Several failures of one ask are one.
                Some(known) if now < known.entry.next_probe => known.failures,
                Some(known) if *granted == 0 => known.failures.saturating_add(1),
                _ => 1,
            };
            let pause = if *unsupported {
                DAY
            } else {
                pause(*kind, failures)
            };
            let longer = pause.0 / 10 * u64::from(jitter.min(1000)) / 1000;
            let entry = MemoryEntry {
                offering: offering.clone(),
                kind: *kind,
                failed: now,
                next_probe: now.after(Millis(pause.0 + longer)),
                ration: 1,
                message: message.clone(),
            };
            let acts = if *kind == FailureKind::Quota {
                vec![Act::Alert]
            } else {
                Vec::new()
            };
            (Some(Known { entry, failures }), acts)
        }
        Event::Gave { nodes } => (
            before.and_then(|known| opened(known, *nodes, now)),
            Vec::new(),
        ),
        Event::Tick => (
            before.filter(|k| now < k.entry.next_probe.after(FORGOTTEN_AFTER)),
            Vec::new(),
        ),
    }
}

/// A success doubles the ration, from what was given; a large one opens it.
fn opened(known: Known, nodes: u32, now: UnixMs) -> Option<Known> {
    if nodes == 0 {
        return Some(known);
    }
    let ration = known.entry.ration.max(nodes).saturating_mul(2);
    if ration > OPEN_ABOVE {
        return None;
    }
    let entry = MemoryEntry {
        next_probe: now,
        ration,
        ..known.entry
    };
    Some(Known { entry, failures: 0 })
}

fn pause(kind: FailureKind, failures: u32) -> Millis {
    let nth = |all: &[u64]| all[(failures.max(1) as usize - 1).min(all.len() - 1)];
    match kind {
        FailureKind::Quota => HOURLY,
        FailureKind::Transient => Millis::seconds(nth(&TRANSIENT_S)),
        _ => Millis::minutes(nth(&PAUSES_MIN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(kind: FailureKind) -> Event {
        Event::Failed {
            kind,
            unsupported: false,
            granted: 0,
            message: "no capacity".to_owned(),
        }
    }

    fn fails(before: Option<Known>, now: UnixMs) -> Option<Known> {
        step(before, &"o".into(), &failed(FailureKind::Shortage), now, 0).0
    }

    #[test]
    fn sc_04_a_shortage_storm_is_eight_probes_in_ninety_minutes() {
        let mut now = UnixMs(0);
        let mut known = fails(None, now);
        let mut probes = vec![0];
        while now.0 < 90 * 60_000 {
            now.0 += 10_000;
            if known.as_ref().is_some_and(|k| now >= k.entry.next_probe) {
                probes.push(now.0 / 60_000);
                known = fails(known, now);
            }
        }
        assert_eq!(probes, vec![0, 1, 3, 7, 15, 31, 61]);
    }

    #[test]
    fn sc_70_more_failures_of_one_ask_do_not_move_the_probe() {
        let first = fails(None, UnixMs(0)).unwrap();
        let again = fails(Some(first.clone()), UnixMs(500)).unwrap();
        assert_eq!((first.failures, again.failures), (1, 1));
        let tick = step(
            Some(first.clone()),
            &"o".into(),
            &Event::Tick,
            UnixMs(59_999),
            0,
        )
        .0;
        assert_eq!(
            tick,
            Some(first.clone()),
            "only success or expiry clears it"
        );
        let late = UnixMs(first.entry.next_probe.0 + FORGOTTEN_AFTER.0);
        assert_eq!(
            step(Some(first), &"o".into(), &Event::Tick, late, 0).0,
            None
        );
    }

    #[test]
    fn success_doubles_the_ration_and_then_opens() {
        let mut known = fails(None, UnixMs(0));
        let mut rations = Vec::new();
        for at in 1..10 {
            let nodes = known.as_ref().map_or(0, |k| k.entry.ration);
            known = step(known, &"o".into(), &Event::Gave { nodes }, UnixMs(at), 0).0;
            let Some(k) = &known else { break };
            rations.push(k.entry.ration);
            assert_eq!((k.entry.next_probe, k.failures), (UnixMs(at), 0));
        }
        assert_eq!(rations, vec![2, 4, 8, 16]);
        assert_eq!(known, None);
    }

    #[test]
    fn kinds() {
        let minutes = |kind, unsupported| {
            let event = Event::Failed {
                kind,
                unsupported,
                granted: 0,
                message: String::new(),
            };
            let (known, acts) = step(None, &"o".into(), &event, UnixMs(0), 0);
            (known.map(|k| k.entry.next_probe.0 / 60_000), acts)
        };
        use FailureKind::*;
        for (kind, unsupported, wait, acts) in [
            (Shortage, false, Some(1), vec![]),
            (Shortage, true, Some(24 * 60), vec![]),
            (Price, false, Some(1), vec![]),
            (NeverJoined, false, Some(1), vec![]),
            (Quota, false, Some(60), vec![Act::Alert]),
            (Transient, false, Some(0), vec![]),
            (Throttle, false, None, vec![Act::SlowDown]),
            (
                Config,
                false,
                None,
                vec![Act::StopPool { retry: false }, Act::Alert],
            ),
            (
                Suspended,
                false,
                None,
                vec![Act::StopPool { retry: false }, Act::Alert],
            ),
            (
                Permission,
                false,
                None,
                vec![Act::StopPool { retry: true }, Act::Alert],
            ),
        ] {
            assert_eq!(minutes(kind, unsupported), (wait, acts), "{kind:?}");
        }
    }

    #[test]
    fn jitter_lengthens_by_a_tenth_at_most() {
        let at = |jitter| {
            step(
                None,
                &"o".into(),
                &failed(FailureKind::Shortage),
                UnixMs(0),
                jitter,
            )
            .0
        };
        assert_eq!(at(0).unwrap().entry.next_probe, UnixMs(60_000));
        assert_eq!(at(1000).unwrap().entry.next_probe, UnixMs(66_000));
        assert_eq!(at(u32::MAX).unwrap().entry.next_probe, UnixMs(66_000));
    }

    #[test]
    fn a_part_given_starts_the_pauses_anew() {
        let mut known = fails(None, UnixMs(0));
        for at in [60_000, 180_000] {
            known = fails(known, UnixMs(at));
        }
        let event = Event::Failed {
            kind: FailureKind::Shortage,
            unsupported: false,
            granted: 3,
            message: String::new(),
        };
        let after = step(known, &"o".into(), &event, UnixMs(1_000_000), 0)
            .0
            .unwrap();
        assert_eq!(
            (after.failures, after.entry.next_probe),
            (1, UnixMs(1_060_000))
        );
    }
}
