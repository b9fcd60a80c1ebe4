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
