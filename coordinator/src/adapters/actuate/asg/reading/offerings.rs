//! What can be asked of a group: one offering per zone where the zone can be chosen, else one; with the price of each.
//!
//! Called by `reading`. Pure. The seam for other ways to get instances (a warm pool, a reservation): each adds offerings
//! of its own beside [`Offered::own`].

use std::collections::{BTreeMap, BTreeSet};

use drover_aws::InstanceTypeFacts;
use drover_core::model::{
    FailureKind, Market, MicroUsd, Millis, Offering, OfferingId, Steering, Stop,
};

use super::{Read, paid};
use crate::adapters::actuate::asg::catalogue::{self, PRICED_IN};
use crate::adapters::actuate::asg::convert;
use crate::adapters::actuate::asg::quotes::SPOT_AGE;
use crate::adapters::actuate::asg::tags::Marks;

/// Time from asking to ready while nothing was learnt: an ordinary instance; metal takes longer.
const BOOT: Millis = Millis::minutes(3);
const METAL_BOOT: Millis = Millis::minutes(12);
/// From a warm pool: started, not made.
const WARM_BOOT: Millis = Millis::minutes(1);

fn boot(facts: &InstanceTypeFacts) -> Millis {
    if facts.bare_metal == Some(true) {
        METAL_BOOT
    } else {
        BOOT
    }
}

/// Everything that can be asked, and what is to be said of it.
#[derive(Default)]
pub(super) struct Offered {
    /// In the order of preference: among equal prices the planner takes the first.
    pub(super) offerings: Vec<Offering>,
    pub(super) warnings: Vec<String>,
    pub(super) remarks: Vec<String>,
    /// Why nothing at all can be asked, though it is known what the group launches.
    pub(super) stop: Option<Stop>,
}

/// Every offering that this group may ever have had: an order of before may name one.
pub(super) fn every_zone(read: &Read<'_>) -> Vec<(OfferingId, String)> {
    let zones = read.group.zones.iter().map(String::as_str).chain([""]);
    zones
        .flat_map(|zone| {
            let types = read.facts.types.iter();
            types.flat_map(move |t| {
                let ids = [id(read, &t.name, zone), paid::id(read, &t.name, zone)];
                ids.map(|id| (id, zone.to_owned()))
            })
        })
        .collect()
}

/// Each zone's own capacity as a part of the group's, whichever of them is offered now.
pub(super) fn parts(read: &Read<'_>) -> BTreeMap<OfferingId, OfferingId> {
    let types = read.facts.types.iter();
    types
        .flat_map(|t| {
            let zones = read.group.zones.iter();
            zones.map(move |zone| (id(read, &t.name, zone), id(read, &t.name, "")))
        })
        .collect()
}

fn id(read: &Read<'_>, instance_type: &str, zone: &str) -> OfferingId {
    convert::offering_id(&read.pool.pool, instance_type, zone, word(read))
}

fn word(read: &Read<'_>) -> &'static str {
    if read.facts.spot { "spot" } else { "on-demand" }
}

/// What the group itself offers.
pub(super) fn offerings(read: &Read<'_>, steering: Steering, marks: &Marks) -> Offered {
    let mut offered = Offered {
        warnings: read.facts.doubts.clone(),
        remarks: read.facts.remarks.clone(),
        ..Offered::default()
    };
    if read.facts.types.is_empty() {
        offered.unknown(read);
        return offered;
    }
    let liked = offered.liked(read, steering);
    let zones: Vec<&str> = match steering {
        Steering::Zone => liked.iter().map(String::as_str).collect(),
        Steering::Group | Steering::Host => vec![""],
    };
    offered.reserved(read, steering, &zones, marks);
    // Beside the reservation that its template names there is nothing to be had.
    let free = !paid::only(read);
    for zone in zones {
        offered.own(read, marks, zone, free);
    }
    if offered.offerings.is_empty() {
        let types = names(&read.facts.types.iter().collect::<Vec<_>>());
        let why = format!("none of the group's zones that may be asked has its types ({types})");
        offered.stop = Some(failed(why));
    } else if free && offered.offerings.iter().all(|o| o.available == Some(0)) {
        // Said as a warning for each zone already.
        let why = offered.unpriced(read);
        offered.stop = Some(failed(why));
    }
    offered.rest(read, steering, marks);
    offered.say_prices(read);
    offered
}

fn failed(why: String) -> Stop {
    Stop::Failed {
        failure: FailureKind::Config,
        why,
    }
}

fn names(types: &[&InstanceTypeFacts]) -> String {
    let names: Vec<&str> = types.iter().map(|t| t.name.as_str()).collect();
    names.join(", ")
}

impl Offered {
    /// Types of which nothing is known: shown, and nothing is asked of them.
    fn unknown(&mut self, read: &Read<'_>) {
        let Some(name) = read.facts.unknown.first() else {
            return;
        };
        self.offerings.push(Offering {
            id: id(read, name, ""),
            instance_type: name.clone(),
            zone: String::new(),
            market: market(read),
            price: MicroUsd::ZERO,
            allocatable: None,
            gpu_model: String::new(),
            boot: BOOT,
            available: None,
            reservations: Vec::new(),
        });
    }

    /// Zones that may be asked, the most liked first.
    fn liked(&mut self, read: &Read<'_>, steering: Steering) -> Vec<String> {
        let (wished, has) = (&read.pool.zones, &read.group.zones);
        if wished.is_empty() {
            return has.clone();
        }
        let strangers: Vec<&str> = wished
            .iter()
            .filter(|zone| !has.contains(zone))
            .map(String::as_str)
            .collect();
        if !strangers.is_empty() {
            let zones = strangers.join(", ");
            self.warnings.push(format!(
                "zones names {zones}, where the group has no subnet"
            ));
        }
        let others = has.iter().any(|zone| !wished.contains(zone));
        if steering != Steering::Zone && others {
            self.warnings.push(
                "the pool's zones do not hold here, since the zone cannot be chosen: take the other subnets out of the group"
                    .to_owned(),
            );
        }
        let liked = wished.iter().filter(|zone| has.contains(zone));
        liked.cloned().collect()
    }

    /// What is reserved, at price zero. Where AWS chooses the zone, only if it has no choice.
    fn reserved(&mut self, read: &Read<'_>, steering: Steering, zones: &[&str], marks: &Marks) {
        let chosen = |zone: &str| match steering {
            Steering::Zone => zones.contains(&zone),
            Steering::Group | Steering::Host => read.group.zones.len() == 1,
        };
        for ((name, zone), reservations) in paid::rooms(read) {
            let Some(facts) = read.facts.types.iter().find(|t| t.name == name) else {
                continue;
            };
            if !chosen(zone) {
                continue;
            }
            self.offerings.push(Offering {
                id: paid::id(read, name, zone),
                instance_type: name.to_owned(),
                zone: zone.to_owned(),
                market: Market::Reserved,
                price: MicroUsd::ZERO,
                allocatable: catalogue::resources(facts).map(|o| marks.over(o)),
                gpu_model: catalogue::gpu_model(facts),
                boot: boot(facts),
                available: Some(reservations.iter().fold(0, |sum, r| sum + r.nodes)),
                reservations,
            });
        }
    }

    /// The group's own capacity in one zone; of an empty zone AWS chooses.
    fn own(&mut self, read: &Read<'_>, marks: &Marks, zone: &str, may_ask: bool) {
        let here: Vec<&InstanceTypeFacts> = read
            .facts
            .types
            .iter()
            .filter(|t| exists(read, &t.name, zone))
            .collect();
        // The smallest: a group that mixes types may give any of them.
        let Some(smallest) = here.first() else {
            let types = names(&read.facts.types.iter().collect::<Vec<_>>());
            self.remarks
                .push(format!("{zone} is not asked: {types} does not exist there"));
            return;
        };
        let prices: Vec<Option<MicroUsd>> =
            here.iter().map(|t| price(read, &t.name, zone)).collect();
        let priced = prices.iter().all(Option::is_some);
        if !priced && may_ask {
            let bare = here.iter().zip(&prices).filter(|(_, p)| p.is_none());
            let types = names(&bare.map(|(t, _)| *t).collect::<Vec<_>>());
            let place = if zone.is_empty() {
                String::new()
            } else {
                format!(" in {zone}")
            };
            let what = if read.facts.spot {
                "spot price"
            } else {
                "price"
            };
            self.warnings.push(format!(
                "no {what} is known for {types}{place}, so nothing is asked of it there: set prices in the pool"
            ));
        }
        let offered = catalogue::resources(smallest).map(|o| marks.over(o));
        self.offerings.push(Offering {
            id: id(read, &smallest.name, zone),
            instance_type: smallest.name.clone(),
            zone: zone.to_owned(),
            market: market(read),
            // A composite is planned at its smallest type and budgeted at its dearest.
            price: prices.iter().flatten().max().copied().unwrap_or_default(),
            allocatable: offered,
            gpu_model: catalogue::gpu_model(smallest),
            boot: if super::is_warm(read.group).is_some() {
                WARM_BOOT
            } else {
                boot(smallest)
            },
            available: (!priced || !may_ask).then_some(0),
            reservations: Vec::new(),
        });
    }

    /// Zones where members live and that may not be asked any more: their nodes have a price all the same.
    fn rest(&mut self, read: &Read<'_>, steering: Steering, marks: &Marks) {
        if steering != Steering::Zone {
            return;
        }
        let lived: BTreeSet<&str> = read
            .group
            .members
            .iter()
            .filter_map(|m| m.zone.as_deref())
            .filter(|zone| {
                let own = |o: &Offering| o.zone == *zone && o.market != Market::Reserved;
                !self.offerings.iter().any(own)
            })
            .collect();
        for zone in lived {
            self.own(read, marks, zone, false);
        }
    }

    fn unpriced(&self, read: &Read<'_>) -> String {
        let types = names(&read.facts.types.iter().collect::<Vec<_>>());
        let what = if read.facts.spot {
            "spot price"
        } else {
            "price"
        };
        format!("no {what} is known for {types}: set prices in the pool")
    }

    /// Where prices come from.
    fn say_prices(&mut self, read: &Read<'_>) {
        let types = read.facts.types.iter();
        let bare: Vec<&InstanceTypeFacts> = types
            .filter(|t| !read.pool.prices.contains_key(&t.name))
            .collect();
        if bare.is_empty() {
            return;
        }
        let names = names(&bare);
        let region = &read.pool.region;
        self.remarks.push(if read.facts.spot {
            let minutes = SPOT_AGE.0 / 60_000;
            format!("{names} at AWS's spot prices, asked for every {minutes} min")
        } else if region.as_str() == PRICED_IN {
            format!("{names} at the built-in on-demand prices of {PRICED_IN}")
        } else {
            format!(
                "{names} at the built-in on-demand prices of {PRICED_IN}, since none of {region} are known: set prices in the \
                 pool where they differ"
            )
        });
        let mixed = read.group.mixes_markets();
        if mixed {
            self.remarks
                .push("the group mixes on-demand and spot: it is priced at on-demand".to_owned());
        }
    }
}

fn market(read: &Read<'_>) -> Market {
    if read.facts.spot {
        Market::Spot
    } else {
        Market::OnDemand
    }
}

/// Whether the type exists in the zone (of an empty one: in any of the group's), as far as that is known.
fn exists(read: &Read<'_>, instance_type: &str, zone: &str) -> bool {
    let Some(zones) = read.quotes.zones.get(instance_type) else {
        return true;
    };
    if zone.is_empty() {
        read.group.zones.iter().any(|zone| zones.contains(zone))
    } else {
        zones.contains(zone)
    }
}

/// USD per hour there; where AWS chooses the zone, of the dearest.
fn price(read: &Read<'_>, instance_type: &str, zone: &str) -> Option<MicroUsd> {
    if !read.facts.spot || read.pool.prices.contains_key(instance_type) {
        return catalogue::price(&read.pool.prices, instance_type);
    }
    let prices = read.quotes.spot.get(instance_type)?;
    if !zone.is_empty() {
        return prices.get(zone).copied();
    }
    let zones = read.group.zones.iter();
    zones.filter_map(|zone| prices.get(zone)).max().copied()
}
