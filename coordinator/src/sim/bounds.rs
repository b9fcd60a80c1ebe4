//! What a trace costs at the least and without any thought: the figures that every score is set beside.
//!
//! Called by the score and the first test. Knows no policy and no history. All money is USD; where every price is one
//! per node-hour it is node-hours. Jobs are taken as starting at once, as if nothing had to boot.
//!
//! - **Resource-hours**: the cheapest mix of nodes, in fractions, for the sums over all time.
//! - **Fluid**: the same at every instant, integrated. Work goes only where a node offers each kind of amount that it
//!   asks for, so GPU work pays for GPU nodes, and work without GPUs may use what is left there. Where all nodes are
//!   alike they are counted whole.
//! - **Boot-aware**: per level of the fluid curve its time, plus for each gap the smaller of the gap and the boot, plus
//!   one boot.
//! - **No packing**: each unit of each job on a node of its own, the cheapest that holds it.

mod curve;
mod fluid;
mod simplex;

use super::offered::{self, Offered};
use super::trace::Trace;
use drover_core::model::Millis;

pub use curve::Curve;

/// Milliseconds of an hour.
pub(super) const HOUR_MS: f64 = 3_600_000.0;

/// The figures of one trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bounds {
    /// Resource-hours bound.
    pub resource_hours: f64,
    /// Per-instant fluid bound, no delay.
    pub fluid: f64,
    /// The same with the shortest boot that is offered.
    pub boot_aware: f64,
    /// A node per unit.
    pub no_packing: f64,
    /// Cost per hour of the fluid bound over time, for plots.
    pub curve: Curve,
    /// Jobs that nothing offered can hold; they are in none of the figures.
    pub impossible: u32,
}

/// All figures.
#[must_use]
pub fn bounds(trace: &Trace, offered: &[Offered]) -> Bounds {
    let (possible, not): (Vec<_>, Vec<_>) = trace
        .jobs
        .iter()
        .partition(|job| offered::possible(job, offered));
    let (curve, resource_hours) = fluid::bound(&possible, offered);
    let boot = offered
        .iter()
        .map(|kind| kind.boot)
        .min()
        .unwrap_or_default();
    let no_packing = possible
        .iter()
        .map(|job| {
            let hourly: u64 = offered::parts(job)
                .iter()
                .filter_map(|part| offered::cheapest(part, &job.constraints, offered))
                .map(|kind| offered[kind].price.0)
                .sum();
            usd_hours(hourly, job.duration)
        })
        .fold(0.0, |sum, one| sum + one);
    Bounds {
        resource_hours,
        fluid: curve.integral(),
        boot_aware: curve.with_boot(boot),
        no_packing,
        curve,
        impossible: u32::try_from(not.len()).unwrap_or(u32::MAX),
    }
}

/// A price in millionths per hour, for some time, in units.
#[expect(clippy::cast_precision_loss, reason = "a score, not an amount")]
pub(super) fn usd_hours(micro: u64, time: Millis) -> f64 {
    micro as f64 / 1e6 * (time.0 as f64 / HOUR_MS)
}

#[cfg(test)]
mod tests;
