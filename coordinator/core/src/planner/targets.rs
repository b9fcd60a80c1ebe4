//! Standing targets: the minimum and the spare of each pool, after demand. Own-cordoned idle nodes first, then launches.
//! Called once by `plan`; never for a stopped pool.

use super::anticipate;
use super::state::Work;
use super::supply::{At, Tier, growth_stop};
use crate::model::OfferingId;

/// Brings every pool to its minimum and its spare, as far as limits allow; what is missing is noted in `below`.
pub(super) fn stand(work: &mut Work<'_>) {
    work.demanded = anticipate::demanded(work);
    let mut opened = vec![0_u32; work.input.pools.len()];
    let groups = work.groups.all().map(|g| (g.offer, g.nodes));
    let probes = work.probes.iter().map(|(o, n)| (*o, *n));
    let elsewhere = work.elsewhere.iter().map(|((o, _), (n, _))| (*o, *n));
    for (o, n) in groups.chain(probes).chain(elsewhere) {
        let sum = &mut opened[work.offers[o].pool];
        *sum = sum.saturating_add(n);
    }
    let mut kept = vec![0_u32; work.input.pools.len()];
    for (o, (n, _)) in &work.headroom {
        let sum = &mut kept[work.offers[*o].pool];
        *sum = sum.saturating_add(*n);
    }
    let pools: Vec<usize> = work.pool_index.values().copied().collect();
    for p in pools {
        stand_pool(work, p, opened[p], kept[p]);
    }
}

/// `opened`: nodes of the pool that this plan has asked for already, for demand; `kept`: for headroom.
fn stand_pool(work: &mut Work<'_>, p: usize, opened: u32, kept: u32) {
    let pool = &work.input.pools[p];
    let mut staying = work.counts[p].staying;
    // What is kept free for headroom is idle as well.
    let mut idle = kept;
    let mut cordoned = Vec::new();
    for &b in &work.bins_of[p] {
        let bin = &work.bins[b];
        let used = !bin.placed.is_empty() || !bin.held.is_empty();
        match bin.tier {
            Tier::OwnCordoned if used => staying += 1,
            Tier::OwnCordoned if back(work, b) => {
                staying += 1;
                idle += 1;
            }
            Tier::OwnCordoned => cordoned.push(b),
            Tier::Ready | Tier::Coming if bin.idle && !used => idle += 1,
            Tier::Ready | Tier::Coming => {}
        }
    }
    staying = staying.saturating_add(opened).saturating_add(kept);
    let mut minimum = pool.min.saturating_sub(staying);
    let (likely, like) = anticipate::spare(work, p).unwrap_or_default();
    let wanted = pool.spare.max(likely);
    let mut spare = wanted.saturating_sub(idle).max(minimum) - minimum;
    for b in cordoned {
        if minimum + spare == 0 {
            break;
        }
        if let At::Node(n) = work.bins[b].at {
            work.kept_standing.insert(n);
        }
        if minimum > 0 {
            minimum -= 1;
        } else {
            spare -= 1;
        }
    }
    if growth_stop(pool).is_none() {
        launch(work, p, like.as_ref(), &mut minimum, &mut spare);
    }
    if minimum + spare > 0 {
        work.below.insert(p, (minimum, spare));
    }
}

/// Our cordon is taken back for headroom.
fn back(work: &Work<'_>, bin: usize) -> bool {
    matches!(work.bins[bin].at, At::Node(n) if work.kept_free.contains_key(&n))
}

/// The cheapest first, but what the latest demand took before all.
fn launch(
    work: &mut Work<'_>,
    p: usize,
    like: Option<&OfferingId>,
    minimum: &mut u32,
    spare: &mut u32,
) {
    let mut offers = work.offers_of[p].clone();
    offers.sort_by_key(|o| {
        let offer = &work.offers[*o];
        (like != Some(offer.id), offer.tier, offer.price, *o)
    });
    for offer in offers {
        let n = work
            .ledger
            .room(&work.offers, offer)
            .min(minimum.saturating_add(*spare));
        if n == 0 {
            continue;
        }
        work.ledger.take(&work.offers, offer, n);
        let for_min = n.min(*minimum);
        let slot = work.standing.entry(offer).or_default();
        slot.0 += for_min;
        slot.1 += n - for_min;
        *minimum -= for_min;
        *spare -= n - for_min;
    }
}
