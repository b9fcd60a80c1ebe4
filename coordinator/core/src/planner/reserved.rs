//! Room of capacity reservations: offerings of several pools may come out of the same one, and none of its room is spent
//! twice. Part of the ledger, which alone changes it; knows no pool and no price.

use crate::model::{ReservationId, ReservedRoom};
use std::collections::BTreeMap;

/// Numbers of reservations, and their room.
#[derive(Default)]
pub(super) struct Index<'a>(BTreeMap<&'a ReservationId, (usize, u32)>);

impl<'a> Index<'a> {
    /// Numbers of the reservations that an offering names. Of rooms that differ the least counts.
    pub fn add(&mut self, all: &'a [ReservedRoom]) -> Vec<usize> {
        let mut named: Vec<usize> = Vec::with_capacity(all.len());
        for one in all {
            let next = self.0.len();
            let (at, room) = (self.0.entry(&one.reservation)).or_insert((next, one.nodes));
            *room = (*room).min(one.nodes);
            if !named.contains(at) {
                named.push(*at);
            }
        }
        named
    }

    /// With nothing taken.
    pub fn rooms(self) -> Reserved {
        let mut left = vec![0; self.0.len()];
        for (at, room) in self.0.into_values() {
            left[at] = room;
        }
        Reserved {
            left,
            taken: BTreeMap::new(),
        }
    }
}

/// What is left of every reservation.
#[derive(Debug, Clone, Default)]
pub(super) struct Reserved {
    left: Vec<u32>,
    /// Nodes that an offer has out of a reservation, so that they go back where they came from.
    taken: BTreeMap<(usize, usize), u32>,
}

impl Reserved {
    /// Nodes that an offer of these reservations may still have; none when no reservation limits it.
    pub fn room(&self, of: &[usize]) -> Option<u32> {
        let each = of.iter().map(|at| self.left[*at]);
        (!of.is_empty()).then(|| each.fold(0, u32::saturating_add))
    }

    /// Takes nodes for an offer, out of the first of its reservations that have room.
    pub fn take(&mut self, offer: usize, of: &[usize], mut nodes: u32) {
        for at in of {
            let n = nodes.min(self.left[*at]);
            if n > 0 {
                self.left[*at] -= n;
                *self.taken.entry((offer, *at)).or_insert(0) += n;
                nodes -= n;
            }
        }
    }

    /// Gives back what was taken; nodes that were asked for before this run, and count as not asked for, to the first.
    pub fn give_back(&mut self, offer: usize, of: &[usize], mut nodes: u32) {
        for at in of {
            if let Some(taken) = self.taken.get_mut(&(offer, *at)) {
                let n = nodes.min(*taken);
                *taken -= n;
                self.left[*at] = self.left[*at].saturating_add(n);
                nodes -= n;
            }
        }
        if let Some(first) = of.first() {
            self.left[*first] = self.left[*first].saturating_add(nodes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_go_back_where_they_came_from() {
        let room = |reservation: &str, nodes| ReservedRoom {
            reservation: reservation.into(),
            nodes,
        };
        let (both, first) = ([room("cr-1", 1), room("cr-2", 1)], [room("cr-1", 1)]);
        let mut index = Index::default();
        let (both, first) = (index.add(&both), index.add(&first));
        let mut reserved = index.rooms();
        reserved.take(1, &first, 1);
        assert_eq!(reserved.room(&first), Some(0));
        reserved.take(0, &both, 1);
        assert_eq!(reserved.room(&both), Some(0));
        reserved.give_back(0, &both, 1);
        // The second has room again, and not the first, which the other offer has.
        assert_eq!(reserved.room(&first), Some(0));
        assert_eq!(reserved.room(&both), Some(1));
        assert_eq!(reserved.room(&[]), None);
        // What was asked for in an earlier run.
        reserved.give_back(1, &first, 2);
        assert_eq!(reserved.room(&first), Some(2));
    }
}
