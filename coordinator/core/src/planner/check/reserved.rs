//! I3 for reservations: what is launched out of reservations fits into their room, also where several pools use the same.
//! Called by `check`; counts from the plan's launches alone.

use super::facts::Facts;
use super::{Culprit, Violation, names};
use crate::model::{Action, ReservationId};
use std::collections::{BTreeMap, BTreeSet};

/// Reservations that a launch comes out of, and its nodes.
type Asked<'a> = (BTreeSet<&'a ReservationId>, u64);

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut rooms: BTreeMap<&ReservationId, u64> = BTreeMap::new();
    let mut asked: Vec<Asked<'_>> = Vec::new();
    for (i, action) in facts.planned.plan.actions.iter().enumerate() {
        let Action::Launch {
            pool,
            offering,
            count,
            ..
        } = action
        else {
            continue;
        };
        let pool = facts.pools.get(pool);
        let offering = pool.and_then(|pool| facts.offering(pool, offering));
        let named = offering.map_or(&[][..], |o| &o.reservations);
        if named.is_empty() {
            continue;
        }
        for one in named {
            let nodes = u64::from(one.nodes);
            let room = rooms.entry(&one.reservation).or_insert(nodes);
            *room = (*room).min(nodes);
        }
        let set: BTreeSet<_> = named.iter().map(|one| &one.reservation).collect();
        asked.push((set, u64::from(*count)));
        if let Some(why) = beyond(&asked, &rooms) {
            asked.pop();
            found.push(Violation {
                invariant: names::I3,
                why,
                culprit: Culprit::Action(i),
            });
        }
    }
    found
}

/// Reservations that more must come out of than they have room for: those of some launch, or all together.
fn beyond(asked: &[Asked<'_>], rooms: &BTreeMap<&ReservationId, u64>) -> Option<String> {
    let all: BTreeSet<&ReservationId> = asked.iter().flat_map(|(set, _)| set).copied().collect();
    let mut sets = asked.iter().map(|(set, _)| set).chain([&all]);
    sets.find_map(|set| {
        let within = asked.iter().filter(|(other, _)| other.is_subset(set));
        let nodes: u64 = within.map(|(_, n)| n).sum();
        let room: u64 = set.iter().filter_map(|one| rooms.get(one)).sum();
        let names: Vec<&str> = set.iter().map(|one| one.as_str()).collect();
        let names = names.join(", ");
        (nodes > room).then(|| format!("{nodes} nodes out of {names}, which has room for {room}"))
    })
}
