//! What can be asked of a group: one offering per zone where the zone can be chosen, else one.
//!
//! Called by `reading`. Pure. The seam for other ways to get instances (a warm pool, a reservation): each adds offerings
//! of its own here.

use drover_core::model::{Market, MicroUsd, Millis, Offering, OfferingId, Steering};

use super::Read;
use crate::adapters::actuate::asg::{catalogue, convert};

/// Time from asking to ready while nothing was learnt: an ordinary instance; metal takes longer.
const BOOT: Millis = Millis::minutes(3);
const METAL_BOOT: Millis = Millis::minutes(12);

pub(super) fn every_zone(read: &Read<'_>) -> Vec<(OfferingId, String)> {
    let Some(smallest) = read.facts.types.first() else {
        return Vec::new();
    };
    let zones = read.group.zones.iter().map(String::as_str).chain([""]);
    zones
        .map(|zone| {
            (
                convert::offering_id(&read.pool.pool, &smallest.name, zone, word(read)),
                zone.to_owned(),
            )
        })
        .collect()
}

fn word(read: &Read<'_>) -> &'static str {
    if read.facts.spot { "spot" } else { "on-demand" }
}

pub(super) fn offerings(read: &Read<'_>, steering: Steering) -> (Vec<Offering>, Vec<String>) {
    let mut warnings = read.facts.doubts.clone();
    let Some(smallest) = read.facts.types.first() else {
        return (Vec::new(), warnings);
    };
    let prices: Vec<Option<MicroUsd>> = read
        .facts
        .types
        .iter()
        .map(|t| catalogue::price(&read.pool.prices, &t.name))
        .collect();
    let unpriced: Vec<&str> = read
        .facts
        .types
        .iter()
        .zip(&prices)
        .filter(|(_, p)| p.is_none())
        .map(|(t, _)| t.name.as_str())
        .collect();
    if !unpriced.is_empty() {
        let types = unpriced.join(", ");
        warnings.push(format!(
            "no price is known for {types}, so nothing is asked of it: set prices in the pool"
        ));
    }
    // A composite is planned at its smallest type and budgeted at its dearest.
    let price = prices.iter().flatten().max().copied().unwrap_or_default();
    let allocatable = catalogue::resources(smallest).filter(|_| unpriced.is_empty());
    let market = if read.facts.spot {
        Market::Spot
    } else {
        Market::OnDemand
    };
    let zones: Vec<&str> = match steering {
        Steering::Zone => read.group.zones.iter().map(String::as_str).collect(),
        Steering::Group | Steering::Host => vec![""],
    };
    let offerings = zones
        .into_iter()
        .map(|zone| Offering {
            id: convert::offering_id(&read.pool.pool, &smallest.name, zone, word(read)),
            instance_type: smallest.name.clone(),
            zone: zone.to_owned(),
            market,
            price,
            allocatable: allocatable.clone(),
            gpu_model: catalogue::gpu_model(smallest),
            boot: if smallest.bare_metal == Some(true) {
                METAL_BOOT
            } else {
                BOOT
            },
            available: None,
        })
        .collect();
    (offerings, warnings)
}
