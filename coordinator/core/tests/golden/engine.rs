//! The engine of the planner as a whole: its limit of looks, and plans of its own results.

use crate::fleet;
use crate::random::any_fleet;
use drover_core::model::{
    Action, ClassOutcome, LaunchInFlight, Lifecycle, Millis, PlanInput, Planned, Reason, Source,
    Spread, Target,
};
use drover_core::planner;
use std::collections::BTreeMap;

/// SC-46: a plan that reaches its limit acts on the classes it has decided and names the rest.
#[test]
fn sc_46_a_plan_at_its_limit_names_the_rest() {
    let mut input = fleet::default_fleet();
    for shape in 1..=20 {
        let unit = fleet::size(1 + shape % 4, shape, 0);
        input
            .classes
            .push(fleet::class(&format!("c{shape}"), 10, unit));
    }
    input.pools[4].max = 1_000;
    let whole = planner::plan(&input);
    assert!(whole.report.classes.iter().all(|c| c.unplaced == 0));
    let mut parts = 0;
    for looks in (0..800).map(|n| 1 + n * 5) {
        let planned = planner::propose_within(&input, looks);
        assert_eq!(planner::violations(&input, &planned), Vec::new(), "{looks}");
        assert_eq!(planned, planner::propose_within(&input, looks));
        let undecided =
            |c: &&drover_core::model::ClassOutcome| c.reasons.contains(&Reason::Undecided);
        let named = planned.report.classes.iter().filter(undecided).count();
        let decided = planned.report.classes.iter().filter(|c| c.unplaced == 0);
        let decided = decided.count();
        assert_eq!(named + decided, input.classes.len(), "{looks}");
        parts += usize::from(named > 0 && decided > 0);
    }
    assert!(parts > 5, "some limits decide a part: {parts}");
}

/// The world after a plan was carried out and before any scheduler acted: what was asked for comes.
fn asked(mut input: PlanInput, planned: &Planned) -> PlanInput {
    for (index, action) in planned.plan.actions.iter().enumerate() {
        match action {
            Action::Uncordon { node, .. } => {
                for node in input.nodes.iter_mut().filter(|n| n.id == *node) {
                    (node.cordon, node.drain, node.lifecycle) = (None, None, Lifecycle::Ready);
                }
            }
            Action::Launch {
                pool,
                offering,
                count,
                ..
            } => {
                let mut reserved: BTreeMap<_, u32> = BTreeMap::new();
                for run in &planned.plan.runs {
                    let ours = matches!(run.target, Target::New { action, would: false, .. }
                        if action as usize == index);
                    let source = &input.classes[run.class as usize].source;
                    if let (true, Source::Request(name)) = (ours, source) {
                        *reserved.entry(name.clone()).or_default() += run.count;
                    }
                }
                input.launches.push(LaunchInFlight {
                    id: format!("plan-{index}").as_str().into(),
                    pool: pool.clone(),
                    offering: offering.clone(),
                    count: *count,
                    shown: 0,
                    asked: input.now,
                    deadline: input.now.after(Millis::minutes(15)),
                    reserved: reserved.into_iter().collect(),
                });
            }
            _ => {}
        }
    }
    input
}

fn for_demand(planned: &Planned) -> u32 {
    let asks = planned.plan.actions.iter().map(|action| match action {
        Action::Launch { for_demand, .. } => *for_demand,
        _ => 0,
    });
    asks.sum()
}

/// I4: planned again on its own result, before anything has arrived, a plan that serves everybody asks for nothing more,
/// and everybody still has a place.
#[test]
fn i4_nothing_is_asked_for_twice_on_random_fleets() {
    let seeds = std::env::var("SEEDS").ok().and_then(|n| n.parse().ok());
    let mut looked = 0;
    for seed in 0..seeds.unwrap_or(1_500_u64) {
        let mut input = any_fleet(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        // What a request gets is assigned to it: that is control's.
        input
            .classes
            .retain(|c| matches!(c.source, Source::Scheduler(_)));
        // A host spread is even over all hosts of its moment: those that come take part the second time.
        let by_host = |s: &Spread| s.hard && s.topology == "kubernetes.io/hostname";
        input
            .classes
            .retain(|c| !c.constraints.spread.iter().any(by_host));
        // Of demand beyond the limits some would be served later, when less is spent than was planned.
        let first = planner::plan(&input);
        let served = |c: &ClassOutcome| c.unplaced == 0;
        let kept = input.classes.iter().zip(&first.report.classes);
        let kept = kept.filter(|(_, o)| served(o)).map(|(c, _)| c.clone());
        input.classes = kept.collect();
        let first = planner::plan(&input);
        if for_demand(&first) == 0 || !first.report.classes.iter().all(served) {
            continue;
        }
        looked += 1;
        let again = planner::plan(&asked(input.clone(), &first));
        if for_demand(&again) > 0 {
            for (c, (a, b)) in input
                .classes
                .iter()
                .zip(first.report.classes.iter().zip(&again.report.classes))
            {
                println!(
                    "  {:?} x{} whole {} {:?} {:?} fit {} come {} grow {} -> {} {} {} prio {}",
                    c.unit,
                    c.count,
                    c.whole_node,
                    c.gang,
                    c.constraints,
                    a.fitted,
                    a.coming,
                    a.grown,
                    b.fitted,
                    b.coming,
                    b.grown,
                    c.priority
                );
            }
            for a in &first.plan.actions {
                println!("{a:?}");
            }
            for r in &first.plan.runs {
                println!("1 {r:?}");
            }
            for r in &again.plan.runs {
                println!("2 {r:?}");
            }
            println!("{:?}", input.launches);
        }
        let reasons = &again.plan.actions;
        assert_eq!(for_demand(&again), 0, "seed {seed}: {reasons:#?}");
        assert!(again.report.classes.iter().all(served), "seed {seed}");
    }
    assert!(looked > 20, "{looked} fleets grew and served everybody");
}
