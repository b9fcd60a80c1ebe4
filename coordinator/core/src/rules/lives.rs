//! Learning how long work runs and when it wants new nodes (`Learnt::lives`, `Learnt::demanded`). Called by control when
//! work has ended and when demand took a node, and by whoever replays a workload through the planner. **Invariant:**
//! bounded, whatever happens: sizes are put together, old run times fade.

use crate::model::{Anticipate, Demanded, Learnt, Millis, PoolId, UnixMs};

/// Something to learn from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// One unit of work ended by itself.
    Ended {
        /// GPUs that it held on its node; shares of a GPU count as one.
        gpus: u32,
        /// How long it ran.
        ran: Millis,
    },
    /// Demand took an idle or a new node of a pool, or waits for one.
    Demanded {
        /// Whose.
        pool: PoolId,
        /// As the plan's report says it.
        demanded: Demanded,
    },
}

/// Run times kept one by one.
const LAST: usize = 8;
/// With so many in one size the older half fades.
const MANY: u64 = 16_384;

/// Takes one event in.
pub fn step(learnt: &mut Learnt, event: &Event) {
    match event {
        Event::Ended { gpus, ran } => ended(learnt, *gpus, ran.0 / 1_000),
        Event::Demanded { pool, demanded } => {
            let old = learnt.demanded.get(pool);
            if old.is_none_or(|old| old.at < demanded.at) {
                learnt.demanded.insert(pool.clone(), demanded.clone());
            }
        }
    }
}

/// Until when a node is kept after its last work, which ran for so long; none: that is not known, or asks for nothing.
#[must_use]
pub fn held_until(
    anticipate: &Anticipate,
    idle_since: UnixMs,
    last_ran: Option<Millis>,
) -> Option<UnixMs> {
    let ran = last_ran?;
    let hold = anticipate.holds.iter().find(|hold| ran < hold.ran_under)?;
    Some(idle_since.after(hold.keep))
}

/// Forgets pools that are no more.
pub fn forget(learnt: &mut Learnt, exists: impl Fn(&PoolId) -> bool) {
    learnt.demanded.retain(|pool, _| exists(pool));
}

fn ended(learnt: &mut Learnt, gpus: u32, ran_s: u64) {
    let lives = learnt.lives.entry(size(gpus)).or_default();
    lives.last_s.push(ran_s);
    if lives.last_s.len() > LAST {
        lives.last_s.remove(0);
    }
    let span = lives.spans.entry(bucket(ran_s)).or_default();
    span.count += 1;
    span.sum_s = span.sum_s.saturating_add(ran_s);
    if lives.spans.values().map(|s| s.count).sum::<u64>() >= MANY {
        for span in lives.spans.values_mut() {
            let left = span.count / 2;
            span.sum_s = (span.sum_s / span.count.max(1)).saturating_mul(left);
            span.count = left;
        }
        lives.spans.retain(|_, span| span.count > 0);
    }
}

/// The entry for units of so many GPUs.
#[must_use]
pub fn size(gpus: u32) -> u32 {
    if gpus <= 16 {
        gpus
    } else {
        gpus.checked_next_power_of_two().unwrap_or(u32::MAX)
    }
}

/// The bucket of a run time: four to the octave.
#[must_use]
pub fn bucket(seconds: u64) -> u32 {
    let s = seconds.max(1);
    let octave = s.ilog2();
    let quarter = ((u128::from(s - (1 << octave)) * 4) >> octave) as u32;
    octave * 4 + quarter
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(runs: &[(u32, u64)]) -> Learnt {
        let mut learnt = Learnt::default();
        for (gpus, seconds) in runs {
            let ran = Millis::seconds(*seconds);
            step(&mut learnt, &Event::Ended { gpus: *gpus, ran });
        }
        learnt
    }

    #[test]
    fn a_bucket_is_a_quarter_of_an_octave() {
        let table = [
            (0, 0),
            (1, 0),
            (2, 4),
            (3, 6),
            (4, 8),
            (5, 9),
            (7, 11),
            (8, 12),
            (600, 36),
            (u64::MAX, 255),
        ];
        for (seconds, want) in table {
            assert_eq!(bucket(seconds), want, "{seconds} s");
        }
    }

    #[test]
    fn it_stays_small_whatever_ends() {
        let mut learnt = Learnt::default();
        for n in 0..40_000_u64 {
            let gpus = u32::try_from(n * 7_919 % 4_000_000_000).unwrap_or(0) >> (n % 32);
            let ran = Millis(n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (n % 50));
            step(&mut learnt, &Event::Ended { gpus, ran });
        }
        assert!(learnt.lives.len() <= 45, "{} sizes", learnt.lives.len());
        for lives in learnt.lives.values() {
            assert!(lives.last_s.len() <= 8 && lives.spans.len() <= 256);
        }
    }

    #[test]
    fn old_run_times_fade_and_their_mean_stays() {
        let mut learnt = learn(&vec![(4, 1_000); 16_383]);
        let span = |l: &Learnt| l.lives[&4].spans[&bucket(1_000)];
        assert_eq!(span(&learnt).count, 16_383);
        step(
            &mut learnt,
            &Event::Ended {
                gpus: 4,
                ran: Millis::seconds(1_000),
            },
        );
        assert_eq!(
            (span(&learnt).count, span(&learnt).sum_s),
            (8_192, 8_192_000)
        );
    }

    #[test]
    fn the_last_eight_are_kept_in_order() {
        let learnt = learn(&(1..=10).map(|n| (2, n)).collect::<Vec<_>>());
        assert_eq!(learnt.lives[&2].last_s, (3..=10).collect::<Vec<_>>());
    }

    #[test]
    fn short_work_holds_its_node_long() {
        let table = [
            (None, None),
            (Some(0), Some(120)),
            (Some(9), Some(120)),
            (Some(10), Some(30)),
            (Some(239), Some(30)),
            (Some(240), None),
        ];
        for (ran, kept) in table {
            let until = held_until(&Anticipate::default(), UnixMs(5), ran.map(Millis::minutes));
            assert_eq!(until, kept.map(|m| UnixMs(5).after(Millis::minutes(m))));
        }
    }

    #[test]
    fn the_newest_demand_counts_in_any_order() {
        let mut learnt = Learnt::default();
        for at in [5, 9, 7] {
            let event = Event::Demanded {
                pool: "p".into(),
                demanded: Demanded {
                    at: UnixMs(at),
                    offering: None,
                },
            };
            step(&mut learnt, &event);
        }
        assert_eq!(learnt.demanded[&PoolId::new("p")].at, UnixMs(9));
        forget(&mut learnt, |_| false);
        assert!(learnt.demanded.is_empty());
    }
}
