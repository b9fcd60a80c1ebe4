//! Could a class ever be served? With everything idle and asked for, within sizes, the pools' maximum and the fleet's
//! budget. Called by `why`, to tell the impossible from what has to wait, and by `gangs`, which holds nothing for the
//! impossible. **Invariant:** never less than what could really be had; a shortage, a stop, or a host that is away takes
//! nothing off.

use super::gangs::Domain;
use super::matching::Place;
use super::state::Work;
use super::supply::unread;
use crate::model::{Class, Locality, PoolInput, Resources, SiteId};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What could ever be had.
pub(super) struct Could {
    /// Most units per domain of the gang's locality (one node: of the largest).
    domains: BTreeMap<Domain, u32>,
    /// The one with most units, of equal ones the first, if any has some.
    best: Option<(Domain, u32)>,
    /// Most units in one domain once each provider's own maximum is raised to the config's, where one is lower.
    lifted: Option<u32>,
    /// Pools that may serve it and whose templates nobody could read: more may be possible.
    pub unread: Vec<usize>,
    /// Some template would take a unit, whatever the limits.
    pub fits: bool,
}

impl Could {
    /// The best domain and most units there; none when nothing could serve a unit.
    pub fn best(&self) -> Option<(&Domain, u32)> {
        self.best.as_ref().map(|(domain, most)| (domain, *most))
    }

    /// Could so many units ever be together in the domain?
    pub fn holds(&self, domain: &Domain, units: u32) -> bool {
        let key = match domain {
            Domain::Node(_) | Domain::NewNode => &Domain::NewNode,
            other => other,
        };
        self.domains.get(key).is_some_and(|n| *n >= units)
    }

    /// Could so many units ever be together anywhere?
    pub fn anywhere(&self, units: u32) -> bool {
        self.best().is_some_and(|(_, most)| most >= units)
    }

    /// Nobody could ever serve so many, and nothing that is not known could change that.
    pub fn never(&self, units: u32) -> bool {
        !self.anywhere(units)
            && self.lifted.is_none_or(|most| most < units)
            && self.unread.is_empty()
    }
}

/// Units of one pool, or of nodes in no pool, in one domain.
#[derive(Default)]
struct Sum {
    /// On nodes that exist.
    have: u32,
    /// On the pool grown to its maximum.
    grown: u32,
    /// On one node.
    each: u32,
}

/// What a class could ever have.
pub(super) fn could_ever(work: &Work<'_>, class: usize) -> Could {
    let mut could = could_within(work, class, |pool| pool.max);
    if work.input.pools.iter().any(|pool| pool.most() > pool.max) {
        let lifted = could_within(work, class, PoolInput::most);
        could.lifted = lifted.best().map(|(_, most)| most);
    }
    could
}

/// The same with so many nodes in each pool.
fn could_within(work: &Work<'_>, class: usize, most: impl Fn(&PoolInput) -> u32) -> Could {
    let unit = &work.input.classes[class];
    let locality = unit.gang.as_ref().map_or(Locality::Any, |g| g.locality);
    // By pool first: its number is compared faster than names are.
    let mut sums: BTreeMap<(Option<usize>, Spot<'_>), Sum> = BTreeMap::new();
    for ((kind, pool, size), nodes) in &work.shapes {
        let place = &work.kinds[*kind];
        if let (true, Some(d)) = (work.matches(class, *kind), spot(work, place, locality)) {
            let slot = sums.entry((*pool, d)).or_default();
            let each = units_on(unit, size);
            slot.have = slot.have.saturating_add(each.saturating_mul(*nodes));
            slot.each = slot.each.max(each);
        }
    }
    let mut fits = sums.values().any(|s| s.each > 0);
    for offer in &work.offers {
        let place = &work.kinds[offer.kind];
        let pool = &work.input.pools[offer.pool];
        if !work.matches(class, offer.kind) {
            continue;
        }
        // An unknown type might do.
        let each = if offer.alloc.is_some() {
            offer.times(unit)
        } else {
            u32::MAX
        };
        fits |= each > 0;
        if most(pool) == 0 || each == 0 {
            continue;
        }
        if let Some(d) = spot(work, place, locality) {
            let slot = sums.entry((Some(offer.pool), d)).or_default();
            slot.grown = slot.grown.max(each.saturating_mul(most(pool)));
            slot.each = slot.each.max(each);
        }
    }
    let domains = add_up(work, unit, locality, sums);
    let best = domains.iter().max_by_key(|(d, n)| (**n, Reverse(*d)));
    let best = best.map(|(d, n)| (d.clone(), *n));
    Could {
        best: best.filter(|(_, most)| *most > 0),
        domains,
        lifted: None,
        unread: (0..work.input.pools.len())
            .filter(|p| {
                let pool = &work.input.pools[*p];
                unread(pool) && pool.most() > 0 && may_serve(unit, pool)
            })
            .collect(),
        fits,
    }
}

/// Per domain: what exists and what could be grown, within the budget.
fn add_up(
    work: &Work<'_>,
    unit: &Class,
    locality: Locality,
    sums: BTreeMap<(Option<usize>, Spot<'_>), Sum>,
) -> BTreeMap<Domain, u32> {
    if locality == Locality::Node {
        let each = sums.values().map(|s| s.each).max().unwrap_or(0);
        return BTreeMap::from([(Domain::NewNode, each)]);
    }
    let policy = &work.input.policy;
    let gpus = policy
        .max_gpus
        .and_then(|max| max.checked_div(unit.unit.gpus));
    let mut domains: BTreeMap<Spot<'_>, Limits> = BTreeMap::new();
    for ((pool, d), sum) in sums {
        let slot = domains.entry(d).or_default();
        let all = sum.have.max(sum.grown);
        let Some(p) = pool else {
            // Nobody's budget.
            slot.foreign = slot.foreign.saturating_add(all);
            continue;
        };
        slot.have = slot.have.saturating_add(sum.have);
        // So many nodes for the whole budget, at the pool's lowest price.
        let nodes = policy
            .max_cost
            .and_then(|max| max.0.checked_div(work.lowest[p]));
        match nodes {
            None => slot.free = slot.free.saturating_add(all),
            Some(nodes) => {
                let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
                slot.paid_have = slot.paid_have.saturating_add(sum.have);
                slot.paid = slot.paid.saturating_add(all);
                slot.afford = slot.afford.max(sum.each.saturating_mul(nodes));
            }
        }
    }
    let most = |s: &Limits| {
        let paid = s.paid.min(s.afford.max(s.paid_have));
        let ours = s.free.saturating_add(paid);
        let ours = gpus.map_or(ours, |most| ours.min(most.max(s.have)));
        ours.saturating_add(s.foreign)
    };
    let each = domains.into_iter();
    each.map(|(d, s)| (d.domain(), most(&s))).collect()
}

/// Units in one domain, by what limits them.
#[derive(Default)]
struct Limits {
    /// On nodes in no pool.
    foreign: u32,
    /// On nodes of pools that exist.
    have: u32,
    /// In pools without a price, or without a limit of cost.
    free: u32,
    /// In pools with a price: existing and to come.
    paid: u32,
    /// Of them existing.
    paid_have: u32,
    /// Most that the limit of cost allows, wherever it is cheapest.
    afford: u32,
}

fn units_on(unit: &Class, size: &Resources) -> u32 {
    let n = if unit.whole_node {
        u32::from(unit.unit.fits(size))
    } else {
        unit.unit.times(size)
    };
    match unit.constraints.max_per_node {
        0 => n,
        most => n.min(most),
    }
}

/// A domain by the names that the input has: they are looked up a thousand times and copied once.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Spot<'a> {
    Any,
    Site(&'a SiteId),
    Zone(&'a SiteId, &'a str),
    Pool(usize),
    NewNode,
}

impl Spot<'_> {
    fn domain(&self) -> Domain {
        match self {
            Self::Any => Domain::Any,
            Self::Site(site) => Domain::Site(site.to_string()),
            Self::Zone(site, zone) => Domain::Zone(site.to_string(), (*zone).to_owned()),
            Self::Pool(pool) => Domain::Pool(*pool),
            Self::NewNode => Domain::NewNode,
        }
    }
}

/// The domain of a place for an upper bound: a single node has one of its own.
fn spot<'a>(work: &Work<'_>, place: &Place<'a>, locality: Locality) -> Option<Spot<'a>> {
    Some(match locality {
        Locality::Any => Spot::Any,
        Locality::Node => Spot::NewNode,
        Locality::Site => Spot::Site(place.site?),
        Locality::Zone if place.zone.is_empty() => return None,
        Locality::Zone => Spot::Zone(place.site?, place.zone),
        Locality::Pool => Spot::Pool(*work.pool_index.get(place.pool?)?),
    })
}

/// May units go to a pool, as far as its config tells?
fn may_serve(unit: &Class, pool: &PoolInput) -> bool {
    let wants = &unit.constraints;
    let label = |key: &str| pool.labels.get(key);
    (wants.pools.is_empty() || wants.pools.contains(&pool.id))
        && wants
            .requirements
            .iter()
            .all(|r| label(&r.key).is_none_or(|have| r.holds(Some(have))))
        && pool.taints.iter().all(|(key, value)| {
            wants
                .tolerations
                .get(key)
                .is_some_and(|values| values.is_empty() || values.contains(value))
        })
}
