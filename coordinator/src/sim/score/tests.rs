//! The score of runs that are written down by hand.

use super::*;
use crate::sim::history::JobHistory;
use crate::sim::policy::Policy;
use crate::sim::trace::Job;
use drover_core::model::Resources;
use serde_json::Value;

fn gpus(count: u32) -> Resources {
    Resources {
        gpus: count,
        ..Resources::default()
    }
}

fn minutes(count: u64) -> Millis {
    Millis::minutes(count)
}

fn offered(boot: u64) -> Vec<Offered> {
    vec![Offered {
        name: "gpu8".to_owned(),
        pool: "p".to_owned(),
        price: ONE,
        allocatable: gpus(8),
        boot: minutes(boot),
        ..Offered::default()
    }]
}

fn node(launched: u64, ready: Option<u64>, ended: Option<u64>) -> NodeHistory {
    NodeHistory {
        pool: "p".to_owned(),
        instance_type: "gpu8".to_owned(),
        price: ONE,
        allocatable: gpus(8),
        launched: minutes(launched),
        ready: ready.map(minutes),
        ended: ended.map(minutes),
        ..NodeHistory::default()
    }
}

fn job(id: &str, submit: u64, duration: u64, unit: u32) -> Job {
    Job::new(
        id.to_owned(),
        minutes(submit),
        minutes(duration),
        gpus(unit),
    )
}

/// Two jobs in 240 minutes: one of 4 GPUs that waited 15 min, one of 9 GPUs that never started.
fn small() -> (Trace, History) {
    let trace = Trace {
        name: "small".to_owned(),
        jobs: vec![job("a", 0, 60, 4), job("b,\"x\"", 30, 60, 9)],
        skipped: vec![("pod failed".to_owned(), 3)],
    };
    let mut first = node(5, Some(15), Some(135));
    first.used = vec![(minutes(15), gpus(4)), (minutes(75), gpus(0))];
    first.gang_held = vec![(minutes(105), minutes(120))];
    let history = History {
        policy: "test".to_owned(),
        end: minutes(240),
        jobs: vec![
            JobHistory {
                started: Some(minutes(15)),
                ended: Some(minutes(75)),
                on: vec![(0, 1)],
                kills: 1,
                moves: 2,
                waited_for_boot: true,
            },
            JobHistory::default(),
        ],
        nodes: vec![first, node(30, None, Some(60)), node(225, Some(230), None)],
        plans: 7,
        ..History::default()
    };
    (trace, history)
}

fn equal(what: &str, found: f64, wanted: f64) {
    assert!(
        (found - wanted).abs() < 1e-9,
        "{what}: {found} is not {wanted}"
    );
}

fn scored(trace: &Trace, history: &History, offered: &[Offered]) -> Score {
    score(&Run {
        trace,
        history,
        offered,
        cost: Cost::Usd,
        placer: "planner",
        seed: 3,
    })
}

#[test]
fn each_hour_of_a_node_has_one_cause() {
    let (trace, history) = small();
    let score = scored(&trace, &history, &offered(10));
    let waste = score.waste;
    equal("boot", waste.boot, 10.0 / 60.0);
    equal("useful", waste.useful, 0.5);
    equal("fragmentation", waste.fragmentation, 0.5);
    equal("gang hold", waste.gang_hold, 15.0 / 60.0);
    equal("idle", waste.idle, 45.0 / 60.0);
    // The second never came up, the third never ran anything before the run was over.
    equal("churn", waste.churn, 45.0 / 60.0);
    let all: f64 = waste.causes().iter().map(|(_, hours)| hours).sum();
    equal("all", all + waste.useful, score.node_hours);
    equal("cost", score.cost, (130.0 + 30.0 + 15.0) / 60.0);
    assert_eq!((score.nodes, score.most_nodes), (3, 2));
}

#[test]
fn a_boot_soon_after_a_like_node_ended_is_churn() {
    let busy = |mut node: NodeHistory| {
        let from = node.ready.expect("is up");
        node.used = vec![(from, gpus(8))];
        node
    };
    let history = History {
        end: minutes(300),
        nodes: vec![
            busy(node(0, Some(10), Some(100))),
            busy(node(105, Some(115), Some(200))),
            busy(node(105, Some(115), Some(200))),
            busy(node(215, Some(225), Some(300))),
        ],
        ..History::default()
    };
    let score = scored(&Trace::default(), &history, &offered(10));
    // One end, one boot held against it; the last came 15 min after an end, more than its boot.
    equal("churn", score.waste.churn, 10.0 / 60.0);
    equal("boot", score.waste.boot, 30.0 / 60.0);
}

#[test]
fn waits_are_above_the_boot_and_unstarted_jobs_count() {
    let (mut trace, history) = small();
    let found = scored(&trace, &history, &offered(10));
    // 15 min less a boot of 10; the job that nothing can hold waited longer than any that started.
    assert_eq!(found.waits.p50, Some(300.0));
    assert_eq!(found.waits.raw_p50, Some(900.0));
    assert_eq!(
        (found.waits.p95, found.waits.raw_p95, found.waits.most),
        (None, None, None)
    );
    equal("share for a boot", found.share_waited_for_boot, 0.5);
    equal("share", found.share_waited, 1.0);
    assert_eq!(found.bounds.impossible, 1);
    assert_eq!((found.jobs_killed, found.jobs_unstarted), (1, 1));
    assert_eq!(found.moves, 2);
    trace.jobs[1].unit = gpus(8);
    trace.jobs[1].units = 3;
    trace.jobs[1].rest = Some(gpus(2));
    let found = scored(&trace, &history, &offered(10));
    let sizes: Vec<(&str, usize)> = found
        .by_gang_size
        .iter()
        .map(|size| (size.units, size.jobs))
        .collect();
    assert_eq!(sizes, [("1", 1), ("3-4", 1)]);
    assert_eq!(found.by_gang_size[1].waits.p99, None);
}

#[test]
fn who_waited_for_a_boot_and_got_room_that_another_left_has_waited() {
    let trace = Trace {
        jobs: vec![job("a", 0, 60, 8), job("b", 0, 60, 8), job("c", 90, 5, 1)],
        ..Trace::default()
    };
    let started = |at: u64, boot: bool| JobHistory {
        started: Some(minutes(at)),
        ended: Some(minutes(at + 60)),
        waited_for_boot: boot,
        ..JobHistory::default()
    };
    let history = History {
        end: minutes(200),
        jobs: vec![started(10, true), started(70, false), started(90, false)],
        ..History::default()
    };
    let found = scored(&trace, &history, &offered(10));
    equal("for a boot", found.share_waited_for_boot, 1.0 / 3.0);
    equal("at all", found.share_waited, 2.0 / 3.0);
    equal("by size", found.by_gang_size[0].share_waited, 2.0 / 3.0);
}

#[test]
fn a_run_that_left_work_undone_is_compared_with_nothing() {
    let trace = Trace {
        jobs: vec![job("a", 0, 60, 8), job("b", 0, 60, 8)],
        ..Trace::default()
    };
    let kinds = offered(10);
    let policy: Policy = "best-fit".parse().expect("a policy");
    let whole = scored(
        &trace,
        &policy.run(&trace, &kinds, 0).expect("runs"),
        &kinds,
    );
    let nothing = History {
        policy: "idler".to_owned(),
        end: minutes(24 * 60),
        jobs: vec![JobHistory::default(); 2],
        waited_for: vec!["p: stopped".to_owned()],
        ..History::default()
    };
    let none = scored(&trace, &nothing, &kinds);
    assert_eq!(
        [
            none.over_bound(),
            none.over_boot_aware(),
            none.over_no_packing(),
            none.gap_closed()
        ],
        [None; 4]
    );
    assert_eq!((none.waits.p50, none.days), (None, 1.0));
    for (one, other) in [(&whole, &none), (&none, &whole)] {
        let found = differences(one, other);
        assert!(found[0].starts_with("jobs never started: "), "{found:?}");
        let all = found.join("\n");
        assert!(!all.contains("costs") && !all.contains("lost to"), "{all}");
        assert!(
            all.contains("p50 wait above the boot: ") && all.contains("not started"),
            "{all}"
        );
    }
    let text = table(&[whole.clone(), none.clone()]);
    assert!(
        text.contains(
            "idler: 2 of 2 jobs never started; its cost is that of less work and is compared with nothing\n\
             idler waited for: p: stopped\n"
        ),
        "{text}"
    );
    assert!(!text.contains("best-fit: "), "{text}");
    // Not over is not done either.
    let mut cut = policy.run(&trace, &kinds, 0).expect("runs");
    cut.jobs[1].ended = None;
    let cut = scored(&trace, &cut, &kinds);
    assert_eq!((cut.jobs_unfinished, cut.gap_closed()), (1, None));
    assert!(differences(&whole, &cut)[0].starts_with("jobs not over: "));
}

#[test]
fn gap_closed_is_one_at_the_bound_and_zero_without_packing() {
    let trace = Trace {
        jobs: vec![job("a", 0, 60, 4), job("b", 0, 60, 4)],
        ..Trace::default()
    };
    let kinds = offered(0);
    let of = |name: &str| {
        let policy: Policy = name.parse().expect("a policy");
        let history = policy.run(&trace, &kinds, 0).expect("runs");
        scored(&trace, &history, &kinds)
    };
    let (best, alone) = (of("best-fit"), of("no-packing"));
    assert_eq!(
        (best.gap_closed(), alone.gap_closed()),
        (Some(1.0), Some(0.0))
    );
    assert_eq!(best.over_no_packing(), Some(0.5));
    let mut unpackable = best.clone();
    unpackable.bounds.no_packing = unpackable.bounds.fluid + 1e-15;
    assert_eq!(unpackable.gap_closed(), None, "there is no gap");
    let named = differences(&alone, &best);
    assert_eq!(
        named,
        [
            "best-fit costs 1.0 h less (50.0 %) than no-packing",
            "node-hours lost to fragmentation: 1.0 with no-packing, 0.0 with best-fit",
        ]
    );
    assert!(differences(&best, &best).is_empty());
}

#[test]
fn the_object_names_the_unit_and_what_is_promised() {
    let (mut trace, mut history) = small();
    trace.jobs.push(job("c", 0, 60, 4));
    history.jobs.push(JobHistory::default());
    let object = object(&scored(&trace, &history, &offered(10)));
    for key in [
        "cost_node_hours",
        "bound_node_hours",
        "bound_resource_hours_node_hours",
        "bound_boot_aware_node_hours",
        "no_packing_node_hours",
        "gap_closed",
        "wait_p50_s",
        "wait_p95_s",
        "wait_p99_s",
        "wait_by_gang_size",
        "share_waited",
        "share_waited_for_boot",
        "jobs_waited_for",
        "violations_first",
        "wait_max_s",
        "cost_over_bound",
        "useful_usd",
        "waste_usd",
        "jobs",
        "jobs_killed",
        "jobs_unstarted",
        "plans",
        "plan_seconds",
        "violations",
        "placer",
        "policy",
        "seed",
    ] {
        assert!(object.get(key).is_some(), "{key} is missing in {object}");
    }
    for cause in ["boot", "gang_hold", "fragmentation", "idle", "churn"] {
        assert!(object["waste_node_hours"][cause].is_f64(), "{cause}");
    }
    assert_eq!(object["skipped"]["pod failed"], 3);
    // What does not exist is null: no money here, and two jobs never started.
    for none in [
        "cost_usd",
        "waste_usd",
        "gap_closed",
        "wait_p95_s",
        "wait_max_s",
    ] {
        assert!(object[none].is_null(), "{none}: {object}");
    }
    let keys = |value: &Value| -> Vec<String> {
        value
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect()
    };
    let all = keys(&object);
    let mut dear = offered(10);
    dear[0].price = MicroUsd(2_000_000);
    let object = super::object(&scored(&trace, &history, &dear));
    assert!(object["cost_usd"].is_f64(), "{object}");
    assert_eq!(keys(&object), all, "the same keys whatever is counted");
    let hours = score(&Run {
        trace: &trace,
        history: &history,
        offered: &dear,
        cost: Cost::NodeHours,
        placer: "planner",
        seed: 3,
    });
    assert_eq!(hours.unit, Unit::NodeHours);
    equal("node-hours", hours.cost, hours.node_hours);
}

#[test]
fn the_jobs_file_gives_the_score_again() {
    let (trace, history) = small();
    let kinds = offered(10);
    let run = Run {
        trace: &trace,
        history: &history,
        offered: &kinds,
        cost: Cost::Usd,
        placer: "planner",
        seed: 0,
    };
    assert_eq!(
        jobs_file::csv(&run),
        "job,units,submit_s,start_s,end_s,duration_s,kills,waited_for_boot,nodes\n\
         a,1,0,900,4500,3600,1,true,0x1\n\
         \"b,\"\"x\"\"\",1,1800,,,3600,0,false,\n"
    );
    let read: Value = serde_json::from_str(&jobs_file::as_json(&run)).expect("is JSON");
    let cost: f64 = read["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .map(|node| {
            let end = node["ended_s"].as_f64().or(read["end_s"].as_f64());
            let hours = (end.unwrap_or(0.0) - node["launched_s"].as_f64().unwrap_or(0.0)) / 3_600.0;
            hours * node["usd_per_hour"].as_f64().unwrap_or(0.0)
        })
        .sum();
    equal("cost", cost, score(&run).cost);
}

#[test]
fn the_table_has_a_column_for_each() {
    let (trace, history) = small();
    let one = scored(&trace, &history, &offered(10));
    let text = table(&[one.clone(), one]);
    let line = text
        .lines()
        .find(|line| line.starts_with("cost  "))
        .unwrap_or_default();
    assert_eq!(line.matches("2.9 h").count(), 2, "{text}");
    assert!(text.contains("left out of small: 3 (pod failed)"), "{text}");
    assert_eq!(super::table::whole(1_234_567.4), "1,234,567");
    assert_eq!(super::table::whole(-1_234.0), "-1,234");
    assert_eq!(super::table::span(7_200.0), "2.0 h");
}
