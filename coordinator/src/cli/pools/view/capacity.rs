//! What a pool offers and what was asked of it, as the CLI shows them. Used by the page of the pool.

use crate::cli::duration;
use crate::cli::output::{Cell, Column, Tabled, Tone, number, text};
use drover_proto::v1;
use serde::Serialize;

/// What a pool can offer.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct OfferingView {
    pub id: String,
    pub instance_type: Option<String>,
    pub zone: Option<String>,
    pub market: Option<String>,
    pub price_micro_usd_per_hour: Option<u64>,
    pub gpus: Option<u32>,
    pub gpu_model: Option<String>,
    pub failure: Option<String>,
    pub failure_message: Option<String>,
    pub next_probe_unix_ms: Option<u64>,
    /// What was asked of it as a probe has no instance yet.
    #[serde(skip)]
    pub probing: bool,
}

/// Capacity that was asked for.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct LaunchView {
    pub id: String,
    pub pool: String,
    pub offering: String,
    pub count: u32,
    pub granted: Option<u32>,
    pub state: String,
    pub instance_ids: Vec<String>,
    pub asked_unix_ms: Option<u64>,
    pub deadline_unix_ms: Option<u64>,
    pub way: Option<String>,
    pub reason: Option<String>,
}

impl From<v1::Offering> for OfferingView {
    fn from(o: v1::Offering) -> Self {
        // What is owned or reserved costs nothing more by the hour; elsewhere 0 means that the price is not known.
        let free = matches!(o.market.as_str(), "owned" | "reserved");
        let price = Some(o.price_micro_usd_per_hour).filter(|price| *price > 0 || free);
        Self {
            price_micro_usd_per_hour: price,
            id: o.id,
            instance_type: text(o.instance_type),
            zone: text(o.zone),
            market: text(o.market),
            gpus: o.gpus,
            gpu_model: text(o.gpu_model),
            failure: text(o.failure),
            failure_message: text(o.failure_message),
            next_probe_unix_ms: number(o.next_probe_unix_ms),
            probing: false,
        }
    }
}

impl From<v1::Launch> for LaunchView {
    fn from(l: v1::Launch) -> Self {
        Self {
            id: l.id,
            pool: l.pool,
            offering: l.offering,
            count: l.count,
            granted: l.granted,
            state: l.state,
            instance_ids: l.instance_ids,
            asked_unix_ms: number(l.asked_unix_ms),
            deadline_unix_ms: number(l.deadline_unix_ms),
            way: text(l.way),
            reason: text(l.reason),
        }
    }
}

/// A launch that was asked as the probe of an offering and has no instance yet.
pub(super) fn probes(launch: &v1::Launch, offering: &v1::Offering) -> bool {
    launch.offering == offering.id
        && launch.state != "missed"
        && launch.instance_ids.is_empty()
        && launch.asked_unix_ms >= offering.next_probe_unix_ms
}

/// How long it is until an offering that failed is probed; one that is due waits for its probe, or for demand.
fn until_probe(at: u64, now: u64, probing: bool) -> String {
    match at.saturating_sub(now) {
        0 if probing => "under way".to_owned(),
        0 => "on demand".to_owned(),
        left => duration::span(left),
    }
}

impl Tabled for OfferingView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("OFFERING", |o, _| (&o.id).into()),
            Column::new("GPUS", |o, _| o.gpus.into()),
            Column::new("GPU-MODEL", |o, _| (&o.gpu_model).into()),
            Column::new("USD/H", |o, _| {
                o.price_micro_usd_per_hour.map(duration::usd).into()
            }),
            Column::new("FAILURE", |o, _| {
                Cell::toned(o.failure.clone().unwrap_or_default(), Tone::Bad)
            }),
            Column::new("PROBE-IN", |o, now| {
                let until = |at| until_probe(at, now, o.probing);
                o.next_probe_unix_ms.map(until).into()
            }),
            Column::new("MESSAGE", |o, _| (&o.failure_message).into()),
        ]
    }
}

impl Tabled for LaunchView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("LAUNCH", |l, _| (&l.id).into()),
            Column::new("OFFERING", |l, _| (&l.offering).into()),
            Column::new("COUNT", |l, _| match l.granted {
                Some(granted) if granted != l.count => format!("{granted} of {}", l.count).into(),
                _ => l.count.into(),
            }),
            Column::new("STATE", |l, _| (&l.state).into()),
            Column::new("WAY", |l, _| (&l.way).into()),
            Column::new("AGE", |l, now| duration::age(now, l.asked_unix_ms).into()),
            Column::new("REASON", |l, _| (&l.reason).into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_is_due_waits_for_demand() {
        assert_eq!(until_probe(90_000, 0, false), duration::span(90_000));
        assert_eq!(until_probe(60_000, 90_000, false), "on demand");
        assert_eq!(until_probe(60_000, 90_000, true), "under way");
    }
}
