//! How much pools could take, and what that costs at least: what a way is judged by before it is packed. Called by `ways`
//! alone; packs nothing.

use super::Ways;
use crate::planner::gangs::look::Growing;
use std::ops::Range;

/// What one offer could still give.
#[derive(Clone, Copy)]
pub(super) struct Room {
    price: u64,
    /// Units on one node.
    times: u32,
    nodes: u32,
}

impl Ways<'_, '_, '_> {
    /// Per entry of the look's `suits`, what it could still give.
    pub(super) fn rooms(&self, suits: Range<usize>, rooms: &mut Vec<Room>) {
        let offers = &self.work.offers;
        rooms.clear();
        rooms.extend(self.look.suits[suits].iter().map(|suit| Room {
            price: offers[suit.offer].price,
            times: suit.times,
            nodes: self.ask.ledger.room(offers, suit.offer),
        }));
    }
}

/// Units that open nodes of the pools still take.
pub(super) fn open(pools: &[Growing]) -> u32 {
    pools.iter().fold(0, |sum, p| sum.saturating_add(p.open))
}

/// Units on open nodes and on what could be opened, at most `most`.
pub(super) fn capacity(open: u32, rooms: &[Room], most: u32) -> u32 {
    let new = rooms.iter().map(|r| r.times.saturating_mul(r.nodes));
    new.fold(open, u32::saturating_add).min(most)
}

/// The least cost and nodes for so many units, and the most units that there is room for. The rooms come in the order of
/// price per unit.
pub(super) fn bound(
    open: u32,
    rooms: impl Iterator<Item = Room> + Clone,
    units: u32,
) -> ((u64, u32), u32) {
    let rest = units.saturating_sub(open);
    if rest == 0 {
        return ((0, 0), units);
    }
    let rooms = rooms.filter(|r| r.nodes > 0);
    let (mut new, mut each, mut fewest) = (0_u32, 1, u32::MAX);
    for room in rooms.clone() {
        new = new.saturating_add(room.times.saturating_mul(room.nodes));
        each = each.max(room.times);
        fewest = fewest.min(room.times);
    }
    let most = units.min(open.saturating_add(new));
    if most < units {
        // It cannot be full, and then it opens less: only that it is short is known.
        return ((0, 0), most);
    }
    let alike = fewest == each;
    // The cheapest nodes first; where sizes differ a node may carry the last ones in part: by the unit, rounded down.
    let (mut left, mut cost) = (rest, 0_u64);
    for Room {
        price,
        times,
        nodes,
    } in rooms
    {
        let take = times.saturating_mul(nodes).min(left);
        left -= take;
        let part = if alike {
            price.saturating_mul(u64::from(take.div_ceil(times)))
        } else {
            let all = u128::from(price) * u128::from(take) / u128::from(times);
            u64::try_from(all).unwrap_or(u64::MAX)
        };
        cost = cost.saturating_add(part);
        if left == 0 {
            break;
        }
    }
    ((cost, rest.div_ceil(each)), most)
}
