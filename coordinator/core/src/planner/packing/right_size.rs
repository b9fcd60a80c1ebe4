//! Chooses the type of opened nodes at the end: the cheapest that carries the same, in the same domains where rules
//! between units look at them.

use super::{Context, Packing, may_open};
use crate::planner::size::{Free, Size};
use crate::planner::state::Group;

impl Context<'_, '_> {
    /// Swaps the type of opened nodes for the cheapest that carries the same.
    pub fn right_size(&self, p: &mut Packing) {
        let work = self.work;
        // Cheapest first; of twins all, since limits differ.
        let mut order: Vec<usize> = self.offers.clone();
        order.sort_by_key(|o| {
            let offer = &work.offers[*o];
            (offer.tier, offer.price, self.rank(*o), *o)
        });
        let mut g = 0;
        while g < p.groups.len() {
            if p.groups[g].origin.is_some() || p.groups[g].nodes == 0 {
                g += 1;
                continue;
            }
            let group = &p.groups[g];
            let have = &work.offers[group.offer];
            let used = have.size.minus(&group.free.size);
            let better = order
                .iter()
                .take_while(|o| {
                    let offer = &work.offers[**o];
                    (offer.tier, offer.price) < (have.tier, have.price)
                })
                .find(|o| p.ledger.room(&work.offers, **o) > 0 && self.carries(group, &used, **o));
            let Some(&offer) = better else {
                g += 1;
                continue;
            };
            let n = p.ledger.room(&work.offers, offer).min(group.nodes);
            let old = group.offer;
            p.split(work, g, n);
            p.ledger.give_back(&work.offers, old, n);
            p.ledger.take(&work.offers, offer, n);
            let whole = p.groups[g].whole;
            let shares = std::mem::take(&mut p.groups[g].free.shares);
            p.groups[g].offer = offer;
            p.groups[g].free = if whole {
                Free::default()
            } else {
                Free {
                    size: work.offers[offer].size.minus(&used),
                    shares,
                }
            };
            p.index(work, g);
        }
    }

    /// Would a node of the offer carry what the group's nodes carry?
    fn carries(&self, group: &Group, used: &Size, offer: usize) -> bool {
        let work = self.work;
        let (have, to) = (&work.offers[group.offer], &work.offers[offer]);
        let room = group.whole || used.fits(&to.size);
        if !room || !work.near.same_hosts(have.kind, to.kind) {
            return false;
        }
        group.placed.iter().all(|put| {
            let class = put.class;
            let gpus =
                have.size.gpus > 0 && work.matches(class, to.kind) && work.in_time(class, to.boot);
            (may_open(work, class, to) || gpus)
                && (!group.whole || work.units[class].fits(&to.size))
                && (!work.near.touches(class) || work.near.same_domains(have.kind, to.kind))
        })
    }
}
