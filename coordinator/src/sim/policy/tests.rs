//! The policies for comparison, moment by moment, on a handful of jobs.

use super::*;
use crate::sim::trace::Job;
use drover_core::model::{Bytes, MicroUsd, MilliCpu, Resources};

fn kind(name: &str, price: u64, cpus: u64, gpus: u32, boot: u64) -> Offered {
    Offered {
        name: name.to_owned(),
        pool: name.to_owned(),
        price: MicroUsd(price),
        allocatable: amount(cpus, gpus),
        boot: Millis::seconds(boot),
        ..Offered::default()
    }
}

fn amount(cpus: u64, gpus: u32) -> Resources {
    Resources {
        cpu: MilliCpu(cpus * 1_000),
        memory: Bytes(cpus << 30),
        gpus,
        ..Resources::default()
    }
}

/// Starts and lengths in seconds.
fn job(id: &str, submit: u64, duration: u64, unit: Resources) -> Job {
    Job::new(
        id.to_owned(),
        Millis::seconds(submit),
        Millis::seconds(duration),
        unit,
    )
}

fn gang(id: &str, submit: u64, duration: u64, units: u32) -> Job {
    Job {
        units,
        min_units: units,
        whole_node: true,
        ..job(id, submit, duration, amount(0, 8))
    }
}

fn run(policy: &str, jobs: Vec<Job>, offered: &[Offered]) -> History {
    let trace = Trace {
        jobs,
        ..Trace::default()
    };
    let policy: Policy = policy.parse().expect("a policy");
    policy.run(&trace, offered, 7).expect("runs")
}

/// Launched, ready, ended of each node, in seconds.
fn nodes(history: &History) -> Vec<(u64, Option<u64>, Option<u64>)> {
    let seconds = |at: Millis| at.0 / 1_000;
    history
        .nodes
        .iter()
        .map(|node| {
            (
                seconds(node.launched),
                node.ready.map(seconds),
                node.ended.map(seconds),
            )
        })
        .collect()
}

fn starts(history: &History) -> Vec<Option<u64>> {
    history
        .jobs
        .iter()
        .map(|job| job.started.map(|at| at.0 / 1_000))
        .collect()
}

#[test]
fn names_are_read_and_written_alike() {
    for name in [
        "no-packing",
        "best-fit",
        "best-fit:p3.8xlarge",
        "best-fit-cpu",
        "best-fit-apart",
        "first-fit",
        "known-ends",
        "known-ends-fit:p3.8xlarge",
        "best-fit-timeout=10m",
        "best-fit-timeout=90s",
        "predecessor",
        "predecessor:no-brake",
        "cluster-autoscaler",
        "cluster-autoscaler:least-waste",
    ] {
        let policy: Policy = name.parse().expect(name);
        assert_eq!(policy.to_string(), name);
    }
    let unknown = "best".parse::<Policy>().expect_err("no such").to_string();
    assert!(unknown.contains("best-fit-timeout=10m"), "{unknown}");
    let unit = "best-fit-timeout=10"
        .parse::<Policy>()
        .expect_err("no unit");
    assert!(unit.to_string().contains("has no unit"), "{unit}");
    let type_ = "best-fit:x1".parse::<Policy>().expect("well formed");
    let offered = [kind("gpu", 1, 0, 8, 0)];
    assert!(matches!(
        type_.run(&Trace::default(), &offered, 0),
        Err(PolicyError::NoSuchType { .. })
    ));
}

#[test]
fn a_gang_holds_what_is_up_until_its_last_node_is() {
    let offered = [kind("gpu", 1_000_000, 0, 8, 300)];
    let jobs = vec![gang("a", 0, 1_000, 1), gang("b", 1_500, 1_000, 2)];
    let history = run("best-fit-timeout=10m", jobs, &offered);
    assert_eq!(starts(&history), [Some(300), Some(1_800)]);
    // The first is idle from 1300 and kept for b, which waits for a second one.
    assert_eq!(
        nodes(&history),
        [
            (0, Some(300), Some(3_400)),
            (1_500, Some(1_800), Some(3_400))
        ]
    );
    let held = &history.nodes[0].gang_held;
    assert_eq!(held, &[(Millis::seconds(1_500), Millis::seconds(1_800))]);
    assert_eq!(history.jobs[1].on, [(0, 1), (1, 1)]);
    assert!(history.jobs.iter().all(|job| job.waited_for_boot));
    let used = &history.nodes[0].used;
    let when: Vec<u64> = used.iter().map(|(at, _)| at.0 / 1_000).collect();
    assert_eq!(when, [300, 1_300, 1_800, 2_800]);
}

#[test]
fn work_without_gpus_stays_apart_only_where_it_is_told_to() {
    let offered = [
        kind("gpu", 3_000_000, 8, 1, 0),
        kind("cpu", 100_000, 2, 0, 0),
    ];
    let jobs = || {
        vec![
            job("g", 0, 100, amount(2, 1)),
            job("c", 50, 1_000, amount(2, 0)),
        ]
    };
    let mixed = run("best-fit", jobs(), &offered);
    assert_eq!(nodes(&mixed), [(0, Some(0), Some(1_050))]);
    let apart = run("best-fit-apart", jobs(), &offered);
    assert_eq!(
        nodes(&apart),
        [(0, Some(0), Some(100)), (50, Some(50), Some(1_050))]
    );
}

#[test]
fn jobs_without_run_time_and_jobs_that_nothing_holds() {
    let offered = [kind("gpu", 1_000_000, 0, 8, 60)];
    for policy in [
        "best-fit",
        "no-packing",
        "cluster-autoscaler",
        "predecessor",
    ] {
        let jobs = vec![
            job("zero", 0, 0, amount(0, 1)),
            job("large", 0, 5, amount(0, 9)),
        ];
        let history = run(policy, jobs, &offered);
        assert_eq!(history.jobs[0].started, history.jobs[0].ended, "{policy}");
        assert!(history.jobs[0].started.is_some(), "{policy}");
        assert_eq!(history.jobs[1].started, None, "{policy}");
    }
}

#[test]
fn cluster_autoscaler_scans_waits_for_gpu_pods_and_removes_after_ten_minutes() {
    let offered = [kind("gpu", 1_000_000, 0, 8, 300)];
    let jobs = vec![
        job("a", 5, 100, amount(0, 8)),
        job("b", 3_000, 100, amount(0, 1)),
    ];
    let history = run("cluster-autoscaler", jobs, &offered);
    // Pending at 5, old enough at 35, seen by the scan of 40, up at 340; empty at 440, gone at 1040, long before b.
    assert_eq!(
        nodes(&history),
        [
            (40, Some(340), Some(1_040)),
            (3_030, Some(3_330), Some(4_030))
        ]
    );
    assert_eq!(starts(&history), [Some(340), Some(3_330)]);
    // Work without GPUs is acted on after two seconds.
    let offered = [kind("cpu", 1_000_000, 4, 0, 60)];
    let history = run(
        "cluster-autoscaler",
        vec![job("c", 5, 1, amount(1, 0))],
        &offered,
    );
    assert_eq!(nodes(&history)[0].0, 10);
}

#[test]
fn cluster_autoscaler_packs_by_size_and_counts_what_comes() {
    let offered = [kind("cpu", 1_000_000, 4, 0, 60)];
    let sizes = [1, 1, 3, 3, 2, 2];
    let jobs = sizes
        .iter()
        .enumerate()
        .map(|(at, cpus)| job(&format!("j{at}"), 5, 1_000, amount(*cpus, 0)))
        .collect();
    let history = run("cluster-autoscaler", jobs, &offered);
    // 3+1, 3+1, 2+2: three nodes in one scan. The next one puts the pods on what comes in the order in which they came,
    // 1+1+2, 3, 3, and lacks a fourth; the scans after that ask for nothing.
    let asked: Vec<u64> = nodes(&history).iter().map(|node| node.0).collect();
    assert_eq!(asked, [10, 10, 10, 20]);
}

#[test]
fn cluster_autoscaler_gives_up_on_a_short_group_and_backs_off() {
    let mut short = kind("short", 1_000_000, 0, 8, 60);
    short.short = vec![(Millis::ZERO, Millis::minutes(60))];
    let history = run(
        "cluster-autoscaler",
        vec![job("a", 0, 60, amount(0, 8))],
        &[short.clone()],
    );
    // Asked at 30; failed at 930, again from 1230 on, failed at 2130, again from 2730 on: served when the hour is over.
    assert_eq!(nodes(&history)[0].0, 3_600);
    assert_eq!(history.refusals["shortage"], 3);
    // Another group has room: asked once the first has failed.
    let other = kind("other", 1_000_000, 0, 8, 60);
    let history = run(
        "cluster-autoscaler",
        vec![job("a", 0, 60, amount(0, 8))],
        &[short, other],
    );
    assert!(
        [30, 930].contains(&nodes(&history)[0].0),
        "{:?}",
        nodes(&history)
    );
}

#[test]
fn least_waste_takes_the_smaller_group() {
    let offered = [
        kind("large", 9_000_000, 64, 0, 0),
        kind("small", 1_000_000, 4, 0, 0),
        kind("middle", 2_000_000, 8, 0, 0),
    ];
    let history = run(
        "cluster-autoscaler:least-waste",
        vec![job("a", 0, 60, amount(4, 0))],
        &offered,
    );
    assert_eq!(history.nodes[0].instance_type, "small");
}

#[test]
fn the_default_scheduler_spreads() {
    let offered = [kind("cpu", 1_000_000, 4, 0, 0)];
    let mut jobs: Vec<Job> = (0..2)
        .map(|n| job(&format!("l{n}"), 5, 100, amount(3, 0)))
        .collect();
    jobs.extend((0..2).map(|n| job(&format!("s{n}"), 200, 100, amount(1, 0))));
    let history = run("cluster-autoscaler", jobs, &offered);
    // Both are empty: one each, where best fit would use one.
    let on: Vec<u32> = history.jobs[2..].iter().map(|job| job.on[0].0).collect();
    assert_ne!(on[0], on[1]);
}

#[test]
fn the_predecessor_adds_five_keeps_five_and_ends_in_two_steps() {
    let offered = [kind("p3.16xlarge", 1_000_000, 64, 8, 300)];
    let history = run(
        "predecessor",
        vec![job("a", 0, 600, amount(1, 8))],
        &offered,
    );
    // One wanted and five more, in the first loop after it came.
    assert_eq!(history.nodes.len(), 6);
    assert!(nodes(&history).iter().all(|node| node.0 == 60));
    let gone: Vec<u64> = nodes(&history).iter().filter_map(|node| node.2).collect();
    // One too many: older than 3300 s and in the second half of its hour at 60 + 3300; cordoned then, gone a loop later.
    assert_eq!(gone.first(), Some(&3_420));
    // The five kept for their type are still there when the run is over, an hour after the job.
    assert_eq!(gone.len(), 1);
    assert_eq!(history.end, Millis::seconds(360 + 600 + 3_600));
}

#[test]
fn the_predecessor_takes_types_by_name() {
    let offered = [
        kind("r7i.large", 100_000, 2, 0, 0),
        kind("c7i.large", 90_000, 2, 0, 0),
        kind("c7i.24xlarge", 4_000_000, 96, 0, 0),
    ];
    let history = run("predecessor", vec![job("a", 0, 60, amount(1, 0))], &offered);
    assert_eq!(history.nodes[0].instance_type, "c7i.24xlarge");
}

#[test]
fn a_job_that_fits_nothing_is_waited_for() {
    let offered = [kind("gpu", 1_000_000, 8, 8, 0)];
    let jobs = || {
        vec![
            job("a", 0, 60, amount(1, 8)),
            job("b", 600, 60, amount(1, 9)),
        ]
    };
    for name in [
        "best-fit",
        "no-packing",
        "cluster-autoscaler",
        "predecessor",
    ] {
        let history = run(name, jobs(), &offered);
        assert_eq!(history.jobs[1].started, None, "{name}");
        let least = Millis::seconds(600).plus(STILL);
        assert!(history.end >= least, "{name}: {:?}", history.end);
    }
}
