//! A launch's life (I4): asked, answered, joined node by node, missed at its deadline, reaped at twice that under all
//! conditions. Called by control each cycle with what it heard. Never asks for anything itself.

use crate::model::{Millis, UnixMs};

/// Launches in a row that never joined and stop a pool (I11).
pub const MISSES_TO_PAUSE: u32 = 3;
/// Largest share of a pool that is reaped without approval, in percent (DESIGN 5).
pub const REAP_PERCENT: u32 = 5;
/// An intent older than this without a result is settled by looking, never by asking again (DESIGN 5).
pub const SETTLE_AFTER: Millis = Millis::minutes(10);

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The intent is committed; the answer is not known.
    Intended,
    /// Answered; nodes are coming.
    Asked,
    /// The deadline passed: no longer coming.
    Missed,
    /// Nothing is left to wait for: the record goes.
    Done,
}

/// One launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Stage.
    pub stage: Stage,
    /// Nodes asked for.
    pub count: u32,
    /// Nodes granted; absent while not known.
    pub granted: Option<u32>,
    /// Nodes joined.
    pub joined: u32,
    /// An instance of it is, or was, known.
    pub seen: bool,
    /// When the intent was committed.
    pub asked: UnixMs,
    /// From then on it is no longer coming.
    pub deadline: UnixMs,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The provider answered: so many are to come.
    Granted(u32),
    /// So many instances that were granted ended before they joined.
    Lost(u32),
    /// A node of it joined.
    Joined,
    /// Time passed.
    Tick,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// So many units' nodes will not come: their assignments are dropped and the units wait again.
    NotComing(u32),
    /// Count one miss of the pool (one per launch, however many nodes): instances came, and none of them joined.
    Miss,
    /// Accepted, and nothing ever appeared: the provider had none, and the template is not to blame.
    NothingCame,
    /// Something came: once it is ready, the pool's misses in a row begin anew.
    ClearMisses,
    /// Find out what became of the ask by looking.
    Settle,
    /// Those that did not join may be reaped, if `may_reap` agrees.
    Reap,
}

impl Launch {
    /// Nodes still counted as coming.
    #[must_use]
    pub fn coming(&self) -> u32 {
        match self.stage {
            Stage::Intended | Stage::Asked => self
                .granted
                .unwrap_or(self.count)
                .saturating_sub(self.joined),
            Stage::Missed | Stage::Done => 0,
        }
    }

    /// Nodes granted that never joined.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.granted
            .unwrap_or(self.count)
            .saturating_sub(self.joined)
    }
}

/// One step.
#[must_use]
pub fn step(mut launch: Launch, event: Event, now: UnixMs) -> (Launch, Vec<Act>) {
    let mut acts = Vec::new();
    match event {
        Event::Granted(nodes) => {
            let before = launch.coming();
            launch.granted = Some(nodes.min(launch.count));
            if launch.stage == Stage::Intended {
                launch.stage = Stage::Asked;
            }
            if before > launch.coming() && launch.stage == Stage::Asked {
                acts.push(Act::NotComing(before - launch.coming()));
            }
        }
        Event::Lost(nodes) => {
            let coming = launch.coming();
            launch.granted = Some(
                launch
                    .granted
                    .unwrap_or(launch.count)
                    .saturating_sub(nodes)
                    .max(launch.joined),
            );
            if coming > launch.coming() {
                acts.push(Act::NotComing(coming - launch.coming()));
            }
        }
        Event::Joined => {
            launch.joined = launch.joined.saturating_add(1);
            if launch.stage == Stage::Intended {
                // Its answer was lost, but here it is.
                launch.stage = Stage::Asked;
            }
            acts.push(Act::ClearMisses);
        }
        Event::Tick => tick(&mut launch, now, &mut acts),
    }
    if launch.stage != Stage::Intended && launch.outstanding() == 0 {
        launch.stage = Stage::Done;
    }
    (launch, acts)
}

fn tick(launch: &mut Launch, now: UnixMs, acts: &mut Vec<Act>) {
    match launch.stage {
        Stage::Asked if now >= launch.deadline => {
            let missing = launch.coming();
            launch.stage = Stage::Missed;
            if missing > 0 {
                acts.push(Act::NotComing(missing));
            }
            match (launch.joined, launch.seen) {
                (0, true) => acts.push(Act::Miss),
                (0, false) => acts.push(Act::NothingCame),
                _ => {}
            }
        }
        // Whatever its deadline says: before its answer is known nobody can say what missed.
        Stage::Intended if now.since(launch.asked) >= SETTLE_AFTER => acts.push(Act::Settle),
        Stage::Missed => {
            let span = launch.deadline.since(launch.asked);
            if now >= launch.deadline.after(span) {
                acts.push(Act::Reap);
            }
        }
        _ => {}
    }
}

/// What must be known of an instance before it is reaped; each `None` is "not known".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReapFacts {
    /// This store launched it, under the fence that still holds (not before a restore).
    pub launched_here: bool,
    /// A session was ever opened from it.
    pub session_ever: Option<bool>,
    /// The scheduler knows work there.
    pub work_there: Option<bool>,
    /// The pool is being adopted.
    pub adopting: bool,
    /// Nodes of the pool.
    pub pool_size: u32,
    /// Reaped of this pool in the last hour.
    pub reaped: u32,
    /// A person approved.
    pub approved: bool,
}

/// Why an instance is not reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotReaped {
    /// Somebody else's, or from before a restore.
    #[error("this store did not launch it")]
    NotOurs,
    /// Its agent spoke once.
    #[error("its agent spoke once, or that is not known")]
    Spoke,
    /// Work there.
    #[error("there may be work on it")]
    Work,
    /// Adoption.
    #[error("the pool is being adopted")]
    Adopting,
    /// Too many.
    #[error("more than 5 % of the pool: a person must approve")]
    TooMany,
}

/// May one instance be reaped?
///
/// # Errors
/// The first condition that does not hold. Approval lifts the share only.
pub const fn may_reap(facts: ReapFacts) -> Result<(), NotReaped> {
    if !facts.launched_here {
        return Err(NotReaped::NotOurs);
    }
    if facts.adopting {
        return Err(NotReaped::Adopting);
    }
    if !matches!(facts.session_ever, Some(false)) {
        return Err(NotReaped::Spoke);
    }
    if !matches!(facts.work_there, Some(false)) {
        return Err(NotReaped::Work);
    }
    let most = (facts.pool_size as u64 * REAP_PERCENT as u64).div_ceil(100);
    if !facts.approved && facts.reaped as u64 >= most {
        return Err(NotReaped::TooMany);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: u64 = 60_000;

    fn asked(count: u32) -> Launch {
        Launch {
            stage: Stage::Intended,
            count,
            granted: None,
            joined: 0,
            seen: true,
            asked: UnixMs(0),
            deadline: UnixMs(15 * MIN),
        }
    }

    fn run(mut launch: Launch, events: &[(Event, u64)]) -> (Launch, Vec<Act>) {
        let mut all = Vec::new();
        for (event, minute) in events {
            let (after, acts) = step(launch, *event, UnixMs(minute * MIN));
            launch = after;
            all.extend(acts);
        }
        (launch, all)
    }

    #[test]
    fn sc_57_counted_once_until_it_joins() {
        let (launch, _) = run(asked(3), &[(Event::Granted(3), 0)]);
        assert_eq!((launch.stage, launch.coming()), (Stage::Asked, 3));
        let (launch, acts) = run(launch, &[(Event::Joined, 2), (Event::Joined, 3)]);
        assert_eq!(
            (launch.coming(), acts),
            (1, vec![Act::ClearMisses, Act::ClearMisses])
        );
        let (launch, _) = run(launch, &[(Event::Joined, 4)]);
        assert_eq!((launch.stage, launch.coming()), (Stage::Done, 0));
    }

    #[test]
    fn i4_an_unanswered_ask_counts_in_full_and_is_settled_by_looking() {
        let (launch, acts) = run(asked(100), &[(Event::Tick, 9)]);
        assert_eq!((launch.coming(), acts), (100, vec![]));
        let (launch, acts) = run(launch, &[(Event::Tick, 10)]);
        assert_eq!((launch.coming(), acts), (100, vec![Act::Settle]));
        let (launch, acts) = run(launch, &[(Event::Granted(60), 11)]);
        assert_eq!((launch.coming(), acts), (60, vec![Act::NotComing(40)]));
    }

    #[test]
    fn sc_09_slow_metal_misses_and_is_adopted_late() {
        let (launch, acts) = run(
            asked(1),
            &[(Event::Granted(1), 0), (Event::Tick, 14), (Event::Tick, 15)],
        );
        assert_eq!((launch.stage, launch.coming()), (Stage::Missed, 0));
        assert_eq!(acts, vec![Act::NotComing(1), Act::Miss]);
        let (launch, acts) = run(launch, &[(Event::Tick, 20), (Event::Joined, 22)]);
        assert_eq!(
            (launch.stage, acts),
            (Stage::Done, vec![Act::ClearMisses]),
            "used, and it clears the misses"
        );
    }

    #[test]
    fn sc_40_phantom_capacity_is_one_miss_and_promises_nothing() {
        let (launch, acts) = run(asked(59), &[(Event::Granted(59), 0), (Event::Tick, 15)]);
        assert_eq!(
            (launch.coming(), acts),
            (0, vec![Act::NotComing(59), Act::Miss])
        );
    }

    #[test]
    fn sc_83_reaped_at_twice_the_deadline_and_only_with_all_conditions() {
        let (launch, acts) = run(
            asked(2),
            &[(Event::Granted(2), 0), (Event::Tick, 15), (Event::Tick, 29)],
        );
        assert!(!acts.contains(&Act::Reap));
        let (_, acts) = run(launch, &[(Event::Tick, 30)]);
        assert_eq!(acts, vec![Act::Reap]);
        let sound = ReapFacts {
            launched_here: true,
            session_ever: Some(false),
            work_there: Some(false),
            adopting: false,
            pool_size: 10,
            reaped: 0,
            approved: false,
        };
        for (facts, wanted) in [
            (sound, Ok(())),
            (
                ReapFacts {
                    launched_here: false,
                    ..sound
                },
                Err(NotReaped::NotOurs),
            ),
            (
                ReapFacts {
                    session_ever: Some(true),
                    ..sound
                },
                Err(NotReaped::Spoke),
            ),
            (
                ReapFacts {
                    session_ever: None,
                    ..sound
                },
                Err(NotReaped::Spoke),
            ),
            (
                ReapFacts {
                    work_there: None,
                    ..sound
                },
                Err(NotReaped::Work),
            ),
            (
                ReapFacts {
                    adopting: true,
                    approved: true,
                    ..sound
                },
                Err(NotReaped::Adopting),
            ),
            (ReapFacts { reaped: 1, ..sound }, Err(NotReaped::TooMany)),
            (
                ReapFacts {
                    reaped: 1,
                    approved: true,
                    ..sound
                },
                Ok(()),
            ),
        ] {
            assert_eq!(may_reap(facts), wanted, "{facts:?}");
        }
    }

    #[test]
    fn a_lost_instance_is_not_waited_for() {
        let (launch, acts) = run(asked(2), &[(Event::Granted(2), 0), (Event::Lost(1), 1)]);
        assert_eq!((launch.coming(), acts), (1, vec![Act::NotComing(1)]));
        let (launch, acts) = run(launch, &[(Event::Joined, 2), (Event::Lost(1), 3)]);
        assert_eq!((launch.stage, acts), (Stage::Done, vec![Act::ClearMisses]));
    }

    #[test]
    fn a_refused_ask_is_done() {
        let (launch, acts) = run(asked(2), &[(Event::Granted(0), 0)]);
        assert_eq!((launch.stage, acts), (Stage::Done, vec![Act::NotComing(2)]));
    }

    #[test]
    fn what_never_appeared_is_a_shortage_and_what_joined_in_part_no_miss() {
        let unseen = Launch {
            seen: false,
            ..asked(2)
        };
        let (_, acts) = run(unseen, &[(Event::Granted(2), 0), (Event::Tick, 15)]);
        assert_eq!(acts, vec![Act::NotComing(2), Act::NothingCame]);
        let events = [
            (Event::Granted(2), 0),
            (Event::Joined, 3),
            (Event::Tick, 15),
        ];
        let (launch, acts) = run(asked(2), &events);
        assert_eq!((launch.stage, launch.coming()), (Stage::Missed, 0));
        assert_eq!(acts, vec![Act::ClearMisses, Act::NotComing(1)]);
        // Without an answer nothing is missed, however late: it is looked for.
        let (launch, acts) = run(asked(2), &[(Event::Tick, 60)]);
        assert_eq!((launch.stage, launch.coming()), (Stage::Intended, 2));
        assert_eq!(acts, vec![Act::Settle]);
    }
}
