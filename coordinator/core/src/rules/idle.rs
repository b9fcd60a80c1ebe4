//! Idle by evidence (I13): a node is idle only if every witness that its pool names says fresh "no work". Called by
//! observe for each node and cycle; the result is the planner's `Busy`, and idle-since is durable.

use crate::model::{Busy, Millis, UnixMs};

/// What one witness says of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Nothing runs.
    NoWork,
    /// Something runs.
    Work {
        /// What, for people.
        what: Vec<String>,
        /// All of it says that it can move.
        movable: bool,
    },
    /// It gave no answer that counts.
    Failed {
        /// Why, in words that name it.
        why: String,
    },
}

/// One witness that the pool names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// Name ("agent", "kubernetes/prod").
    pub name: String,
    /// What it said, and when; absent: never heard.
    pub said: Option<(Said, UnixMs)>,
    /// How old its word may be.
    pub fresh_for: Millis,
}

/// Workloads named in `Busy::Working` at most.
const NAMED: usize = 5;
/// Witnesses may be without an answer this long before the idle time starts anew: work may have come and gone unseen.
pub const BLIND: Millis = Millis::minutes(5);

/// One node now. `since` is the durable idle-since, if it was idle before. A node without witnesses is not idle.
#[must_use]
pub fn judge(witnesses: &[Witness], since: Option<UnixMs>, now: UnixMs) -> Busy {
    let mut what = Vec::new();
    let mut all_movable = true;
    let mut doubt = None;
    for witness in witnesses {
        let why = match &witness.said {
            Some((
                Said::Work {
                    what: named,
                    movable,
                },
                _,
            )) => {
                // Even an old word of work is work.
                what.extend(named.iter().cloned());
                if named.is_empty() {
                    what.push(witness.name.clone());
                }
                all_movable &= *movable;
                continue;
            }
            Some((Said::NoWork, at)) if now.since(*at) <= witness.fresh_for => continue,
            Some((Said::NoWork, at)) => {
                format!(
                    "no word of {} for {} s",
                    witness.name,
                    now.since(*at).0 / 1_000
                )
            }
            Some((Said::Failed { why }, _)) => why.clone(),
            None => format!("{} has said nothing", witness.name),
        };
        doubt.get_or_insert(why);
    }
    if !what.is_empty() {
        let more = what.len().saturating_sub(NAMED);
        what.truncate(NAMED);
        if more > 0 {
            what.push(format!("and {more} more"));
        }
        return Busy::Working {
            what,
            movable: all_movable && doubt.is_none(),
        };
    }
    match doubt {
        Some(why) => Busy::Unknown { why },
        None if witnesses.is_empty() => Busy::Unknown {
            why: "no witness is named".to_owned(),
        },
        // A clock that went back does not make a node idle for longer.
        None => Busy::Idle {
            since: since.unwrap_or(now).min(now),
        },
    }
}

/// What becomes of the durable idle-since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// Stays as it is, there or not.
    Keep,
    /// From now on, whatever it was.
    Start,
    /// Forgotten.
    End,
}

/// The durable idle-since after a look. `held`: a request or a person holds the node, so that its time does not run;
/// `known`: it has one; `blind`: nobody could say, or nobody asked, for so long before this look.
#[must_use]
pub fn since_after(busy: &Busy, held: bool, known: bool, blind: Millis) -> Since {
    match busy {
        Busy::Idle { .. } if !held => {
            if known && blind <= BLIND {
                Since::Keep
            } else {
                Since::Start
            }
        }
        // An unknown node keeps its time, but is not idle meanwhile.
        Busy::Unknown { .. } if !held => Since::Keep,
        _ if known => Since::End,
        _ => Since::Keep,
    }
}

/// A source reported `before` workloads a cycle ago and `now` ones now: shrinking holds until the loss is confirmed by
/// another look (I13). A source that fails is not a source that is empty.
#[must_use]
pub const fn lost_half(before: u32, now: u32) -> bool {
    before >= 2 && now <= before / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn witness(said: Option<(Said, u64)>) -> Witness {
        let said = said.map(|(s, at)| (s, UnixMs(at)));
        Witness {
            name: "agent".to_owned(),
            said,
            fresh_for: Millis(10),
        }
    }

    fn work(what: &str) -> Said {
        Said::Work {
            what: vec![what.to_owned()],
            movable: false,
        }
    }

    #[test]
    fn sc_34_what_idle_means() {
        let idle = |w: &[Witness]| matches!(judge(w, None, UnixMs(100)), Busy::Idle { .. });
        let fresh = || witness(Some((Said::NoWork, 95)));
        for (witnesses, wanted, case) in [
            (vec![fresh()], true, "nothing, fresh"),
            (
                vec![fresh(), witness(Some((work("process 7 holds GPU 3"), 95)))],
                false,
                "a process holds a GPU",
            ),
            (
                vec![fresh(), witness(Some((work("pod without requests"), 95)))],
                false,
                "a pod with requests of 0",
            ),
            (
                vec![fresh(), witness(Some((work("tmux of ann"), 95)))],
                false,
                "a detached terminal",
            ),
            (
                vec![fresh(), witness(Some((Said::NoWork, 89)))],
                false,
                "stale",
            ),
            (
                vec![fresh(), witness(Some((work("job"), 1)))],
                false,
                "an old word of work",
            ),
            (
                vec![
                    fresh(),
                    witness(Some((
                        Said::Failed {
                            why: "503".to_owned(),
                        },
                        99,
                    ))),
                ],
                false,
                "failing",
            ),
            (vec![fresh(), witness(None)], false, "never heard"),
            (vec![], false, "no witness"),
        ] {
            assert_eq!(idle(&witnesses), wanted, "{case}");
        }
    }

    #[test]
    fn sc_74_idle_since_the_last_work_and_not_the_age() {
        let idle = [witness(Some((Said::NoWork, 100)))];
        let first = judge(&idle, None, UnixMs(100));
        assert_eq!(first, Busy::Idle { since: UnixMs(100) });
        let later = judge(
            &[witness(Some((Said::NoWork, 200)))],
            Some(UnixMs(100)),
            UnixMs(200),
        );
        assert_eq!(
            later,
            Busy::Idle { since: UnixMs(100) },
            "a restart between does not move it"
        );
        let busy = judge(
            &[witness(Some((work("job"), 300)))],
            Some(UnixMs(100)),
            UnixMs(300),
        );
        let unknown = judge(&[witness(None)], Some(UnixMs(100)), UnixMs(300));
        let short = Millis::ZERO;
        let long = Millis(BLIND.0 + 1);
        for (busy, held, known, blind, wanted, case) in [
            (&first, false, false, short, Since::Start, "idle at last"),
            (&first, false, true, short, Since::Keep, "idle still"),
            (&first, false, true, BLIND, Since::Keep, "a short silence"),
            (
                &first,
                false,
                true,
                long,
                Since::Start,
                "work may have come and gone",
            ),
            (&first, true, true, short, Since::End, "a request took it"),
            (
                &first,
                true,
                false,
                short,
                Since::Keep,
                "held, and not counted",
            ),
            (&busy, false, true, short, Since::End, "work"),
            (&unknown, false, true, short, Since::Keep, "nobody says"),
            (
                &unknown,
                true,
                true,
                short,
                Since::End,
                "nobody says, and held",
            ),
        ] {
            assert_eq!(since_after(busy, held, known, blind), wanted, "{case}");
        }
        let back = judge(
            &[witness(Some((Said::NoWork, 50)))],
            Some(UnixMs(400)),
            UnixMs(50),
        );
        assert_eq!(back, Busy::Idle { since: UnixMs(50) }, "clock went back");
    }

    #[test]
    fn i13_a_source_that_loses_half_holds_shrinking() {
        for (before, now, wanted) in [
            (10, 5, true),
            (10, 6, false),
            (0, 0, false),
            (1, 0, false),
            (2, 1, true),
            (3, 0, true),
            (10, 20, false),
        ] {
            assert_eq!(lost_half(before, now), wanted, "{before} {now}");
        }
    }

    #[test]
    fn movable_only_if_all_of_it_says_so_and_every_witness_speaks() {
        let moves = Said::Work {
            what: vec!["a".to_owned()],
            movable: true,
        };
        let movable = |w: &[Witness]| {
            matches!(
                judge(w, None, UnixMs(100)),
                Busy::Working { movable: true, .. }
            )
        };
        assert!(movable(&[witness(Some((moves.clone(), 99)))]));
        assert!(!movable(&[
            witness(Some((moves.clone(), 99))),
            witness(Some((work("b"), 99)))
        ]));
        assert!(!movable(&[witness(Some((moves, 99))), witness(None)]));
    }
}
