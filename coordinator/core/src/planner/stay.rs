//! How long nodes stay in use: from run times that work states, else from what the fleet has learnt of work of its size.
//! A unit goes where it keeps a node the least longer (`choose`); a node is kept for as long as its last work makes likely
//! (`shrink`). Built once per run. Without learnt run times and without stated ones nothing is said, and nothing changes.
//!
//! Source: measured on the Philly traces against best fit, first fit, survival curves and means; boots of 0 and 5 minutes.

use crate::model::{Class, LaunchInFlight, Learnt, NodeInput, UnixMs};
use crate::rules::lives::{bucket, size};
use std::collections::BTreeMap;

/// Work of which nothing is known runs for as long as it ran already, and at least so many seconds.
const LEAST_S: u64 = 600;
/// A second beyond the node's end costs as much as so many seconds that the unit ends before it.
const BEYOND: u128 = 100;

/// Run times by size.
#[derive(Debug, Default)]
pub(super) struct Stays {
    sizes: BTreeMap<u32, Known>,
    now: UnixMs,
}

#[derive(Debug)]
struct Known {
    /// Of the last few.
    longest_s: u64,
    /// (bucket, how many ran so long or longer, their sum), in order.
    tail: Vec<(u32, u64, u64)>,
}

/// How long something is in use from now on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stay {
    pub seconds: u64,
    /// All of it is stated, nothing is guessed.
    pub stated: bool,
    /// When the oldest work on it started, or an idle node was launched.
    pub oldest: Option<UnixMs>,
}

impl Stays {
    pub fn new(learnt: &Learnt, now: UnixMs) -> Self {
        let mut sizes = BTreeMap::new();
        for (gpus, lives) in &learnt.lives {
            let Some(longest_s) = lives.last_s.iter().copied().max() else {
                continue;
            };
            let mut tail: Vec<(u32, u64, u64)> = Vec::with_capacity(lives.spans.len());
            let (mut count, mut sum) = (0_u64, 0_u64);
            for (bucket, span) in lives.spans.iter().rev() {
                count = count.saturating_add(span.count);
                sum = sum.saturating_add(span.sum_s);
                tail.push((*bucket, count, sum));
            }
            tail.reverse();
            sizes.insert(*gpus, Known { longest_s, tail });
        }
        Self { sizes, now }
    }

    /// Something is known that tells nodes apart for units of the class.
    pub fn tells(&self, class: &Class) -> bool {
        !self.sizes.is_empty() || class.run_time.is_some()
    }

    /// A unit that starts now.
    pub fn of_unit(&self, class: &Class) -> Stay {
        let learnt = || {
            self.sizes
                .get(&gpus_of(class.unit.gpus, class.unit.gpu_milli))
        };
        let seconds = match class.run_time {
            Some(run) => run.0 / 1_000,
            None => learnt().map_or(LEAST_S, |known| known.longest_s),
        };
        Stay {
            seconds,
            stated: class.run_time.is_some(),
            oldest: Some(self.now),
        }
    }

    /// A node as it is.
    pub fn of_node(&self, node: &NodeInput) -> Stay {
        let mut stay = Stay {
            seconds: 0,
            stated: true,
            oldest: None,
        };
        for work in &node.workloads {
            let ends = work.ends.filter(|ends| *ends > self.now);
            let seconds = match ends {
                Some(ends) => ends.since(self.now).0 / 1_000,
                None => {
                    let age = work.started.map_or(0, |at| self.now.since(at).0 / 1_000);
                    self.residual(gpus_of(work.unit.gpus, work.unit.gpu_milli), age)
                }
            };
            stay.join(Stay {
                seconds,
                stated: ends.is_some(),
                oldest: Some(work.started.unwrap_or(self.now)),
            });
        }
        for held in &node.reserved {
            let gpus = held.amount.gpus.div_ceil(held.units.max(1));
            let ends = held.ends.filter(|ends| *ends > self.now);
            stay.join(Stay {
                seconds: ends.map_or_else(
                    || self.residual(gpus, 0),
                    |ends| ends.since(self.now).0 / 1_000,
                ),
                stated: ends.is_some(),
                oldest: Some(self.now),
            });
        }
        if stay.oldest.is_none() {
            // Busy with what nobody listed: nothing is known of its end.
            stay.stated = node.used.is_zero();
            stay.oldest = node.launched;
        }
        stay
    }

    /// A node of a launch in flight, on which nothing or something is reserved.
    pub fn of_coming(&self, launch: &LaunchInFlight, empty: bool) -> Stay {
        Stay {
            seconds: if empty { 0 } else { LEAST_S },
            stated: empty,
            oldest: Some(launch.asked),
        }
    }

    /// Mean seconds that work of a size and an age runs on.
    fn residual(&self, gpus: u32, age: u64) -> u64 {
        let after = bucket(age);
        let longer = self.sizes.get(&size(gpus)).and_then(|known| {
            let at = known.tail.partition_point(|(b, ..)| *b <= after);
            known.tail.get(at)
        });
        match longer {
            Some((_, count, sum)) => (sum / count.max(&1)).saturating_sub(age),
            None => age.max(LEAST_S),
        }
    }
}

fn gpus_of(gpus: u32, milli: u32) -> u32 {
    size(gpus.max(u32::from(milli > 0)))
}

impl Stay {
    /// Something more is on it.
    pub fn join(&mut self, other: Self) {
        self.seconds = self.seconds.max(other.seconds);
        self.stated &= other.stated;
        self.oldest = match (self.oldest, other.oldest) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// What it costs to put `unit` here, on a node of this price in micro-USD per hour: the time that the node must stay
    /// longer and, where all ends are known, a little for the time that the unit ends before it.
    pub fn longer(self, unit: Self, price: u64) -> u128 {
        let beyond = u128::from(unit.seconds.saturating_sub(self.seconds)) * BEYOND;
        // That it ends together with the rest counts only where the ends are known.
        let before = if unit.stated && self.stated {
            u128::from(self.seconds.saturating_sub(unit.seconds))
        } else {
            0
        };
        (beyond + before).saturating_mul(u128::from(price.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Millis, Resources, Running};
    use crate::rules::lives::{Event, step};

    const NOW: UnixMs = UnixMs(1_000_000_000);

    fn stays(runs: &[(u32, u64)]) -> Stays {
        let mut learnt = Learnt::default();
        for (gpus, seconds) in runs {
            let ran = Millis::seconds(*seconds);
            step(&mut learnt, &Event::Ended { gpus: *gpus, ran });
        }
        Stays::new(&learnt, NOW)
    }

    #[test]
    fn work_runs_on_as_what_ran_longer_did() {
        let stays = stays(&[(1, 100), (1, 1_000), (1, 3_000), (8, 50)]);
        let table = [
            // Mean of all that ran longer than its bucket, less its age.
            (1, 0, 1_366),
            (1, 200, 1_800),
            (1, 1_100, 1_900),
            // None did: as long again, and ten minutes at least.
            (1, 3_000, 3_000),
            (8, 60, 600),
            // Nothing is known of the size.
            (4, 60, 600),
            (4, 7_000, 7_000),
        ];
        for (gpus, age, rest) in table {
            assert_eq!(stays.residual(gpus, age), rest, "{gpus} GPUs, {age} s old");
        }
    }

    #[test]
    fn what_is_longer_costs_its_price_and_what_is_known_to_be_shorter_a_hundredth() {
        let stay = |seconds, stated| Stay {
            seconds,
            stated,
            oldest: None,
        };
        let table = [
            (stay(100, false), stay(300, false), 200 * 100 * 7),
            (stay(300, false), stay(100, false), 0),
            (stay(300, true), stay(100, false), 0),
            (stay(300, true), stay(100, true), 200 * 7),
            (stay(300, true), stay(300, true), 0),
        ];
        for (node, unit, cost) in table {
            assert_eq!(node.longer(unit, 7), cost, "{unit:?} on {node:?}");
        }
        assert_eq!(stay(0, false).longer(stay(1, false), 0), 100);
    }

    #[test]
    fn a_unit_runs_as_it_states_else_as_long_as_the_longest_of_late() {
        let known = stays(&[(2, 90), (2, 70)]);
        let mut class: Class = serde_json::from_value(serde_json::json!({
            "source": {"scheduler": "slurm"}, "unit": {"gpus": 2}, "count": 1, "submitted": 0,
        }))
        .expect("a class");
        assert_eq!(known.of_unit(&class).seconds, 90);
        assert!(known.tells(&class) && !stays(&[]).tells(&class));
        class.unit.gpus = 3;
        assert_eq!(known.of_unit(&class).seconds, 600);
        class.run_time = Some(Millis::seconds(5));
        assert_eq!(known.of_unit(&class).seconds, 5);
        assert!(stays(&[]).tells(&class));
    }

    #[test]
    fn a_stated_end_counts_until_it_is_over() {
        let stays = stays(&[(1, 50_000)]);
        let running = |started: u64, ends: Option<u64>| Running {
            count: 1,
            unit: Resources {
                gpus: 1,
                ..Resources::default()
            },
            labels: BTreeMap::new(),
            namespace: String::new(),
            team: String::new(),
            host_ports: std::collections::BTreeSet::new(),
            anti_affinity: Vec::new(),
            started: Some(UnixMs(NOW.0 - started * 1_000)),
            ends: ends.map(|ago| UnixMs(NOW.0 + 1_000 * ago - 100_000)),
            movable: false,
        };
        let mut node: NodeInput = serde_json::from_value(serde_json::json!({
            "id": "n", "name": "n", "pool": "p", "lifecycle": "ready", "allocatable": {"gpus": 8},
            "used": {"gpus": 1}, "busy": {"state": "working", "what": []}, "price": 1,
        }))
        .expect("a node");
        let mut of = |work: Vec<Running>| {
            node.workloads = work;
            let stay = stays.of_node(&node);
            (
                stay.seconds,
                stay.stated,
                stay.oldest.map(|at| (NOW.0 - at.0) / 1_000),
            )
        };
        assert_eq!(of(vec![running(60, Some(150))]), (50, true, Some(60)));
        // Over, and it still runs: as what ran longer.
        assert_eq!(of(vec![running(60, Some(50))]), (49_940, false, Some(60)));
        let both = vec![running(60, Some(150)), running(90, Some(300))];
        assert_eq!(of(both), (200, true, Some(90)));
        let mixed = vec![running(60, Some(150)), running(90, None)];
        assert_eq!(of(mixed), (49_910, false, Some(90)));
        // Busy with what nobody lists.
        assert_eq!(of(Vec::new()), (0, false, None));
    }
}
