//! Where shares of GPUs are asked for, a unit goes where others could use the least of what it takes (`planner/choose`):
//! tables over a few nodes, with what came before told to the plan.

use crate::fleet;
use drover_core::model::{Asked, Busy, Class, PlanInput, Resources, Target};
use drover_core::{planner, rules};

/// A unit: milli-CPU, whole GPUs, thousandths of one.
type Unit = (u64, u32, u32);

/// A node: free milli-CPU, free GPUs of its 8, free thousandths of those in part use, model.
type Free<'f> = (u64, u32, &'f [u32], &'f str);

fn class(name: &str, (cpu, gpus, milli): Unit) -> Class {
    let mut unit = fleet::size(0, 0, gpus);
    unit.cpu.0 = cpu;
    unit.gpu_milli = milli;
    fleet::class(name, 1, unit)
}

/// Nodes n0, n1 and so on, owned by nobody who pays for them.
fn nodes(all: &[Free<'_>]) -> PlanInput {
    let mut input = fleet::default_fleet();
    input.pools.clear();
    input.nodes.clear();
    for (at, (cpu, gpus, shares, model)) in all.iter().enumerate() {
        let mut node = fleet::node(&input, &format!("n{at}"), "");
        node.allocatable = fleet::size(96, 0, 8);
        node.used.cpu.0 = 96_000 - cpu;
        node.used.gpus = 8 - gpus;
        node.gpu_shares = shares.to_vec();
        node.gpu_model = (*model).to_owned();
        if !node.used.is_zero() {
            node.busy = Busy::Working {
                what: Vec::new(),
                movable: false,
            };
        }
        input.nodes.push(node);
    }
    input
}

/// Counts so many units of each.
fn came(input: &mut PlanInput, all: &[(Unit, &str, u32)]) {
    for (unit, model, count) in all {
        let mut class = class("before", *unit);
        class.constraints.gpu_model = (*model).to_owned();
        rules::learn::step(&mut input.learnt.asked, [(&class, *count)]);
    }
}

/// Node of the one unit that waits.
fn place(input: &mut PlanInput, unit: Unit) -> String {
    input.classes = vec![class("now", unit)];
    let planned = planner::plan(input);
    assert!(planned.report.dropped.is_empty());
    match planned.plan.runs.first().map(|run| &run.target) {
        Some(Target::Node(id)) => id.to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_unit_goes_where_others_lose_least() {
    let half: Unit = (6_000, 0, 500);
    let third: Unit = (4_000, 0, 330);
    let one: Unit = (8_000, 1, 0);
    let gang: Unit = (64_000, 8, 0);
    type Row<'r> = (
        &'r str,
        &'r [(Unit, &'r str, u32)],
        &'r [Free<'r>],
        Unit,
        &'r str,
    );
    let table: &[Row<'_>] = &[
        (
            "CPU is taken where no GPU is left to need it",
            &[(half, "", 50), (one, "", 50)],
            &[(40_000, 4, &[], ""), (40_000, 0, &[], "")],
            (8_000, 0, 0),
            "n1",
        ),
        (
            "a share goes where its rest is worth something: 0.5 of 0.5, not 0.5 of 0.8",
            &[(half, "", 50)],
            &[(40_000, 0, &[800], ""), (40_000, 0, &[500], "")],
            half,
            "n1",
        ),
        (
            "what is left of 0.66 serves one more 0.33; what is left of 0.5 nobody",
            &[(third, "", 50)],
            &[(40_000, 0, &[660], ""), (40_000, 0, &[500], "")],
            third,
            "n1",
        ),
        (
            "a node that takes 8 at once is not broken for one",
            &[(half, "", 10), (one, "", 50), (gang, "", 50)],
            &[(96_000, 8, &[], ""), (84_000, 7, &[500], "")],
            one,
            "n1",
        ),
        (
            "GPUs without CPU are lost anyway",
            &[(half, "", 50), (one, "", 50)],
            &[(40_000, 4, &[], ""), (8_000, 4, &[], "")],
            (1_000, 1, 0),
            "n1",
        ),
        (
            "a model that others insist on is spared",
            &[(half, "v100", 50), (half, "", 50)],
            &[(48_000, 4, &[], "V100"), (48_000, 4, &[], "T4")],
            half,
            "n1",
        ),
    ];
    for (what, before, free, unit, want) in table {
        for turned in [false, true] {
            // The first of equal nodes would be taken: the order must not be why.
            let mut all = free.to_vec();
            let mut want = (*want).to_owned();
            if turned {
                all.reverse();
                want = if want == "n1" { "n0" } else { "n1" }.to_owned();
            }
            let mut input = nodes(&all);
            came(&mut input, before);
            assert_eq!(place(&mut input, *unit), want, "{what}, turned: {turned}");
        }
    }
}

#[test]
fn without_shares_or_arrivals_the_plain_order_holds() {
    let free: &[Free<'_>] = &[(40_000, 4, &[], ""), (40_000, 0, &[], "")];
    let mut plain = nodes(free);
    let wanted = place(&mut plain, (8_000, 1, 0));
    let mut taught = nodes(free);
    came(&mut taught, &[((8_000, 1, 0), "", 50)]);
    assert!(taught.learnt.asked.residual.is_empty());
    assert_eq!(place(&mut taught, (8_000, 1, 0)), wanted);
    assert_eq!(planner::plan(&taught).plan, planner::plan(&plain).plan);
}

#[test]
fn many_units_are_placed_one_after_the_other_and_told_together() {
    let mut input = nodes(&[(96_000, 8, &[], ""), (84_000, 7, &[500], "")]);
    came(&mut input, &[((6_000, 0, 500), "", 50)]);
    let mut class = class("now", (6_000, 0, 500));
    class.count = 9;
    input.classes = vec![class];
    let planned = planner::plan(&input);
    let placed: u32 = planned.plan.runs.iter().map(|run| run.count).sum();
    assert_eq!(placed, 9);
    assert!(planned.plan.runs.len() <= 2, "{:?}", planned.plan.runs);
    assert_eq!(
        planner::to_bytes(&planned),
        planner::to_bytes(&planner::plan(&input))
    );
    // A unit that is larger than all is still said to be short.
    let mut input = nodes(&[(1_000, 8, &[], "")]);
    came(&mut input, &[((6_000, 0, 500), "", 50)]);
    assert_eq!(place(&mut input, (6_000, 0, 500)), "None");
    assert_ne!(input.learnt.asked, Asked::default());
    assert_eq!(input.nodes[0].used, {
        let mut used = Resources::default();
        used.cpu.0 = 95_000;
        used
    });
}
