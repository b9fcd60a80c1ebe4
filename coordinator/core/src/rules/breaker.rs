//! The breaker (I14): how many nodes may be ended or forcibly emptied, whatever a plan says. Called by the executor before
//! each destructive act; it trusts nothing that the planner computed. Beyond it a person must approve.

use crate::model::{Millis, PoolId, UnixMs};

/// The window per pool.
pub const POOL_WINDOW: Millis = Millis::minutes(10);
/// The window of the fleet.
pub const FLEET_WINDOW: Millis = Millis::minutes(60);
/// Most per pool and window, whatever the config says (compiled).
pub const POOL_CEILING: u32 = 100;
/// Largest share of the fleet per hour, in percent, whatever the config says (compiled).
pub const FLEET_CEILING_PERCENT: u32 = 50;
/// An approval is good for an hour.
pub const APPROVAL_LIFE: Millis = Millis::minutes(60);

/// Limits of the config; never above the ceilings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most terminations and forced evictions of one pool in ten minutes.
    pub per_pool: u32,
    /// Largest share of the fleet in an hour, in percent, rounded up.
    pub fleet_percent: u32,
}

/// One act that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// When.
    pub at: UnixMs,
    /// Where.
    pub pool: PoolId,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Do it, and record it.
    Go,
    /// Not without a person: why.
    Ask {
        /// For people.
        why: String,
    },
}

/// May one more node of `pool` be ended now? `fleet` is the number of nodes in pools of ours without those that `done`
/// counts; `approved` is when a person approved this very act, if one did.
#[must_use]
pub fn judge(
    done: &[Done],
    pool: &PoolId,
    fleet: u32,
    limits: Limits,
    approved: Option<UnixMs>,
    now: UnixMs,
) -> Verdict {
    if approved.is_some_and(|at| at <= now && now.since(at) < APPROVAL_LIFE) {
        return Verdict::Go;
    }
    // What lies in the future (a clock that went back) counts as recent: the safe side.
    let recent = |d: &&Done, window: Millis| now.since(d.at) < window;
    let in_pool = done
        .iter()
        .filter(|d| d.pool == *pool)
        .filter(|d| recent(d, POOL_WINDOW))
        .count() as u64;
    let most = u64::from(limits.per_pool.min(POOL_CEILING));
    if in_pool >= most {
        return Verdict::Ask {
            why: match most {
                0 => format!("none of {pool} goes without a person"),
                most => format!("{in_pool} of {pool} went within 10 min, at most {most} may"),
            },
        };
    }
    let in_fleet = done.iter().filter(|d| recent(d, FLEET_WINDOW)).count() as u64;
    let percent = limits.fleet_percent.min(FLEET_CEILING_PERCENT);
    // The share is of the fleet as it was: what went within the hour belongs to it.
    let most = match percent {
        0 => 0,
        // However small the fleet is, one node may go.
        percent => ((u64::from(fleet) + in_fleet) * u64::from(percent))
            .div_ceil(100)
            .max(1),
    };
    if in_fleet >= most {
        return Verdict::Ask {
            why: match most {
                0 => "none goes without a person".to_owned(),
                most => format!(
                    "{in_fleet} {} of the fleet went within an hour, at most {most} may ({percent} %)",
                    if in_fleet == 1 { "node" } else { "nodes" }
                ),
            },
        };
    }
    Verdict::Go
}

/// Forgets what no window sees any more.
pub fn forget(done: &mut Vec<Done>, now: UnixMs) {
    done.retain(|d| now.since(d.at) < FLEET_WINDOW);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acts(n: u64, pool: &str, at: u64) -> Vec<Done> {
        (0..n)
            .map(|_| Done {
                at: UnixMs(at),
                pool: pool.into(),
            })
            .collect()
    }

    #[test]
    fn i14_bounded_destruction() {
        let limits = Limits {
            per_pool: 5,
            fleet_percent: 10,
        };
        let now = UnixMs(100 * 60_000);
        let minutes_ago = |m: u64| now.0 - m * 60_000;
        let go = |done: &[Done], fleet| {
            judge(done, &"g5".into(), fleet, limits, None, now) == Verdict::Go
        };
        for (done, fleet, wanted, case) in [
            (vec![], 100, true, "nothing yet"),
            (acts(4, "g5", minutes_ago(1)), 100, true, "below"),
            (acts(5, "g5", minutes_ago(1)), 1000, false, "pool's limit"),
            (
                acts(5, "g5", minutes_ago(10)),
                1000,
                true,
                "its window has passed",
            ),
            (acts(5, "p4", minutes_ago(1)), 1000, true, "another pool"),
            (
                acts(10, "p4", minutes_ago(59)),
                90,
                false,
                "a tenth of a hundred",
            ),
            (
                acts(10, "p4", minutes_ago(60)),
                90,
                true,
                "an hour has passed",
            ),
            (acts(10, "p4", minutes_ago(59)), 91, true, "rounded up"),
            (vec![], 0, true, "one may always go"),
            (acts(1, "p4", minutes_ago(59)), 0, false, "and no second"),
            (acts(1, "p4", minutes_ago(59)), 2, false, "a tenth of three"),
            (acts(5, "g5", now.0 + 999), 1000, false, "clock went back"),
        ] {
            assert_eq!(go(&done, fleet), wanted, "{case}");
        }
    }

    #[test]
    fn i14_ceilings_hold_whatever_the_config_says_and_a_person_decides() {
        let limits = Limits {
            per_pool: u32::MAX,
            fleet_percent: 100,
        };
        let now = UnixMs(7_200_000);
        let many = acts(100, "g5", now.0 - 1);
        let judge = |approved| judge(&many, &"g5".into(), 10_000, limits, approved, now);
        assert!(matches!(judge(None), Verdict::Ask { .. }));
        assert_eq!(judge(Some(UnixMs(now.0 - 1))), Verdict::Go);
        assert!(
            matches!(judge(Some(UnixMs(now.0 - 3_600_000))), Verdict::Ask { .. }),
            "an old approval"
        );
        assert!(
            matches!(judge(Some(UnixMs(now.0 + 1))), Verdict::Ask { .. }),
            "one from the future"
        );
        let half = acts(60, "p4", now.0 - 1);
        let verdict = super::judge(&half, &"g5".into(), 60, limits, None, now);
        assert!(matches!(verdict, Verdict::Ask { .. }), "half of the fleet");
    }

    #[test]
    fn old_acts_are_forgotten() {
        let mut done = acts(3, "g5", 0);
        done.extend(acts(2, "g5", 3_600_000));
        forget(&mut done, UnixMs(3_600_000));
        assert_eq!(done.len(), 2);
    }
}
