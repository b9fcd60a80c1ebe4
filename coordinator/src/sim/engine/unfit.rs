//! Jobs of a trace that no group could ever run. Called by the CLI before a run. Pure.

use crate::sim::config::SimConfig;
use crate::sim::offered::allocatable;
use crate::sim::trace::Trace;
use drover_core::model::Resources;

/// Leaves out jobs that fit no offering of the config's groups; the trace says how many.
pub fn leave_out_unfit(trace: &mut Trace, setup: &SimConfig) {
    let offered: Vec<(Resources, String)> = setup
        .world
        .groups
        .iter()
        .flat_map(|group| &group.offerings)
        .map(|offering| {
            let has = allocatable(offering);
            (has, offering.gpu_model.clone())
        })
        .collect();
    let fits = |unit: &Resources| {
        let whole = Resources {
            gpus: unit.gpus + u32::from(unit.gpu_milli > 0),
            gpu_milli: 0,
            ..unit.clone()
        };
        offered.iter().any(|(has, _)| whole.fits(has))
    };
    let (kept, left): (Vec<_>, Vec<_>) = std::mem::take(&mut trace.jobs)
        .into_iter()
        .partition(|job| fits(&job.unit) && job.rest.as_ref().is_none_or(fits));
    trace.jobs = kept;
    for _ in left {
        trace.skip("fits no offering");
    }
}
