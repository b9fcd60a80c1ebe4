//! Could a class ever be served? With everything idle, and every limit but the pools' maximum away. Called by `why`, to
//! tell the impossible from what has to wait.

use super::gangs;
use super::matching::Place;
use super::state::Work;
use crate::model::{Locality, Resources};
use std::collections::BTreeMap;

/// Where most units fit.
pub(super) struct Could {
    pub units: u32,
    /// In words.
    pub place: String,
}

/// Most units of a class that its best domain could ever hold, were everything idle and every limit but the pools'
/// maximum away.
pub(super) fn could_ever(work: &Work<'_>, class: usize) -> Could {
    let unit = &work.input.classes[class];
    let locality = unit.gang.as_ref().map_or(Locality::Any, |g| g.locality);
    let fits = |size: &Resources| -> u32 {
        let n = if unit.whole_node {
            u32::from(unit.unit.fits(size))
        } else {
            unit.unit.times(size)
        };
        if unit.constraints.max_per_node == 0 {
            n
        } else {
            n.min(unit.constraints.max_per_node)
        }
    };
    // Per (domain, pool): units on nodes that exist, and on a pool grown to its maximum.
    let mut sums: BTreeMap<(gangs::Domain, Option<usize>), (u32, u32)> = BTreeMap::new();
    let mut best_node = 0;
    let domain = |place: &Place<'_>| match locality {
        Locality::Any | Locality::Node => Some(gangs::Domain::Any),
        Locality::Site => Some(gangs::Domain::Site(place.site?.to_string())),
        Locality::Zone if place.zone.is_empty() => None,
        Locality::Zone => Some(gangs::Domain::Zone(
            place.site?.to_string(),
            place.zone.to_owned(),
        )),
        Locality::Pool => work
            .pool_index
            .get(place.pool?)
            .map(|p| gangs::Domain::Pool(*p)),
    };
    for ((kind, pool, size), nodes) in &work.shapes {
        let place = &work.kinds[*kind];
        if let (true, Some(d)) = (work.matches(class, *kind), domain(place)) {
            let slot = sums.entry((d, *pool)).or_default();
            slot.0 = slot.0.saturating_add(fits(size).saturating_mul(*nodes));
            best_node = best_node.max(fits(size));
        }
    }
    for offer in &work.offers {
        let place = &work.kinds[offer.kind];
        let pool = &work.input.pools[offer.pool];
        if pool.max == 0 || !work.matches(class, offer.kind) {
            continue;
        }
        // An unknown type might do.
        let each = if offer.alloc.is_some() {
            offer.times(unit)
        } else {
            u32::MAX
        };
        let stock = pool
            .offerings
            .iter()
            .find(|o| o.id == *offer.id)
            .and_then(|o| o.available);
        let most = stock.map_or(pool.max, |n| {
            pool.max
                .min(work.counts[offer.pool].present.saturating_add(n))
        });
        if let Some(d) = domain(place) {
            let slot = sums.entry((d, Some(offer.pool))).or_default();
            slot.1 = slot.1.max(each.saturating_mul(most));
            best_node = best_node.max(each);
        }
    }
    let mut by_domain: BTreeMap<gangs::Domain, u32> = BTreeMap::new();
    for ((d, _), (have, grown)) in sums {
        let slot = by_domain.entry(d).or_insert(0);
        *slot = slot.saturating_add(have.max(grown));
    }
    if locality == Locality::Node {
        return Could {
            units: best_node,
            place: "one node".to_owned(),
        };
    }
    let best = by_domain
        .into_iter()
        .max_by_key(|(d, n)| (*n, std::cmp::Reverse(d.clone())));
    best.map_or(
        Could {
            units: 0,
            place: String::new(),
        },
        |(d, units)| Could {
            units,
            place: gangs::name(work, &d),
        },
    )
}
