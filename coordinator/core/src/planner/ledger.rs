//! The ledger of every limit: pool maximum, ration, room of reservations, fleet budget, nodes of one plan. Grow, gangs and targets take from one
//! ledger, so that no two of them spend the same. **Invariant:** I3, never more than a limit; what runs and comes is off
//! the ledger before anything is planned.

use super::offers::{MAX_NODES, Offer};
use super::reserved::Reserved;
use super::state::Work;
use super::supply::{At, Tier, is_present};
use crate::model::{OfferingId, PoolInput};
use std::collections::BTreeSet;

/// What is left of every limit.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    pub offer: Vec<u32>,
    pub pool: Vec<u32>,
    pub reserved: Reserved,
    pub cost: Option<u64>,
    pub gpus: Option<u64>,
    pub nodes: u32,
    /// Offers that count as open though they are closed now.
    pub reopened: BTreeSet<usize>,
}

impl Ledger {
    /// Nodes of an offer that may still be asked for.
    pub fn room(&self, offers: &[Offer<'_>], offer: usize) -> u32 {
        let o = &offers[offer];
        let Some(alloc) = &o.alloc else { return 0 };
        if o.closed.is_some() && !self.reopened.contains(&offer) {
            return 0;
        }
        let mut most = self.offer[offer].min(self.pool[o.pool]).min(self.nodes);
        if let Some(room) = self.reserved.room(&o.reserved) {
            most = most.min(room);
        }
        let mut bound = |left: Option<u64>, each: u64| {
            if let Some(times) = left.and_then(|l| l.checked_div(each)) {
                most = most.min(u32::try_from(times).unwrap_or(u32::MAX));
            }
        };
        bound(self.cost, o.price);
        bound(self.gpus, u64::from(alloc.gpus));
        most
    }

    /// Books nodes; the caller has asked `room`.
    pub fn take(&mut self, offers: &[Offer<'_>], offer: usize, nodes: u32) {
        let o = &offers[offer];
        self.offer[offer] = self.offer[offer].saturating_sub(nodes);
        self.pool[o.pool] = self.pool[o.pool].saturating_sub(nodes);
        // What is only thought of takes nothing from those who may ask.
        if !o.would {
            self.reserved.take(offer, &o.reserved, nodes);
        }
        self.nodes = self.nodes.saturating_sub(nodes);
        let n = u64::from(nodes);
        let gpus = o.alloc.as_ref().map_or(0, |a| u64::from(a.gpus));
        self.cost = self
            .cost
            .map(|c| c.saturating_sub(o.price.saturating_mul(n)));
        self.gpus = self.gpus.map(|g| g.saturating_sub(gpus.saturating_mul(n)));
    }

    /// Gives back what was booked.
    pub fn give_back(&mut self, offers: &[Offer<'_>], offer: usize, nodes: u32) {
        let o = &offers[offer];
        self.offer[offer] = self.offer[offer].saturating_add(nodes);
        self.pool[o.pool] = self.pool[o.pool].saturating_add(nodes);
        if !o.would {
            self.reserved.give_back(offer, &o.reserved, nodes);
        }
        self.nodes = self.nodes.saturating_add(nodes);
        let n = u64::from(nodes);
        let gpus = o.alloc.as_ref().map_or(0, |a| u64::from(a.gpus));
        self.cost = self
            .cost
            .map(|c| c.saturating_add(o.price.saturating_mul(n)));
        self.gpus = self.gpus.map(|g| g.saturating_add(gpus.saturating_mul(n)));
    }
}

/// The limits less what runs and comes.
pub(super) fn ledger(work: &Work<'_>, reserved: Reserved) -> Ledger {
    let (cost, gpus) = spent(work);
    let policy = &work.input.policy;
    Ledger {
        offer: work.offers.iter().map(|o| o.most).collect(),
        pool: work
            .input
            .pools
            .iter()
            .zip(&work.counts)
            .map(|(pool, count)| pool.max.saturating_sub(count.present))
            .collect(),
        reserved,
        cost: policy.max_cost.map(|max| max.0.saturating_sub(cost)),
        gpus: policy
            .max_gpus
            .map(|max| u64::from(max).saturating_sub(gpus)),
        nodes: MAX_NODES,
        reopened: BTreeSet::new(),
    }
}

/// Cost per hour and GPUs of all that is running and coming in pools of ours. Instances that no record describes
/// (`unmanaged`) count as the pool's dearest offering.
pub(super) fn spent(work: &Work<'_>) -> (u64, u64) {
    let mut cost: u64 = 0;
    let mut gpus: u64 = 0;
    for (i, node) in work.input.nodes.iter().enumerate() {
        if work.node_pool[i].is_some() && is_present(node) && !work.bad_nodes.contains_key(&i) {
            cost = cost.saturating_add(node.price.0);
            // A node that is still joining will have what its offering gives.
            gpus = gpus.saturating_add(u64::from(node.allocatable.gpus));
        }
    }
    for bin in &work.bins {
        if let (Tier::Coming, At::Node(n)) = (bin.tier, bin.at) {
            let more = bin
                .total
                .gpus
                .saturating_sub(work.input.nodes[n].allocatable.gpus);
            gpus = gpus.saturating_add(u64::from(more));
        }
    }
    let mut add = |pool: &PoolInput, offering: Option<&OfferingId>, count: u32| {
        let of = |o: &&crate::model::Offering| offering.is_none_or(|id| o.id == *id);
        let price = pool
            .offerings
            .iter()
            .filter(of)
            .map(|o| o.price.0)
            .max()
            .unwrap_or(0);
        let each = pool
            .offerings
            .iter()
            .filter(of)
            .filter_map(|o| o.allocatable.as_ref())
            .map(|a| a.gpus)
            .max()
            .unwrap_or(0);
        cost = cost.saturating_add(price.saturating_mul(u64::from(count)));
        gpus = gpus.saturating_add(u64::from(each).saturating_mul(u64::from(count)));
    };
    for launch in &work.input.launches {
        if let Some(p) = work.pool_index.get(&launch.pool) {
            add(&work.input.pools[*p], Some(&launch.offering), launch.count);
        }
    }
    for p in work.pool_index.values() {
        let pool = &work.input.pools[*p];
        add(pool, None, pool.unmanaged);
    }
    (cost, gpus)
}
