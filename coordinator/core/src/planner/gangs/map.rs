//! The domains of one locality: which one each place is in, and which pools can grow there. Built once per locality and
//! run of `gangs`; changes nothing.

use super::domain::{Domain, domain_of};
use crate::model::Locality;
use crate::planner::state::Work;
use std::collections::{BTreeMap, BTreeSet};

/// The domains, in order.
pub(super) struct Map {
    pub locality: Locality,
    pub domains: Vec<Domain>,
    of_kind: Vec<Option<usize>>,
    /// Pools with offers in a domain, by (domain, pool).
    pub pools: Vec<Slot>,
    /// Per offer, its entry in `pools`.
    pub of_offer: Vec<Option<usize>>,
}

/// One pool's offers in one domain.
pub(super) struct Slot {
    pub domain: usize,
    pub offers: Vec<usize>,
}

impl Map {
    pub fn new(work: &Work<'_>, locality: Locality) -> Self {
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
        for ((domain, _), offers) in by_pool {
            for &o in &offers {
                map.of_offer[o] = Some(map.pools.len());
            }
            map.pools.push(Slot { domain, offers });
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
    pub fn of_bin(&self, bin: usize, kind: usize) -> Option<usize> {
        if self.locality == Locality::Node {
            Some(bin)
        } else {
            self.of_kind[kind]
        }
    }

    /// The domain of a new node.
    pub fn of_new(&self, kind: usize) -> Option<usize> {
        if self.locality == Locality::Node {
            Some(self.domains.len() - 1)
        } else {
            self.of_kind[kind]
        }
    }
}
