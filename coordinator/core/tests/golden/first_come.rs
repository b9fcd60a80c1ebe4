//! Properties over random fleets: first come, first served within a priority. What came later changes nothing for what
//! came before; so no unit is passed over on the node that is ready for it.

use crate::random::{Dice, any_fleet};
use crate::seeds;
use drover_core::model::{NodeId, PlanInput, Target, UnixMs};
use drover_core::{planner, rules::waves};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What a plan puts on nodes that exist, per class and node, of classes of which nothing is placed late: no elastic gang
/// (what it wants beyond its minimum), none with a team (what it may not pay for), none without GPUs (the last resort).
fn placed(input: &PlanInput) -> BTreeMap<(u32, NodeId), u32> {
    let planned = planner::propose(input);
    let mut all = BTreeMap::new();
    for run in &planned.plan.runs {
        let class = &input.classes[run.class as usize];
        let elastic = class.gang.as_ref();
        let elastic = elastic.is_some_and(|g| g.min < g.assigned + class.count);
        let late = elastic || !class.team.is_empty() || class.unit.gpus == 0;
        if let (Target::Node(id), false) = (&run.target, late) {
            *all.entry((run.class, id.clone())).or_insert(0) += run.count;
        }
    }
    all
}

fn later_demand_takes_nothing(seed: u64) {
    let mut input = any_fleet(seed);
    if input.classes.is_empty() {
        return;
    }
    let d = &mut Dice(seed ^ 0xf1f0);
    for class in &mut input.classes {
        class.submitted = UnixMs(input.now.0 - d.below(90 * 60_000));
        class.priority = class.priority.min(1);
    }
    let rank =
        |c: &drover_core::model::Class| (Reverse(c.priority), waves::wave(c.submitted, input.now));
    let with = placed(&input);
    // Cut anywhere: between priorities, and between waves.
    let cut = rank(d.pick(&input.classes));
    let mut without = input.clone();
    for class in &mut without.classes {
        if rank(class) > cut {
            class.count = 0;
        }
    }
    let earlier = |all: BTreeMap<(u32, NodeId), u32>| -> BTreeMap<(u32, NodeId), u32> {
        let stays = |class: u32| rank(&input.classes[class as usize]) <= cut;
        all.into_iter().filter(|((c, _), _)| stays(*c)).collect()
    };
    assert_eq!(earlier(with), earlier(placed(&without)), "seed {seed}");
}

#[test]
fn who_comes_later_takes_nothing_from_who_came_before() {
    seeds::each(300, later_demand_takes_nothing);
}
