//! Pools, offerings, launches and freezes from the fleet's view to the wire. Used by `serve/admin`; decides nothing.

use crate::control::events::{failure_word, mode_word};
use crate::control::view::PoolView;
use crate::ports::actuate::Way;
use crate::records::{FreezeRecord, LaunchRecord, LaunchState};
use drover_core::model::{Market, MemoryEntry, Mode, Offering, PoolKind};
use drover_proto::v1;

/// A pool.
pub fn pool(view: &PoolView) -> v1::Pool {
    v1::Pool {
        name: view.name.0.clone(),
        kind: view.kind.map_or("", kind_word).to_owned(),
        site: view
            .site
            .as_ref()
            .map(|id| id.0.clone())
            .unwrap_or_default(),
        mode: mode_word(view.mode).to_owned(),
        min: view.min,
        max: view.max,
        config_max: view.config_max,
        spare: view.spare,
        nodes: view.nodes,
        ready: view.ready,
        idle: view.idle,
        draining: view.draining,
        coming: view.coming,
        unreachable: view.unreachable,
        unmanaged: view.unmanaged,
        paused: view.paused.join("; "),
        stopped: view.stopped.join("; "),
        holds: view.holds.clone(),
        missed: view.missed,
        frozen: view.frozen.as_ref().map(freeze),
        read_error: view.read_error.clone().unwrap_or_default(),
        offerings: view
            .offerings
            .iter()
            .map(|(what, memory)| offering(what, memory.as_ref()))
            .collect(),
        reasons: view.reasons.clone(),
        remarks: view.remarks.clone(),
        origin: view.origin.clone(),
        orphaned: view.orphaned,
        misses: view.misses,
        launches: view.launches.iter().map(launch).collect(),
    }
}

/// A freeze.
pub fn freeze(record: &FreezeRecord) -> v1::FreezeInfo {
    v1::FreezeInfo {
        pool: record
            .pool
            .as_ref()
            .map(|id| id.0.clone())
            .unwrap_or_default(),
        by: record.by.clone(),
        reason: record.reason.clone(),
        since_unix_ms: record.since.0,
    }
}

fn offering(what: &Offering, memory: Option<&MemoryEntry>) -> v1::Offering {
    v1::Offering {
        id: what.id.0.clone(),
        instance_type: what.instance_type.clone(),
        zone: what.zone.clone(),
        market: market_word(what.market).to_owned(),
        price_micro_usd_per_hour: what.price.0,
        failure: memory.map_or("", |m| failure_word(m.kind)).to_owned(),
        failure_message: memory.map(|m| m.message.clone()).unwrap_or_default(),
        next_probe_unix_ms: memory.map(|m| m.next_probe.0).unwrap_or_default(),
        gpus: what.allocatable.as_ref().map(|all| all.gpus),
        gpu_model: what.gpu_model.clone(),
    }
}

fn launch(record: &LaunchRecord) -> v1::Launch {
    let state = match record.state {
        LaunchState::Intended => "asked",
        LaunchState::Asked => "launched",
        LaunchState::Missed => "missed",
    };
    v1::Launch {
        id: record.id.0.clone(),
        pool: record.pool.0.clone(),
        offering: record.offering.0.clone(),
        count: record.count,
        state: state.to_owned(),
        instance_ids: record.instances.iter().map(|id| id.0.clone()).collect(),
        asked_unix_ms: record.asked.0,
        deadline_unix_ms: record.deadline.0,
        way: record.way.map_or("", way_word).to_owned(),
        reason: record.reason.clone(),
        granted: record.granted,
    }
}

/// The word of a kind of pool.
#[must_use]
pub const fn kind_word(kind: PoolKind) -> &'static str {
    match kind {
        PoolKind::Asg => "asg",
        PoolKind::Static => "static",
        PoolKind::Sim => "sim",
    }
}

const fn market_word(market: Market) -> &'static str {
    match market {
        Market::Owned => "owned",
        Market::Reserved => "reserved",
        Market::Spot => "spot",
        Market::OnDemand => "on-demand",
    }
}

const fn way_word(way: Way) -> &'static str {
    match way {
        Way::LaunchInstances => "launch_instances",
        Way::SetDesiredCapacity => "set_desired_capacity",
        Way::PowerOn => "power_on",
        Way::Sim => "sim",
    }
}

/// The mode of that word.
///
/// # Errors
/// The words that there are.
pub fn mode_from(word: &str) -> Result<Mode, String> {
    [Mode::Observe, Mode::Grow, Mode::Full]
        .into_iter()
        .find(|mode| mode_word(*mode) == word)
        .ok_or_else(|| format!("{word:?} is not a mode; say observe, grow or full"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_words_both_ways() {
        for mode in [Mode::Observe, Mode::Grow, Mode::Full] {
            assert_eq!(mode_from(mode_word(mode)), Ok(mode));
        }
        assert!(
            mode_from("loud")
                .unwrap_err()
                .contains("observe, grow or full")
        );
    }
}
