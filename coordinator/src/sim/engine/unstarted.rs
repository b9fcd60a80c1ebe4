//! What jobs that never started were waiting for, in the words that a person would be shown.
//!
//! Called by the engine when a run is over. Reads the coordinator's last snapshot and decides nothing.

use crate::control::view::FleetView;

/// Causes that are told at most.
const MOST: usize = 8;

/// Freezes and what stops pools first, since a person ends those; then what the plan says of the demand.
pub(super) fn causes(view: &FleetView) -> Vec<String> {
    let freezes = view.freezes.iter().map(|freeze| {
        let (what, thaw) = match &freeze.pool {
            Some(pool) => (format!("pool {pool} is"), format!("drover thaw {pool}")),
            None => ("all pools are".to_owned(), "drover thaw".to_owned()),
        };
        let why = match freeze.reason.as_str() {
            "" => String::new(),
            why => format!(": {why}"),
        };
        format!("{what} frozen by {}{why}; `{thaw}` ends it", freeze.by)
    });
    let stops = view.pools.iter().flat_map(|pool| {
        let stops = pool.stopped.iter().chain(&pool.paused);
        stops.map(|stop| format!("{}: {stop}", pool.name))
    });
    // What a class needs is no cause, but better than nothing.
    let demand = || view.demand.iter().flat_map(|class| &class.reasons);
    let (needs, causes): (Vec<&String>, Vec<&String>) =
        demand().partition(|reason| reason.starts_with("needs "));
    let demand = if causes.is_empty() { needs } else { causes };
    let demand = demand.into_iter().cloned();
    let mut told: Vec<String> = Vec::new();
    for cause in freezes.chain(stops).chain(demand) {
        let known = told.iter().any(|other| other.starts_with(&cause));
        if told.len() < MOST && !known {
            told.push(cause);
        }
    }
    told
}
