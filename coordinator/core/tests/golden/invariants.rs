//! One test per invariant: the planner keeps it, and the check drops a plan that does not (so the check can fail).

use crate::fleet;
use drover_core::model::{
    Action, Anticipate, Busy, Cordon, Demanded, DrainInfo, Emptying, FailureKind, Gang, Lifecycle,
    Locality, MemoryEntry, MicroUsd, Millis, NodeInput, Plan, PlanInput, Planned, PoolId, Reason,
    Run, Selector, Spread, Stop, Target, UnixMs,
};
use drover_core::planner;

fn idle(input: &mut PlanInput, name: &str, pool: &str, minutes: u64) -> usize {
    let mut node = fleet::node(input, name, pool);
    node.busy = Busy::Idle {
        since: UnixMs(input.now.0 - minutes * 60_000),
    };
    input.nodes.push(node);
    input.nodes.len() - 1
}

fn launch(input: &PlanInput, pool: &str, count: u32, for_demand: u32) -> Action {
    let pool = input.pools.iter().find(|p| p.id.as_str() == pool).unwrap();
    Action::Launch {
        pool: pool.id.clone(),
        offering: pool.offerings[0].id.clone(),
        count,
        for_demand,
        reason: Reason::Demand {
            sources: Vec::new(),
            units: 0,
            minimum: 0,
            spare: 0,
            headroom: 0,
        },
    }
}

/// Runs that put one unit of class 0 on each of `n` nodes of action 0.
fn one_each(n: u32) -> Vec<Run> {
    (0..n)
        .map(|node| Run {
            class: 0,
            target: Target::New {
                action: 0,
                would: false,
                node,
            },
            count: 1,
        })
        .collect()
}

fn drain(node: &str) -> Action {
    Action::Drain {
        node: node.into(),
        reason: Reason::DrainedEmpty,
        how: Emptying::Wait,
    }
}

/// The planner's report with another plan in it, checked.
fn checked(input: &PlanInput, actions: Vec<Action>, runs: Vec<Run>) -> Planned {
    let mut planned = planner::plan(input);
    planned.plan = Plan {
        actions,
        would: Vec::new(),
        runs,
    };
    planner::check(input, planned)
}

/// The one action is dropped for that invariant.
fn drops(input: &PlanInput, action: Action, runs: Vec<Run>, invariant: &str) {
    let got = checked(input, vec![action.clone()], runs);
    assert!(got.plan.actions.is_empty(), "{action:?} went through");
    assert_eq!(got.report.dropped.len(), 1);
    assert_eq!(
        got.report.dropped[0].invariant, invariant,
        "{}",
        got.report.dropped[0].why
    );
    assert!(got.plan.runs.is_empty(), "what depended on it went through");
}

fn keeps(input: &PlanInput, action: Action, runs: Vec<Run>) {
    let got = checked(input, vec![action.clone()], runs);
    assert_eq!(got.plan.actions, vec![action], "{:?}", got.report.dropped);
}

#[test]
fn i1_no_job_killed() {
    let mut input = fleet::default_fleet();
    let at = idle(&mut input, "g5-1", "g5", 60);
    keeps(&input, drain("g5-1"), Vec::new());
    input.nodes[at].busy = Busy::Working {
        what: vec!["job".to_owned()],
        movable: true,
    };
    drops(&input, drain("g5-1"), Vec::new(), "I1 no_job_killed");
    assert!(planner::plan(&input).plan.actions.is_empty());
    // A drained node on which something runs after all does not leave.
    input.nodes[at].lifecycle = Lifecycle::Drained;
    input.nodes[at].cordon = Some(Cordon::Drover);
    input.nodes[at].drain = Some(DrainInfo {
        moving: false,
        id: "d".into(),
        own_idle: true,
        since: input.now,
        reason: "idle".to_owned(),
    });
    let leave = Action::Leave {
        node: "g5-1".into(),
        reason: Reason::DrainedEmpty,
    };
    drops(&input, leave.clone(), Vec::new(), "I1 no_job_killed");
    input.nodes[at].busy = Busy::Idle { since: input.now };
    assert_eq!(planner::plan(&input).plan.actions, vec![leave]);
}

/// As far as the core goes: there is no action that lowers a desired capacity; a node leaves by its id, drained.
#[test]
fn i2_protected_by_construction() {
    let mut input = fleet::default_fleet();
    idle(&mut input, "g5-1", "g5", 60);
    let leave = Action::Leave {
        node: "g5-1".into(),
        reason: Reason::DrainedEmpty,
    };
    drops(&input, leave, Vec::new(), "I1 no_job_killed");
    let planned = planner::plan(&input);
    assert!(
        matches!(&planned.plan.actions[..], [Action::Drain { .. }]),
        "drained first: {:?}",
        planned.plan.actions
    );
}

#[test]
fn i3_never_beyond_limits() {
    let mut input = fleet::default_fleet();
    input
        .classes
        .push(fleet::class("jobs", 30, fleet::size(0, 0, 8)));
    drops(
        &input,
        launch(&input, "p4", 21, 21),
        one_each(21),
        "I3 never_beyond_limits",
    );
    keeps(&input, launch(&input, "p4", 20, 20), one_each(20));
    input.policy.max_cost = Some(MicroUsd(65_000_000));
    drops(
        &input,
        launch(&input, "p4", 3, 3),
        one_each(3),
        "I3 never_beyond_limits",
    );
    input.policy.max_cost = None;
    input.policy.max_gpus = Some(16 + 31);
    drops(
        &input,
        launch(&input, "p4", 4, 4),
        one_each(4),
        "I3 never_beyond_limits",
    );
    input.classes.clear();
    input.policy.max_gpus = None;
    for n in 0..20 {
        idle(&mut input, &format!("g5-{n:02}"), "g5", 60);
    }
    let got = checked(
        &input,
        vec![drain("g5-00"), drain("g5-01"), drain("g5-02")],
        Vec::new(),
    );
    assert_eq!(got.plan.actions.len(), 2, "ten percent of twenty");
    assert_eq!(got.report.dropped[0].invariant, "I3 never_beyond_limits");
    input.pools[0].min = 20;
    drops(&input, drain("g5-00"), Vec::new(), "I3 never_beyond_limits");
}

#[test]
fn i4_one_spare_for_likely_demand_and_only_for_its_time() {
    let mut input = fleet::default_fleet();
    let spare = |n| move |input: &PlanInput| launch(input, "p4", n, 0);
    for (anticipate, minutes_ago, most) in [(true, 14, 1), (true, 15, 0), (false, 14, 0)] {
        let p4 = input.pools.iter_mut().find(|p| p.id.as_str() == "p4");
        p4.unwrap().anticipate = anticipate.then(Anticipate::default);
        let demanded = Demanded {
            at: UnixMs(fleet::START),
            offering: None,
        };
        input.learnt.demanded = [("p4".into(), demanded)].into();
        input.now = UnixMs(fleet::START + minutes_ago * 60_000);
        if most == 1 {
            keeps(&input, spare(1)(&input), Vec::new());
        }
        drops(&input, spare(most + 1)(&input), Vec::new(), "I4 ask_once");
    }
}

#[test]
fn i4_ask_once() {
    let mut input = fleet::default_fleet();
    input
        .classes
        .push(fleet::class("jobs", 2, fleet::size(0, 0, 8)));
    // More than waits, more than is used, capacity counted twice.
    drops(
        &input,
        launch(&input, "p4", 3, 3),
        one_each(2),
        "I4 ask_once",
    );
    let twice = vec![Run {
        class: 0,
        target: Target::New {
            action: 0,
            would: false,
            node: 0,
        },
        count: 2,
    }];
    drops(&input, launch(&input, "p4", 1, 1), twice, "I4 ask_once");
    drops(
        &input,
        launch(&input, "p4", 2, 0),
        Vec::new(),
        "I4 ask_once",
    );
    // What is coming is not asked for again, whatever happens in between.
    let first = planner::plan(&input);
    let Action::Launch {
        pool,
        offering,
        count,
        ..
    } = first.plan.actions[0].clone()
    else {
        panic!()
    };
    input.launches.push(drover_core::model::LaunchInFlight {
        id: "l".into(),
        pool,
        offering,
        count,
        shown: 0,
        asked: input.now,
        deadline: input.now.after(Millis::minutes(15)),
        reserved: Vec::new(),
    });
    let again = planner::plan(&input);
    assert!(again.plan.actions.is_empty());
    assert_eq!(again.report.classes[0].coming, 2);
    input.now = input.now.after(Millis::minutes(15));
    assert_eq!(
        planner::plan(&input).plan.actions.len(),
        1,
        "past its deadline it is no longer coming"
    );
}

#[test]
fn i5_mine_only() {
    let mut input = fleet::default_fleet();
    let at = idle(&mut input, "x-1", "nowhere", 60);
    drops(&input, drain("x-1"), Vec::new(), "I5 mine_only");
    input.nodes[at].pool = Some(PoolId::new("gone-from-the-config"));
    drops(&input, drain("x-1"), Vec::new(), "I5 mine_only");
    assert!(planner::plan(&input).plan.actions.is_empty());
    idle(&mut input, "g5-1", "g5", 60);
    input.pools[0].stops.push(Stop::NotOurs {
        why: "the tag names another store".to_owned(),
    });
    drops(&input, drain("g5-1"), Vec::new(), "I5 mine_only");
    input
        .classes
        .push(fleet::class("jobs", 40, fleet::size(0, 0, 1)));
    let planned = planner::plan(&input);
    let touched = |a: &Action| matches!(a, Action::Launch { pool, .. } if pool.as_str() == "g5");
    assert!(!planned.plan.actions.iter().any(touched));
    drops(
        &input,
        launch(&input, "g5", 1, 1),
        one_each(1),
        "I5 mine_only",
    );
}

#[test]
fn i6_silence_is_not_death() {
    let mut input = fleet::default_fleet();
    let at = idle(&mut input, "g5-1", "g5", 600);
    input.nodes[at].unreachable = true;
    drops(&input, drain("g5-1"), Vec::new(), "I6 silence_is_not_death");
    assert!(planner::plan(&input).plan.actions.is_empty());
    input
        .classes
        .push(fleet::class("jobs", 1, fleet::size(0, 0, 1)));
    input.pools[0].stops.push(Stop::SiteSilent);
    drops(
        &input,
        launch(&input, "g5", 1, 1),
        one_each(1),
        "I6 silence_is_not_death",
    );
    let run = Run {
        class: 0,
        target: Target::Node("g5-1".into()),
        count: 1,
    };
    let got = checked(&input, Vec::new(), vec![run]);
    assert!(got.plan.runs.is_empty(), "a silent node is no supply");
    assert_eq!(got.report.classes[0].unplaced, 1);
}

#[test]
fn i7_undo_only_own() {
    let mut input = fleet::default_fleet();
    let at = idle(&mut input, "p4-1", "p4", 1);
    input
        .classes
        .push(fleet::class("job", 1, fleet::size(0, 0, 8)));
    let undo = Action::Uncordon {
        node: "p4-1".into(),
        reason: Reason::KeptAsSpare,
    };
    let on_it = vec![Run {
        class: 0,
        target: Target::Node("p4-1".into()),
        count: 1,
    }];
    input.nodes[at].cordon = Some(Cordon::Drover);
    keeps(&input, undo.clone(), on_it.clone());
    let cases: [fn(&mut NodeInput); 4] = [
        |n| {
            n.cordon = Some(Cordon::Person {
                who: "ann".to_owned(),
                why: String::new(),
            })
        },
        |n| n.faulty = Some("lost a GPU".to_owned()),
        |n| n.cordon = None,
        |n| n.lifecycle = Lifecycle::Leaving,
    ];
    for change in cases {
        let mut other = input.clone();
        change(&mut other.nodes[at]);
        let got = checked(&other, vec![undo.clone()], on_it.clone());
        assert!(got.plan.actions.is_empty(), "{:?}", other.nodes[at]);
        assert_eq!(got.report.dropped[0].invariant, "I7 undo_only_own");
        let planned = planner::plan(&other);
        assert!(
            !planned
                .plan
                .actions
                .iter()
                .any(|a| matches!(a, Action::Uncordon { .. }))
        );
    }
}

#[test]
fn i8_gang_whole() {
    let mut input = fleet::default_fleet();
    let mut class = fleet::class("gang", 4, fleet::size(0, 0, 8));
    let hold = Millis::minutes(20);
    class.gang = Some(Gang {
        min: 4,
        assigned: 0,
        locality: Locality::Site,
        hold,
        holding_since: None,
    });
    input.classes.push(class);
    let got = checked(&input, vec![launch(&input, "p4", 3, 3)], one_each(3));
    assert!(
        got.plan.runs.is_empty() && got.plan.actions.is_empty(),
        "three of four"
    );
    // Two and two in two regions are not one site.
    let mut runs = one_each(2);
    runs.extend((0..2).map(|node| Run {
        class: 0,
        target: Target::New {
            action: 1,
            would: false,
            node,
        },
        count: 1,
    }));
    let got = checked(
        &input,
        vec![launch(&input, "p4", 2, 2), launch(&input, "p4w", 2, 2)],
        runs,
    );
    assert!(
        got.plan.runs.is_empty() && got.plan.actions.is_empty(),
        "not together"
    );
    assert!(matches!(
        got.report.classes[0].reasons[0],
        Reason::CheckDropped { .. }
    ));
    // The planner asks for all four in one pool, or for none.
    keeps(&input, launch(&input, "p4", 4, 4), one_each(4));
    input.pools[2].max = 3;
    input.pools[3].max = 2;
    let planned = planner::plan(&input);
    assert!(planned.plan.actions.is_empty());
    assert_eq!(planned.report.classes[0].unplaced, 4);
    assert!(
        planned.report.classes[0].impossible,
        "no site could ever hold it"
    );
    // Any locality: two pools together.
    input.classes[0].gang.as_mut().unwrap().locality = Locality::Any;
    let planned = planner::plan(&input);
    assert_eq!(planned.report.classes[0].grown, 4);
}

#[test]
fn i9_always_explained() {
    let mut input = fleet::default_fleet();
    input
        .classes
        .push(fleet::class("h100", 1, fleet::size(0, 0, 16)));
    let planned = planner::plan(&input);
    assert!(planned.report.classes[0].impossible);
    assert!(
        planned.report.classes[0].reasons.len() > input.pools.len(),
        "one for each pool and the sum"
    );
    assert_eq!(planned.report.nodes.len(), input.nodes.len());
    assert_eq!(planned.report.pools.len(), input.pools.len());
    let mut bare = planned.clone();
    bare.report.nodes.clear();
    bare.report.classes[0].reasons.clear();
    bare.report.pools[0].reasons.clear();
    assert_eq!(
        planner::violations(&input, &bare).len(),
        2 + input.nodes.len()
    );
    let filled = planner::check(&input, bare);
    assert_eq!(filled.report.classes[0].reasons, vec![Reason::Unexplained]);
    assert_eq!(filled.report.nodes.len(), input.nodes.len());
}

#[test]
fn i11_bounded_retry() {
    let mut input = fleet::default_fleet();
    input
        .classes
        .push(fleet::class("jobs", 9, fleet::size(0, 0, 8)));
    let offering = input.pools[2].offerings[0].id.clone();
    let mut entry = MemoryEntry {
        offering: offering.clone(),
        kind: FailureKind::Shortage,
        failed: UnixMs(input.now.0 - 1),
        next_probe: input.now.after(Millis::minutes(1)),
        ration: 1,
        message: String::new(),
    };
    input.memory = vec![entry.clone()];
    drops(
        &input,
        launch(&input, "p4", 1, 1),
        one_each(1),
        "I11 bounded_retry",
    );
    entry.next_probe = input.now;
    input.memory = vec![entry];
    drops(
        &input,
        launch(&input, "p4", 2, 2),
        one_each(2),
        "I11 bounded_retry",
    );
    keeps(&input, launch(&input, "p4", 1, 1), one_each(1));
    // Other pools are not affected, and a probe under way is the only one.
    let asked = |p: &Planned, pool: &str| -> u32 {
        p.plan
            .actions
            .iter()
            .map(|a| match a {
                Action::Launch {
                    pool: at, count, ..
                } if at.as_str() == pool => *count,
                _ => 0,
            })
            .sum()
    };
    let planned = planner::plan(&input);
    assert_eq!((asked(&planned, "p4"), asked(&planned, "p4w")), (1, 8));
    input.launches.push(drover_core::model::LaunchInFlight {
        id: "probe".into(),
        pool: "p4".into(),
        offering,
        count: 1,
        shown: 0,
        asked: input.now,
        deadline: input.now.after(Millis::minutes(15)),
        reserved: Vec::new(),
    });
    let planned = planner::plan(&input);
    assert_eq!((asked(&planned, "p4"), asked(&planned, "p4w")), (0, 8));
    // What is there has shown capacity: it ends the probe, long before an agent joins.
    input.launches[0].shown = 1;
    let planned = planner::plan(&input);
    assert_eq!((asked(&planned, "p4"), asked(&planned, "p4w")), (1, 7));
    // So does what was asked for before it failed: it is no probe, however many are on their way.
    input.launches[0].shown = 0;
    input.launches[0].count = 3;
    input.launches[0].asked = input.memory[0].failed;
    let planned = planner::plan(&input);
    assert_eq!((asked(&planned, "p4"), asked(&planned, "p4w")), (1, 5));
    // Three launches that never joined stop the pool.
    input.memory.clear();
    input.pools[2].stops.push(Stop::NeverJoined { misses: 3 });
    drops(
        &input,
        launch(&input, "p4", 1, 1),
        one_each(1),
        "I11 bounded_retry",
    );
    assert_eq!(asked(&planner::plan(&input), "p4"), 0);
}

#[test]
fn i12_cheapest_first() {
    let mut input = fleet::default_fleet();
    input
        .classes
        .push(fleet::class("pod", 1, fleet::size(0, 0, 1)));
    let at = idle(&mut input, "g5-1", "g5", 1);
    drops(
        &input,
        launch(&input, "g5", 1, 1),
        one_each(1),
        "I12 cheapest_first",
    );
    input.nodes[at].cordon = Some(Cordon::Drover);
    drops(
        &input,
        launch(&input, "g5", 1, 1),
        one_each(1),
        "I12 cheapest_first",
    );
    // Owned and idle before own-cordoned, that before coming, that before a launch.
    let mut targets = Vec::new();
    input.classes[0].count = 4;
    idle(&mut input, "box", "desk", 1);
    input.nodes.last_mut().unwrap().used = fleet::size(0, 0, 3);
    input.launches.push(drover_core::model::LaunchInFlight {
        id: "l".into(),
        pool: "g5w".into(),
        offering: input.pools[1].offerings[0].id.clone(),
        count: 1,
        shown: 0,
        asked: input.now,
        deadline: input.now.after(Millis::minutes(15)),
        reserved: Vec::new(),
    });
    for count in 1..=4 {
        input.classes[0].count = count;
        let planned = planner::plan(&input);
        targets.push(
            planned
                .plan
                .runs
                .iter()
                .map(|r| r.target.clone())
                .collect::<Vec<_>>(),
        );
    }
    let last = &targets[3];
    assert!(
        last.contains(&Target::Node("box".into()))
            && targets[0] == vec![Target::Node("box".into())]
    );
    assert!(targets[1].contains(&Target::Node("g5-1".into())));
    assert!(targets[2].contains(&Target::Coming("l".into(), 0)));
    assert!(last.iter().any(|t| matches!(t, Target::New { .. })));
    // The cheapest offering that fits.
    input.pools[1].offerings[0].price = MicroUsd(500_000);
    let planned = planner::plan(&input);
    let asked: Vec<_> = planned
        .plan
        .actions
        .iter()
        .filter(|a| matches!(a, Action::Launch { .. }))
        .collect();
    assert!(
        matches!(asked[..], [Action::Launch { pool, .. }] if pool.as_str() == "g5w"),
        "{asked:?}"
    );
}

/// A unit without GPUs may fill a hole of a new node that others need, though a node that could leave has room; a new
/// node with GPUs is not bought for it alone.
#[test]
fn i12_a_hole_is_not_bought() {
    let mut input = fleet::default_fleet();
    let small = fleet::class("small", 1, fleet::size(1, 1, 0));
    input.classes = vec![small, fleet::class("job", 1, fleet::size(1, 1, 8))];
    idle(&mut input, "g5-1", "g5", 1);
    let alone = launch(&input, "p4", 1, 1);
    drops(&input, alone.clone(), one_each(1), "I12 cheapest_first");
    let mut both = one_each(1);
    both.push(Run {
        class: 1,
        ..both[0].clone()
    });
    keeps(&input, alone, both);
}

#[test]
fn i13_idle_needs_witnesses() {
    let mut input = fleet::default_fleet();
    let at = idle(&mut input, "g5-1", "g5", 9);
    drops(
        &input,
        drain("g5-1"),
        Vec::new(),
        "I13 idle_needs_witnesses",
    );
    input.nodes[at].busy = Busy::Unknown {
        why: "kubernetes/prod is stale".to_owned(),
    };
    drops(
        &input,
        drain("g5-1"),
        Vec::new(),
        "I13 idle_needs_witnesses",
    );
    let planned = planner::plan(&input);
    assert!(planned.plan.actions.is_empty());
    assert!(matches!(
        planned.report.nodes[at].reason,
        Reason::WitnessMissing { .. }
    ));
}

/// A class that is spread unevenly by hundreds of runs: few looks, and what has nothing to do with it goes on.
#[test]
fn many_runs_at_fault_go_in_few_rounds() {
    let mut input = fleet::default_fleet();
    for n in 0..600 {
        idle(&mut input, &format!("a-{n:03}"), "g5", 1);
    }
    idle(&mut input, "b", "g5w", 1);
    let mut spread = fleet::class("spread", 600, fleet::size(0, 0, 1));
    spread.constraints.spread.push(Spread {
        topology: "topology.kubernetes.io/zone".to_owned(),
        select: Selector::default(),
        max_skew: 3,
        min_domains: 0,
        hard: true,
    });
    let other = fleet::class("other", 1, fleet::size(0, 0, 1));
    input.classes = vec![spread, other];
    let on = |class, node: String| Run {
        class,
        target: Target::Node(node.as_str().into()),
        count: 1,
    };
    let mut runs: Vec<Run> = (0..600).map(|n| on(0, format!("a-{n:03}"))).collect();
    runs.push(on(1, "b".to_owned()));
    let got = checked(&input, Vec::new(), runs);
    let of = |class| got.plan.runs.iter().filter(move |r| r.class == class);
    assert_eq!(
        of(0).count(),
        0,
        "dropped one by one, three would be left after 597 looks"
    );
    assert_eq!(of(1).count(), 1);
    assert_eq!(got.report.classes[1].unplaced, 0);
    assert!(planner::violations(&input, &got).is_empty());
    let why = &got.report.classes[0].reasons[0];
    assert!(matches!(why, Reason::CheckDropped { invariant, .. } if invariant == "I5 mine_only"));
}

/// SC-50: 20 idle nodes, a tenth at once, each batch gone before the next cycle.
#[test]
fn sc_50_quota_not_a_wall() {
    let mut input = fleet::default_fleet();
    for n in 0..20 {
        idle(&mut input, &format!("g5-{n:02}"), "g5", 60);
    }
    let mut batches = Vec::new();
    loop {
        let planned = planner::plan(&input);
        let gone: Vec<_> = planned
            .plan
            .actions
            .iter()
            .filter_map(|a| {
                if let Action::Drain { node, .. } = a {
                    Some(node.clone())
                } else {
                    None
                }
            })
            .collect();
        if gone.is_empty() {
            break;
        }
        batches.push(gone.len());
        input.nodes.retain(|n| !gone.contains(&n.id));
    }
    assert_eq!(batches, [vec![2; 5], vec![1; 10]].concat());
}

/// Mixing is cheaper than one type: 9 GPUs are one node of 8 and one of 1, not nine of 1 and not two of 8.
#[test]
fn mixing_pools_where_that_is_cheaper() {
    let mut input = fleet::default_fleet();
    input.pools[2].offerings[0].price = MicroUsd(7_000_000);
    input
        .classes
        .push(fleet::class("pods", 9, fleet::size(0, 0, 1)));
    let planned = planner::plan(&input);
    let asked: Vec<_> = planned
        .plan
        .actions
        .iter()
        .filter_map(|a| {
            if let Action::Launch { pool, count, .. } = a {
                Some((pool.as_str(), *count))
            } else {
                None
            }
        })
        .collect();
    assert_eq!(asked, vec![("g5", 1), ("p4", 1)]);
}
