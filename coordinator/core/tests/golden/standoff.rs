//! I8: gangs never block each other for good. Two or more gangs, in any order, on any partial supply that never gets more:
//! after finitely many plans, carried out as control does, some gang is whole or nothing is held.

use crate::fleet;
use crate::random::Dice;
use crate::seeds;
use drover_core::model::{
    Action, Class, Gang, Locality, MemoryEntry, Millis, NodeInput, PlanInput, Reserved, Source,
    Target, UnixMs,
};
use drover_core::planner;
use std::collections::BTreeMap;

/// Units of one gang on nodes, by its request.
type Assigned = BTreeMap<(usize, String), u32>;

/// Free nodes of 8 GPUs in two zones, and gangs whose units take one each.
fn world(free: [u32; 2], gangs: &[(u32, u32, bool, u64)], assigned: &[(usize, u32)]) -> PlanInput {
    let mut input = fleet::default_fleet();
    input
        .pools
        .retain(|p| matches!(p.id.as_str(), "p4" | "p4w"));
    input.nodes.clear();
    for (pool, count) in ["p4", "p4w"].iter().zip(free) {
        for n in 0..count {
            let node = fleet::node(&input, &format!("{pool}-{n}"), pool);
            input.nodes.push(node);
        }
    }
    for (i, (min, more, request, hold)) in gangs.iter().enumerate() {
        let name = format!("gang-{i}");
        let mut class = fleet::class(&name, min + more, fleet::size(0, 0, 8));
        if *request {
            class.source = Source::Request(name.as_str().into());
        }
        class.gang = Some(Gang {
            min: *min,
            assigned: 0,
            locality: Locality::Zone,
            hold: Millis::minutes(*hold),
            holding_since: None,
        });
        input.classes.push(class);
    }
    // Parts that were given while there was hope.
    for (gang, units) in assigned {
        let class = &mut input.classes[*gang];
        let Source::Request(name) = class.source.clone() else {
            continue;
        };
        let mut left = *units;
        for node in input.nodes.iter_mut().filter(|n| n.reserved.is_empty()) {
            if left == 0 || class.count < 2 {
                break;
            }
            hold(node, class, &name.0, 1);
            left -= 1;
        }
    }
    // Nothing more can be had, though it could one day: so they hope.
    for pool in &input.pools {
        input.memory.push(MemoryEntry {
            offering: pool.offerings[0].id.clone(),
            kind: drover_core::model::FailureKind::Shortage,
            failed: input.now,
            next_probe: UnixMs(u64::MAX),
            ration: 1,
            message: String::new(),
        });
    }
    input
}

fn hold(node: &mut NodeInput, class: &mut Class, request: &str, units: u32) {
    node.reserved.push(Reserved {
        request: request.into(),
        units,
        amount: class.unit.scaled(units),
        team: String::new(),
        ends: None,
    });
    class.count -= units;
    if let Some(gang) = &mut class.gang {
        gang.assigned += units;
    }
}

/// Carries out a plan as control does: assignments of requests, releases, and since when gangs hold. Returns units held.
fn carry_out(input: &mut PlanInput) -> u32 {
    let planned = planner::plan(input);
    assert!(
        planned.report.dropped.is_empty(),
        "{:?}",
        planned.report.dropped
    );
    for action in &planned.plan.actions {
        let Action::Release { request, .. } = action else {
            continue;
        };
        for node in &mut input.nodes {
            node.reserved.retain(|r| r.request != *request);
        }
        for class in &mut input.classes {
            if let (true, Some(gang)) = (
                class.source == Source::Request(request.clone()),
                &mut class.gang,
            ) {
                class.count += gang.assigned;
                gang.assigned = 0;
            }
        }
    }
    let mut got: Assigned = BTreeMap::new();
    for run in &planned.plan.runs {
        if let Target::Node(id) = &run.target {
            *got.entry((run.class as usize, id.to_string())).or_insert(0) += run.count;
        }
    }
    for ((class, id), units) in got {
        let class = &mut input.classes[class];
        let node = input
            .nodes
            .iter_mut()
            .find(|n| n.id.as_str() == id)
            .unwrap();
        match class.source.clone() {
            Source::Request(name) => hold(node, class, &name.0, units),
            // A scheduler binds them: they run from now on.
            Source::Scheduler(_) => {
                node.used = node.used.plus(&class.unit.scaled(units));
                class.count -= units;
                if let Some(gang) = &mut class.gang {
                    gang.min = gang.min.saturating_sub(units);
                }
            }
        }
    }
    let mut held = 0;
    for (class, outcome) in input.classes.iter_mut().zip(&planned.report.classes) {
        if let Some(gang) = &mut class.gang {
            if outcome.held > 0 {
                let since = *gang.holding_since.get_or_insert(input.now);
                assert!(
                    input.now < since.after(gang.hold),
                    "held for longer than the hold time"
                );
                held += outcome.held;
            }
            if gang.assigned >= gang.min {
                gang.holding_since = None;
            }
        }
    }
    held
}

/// Until every hold time has passed in turn.
fn ends(seed: u64) {
    let d = &mut Dice(seed);
    let free = [d.small(7), d.small(7)];
    let gangs: Vec<_> = (0..2 + d.below(3))
        .map(|_| (1 + d.small(6), d.small(3), d.one_in(2), 1 + d.below(29)))
        .collect();
    let parts: Vec<(usize, u32)> = (0..d.below(3))
        .map(|_| (usize::try_from(d.below(5)).unwrap(), 1 + d.small(3)))
        .filter(|(g, _)| *g < gangs.len())
        .collect();
    let mut input = world(free, &gangs, &parts);
    let most = gangs.iter().map(|g| g.3).max().unwrap_or(0);
    let mut held = 0;
    // A plan a minute.
    for _ in 0..(most * gangs.len() as u64 + 5) {
        held = carry_out(&mut input);
        input.now = UnixMs(input.now.0 + 60_000);
    }
    // In the end nobody holds, and whoever could be whole is.
    assert_eq!(held, 0, "seed {seed}");
    for (i, class) in input.classes.iter().enumerate() {
        let gang = class.gang.as_ref().unwrap();
        let part = gang.assigned > 0 && gang.assigned < gang.min;
        assert!(!part, "seed {seed}: gang {i} is half served");
        let left = |pool: &str| {
            let of = |n: &&NodeInput| n.pool.as_ref().is_some_and(|p| p.as_str() == pool);
            let mine = input.nodes.iter().filter(of);
            mine.filter(|n| n.used.is_zero() && n.reserved.is_empty())
                .count() as u32
        };
        let waits = match class.source {
            Source::Scheduler(_) => class.count == gangs[i].0 + gangs[i].1,
            Source::Request(_) => gang.assigned == 0,
        };
        assert!(
            !waits || left("p4").max(left("p4w")) < gang.min,
            "seed {seed}: gang {i} of {} waits beside {} and {} free nodes",
            gang.min,
            left("p4"),
            left("p4w")
        );
    }
}

#[test]
fn i8_gangs_never_block_each_other_for_good() {
    seeds::each(60, ends);
}
