//! How much pools could take, and what that costs at least: what a way is judged by before it is packed. Called by `ways`
//! alone; packs nothing.

use super::Ways;
use crate::planner::gangs::look::Growing;

impl Ways<'_, '_, '_> {
    /// Units that the pools could still take, at most `most`.
    pub(super) fn capacity(&self, pools: &[Growing], most: u32) -> u32 {
        let mut sum: u32 = 0;
        for pool in pools {
            sum = sum.saturating_add(pool.open);
            for (o, times) in &pool.offers {
                let room = self.ask.ledger.room(&self.work.offers, *o);
                sum = sum.saturating_add(times.saturating_mul(room));
            }
            if sum >= most {
                return most;
            }
        }
        sum
    }

    /// The least cost and nodes for so many units, and the most units that there is room for.
    pub(super) fn bound(&self, pools: &[Growing], units: u32) -> ((u64, u32), u32) {
        let offers = &self.work.offers;
        let open = pools.iter().fold(0_u32, |n, p| n.saturating_add(p.open));
        let rest = units.saturating_sub(open);
        if rest == 0 {
            return ((0, 0), units);
        }
        let rooms = pools.iter().flat_map(|p| &p.offers).filter_map(|(o, n)| {
            let room = self.ask.ledger.room(offers, *o);
            (room > 0).then_some((offers[*o].price, *n, room))
        });
        if let [_] = pools
            && pools[0].offers.len() == 1
        {
            return single(rooms, rest, units, open);
        }
        let mut rooms: Vec<(u64, u32, u32)> = rooms.collect();
        let new = rooms.iter().fold(0_u32, |sum, (_, n, room)| {
            sum.saturating_add(n.saturating_mul(*room))
        });
        let most = units.min(open.saturating_add(new));
        if most < units {
            // It cannot be full, and then it opens less: only that it is short is known.
            return ((0, 0), most);
        }
        let each = rooms.iter().map(|r| r.1).max().unwrap_or(1);
        let alike = rooms.iter().all(|r| r.1 == each);
        // The cheapest nodes first; where sizes differ a node may carry the last ones in part: by the unit, rounded down.
        let across = |price: u64, n: u32| u128::from(price) * u128::from(n);
        rooms.sort_by(|a, b| across(a.0, b.1).cmp(&across(b.0, a.1)));
        let (mut left, mut cost) = (rest, 0_u64);
        for (price, n, room) in rooms {
            if left == 0 {
                break;
            }
            let take = n.saturating_mul(room).min(left);
            left -= take;
            let part = if alike {
                price.saturating_mul(u64::from(take.div_ceil(n)))
            } else {
                let all = u128::from(price) * u128::from(take) / u128::from(n);
                u64::try_from(all).unwrap_or(u64::MAX)
            };
            cost = cost.saturating_add(part);
        }
        ((cost, rest.div_ceil(each)), most)
    }
}

/// The same for a pool with one offer.
fn single(
    mut rooms: impl Iterator<Item = (u64, u32, u32)>,
    rest: u32,
    units: u32,
    open: u32,
) -> ((u64, u32), u32) {
    let Some((price, each, room)) = rooms.next() else {
        return ((0, 0), units.min(open));
    };
    let most = units.min(open.saturating_add(each.saturating_mul(room)));
    if most < units {
        return ((0, 0), most);
    }
    let nodes = rest.div_ceil(each);
    ((price.saturating_mul(u64::from(nodes)), nodes), most)
}
