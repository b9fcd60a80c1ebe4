//! I3 for reservations: pools that use the same one share its room, and none of it is spent twice.

use crate::fleet;
use drover_core::model::{
    Action, Market, MicroUsd, Mode, Offering, PlanInput, Planned, ReservedRoom,
};
use drover_core::planner;

/// Pools of one type, each with an offering of reservations beside its own, and units that take a node each.
fn world(pools: &[(&str, &[(&str, u32)])], units: &[(&str, u32)]) -> PlanInput {
    let mut input = fleet::default_fleet();
    input.pools.clear();
    input.nodes.clear();
    for (rank, (name, reservations)) in (1..).zip(pools) {
        let size = fleet::size(96, 1152, 8);
        let (site, zone, kind) = ("us-east-1", "us-east-1a", "p4d.24xlarge");
        let mut pool = fleet::pool(name, site, zone, kind, size, 21_960_000, rank);
        let named = reservations.iter().map(|(id, nodes)| ReservedRoom {
            reservation: (*id).into(),
            nodes: *nodes,
        });
        let reserved = Offering {
            id: format!("{name}/reserved").as_str().into(),
            market: Market::Reserved,
            price: MicroUsd::ZERO,
            available: Some(reservations.iter().map(|(_, nodes)| nodes).sum()),
            reservations: named.collect(),
            ..pool.offerings[0].clone()
        };
        pool.offerings.push(reserved);
        input.pools.push(pool);
    }
    for (i, (pool, count)) in units.iter().enumerate() {
        let mut class = fleet::class(&format!("job-{i}"), *count, fleet::size(0, 0, 8));
        if !pool.is_empty() {
            class.constraints.pools.insert((*pool).into());
        }
        input.classes.push(class);
    }
    input
}

/// As before offerings named their reservations.
fn unnamed(mut input: PlanInput) -> PlanInput {
    let offerings = input.pools.iter_mut().flat_map(|p| &mut p.offerings);
    offerings.for_each(|o| o.reservations.clear());
    input
}

/// Nodes asked for out of reservations, and others.
fn asked(actions: &[Action]) -> (u32, u32) {
    let (mut reserved, mut other) = (0, 0);
    for action in actions {
        if let Action::Launch {
            offering, count, ..
        } = action
        {
            if offering.as_str().ends_with("/reserved") {
                reserved += count;
            } else {
                other += count;
            }
        }
    }
    (reserved, other)
}

fn plan(input: &PlanInput) -> Planned {
    let planned = planner::plan(input);
    assert_eq!(planned.report.dropped, [], "the check agrees");
    crate::redact::same_plan(input);
    planned
}

#[test]
fn i3_pools_that_share_a_reservation_share_its_room() {
    let input = world(&[("a", &[("cr-1", 3)]), ("b", &[("cr-1", 3)])], &[("", 5)]);
    assert_eq!(asked(&plan(&input).plan.actions), (3, 2));
    // Each of its own.
    let input = world(&[("a", &[("cr-1", 3)]), ("b", &[("cr-2", 3)])], &[("", 5)]);
    assert_eq!(asked(&plan(&input).plan.actions), (5, 0));
}

#[test]
fn i3_of_two_readings_of_a_reservation_the_lesser_counts() {
    let input = world(&[("a", &[("cr-1", 3)]), ("b", &[("cr-1", 1)])], &[("", 5)]);
    assert_eq!(asked(&plan(&input).plan.actions), (1, 4));
}

#[test]
fn i3_reservations_that_one_pool_has_beside_the_shared_one_are_used() {
    let pools: [(&str, &[(&str, u32)]); 2] =
        [("a", &[("cr-1", 1), ("cr-2", 1)]), ("b", &[("cr-2", 1)])];
    // Whoever comes first: two places for four.
    for units in [[("a", 2), ("b", 2)], [("b", 2), ("a", 2)]] {
        let (reserved, other) = asked(&plan(&world(&pools, &units)).plan.actions);
        assert_eq!((reserved, other), (2, 2), "{units:?}");
    }
}

#[test]
fn i3_a_pool_that_is_only_observed_takes_no_room_of_a_reservation() {
    let mut input = world(&[("a", &[("cr-1", 2)]), ("b", &[("cr-1", 2)])], &[("a", 2)]);
    input.pools[0].mode = Mode::Observe;
    input.pools[1].min = 2;
    let planned = plan(&input);
    assert_eq!(asked(&planned.plan.would), (2, 0));
    assert_eq!(asked(&planned.plan.actions), (2, 0), "for its minimum");
}

#[test]
fn i3_the_check_drops_what_a_reservation_has_no_room_for() {
    let pools: [(&str, &[(&str, u32)]); 2] = [("a", &[("cr-1", 3)]), ("b", &[("cr-1", 3)])];
    let input = world(&pools, &[("a", 2), ("b", 2)]);
    let proposed = planner::propose(&unnamed(input.clone()));
    assert_eq!(asked(&proposed.plan.actions), (4, 0), "each for itself");
    let planned = planner::check(&input, proposed);
    assert_eq!(asked(&planned.plan.actions), (2, 0));
    let dropped = &planned.report.dropped[0];
    assert_eq!(dropped.invariant, "I3 never_beyond_limits");
    assert_eq!(dropped.why, "4 nodes out of cr-1, which has room for 3");
}

#[test]
fn plan_files_of_before_reservations_had_ids_are_read() {
    let input = unnamed(world(&[("a", &[("cr-1", 3)])], &[("", 1)]));
    let text = serde_json::to_string(&input).unwrap();
    assert!(!text.contains("reservations"), "{text}");
    assert_eq!(serde_json::from_str::<PlanInput>(&text).unwrap(), input);
}
