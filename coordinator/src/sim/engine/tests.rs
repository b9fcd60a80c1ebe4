//! Whole simulations of a few jobs: gangs, boots, shortages, kills, both placers, determinism.

use super::*;
use crate::sim::config;
use crate::sim::trace::Job;
use drover_core::model::{MilliCpu, Millis, Resources};

/// One pool per region, nodes of 8 GPUs.
pub(super) fn setup(simulate: &str, pools: &[&str], offering: &str) -> SimConfig {
    let mut text = format!(
        "[simulate]\n{simulate}\n[control]\nbreaker_fleet_percent = 50\nbreaker_pool = 100\ngang_hold = \"10m\"\n"
    );
    for name in pools {
        text.push_str(&format!(
            "[[pool]]\nname = \"{name}\"\nkind = \"sim\"\nsite = \"{name}\"\ngroup = \"{name}\"\nmode = \"full\"\nmax = 50\n\
             idle_after = \"0s\"\nremoval_quota = \"100%\"\n"
        ));
    }
    for name in pools {
        let first = *name == pools[0];
        text.push_str(&format!(
            "[[group]]\nname = \"{name}\"\nregion = \"{name}\"\nmax = 50\n[[group.offering]]\ninstance_type = \"p3\"\n\
             zone = \"{name}-a\"\nprice_micro_usd_per_hour = {}\ngpus = 8\ngpu_model = \"v100\"\ncpus = 64\n\
             memory_gib = 488\n{}",
            if first { 1_000_000 } else { 2_000_000 },
            if first { offering } else { "boot_ms = 0\n" },
        ));
    }
    config::parse(&text).expect("sound")
}

fn gpus(count: u32) -> Resources {
    Resources {
        gpus: count,
        ..Resources::default()
    }
}

/// Seconds.
pub(super) fn job(id: &str, submit: u64, duration: u64, unit: u32) -> Job {
    Job::new(
        id.to_owned(),
        Millis::seconds(submit),
        Millis::seconds(duration),
        gpus(unit),
    )
}

fn gang(units: u32, min: u32, job: Job) -> Job {
    Job {
        units,
        min_units: min,
        ..job
    }
}

pub(super) fn trace(jobs: &[Job]) -> Trace {
    let mut trace = Trace {
        name: "t".into(),
        jobs: jobs.to_vec(),
        skipped: Vec::new(),
    };
    trace.sort();
    trace
}

fn played(jobs: &[Job], setup: &SimConfig) -> History {
    let history = run(&trace(jobs), setup, 1).expect("it plays");
    assert_eq!(history.violations, []);
    history
}

fn span(from: Option<Millis>, until: Option<Millis>) -> (u64, u64) {
    let seconds = |at: Option<Millis>| at.expect("it happened").0 / 1_000;
    (seconds(from), seconds(until))
}

#[test]
fn without_boot_a_job_starts_at_once_and_its_node_ends_with_it() {
    let setup = setup("", &["a"], "boot_ms = 0\n");
    let jobs = [
        job("one", 0, 600, 8),
        job("two", 300, 600, 4),
        job("three", 400, 100, 4),
    ];
    let history = played(&jobs, &setup);
    let spans: Vec<_> = history
        .jobs
        .iter()
        .map(|job| span(job.started, job.ended))
        .collect();
    assert_eq!(spans, [(0, 600), (300, 900), (400, 500)]);
    let nodes: Vec<_> = history
        .nodes
        .iter()
        .map(|n| span(Some(n.launched), n.ended))
        .collect();
    assert_eq!(nodes, [(0, 600), (300, 900)], "the third job shares a node");
    assert_eq!(history.end, Millis::seconds(900));
    let used: Vec<_> = history.nodes[1]
        .used
        .iter()
        .map(|(at, used)| (at.0 / 1_000, used.gpus))
        .collect();
    assert_eq!(used, [(300, 4), (400, 8), (500, 4), (900, 0)]);
    assert!(history.plans > 0 && history.jobs.iter().all(|job| !job.waited_for_boot));
}

#[test]
fn with_boot_a_job_waits_and_an_idle_node_serves_the_next_at_once() {
    let mut setup = setup("", &["a"], "boot_ms = 300000\n");
    let mut config = (*setup.config).clone();
    config.pools[0].idle_after = Millis::minutes(10);
    setup.config = Arc::new(config);
    let jobs = [
        job("one", 0, 600, 8),
        job("two", 1_000, 60, 8),
        job("late", 3_600, 60, 8),
    ];
    let history = played(&jobs, &setup);
    let spans: Vec<_> = history
        .jobs
        .iter()
        .map(|job| span(job.started, job.ended))
        .collect();
    assert_eq!(spans, [(300, 900), (1_000, 1_060), (3_900, 3_960)]);
    let waited: Vec<bool> = history.jobs.iter().map(|job| job.waited_for_boot).collect();
    assert_eq!(waited, [true, false, true]);
    let nodes: Vec<_> = history
        .nodes
        .iter()
        .map(|n| span(Some(n.launched), n.ended))
        .collect();
    assert_eq!(
        nodes,
        [(0, 1_660), (3_600, 4_560)],
        "idle for ten minutes, to the second"
    );
    assert_eq!(history.nodes[0].ready, Some(Millis::seconds(300)));
}

#[test]
fn i8_gang_whole_in_every_placement() {
    for placer in ["planner", "kube-default"] {
        let simulate = format!("placer = \"{placer}\"");
        let setup = setup(
            &simulate,
            &["a"],
            "boot_ms = 60000\nboot_jitter_ms = 240000\n",
        );
        let whole = Job {
            whole_node: true,
            rest: Some(gpus(4)),
            ..gang(2, 2, job("gang", 0, 600, 8))
        };
        let jobs = [whole, job("small", 0, 3_000, 4)];
        let history = played(&jobs, &setup);
        let gang = &history.jobs[0];
        let units: u32 = gang.on.iter().map(|(_, units)| units).sum();
        assert_eq!(units, 3, "{placer}: two whole nodes and the rest");
        let last = gang
            .on
            .iter()
            .filter_map(|(node, _)| history.nodes[*node as usize].ready)
            .max();
        assert_eq!(
            gang.started, last,
            "{placer}: it starts when its last node is up"
        );
        assert!(gang.waited_for_boot);
        for (at, node) in history.nodes.iter().enumerate() {
            let whole = gang.on.iter().any(|(on, _)| *on as usize == at) && node.used.len() == 2;
            let waited = (whole && node.ready < gang.started && placer == "planner")
                .then(|| vec![(node.ready.expect("up"), gang.started.expect("started"))]);
            if let Some(waited) = waited {
                assert_eq!(
                    node.gang_held, waited,
                    "up, and held for the rest of its gang"
                );
            }
        }
    }
}

#[test]
fn an_elastic_gang_starts_with_what_there_is_and_runs_longer() {
    let setup = setup("", &["a"], "boot_ms = 0\ncapacity = 3\n");
    let history = played(&[gang(4, 2, job("elastic", 0, 600, 8))], &setup);
    let job = &history.jobs[0];
    assert_eq!(
        span(job.started, job.ended),
        (0, 800),
        "three of four units"
    );
    assert_eq!(job.on.len(), 3);
}

#[test]
fn a_shortage_fails_over_and_is_counted() {
    let setup = setup("", &["a", "b"], "boot_ms = 0\ncapacity = 1\n");
    let jobs = [
        job("one", 0, 600, 8),
        job("two", 0, 600, 8),
        job("three", 60, 60, 8),
    ];
    let history = played(&jobs, &setup);
    assert!(history.jobs.iter().all(|job| job.started.is_some()));
    assert_eq!(history.jobs[0].started, Some(Millis::ZERO));
    let mut pools: Vec<&str> = history
        .nodes
        .iter()
        .map(|node| node.pool.as_str())
        .collect();
    pools.sort_unstable();
    assert_eq!(
        pools,
        ["a", "b", "b"],
        "the cheaper region first, then the other"
    );
    assert!(history.refusals["shortage"] > 0);
}

#[test]
fn a_shortage_that_ends_is_probed_until_it_does() {
    let offering = "boot_ms = 0\n[[group.offering.shortage]]\nfrom_ms = 0\nuntil_ms = 600000\n";
    let setup = setup("", &["a"], offering);
    let history = played(&[job("one", 0, 600, 8)], &setup);
    let started = history.jobs[0].started.expect("at last").0;
    // Pauses of 1, 2, 4, 8 min, each at most a tenth longer.
    assert!((600_000..=1_000_000).contains(&started), "{started}");
    assert!(
        (4..=5).contains(&history.refusals["shortage"]),
        "{:?}",
        history.refusals
    );
}

#[test]
fn a_killed_job_goes_on_from_its_last_checkpoint() {
    let setup = setup("", &["a"], "boot_ms = 0\n");
    let safe = Job {
        checkpoint: Some(Millis::minutes(4)),
        ..job("safe", 0, 3_600, 8)
    };
    let trace = trace(&[safe, job("unsafe", 1, 3_600, 8)]);
    let mut stage = Stage::new(&trace, &setup, 1);
    let ask = crate::world::Ask {
        group: "a".into(),
        instance_type: "p3".into(),
        zone: "a-a".into(),
        market: crate::world::MarketSpec::OnDemand,
        count: 2,
        token: "t".into(),
    };
    stage.launch(&"a".into(), &ask).expect("granted");
    stage.now = START.after(Millis::seconds(10));
    stage.advance();
    let place = |node| crate::sim::stage::jobs::Place {
        node,
        units: 1,
        rest: false,
    };
    stage.start_job(0, &[place(0)]);
    stage.start_job(1, &[place(1)]);
    stage.now = START.after(Millis::seconds(10 + 1_000));
    assert_eq!(stage.end_node(0, "gone"), [0]);
    assert_eq!(stage.end_node(1, "gone"), [1]);
    let safe: Vec<u64> = stage
        .jobs
        .standing
        .iter()
        .map(|job| job.safe.0 / 1_000)
        .collect();
    assert_eq!(safe, [960, 0], "of 1,000 s, by checkpoints of 240 s");
    assert_eq!(stage.jobs.pending(), 2);
    let kills: Vec<u32> = stage.history.jobs.iter().map(|job| job.kills).collect();
    assert_eq!(kills, [1, 1]);
    assert_eq!(stage.history.notes.len(), 2);
}

#[test]
fn the_default_scheduler_spreads_and_packs_when_told() {
    let on = |packing: bool| {
        let simulate = format!("placer = \"kube-default\"\ngpu_bin_packing = {packing}");
        let setup = setup(&simulate, &["a"], "boot_ms = 0\n");
        let small = |id: &str| Job {
            unit: Resources {
                cpu: MilliCpu(8_000),
                gpus: 2,
                ..Resources::default()
            },
            ..job(id, 20, 100, 2)
        };
        // Two nodes: one with less CPU free, one with fewer GPUs in use; then a small job comes.
        let full = Job {
            unit: Resources {
                cpu: MilliCpu(40_000),
                gpus: 4,
                ..Resources::default()
            },
            ..job("half", 0, 1_000, 4)
        };
        let other = Job {
            unit: Resources {
                cpu: MilliCpu(30_000),
                gpus: 3,
                ..Resources::default()
            },
            ..job("other", 0, 1_000, 3)
        };
        let history = played(&[full, other, small("x")], &setup);
        let node = |at: usize| history.jobs[at].on[0].0;
        (node(0), node(1), node(2))
    };
    let (half, other, x) = on(false);
    assert_ne!(half, other);
    assert_eq!(x, other, "the node with more CPU left");
    let (half, _, x) = on(true);
    assert_eq!(x, half, "four of eight GPUs in use, not three");
}

#[test]
fn i4_ask_once_and_the_same_run_for_a_seed() {
    let wishes = crate::sim::trace::generate::Wishes {
        seed: 3,
        jobs: 150,
        span: Millis::minutes(24 * 60),
        largest_gang: 6,
        typical: Millis::minutes(10),
        ..crate::sim::trace::generate::Wishes::default()
    };
    let trace = crate::sim::trace::generate::generate(&wishes);
    let setup = setup(
        "",
        &["a", "b"],
        "boot_ms = 60000\nboot_jitter_ms = 60000\ncapacity = 10\n",
    );
    let play = |seed| {
        let mut history = run(&trace, &setup, seed).expect("it plays");
        history.plan_seconds = 0.0;
        history
    };
    let first = play(7);
    assert_eq!(first.violations, []);
    assert!(
        first
            .jobs
            .iter()
            .all(|job| job.ended.is_some() && job.kills == 0)
    );
    assert_eq!(first, play(7));
    assert_ne!(
        first.nodes,
        play(8).nodes,
        "another seed boots at other times"
    );
}

#[test]
fn jobs_that_fit_nothing_are_left_out_and_a_run_ends_all_the_same() {
    let setup = setup("", &["a"], "boot_ms = 0\n");
    let mut trace = trace(&[job("large", 0, 60, 9), job("small", 10, 60, 1)]);
    let history = run(&trace, &setup, 1).expect("it plays");
    assert_eq!(history.jobs[0].started, None);
    assert!(history.jobs[1].ended.is_some());
    leave_out_unfit(&mut trace, &setup);
    assert_eq!(trace.jobs.len(), 1);
    assert_eq!(trace.skipped, [("fits no offering".to_owned(), 1)]);
}

#[test]
fn i14_bounded_destruction_waits_for_a_person_who_never_comes() {
    let setup = setup(
        "approvals = \"never\"\nend = \"2h\"",
        &["a"],
        "boot_ms = 0\n",
    );
    let jobs: Vec<Job> = (0..4).map(|n| job(&format!("j{n}"), 0, 600, 8)).collect();
    let history = played(&jobs, &setup);
    let ends: Vec<u64> = history
        .nodes
        .iter()
        .filter_map(|n| n.ended)
        .map(|at| at.0 / 1_000)
        .collect();
    // Half of the fleet within an hour, then the rest in the next ones.
    assert_eq!(ends.iter().filter(|at| **at == 600).count(), 2, "{ends:?}");
    assert!(ends.len() > 2, "{ends:?}");
    assert!(history.end <= Millis::minutes(120));
}

#[test]
fn sc_20_movable_jobs_move_to_fewer_nodes_and_lose_nothing() {
    let mut setup = setup("", &["a"], "boot_ms = 0\n");
    let mut config = (*setup.config).clone();
    config.control.consolidate = true;
    setup.config = Arc::new(config);
    // The first hour fills two nodes; then two of 2 and 4 GPUs are left, each on its own node.
    let jobs = |movable: bool| {
        let left = |id: &str, gpus: u32| Job {
            movable,
            ..job(id, 0, 36_000, gpus)
        };
        [
            job("a-short", 0, 3_600, 6),
            left("b-long", 2),
            left("c-long", 4),
        ]
    };
    let ended = |history: &History| {
        let ends = history
            .jobs
            .iter()
            .map(|job| job.ended.map(|at| at.0 / 1_000));
        ends.collect::<Vec<_>>()
    };
    let stays = played(&jobs(false), &setup);
    assert_eq!(ended(&stays), [Some(3_600), Some(36_000), Some(36_000)]);
    assert!(stays.jobs.iter().all(|job| job.moves == 0));
    let moves = played(&jobs(true), &setup);
    assert_eq!(ended(&moves), ended(&stays), "no work was lost");
    let moved: u32 = moves.jobs.iter().map(|job| job.moves).sum();
    let killed: u32 = moves.jobs.iter().map(|job| job.kills).sum();
    assert_eq!((moved, killed), (1, 0));
    let lives = |history: &History| {
        let ends = history
            .nodes
            .iter()
            .map(|node| node.ended.map(|at| at.0 / 1_000));
        let mut ends: Vec<_> = ends.collect();
        ends.sort();
        ends
    };
    assert_eq!(lives(&stays), [Some(36_000), Some(36_000)]);
    assert_eq!(lives(&moves), [Some(3_600), Some(36_000)]);
}

#[test]
fn i1_to_make_a_job_move_that_never_said_so_is_a_violation() {
    let setup = setup("", &["a"], "boot_ms = 0\n");
    let mut stage = Stage::new(&trace(&[job("one", 0, 600, 8)]), &setup, 1);
    stage.advance();
    stage.start_job(0, &[]);
    stage.move_job(0);
    assert_eq!(stage.history.violations.len(), 1);
    assert_eq!(
        (stage.history.jobs[0].moves, stage.history.jobs[0].kills),
        (0, 1)
    );
}

#[test]
fn jobs_that_never_start_wait_to_the_end_and_the_run_says_for_what() {
    let mut setup = setup("", &["a"], "boot_ms = 0\n");
    let mut config = (*setup.config).clone();
    config.pools[0].mode = drover_core::model::Mode::Observe;
    setup.config = Arc::new(config);
    let last = 7_200;
    let history = played(&[job("one", 0, 60, 8), job("two", last, 60, 1)], &setup);
    assert!(history.jobs.iter().all(|job| job.started.is_none()));
    assert!(
        history.end >= Millis::seconds(last).plus(STILL),
        "{:?} is not a day after the last submission",
        history.end
    );
    let said = history.waited_for.join("\n");
    assert!(said.contains("drover pools mode a grow"), "{said}");
    // A run that did everything ends with it, and waits for nothing.
    let whole = played(
        &[job("one", 0, 60, 8)],
        &super::tests::setup("", &["a"], "boot_ms = 0\n"),
    );
    assert_eq!(
        (whole.end, whole.waited_for.len()),
        (Millis::seconds(60), 0)
    );
}

/// A coordinator that starts again must not ask with client tokens of the one before: the cloud would answer with the
/// instances of then, none would join, and the pool would be stopped for it.
#[test]
fn a_coordinator_that_starts_again_asks_for_new_instances() {
    let fault = "[[simulate.fault]]\nkind = \"second-coordinator\"\nat = \"2h\"\n";
    let setup = setup(fault, &["a"], "boot_ms = 60000\n");
    let jobs: Vec<Job> = (0..10)
        .map(|n| job(&format!("j{n}"), 1_800 * n, 600, 8))
        .collect();
    let history = played(&jobs, &setup);
    let waits: Vec<Option<u64>> = history
        .jobs
        .iter()
        .zip(&jobs)
        .map(|(found, job)| Some(found.started?.0 - job.submit.0))
        .collect();
    assert_eq!(
        waits,
        vec![Some(60_000); 10],
        "each boots a node of its own"
    );
}
