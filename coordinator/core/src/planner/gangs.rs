//! Gangs (I8): whole or not at all, in one domain of their locality: on what exists, else with growth in one pool of the
//! domain (in several only where no single one can). A gang that cannot be whole may hold what part there is, for its
//! hold time and only as the first of its domain. Called by `plan` before the single classes of the same priority.

mod hold;

pub(super) use hold::{holding, kept};

use super::grow::{self, Packing};
use super::offers::Ledger;
use super::state::Work;
use super::supply::{At, Bin};
use crate::model::{Class, Gang, Locality, RequestName, Source};
use std::collections::{BTreeMap, BTreeSet};

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

/// Places gangs, in the order given (age, index), on real supply or, in the second phase, wholly in observed pools.
pub(super) fn place(work: &mut Work<'_>, gangs: &[usize], would: bool, holders: &mut Holders) {
    for &class in gangs {
        if work.open[class] == 0 {
            continue;
        }
        let input = work.input;
        let Some(gang) = &input.classes[class].gang else {
            continue;
        };
        let need = gang.min.saturating_sub(gang.assigned);
        let home = homes(work, class, gang);
        let ledger = work.ledger.clone();
        let want = work.open[class];
        let tries = all_tries(work, class, need, want, would, &home, &ledger);
        let whole = tries
            .iter()
            .filter(|t| t.placed >= need && t.placed > 0)
            .min_by_key(|t| rating(work, t, want));
        if let Some(best) = whole {
            apply(work, class, best);
        } else if !would {
            hold::short(work, class, gang, need, &tries, &home, holders);
        }
    }
}

/// Less is better: units short, cost, new nodes, existing nodes used late.
fn rating(work: &Work<'_>, t: &Try, want: u32) -> (u32, u64, u32, usize, Domain) {
    let (cost, nodes) = t.packing.as_ref().map_or((0, 0), |p| p.opened(work));
    let late = t
        .fits
        .iter()
        .map(|(b, _)| work.bins[*b].tier as usize)
        .max()
        .unwrap_or(0);
    (
        want - t.placed.min(want),
        cost,
        nodes,
        late,
        t.domain.clone(),
    )
}

fn apply(work: &mut Work<'_>, class: usize, t: &Try) {
    let unit = &work.input.classes[class];
    for (b, n) in &t.fits {
        work.bins[*b].take(unit, class, *n, false);
    }
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

fn all_tries(
    work: &Work<'_>,
    class: usize,
    need: u32,
    want: u32,
    would: bool,
    home: &BTreeSet<Domain>,
    ledger: &Ledger,
) -> Vec<Try> {
    let unit = &work.input.classes[class];
    let Some(gang) = &unit.gang else {
        return Vec::new();
    };
    // Units per existing node, by domain; nodes in order of use.
    let mut bins: BTreeMap<Domain, Vec<usize>> = BTreeMap::new();
    let mut pools: BTreeMap<Domain, BTreeSet<usize>> = BTreeMap::new();
    let welcome = |d: &Domain| home.is_empty() || home.contains(d);
    for &b in work.order_for(class) {
        let bin = &work.bins[b];
        if bin.would == would && work.matches(class, bin.kind) && bin.times(unit, class) > 0 {
            let domain = if gang.locality == Locality::Node {
                Some(Domain::Node(b))
            } else {
                domain_of(work, bin.kind, Some(bin.at), gang.locality)
            };
            if let Some(domain) = domain.filter(welcome) {
                bins.entry(domain).or_default().push(b);
            }
        }
    }
    for (i, offer) in work.offers.iter().enumerate() {
        if offer.would == would
            && work.matches(class, offer.kind)
            && ledger.room(&work.offers, i) > 0
            && let Some(domain) = domain_of(work, offer.kind, None, gang.locality).filter(welcome)
        {
            pools.entry(domain).or_default().insert(offer.pool);
        }
    }
    let domains: BTreeSet<Domain> = bins.keys().chain(pools.keys()).cloned().collect();
    let mut tries = Vec::new();
    for domain in domains {
        let (fits, fitted) = fit(
            work,
            class,
            unit,
            bins.get(&domain).map_or(&[], Vec::as_slice),
            want,
        );
        let none = BTreeSet::new();
        let within = pools.get(&domain).unwrap_or(&none);
        if fitted < want {
            for packing in growths(
                work,
                class,
                need,
                want - fitted,
                would,
                &domain,
                within,
                ledger,
            ) {
                let placed = want - packing.left[0];
                tries.push(Try {
                    domain: domain.clone(),
                    fits: fits.clone(),
                    fitted,
                    packing: Some(packing),
                    placed,
                });
            }
        }
        tries.push(Try {
            domain,
            fits,
            fitted,
            packing: None,
            placed: fitted,
        });
    }
    tries
}

fn fit(
    work: &Work<'_>,
    class: usize,
    unit: &Class,
    bins: &[usize],
    want: u32,
) -> (Vec<(usize, u32)>, u32) {
    let mut fits = Vec::new();
    let mut fitted = 0;
    for &b in bins {
        let n = work.bins[b].times(unit, class).min(want - fitted);
        if n > 0 {
            fits.push((b, n));
            fitted += n;
        }
        if fitted == want {
            break;
        }
    }
    (fits, fitted)
}

/// Growth in each single pool of the domain; in all together only if none of them is enough.
#[expect(
    clippy::too_many_arguments,
    reason = "one call site; a struct would only rename them"
)]
fn growths(
    work: &Work<'_>,
    class: usize,
    need: u32,
    units: u32,
    would: bool,
    domain: &Domain,
    pools: &BTreeSet<usize>,
    ledger: &Ledger,
) -> Vec<Packing> {
    let locality = match domain {
        Domain::NewNode => {
            let allow = |_: usize, o: &super::offers::Offer<'_>| o.would == would;
            let all = grow::on_one_node(work, class, units, ledger, &allow);
            let least = || {
                (need > 0 && need < units)
                    .then(|| grow::on_one_node(work, class, need, ledger, &allow))
            };
            return match all {
                Some(p) => vec![p],
                None => least()
                    .flatten()
                    .map(|mut p| {
                        p.left[0] = units - need;
                        p
                    })
                    .into_iter()
                    .collect(),
            };
        }
        Domain::Node(_) => return Vec::new(),
        Domain::Zone(..) => Locality::Zone,
        _ => Locality::Any,
    };
    let inside = |o: &super::offers::Offer<'_>| {
        locality != Locality::Zone
            || domain_of(work, o.kind, None, Locality::Zone).as_ref() == Some(domain)
    };
    let try_pools = |only: &dyn Fn(usize) -> bool| {
        grow::attempt(work, &[class], vec![units], ledger, &|_, o| {
            o.would == would && only(o.pool) && inside(o)
        })
    };
    let mut all: Vec<Packing> = pools.iter().map(|p| try_pools(&|q| q == *p)).collect();
    let enough = all.iter().any(|p| p.left[0] == 0);
    if !enough && pools.len() > 1 {
        all.push(try_pools(&|q| pools.contains(&q)));
    }
    all
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
