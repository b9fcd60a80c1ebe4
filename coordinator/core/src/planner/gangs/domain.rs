//! Where the units of a gang must be together: the places that a locality makes one. Used by `gangs` and by what words
//! places for people; decides nothing.

use crate::model::{Gang, Locality, RequestName, Source};
use crate::planner::state::Work;
use crate::planner::supply::{At, Bin};
use std::collections::BTreeSet;

/// One such place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::planner) enum Domain {
    Any,
    Site(String),
    Zone(String, String),
    Pool(usize),
    /// Index of a bin.
    Node(usize),
    NewNode,
}

/// The domain of a place; none when it is not known.
pub(super) fn domain_of(
    work: &Work<'_>,
    kind: usize,
    at: Option<At>,
    locality: Locality,
) -> Option<Domain> {
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

/// Domains that the gang's assigned units are in; empty when it is free to choose.
pub(super) fn homes(work: &Work<'_>, class: usize, gang: &Gang) -> BTreeSet<Domain> {
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

/// A domain in words.
pub(in crate::planner) fn name(work: &Work<'_>, domain: &Domain) -> String {
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
