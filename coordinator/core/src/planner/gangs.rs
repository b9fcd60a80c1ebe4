//! Gangs (I8): whole or not at all, in one domain of their locality: on what exists, else with growth in one pool of the
//! domain (in several only where no single one can). A gang that cannot be whole may hold what part there is, for its
//! hold time and only as the first of its domain. Called by `plan` before the single classes of the same priority.

mod hold;
mod ways;

pub(super) use hold::{holding, kept};

use super::could::could_ever;
use super::grow::{self, Packing};
use super::state::Work;
use super::supply::{At, Bin};
use crate::model::{Gang, Locality, RequestName, Source};
use std::collections::{BTreeMap, BTreeSet};
use ways::{Ask, Ways};

/// Where all units must be together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Domain {
    Any,
    Site(String),
    Zone(String, String),
    Pool(usize),
    Node(usize),
    NewNode,
}

/// Gangs that hold partial capacity, per domain.
pub(super) type Holders = BTreeMap<Domain, usize>;

/// One way to place a gang.
struct Try {
    domain: Domain,
    fits: Vec<(usize, u32)>,
    fitted: u32,
    packing: Option<Packing>,
    placed: u32,
}

/// The domains of one locality, in order, and which one each place is in.
struct Map {
    locality: Locality,
    domains: Vec<Domain>,
    of_kind: Vec<Option<usize>>,
    /// Pools with offers in a domain, by (domain, pool).
    pools: Vec<Slot>,
    /// Per offer, its entry in `pools`.
    of_offer: Vec<Option<usize>>,
}

/// One pool's offers in one domain.
struct Slot {
    domain: usize,
    pool: usize,
    offers: Vec<usize>,
}

impl Map {
    fn new(work: &Work<'_>, locality: Locality) -> Self {
        let mut map = if locality == Locality::Node {
            let nodes = (0..work.bins.len()).map(Domain::Node);
            Self::of(
                locality,
                nodes.chain([Domain::NewNode]).collect(),
                Vec::new(),
            )
        } else {
            let of_kind: Vec<Option<Domain>> = (0..work.kinds.len())
                .map(|kind| domain_of(work, kind, None, locality))
                .collect();
            let domains: BTreeSet<&Domain> = of_kind.iter().flatten().collect();
            let index: BTreeMap<&Domain, usize> =
                domains.iter().enumerate().map(|(i, d)| (*d, i)).collect();
            let known = |d: &Option<Domain>| d.as_ref().and_then(|d| index.get(d).copied());
            let places = of_kind.iter().map(known).collect();
            Self::of(locality, domains.into_iter().cloned().collect(), places)
        };
        let mut by_pool: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (o, offer) in work.offers.iter().enumerate() {
            if let Some(domain) = map.of_new(offer.kind) {
                by_pool.entry((domain, offer.pool)).or_default().push(o);
            }
        }
        map.of_offer = vec![None; work.offers.len()];
        for ((domain, pool), offers) in by_pool {
            for &o in &offers {
                map.of_offer[o] = Some(map.pools.len());
            }
            map.pools.push(Slot {
                domain,
                pool,
                offers,
            });
        }
        map
    }

    fn of(locality: Locality, domains: Vec<Domain>, of_kind: Vec<Option<usize>>) -> Self {
        Self {
            locality,
            domains,
            of_kind,
            pools: Vec::new(),
            of_offer: Vec::new(),
        }
    }

    /// The domain of an existing or coming node.
    fn of_bin(&self, bin: usize, kind: usize) -> Option<usize> {
        if self.locality == Locality::Node {
            Some(bin)
        } else {
            self.of_kind[kind]
        }
    }

    /// The domain of a new node.
    fn of_new(&self, kind: usize) -> Option<usize> {
        if self.locality == Locality::Node {
            Some(self.domains.len() - 1)
        } else {
            self.of_kind[kind]
        }
    }
}

/// Places gangs, in the order given (age, index), on real supply or, in the second phase, wholly in observed pools.
pub(super) fn place(work: &mut Work<'_>, gangs: &[usize], would: bool, holders: &mut Holders) {
    let mut maps: BTreeMap<Locality, Map> = BTreeMap::new();
    for &class in gangs {
        if work.open[class] == 0 {
            continue;
        }
        let input = work.input;
        let Some(gang) = &input.classes[class].gang else {
            continue;
        };
        let map = maps
            .entry(gang.locality)
            .or_insert_with(|| Map::new(work, gang.locality));
        let home = homes(work, class, gang);
        let ledger = work.ledger.clone();
        let ask = Ask {
            class,
            need: gang.min.saturating_sub(gang.assigned),
            want: work.open[class],
            would,
            ledger: &ledger,
        };
        let ways = Ways::new(work, map, ask, &home);
        if let Some(best) = ways.whole(ask.need.max(1), |_| true) {
            apply(work, class, &best);
        } else if !would {
            let ever = could_ever(work, class);
            let best = ways.most();
            let outlook = hold::Outlook {
                could: best.map_or(0, |(units, _)| units),
                place: best.map_or_else(String::new, |(_, domain)| name(work, domain)),
                hope: ways.hope(|domain| ever.holds(domain, gang.min.max(1))),
                ever,
            };
            hold::short(work, map, ask, gang, outlook, &home, holders);
        }
    }
}

/// Less is better: units short, cost, new nodes, existing nodes used late.
fn rating(work: &Work<'_>, t: &Try, want: u32) -> (u32, u64, u32, usize) {
    let (cost, nodes) = t.packing.as_ref().map_or((0, 0), |p| p.opened(work));
    let short = want - t.placed.min(want);
    (short, cost, nodes, late(work, &t.fits))
}

/// How late in the order of use (I12) the last of these nodes stands.
fn late(work: &Work<'_>, fits: &[(usize, u32)]) -> usize {
    let tiers = fits.iter().map(|(b, _)| work.bins[*b].tier as usize);
    tiers.max().unwrap_or(0)
}

fn apply(work: &mut Work<'_>, class: usize, t: &Try) {
    let unit = &work.input.classes[class];
    for (b, n) in &t.fits {
        work.bins[*b].take(unit, class, *n, false);
    }
    work.forget_full(t.fits.len());
    work.open[class] -= t.fitted;
    if let Some(packing) = &t.packing {
        let rest = work.open[class];
        grow::commit(work, &[class], packing.clone());
        work.open[class] = rest - (t.placed - t.fitted);
    }
}

/// Domains that the gang's assigned units are in; empty when it is free to choose.
fn homes(work: &Work<'_>, class: usize, gang: &Gang) -> BTreeSet<Domain> {
    let mut home = BTreeSet::new();
    let Source::Request(name) = &work.input.classes[class].source else {
        return home;
    };
    if gang.assigned == 0 || gang.locality == Locality::Any {
        return home;
    }
    for bin in &work.bins {
        let held = match bin.at {
            At::Node(n) => holds(&work.input.nodes[n].reserved, name),
            At::Coming(l, _) => work.input.launches[l]
                .reserved
                .iter()
                .any(|(r, _)| r == name),
        };
        if held {
            home.extend(domain_of(work, bin.kind, Some(bin.at), gang.locality));
        }
    }
    home
}

fn holds(reserved: &[crate::model::Reserved], name: &RequestName) -> bool {
    reserved.iter().any(|r| r.request == *name)
}

/// The domain of a place; none when it is not known.
fn domain_of(work: &Work<'_>, kind: usize, at: Option<At>, locality: Locality) -> Option<Domain> {
    let place = &work.kinds[kind];
    Some(match locality {
        Locality::Any => Domain::Any,
        Locality::Site => Domain::Site(place.site?.to_string()),
        Locality::Zone if place.zone.is_empty() => return None,
        Locality::Zone => Domain::Zone(place.site?.to_string(), place.zone.to_owned()),
        Locality::Pool => Domain::Pool(*work.pool_index.get(place.pool?)?),
        Locality::Node => match at {
            Some(at) => Domain::Node(work.bins.iter().position(|b| b.at == at)?),
            None => Domain::NewNode,
        },
    })
}

/// A domain in words.
pub(super) fn name(work: &Work<'_>, domain: &Domain) -> String {
    match domain {
        Domain::Any => "the whole fleet".to_owned(),
        Domain::Site(site) => format!("site {site}"),
        Domain::Zone(site, zone) if site == zone => format!("site {site}"),
        Domain::Zone(site, zone) => format!("zone {zone} of {site}"),
        Domain::Pool(p) => format!("pool {}", work.input.pools[*p].id),
        Domain::Node(b) => bin_name(work, &work.bins[*b]),
        Domain::NewNode => "one new node".to_owned(),
    }
}

fn bin_name(work: &Work<'_>, bin: &Bin) -> String {
    match bin.at {
        At::Node(n) => format!("node {}", work.input.nodes[n].name),
        At::Coming(l, _) => format!("launch {}", work.input.launches[l].id),
    }
}
