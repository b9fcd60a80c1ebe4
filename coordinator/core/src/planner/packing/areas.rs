//! Classes whose rules tell domains apart (zone affinity, spread, anti-affinity over a zone): which domain next.

use super::{Context, Packing, fits_new, may_open};

impl Context<'_, '_> {
    /// Places what is left of an entry domain by domain: where fellows must follow each other into the one that can hold
    /// all, where they are spread into the one with the fewest, else wherever the rules allow.
    pub(super) fn place_by_areas(&self, p: &mut Packing, i: usize, areas: &[Vec<usize>]) {
        let (near, class) = (&self.work.near, self.order[i]);
        let mut areas: Vec<&Vec<usize>> = areas.iter().collect();
        while p.left[i] > 0 && !areas.is_empty() {
            let takes: Vec<_> = areas
                .iter()
                .map(|kinds| self.on_new(p, class, kinds[0]))
                .collect();
            // A new node may be refused where an open one is not, but never because of its domain alone.
            let open = |a: &usize| takes[*a].total > 0;
            let allowed: Vec<usize> = (0..areas.len()).filter(open).collect();
            if allowed.is_empty() {
                break;
            }
            if p.tally.would_be_first(near, class) {
                let best = allowed.iter().copied().max_by_key(|a| {
                    let room = self.room_in_area(p, i, areas[*a]);
                    (room, std::cmp::Reverse(*a))
                });
                let Some(a) = best else { break };
                let most = takes[a].total;
                if self.place_in(p, i, Some(areas[a]), most) == 0 {
                    areas.remove(a);
                }
                continue;
            }
            if allowed.iter().all(|a| takes[*a].total == u32::MAX) {
                let kinds: Vec<usize> = allowed.iter().flat_map(|a| areas[*a]).copied().collect();
                self.place_in(p, i, Some(&kinds), u32::MAX);
                break;
            }
            let key = |a: &usize| (p.tally.level(near, class, areas[*a][0]), *a);
            let Some(a) = allowed.into_iter().min_by_key(key) else {
                break;
            };
            if self.place_in(p, i, Some(areas[a]), takes[a].total) == 0 {
                areas.remove(a);
            }
        }
    }

    /// Units of an entry that a domain could take, at most those that are left.
    fn room_in_area(&self, p: &Packing, i: usize, kinds: &[usize]) -> u32 {
        let (work, class) = (self.work, self.order[i]);
        let mut room = 0_u32;
        let here = |kind: usize| kinds.contains(&kind);
        for group in &p.groups {
            if here(work.offers[group.offer].kind) {
                let (each, total) = work.room_in_by(&p.tally, class, group);
                room = room.saturating_add(each.saturating_mul(group.nodes).min(total));
            }
        }
        for o in &self.offers {
            if room >= p.left[i] {
                break;
            }
            let offer = &work.offers[*o];
            if here(offer.kind) && may_open(work, class, offer) {
                let fits = fits_new(work, class, offer);
                let (each, total) = self.on_new(p, class, offer.kind).with(fits);
                let nodes = p.ledger.room(&work.offers, *o);
                room = room.saturating_add(each.saturating_mul(nodes).min(total));
            }
        }
        room.min(p.left[i])
    }
}
