//! A step function of time, and what it costs to follow it when each step up has to boot.
//!
//! Made by the fluid bound and by the plots. Plain arithmetic.

use super::HOUR_MS;
use drover_core::model::Millis;

/// Height from each moment until the next; zero before the first and, in a sound curve, from the last on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve(pub Vec<(Millis, f64)>);

/// Levels that were left: those from `low` up to `high`, at `since`.
struct Left {
    low: f64,
    high: f64,
    since: Option<Millis>,
}

impl Curve {
    /// Adds the height from a moment on; the last word about a moment counts.
    pub fn push(&mut self, at: Millis, height: f64) {
        match self.0.last_mut() {
            Some((last, value)) if *last == at => *value = height,
            _ => self.0.push((at, height)),
        }
    }

    /// Height at a moment.
    #[must_use]
    pub fn at(&self, moment: Millis) -> f64 {
        let after = self.0.partition_point(|(from, _)| *from <= moment);
        after.checked_sub(1).map_or(0.0, |index| self.0[index].1)
    }

    /// Height times hours.
    #[must_use]
    pub fn integral(&self) -> f64 {
        self.0
            .windows(2)
            .map(|pair| pair[0].1 * hours(pair[0].0, pair[1].0))
            .fold(0.0, |sum, one| sum + one)
    }

    /// The integral, plus for each level one boot at its first use and the smaller of gap and boot at each later one.
    ///
    /// A valid lower bound when every node takes at least this boot: layer the capacity that runs by its price; each time
    /// a level comes back, somebody kept it or booted it.
    #[must_use]
    pub fn with_boot(&self, boot: Millis) -> f64 {
        let mut extra = 0.0;
        let mut height = 0.0;
        // What is above the curve now, the lowest last; below all of it lie levels that never were.
        let mut left = vec![Left {
            low: 0.0,
            high: f64::INFINITY,
            since: None,
        }];
        for (at, next) in &self.0 {
            if *next < height {
                left.push(Left {
                    low: *next,
                    high: height,
                    since: Some(*at),
                });
            }
            while height < *next {
                let Some(top) = left.last_mut() else { break };
                let until = top.high.min(*next);
                let wait = top
                    .since
                    .map_or(boot, |since| boot.min(Millis(at.0 - since.0)));
                extra += (until - height) * hours(Millis(0), wait);
                if until < top.high {
                    top.low = until;
                } else {
                    left.pop();
                }
                height = until;
            }
            height = *next;
        }
        self.integral() + extra
    }
}

#[expect(clippy::cast_precision_loss, reason = "a score, not an amount")]
fn hours(from: Millis, until: Millis) -> f64 {
    (until.0 - from.0) as f64 / HOUR_MS
}
