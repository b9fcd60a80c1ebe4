//! The coordinator dies at each durable step and is started again: what it had begun is done exactly once.

use crate::{QUICK, SOON, fleet, rack};
use drover_tests::cloud::{Cloud, CloudGroup};
use drover_tests::coordinator::Coordinator;
use drover_tests::host::{Host, Job};
use drover_tests::wait;
use std::time::Duration;

/// Of a coordinator that dies again and again: an agent that is cut off so soon each time rests for up to 30 s.
const LIVES: Duration = Duration::from_secs(300);

/// Starts it so that it dies at this fail point.
fn doom(coordinator: &mut Coordinator, point: &str) {
    coordinator.kill();
    coordinator.spawn(&[("FAILPOINTS", &format!("{point}=panic"))]);
}

#[test]
fn a_death_at_enrolment_makes_one_node_of_one_use() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut coordinator = Coordinator::start(&dir.path().join("c"), QUICK, &rack(&["a"], ""));
    let token = coordinator.token(&["--pool", "rack"]);
    doom(&mut coordinator, "enrol.committed");
    let mut host = Host::new(dir.path(), "a", "titan-x", 4);
    host.join(&coordinator, &token);
    // Written down, and the reply is lost. The agent asks again with the same key.
    coordinator.ended(SOON);
    coordinator.run(&[]);
    coordinator.node_in("a", "ready", SOON);
    let nodes = coordinator.ask(&["nodes", "list"]);
    assert_eq!(nodes.as_array().map(Vec::len), Some(1), "{nodes}");
    let tokens = coordinator.ask(&["tokens", "list"]);
    assert_eq!(tokens[0]["uses"], 1, "{tokens}");
    assert_eq!(tokens[0]["nodes"][0], nodes[0]["id"], "{tokens}");
}

#[test]
fn a_death_while_the_ca_is_made_makes_one_ca() {
    let dir = tempfile::tempdir().expect("a folder");
    for point in ["ca.key_written", "ca.recorded"] {
        let pools = rack(&["a"], "");
        let mut coordinator = Coordinator::prepare(&dir.path().join(point), QUICK, &pools);
        coordinator.spawn(&[("FAILPOINTS", &format!("{point}=panic"))]);
        coordinator.ended(SOON);
        let state = coordinator.state_dir();
        let keys = || -> Vec<Vec<u8>> {
            let entries = std::fs::read_dir(&state).expect("the folder was made");
            let paths = entries.map(|entry| entry.expect("it can be listed").path());
            paths
                .filter(|path| {
                    path.file_name()
                        .is_some_and(|name| name.to_string_lossy().starts_with("ca.key"))
                })
                .map(|path| std::fs::read(path).expect("it can be read"))
                .collect()
        };
        let before = keys();
        assert_eq!(before.len(), 1, "the key was written first");
        coordinator.run(&[]);
        assert_eq!(keys(), before, "after a death at {point}");
        assert!(state.join("ca.key").exists());
    }
}

#[test]
fn a_death_at_each_step_of_a_persons_drain_carries_on() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut coordinator, mut hosts) = fleet(dir.path(), &["a"]);
    let host = &mut hosts[0];
    let mut job = host.job(&[0], 600);
    coordinator.ask(&[
        "nodes", "drain", "a", "--then", "return", "--reason", "dust",
    ]);
    coordinator.explained("a", &job.pid().to_string(), SOON);

    // The node says Hello, its epoch is raised and written down, and nobody is told.
    doom(&mut coordinator, "session.epoch_committed");
    coordinator.ended(SOON);
    assert!(job.runs());
    coordinator.run(&[]);
    coordinator.node_in("a", "draining", SOON);
    coordinator.explained("a", &job.pid().to_string(), SOON);

    // The drain is over, its end is written down, and the agent is not told.
    doom(&mut coordinator, "order.committed");
    job.end();
    coordinator.ended(SOON);
    coordinator.run(&[]);
    let node = wait::until("it takes work again", SOON, || {
        coordinator.node("a").filter(|n| {
            n["state"] == "ready" && n["cordoned"] == false && n["unreachable"] == false
        })
    });
    assert!(node["drain"].is_null(), "{node}");
    assert_eq!(coordinator.events("drain_started").len(), 1);
    assert_eq!(coordinator.events("uncordoned").len(), 1);
}

#[test]
fn a_death_at_revocation_keeps_the_node_out() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut coordinator, hosts) = fleet(dir.path(), &["a"]);
    doom(&mut coordinator, "revoke.committed");
    wait::until("it answers", SOON, || coordinator.try_ask(&["status"]));
    coordinator.refuses(&["nodes", "revoke", "a", "--reason", "stolen"]);
    coordinator.ended(SOON);
    coordinator.run(&[]);
    hosts[0].logged("refused this node's identity", SOON);
}

/// Nodes of the cloud that take work now, by host name.
fn ready(coordinator: &Coordinator) -> Vec<String> {
    let nodes = coordinator.try_ask(&["nodes", "list"]).unwrap_or_default();
    let nodes = nodes.as_array().cloned().unwrap_or_default();
    nodes
        .iter()
        .filter(|node| node["state"] == "ready" && node["unreachable"] == false)
        .filter_map(|node| node["name"].as_str().map(str::to_owned))
        .collect()
}

const WISH: [&str; 8] = [
    "requests",
    "create",
    "--name",
    "job",
    "--gpus",
    "2",
    "--gpus-per-unit",
    "2",
];

/// Everything that waits for a person is let happen.
fn approve_all(coordinator: &Coordinator) {
    let status = coordinator.try_ask(&["status"]).unwrap_or_default();
    for approval in status["approvals"].as_array().into_iter().flatten() {
        if let Some(id) = approval["id"].as_str() {
            coordinator.cli(&["approve", id]);
        }
    }
}

fn cloud(dir: &std::path::Path) -> (Coordinator, Cloud) {
    let mut cloud = Cloud::new(dir, vec![CloudGroup::new("west")]);
    let pools = cloud.pools("mode = \"full\"\nidle_after = \"2s\"");
    let coordinator = Coordinator::start(&dir.join("c"), QUICK, &pools);
    cloud.start(&coordinator);
    (coordinator, cloud)
}

#[test]
fn a_death_at_each_step_of_growing_and_leaving_asks_and_ends_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut coordinator, cloud) = cloud(dir.path());
    let mut jobs = Vec::new();
    for (number, point) in (1_u64..).zip(["launch.intended", "launch.asked", "launch.recorded"]) {
        doom(&mut coordinator, point);
        wait::until("it answers", SOON, || coordinator.try_ask(&["status"]));
        let name = format!("job-{number}");
        // The answer may be lost in the crash; the request is not.
        coordinator.cli(&[
            "requests",
            "create",
            "--name",
            &name,
            "--gpus",
            "2",
            "--gpus-per-unit",
            "2",
        ]);
        coordinator.ended(SOON);
        coordinator.run(&[]);
        coordinator.ask(&["requests", "wait", &name, "--timeout", "180s"]);
        assert_eq!(
            cloud.count("launched"),
            number,
            "after a death at {point}\n{}",
            coordinator.tail()
        );
        let shown = coordinator.ask(&["requests", "show", &name]);
        let instance = shown["assignments"][0]["instance_id"]
            .as_str()
            .expect("it is on an instance")
            .to_owned();
        jobs.push(Job::start(
            &cloud.instance_dir(&instance).join("jobs"),
            &[0, 1],
            600,
        ));
    }
    for number in 1..=3 {
        coordinator.ask(&["requests", "cancel", &format!("job-{number}")]);
    }
    // All have work, so nothing may leave: a death while they work is nobody's death.
    coordinator.kill();
    coordinator.run(&[]);
    assert!(jobs.iter_mut().all(Job::runs));

    for point in ["drain.committed", "leave.called"] {
        doom(&mut coordinator, point);
        jobs.pop().expect("one for each").end();
        wait::until("it dies at its point", SOON, || {
            if coordinator.has_ended() {
                return Some(());
            }
            approve_all(&coordinator);
            None
        });
        coordinator.run(&[]);
        assert!(jobs.iter_mut().all(Job::runs), "after a death at {point}");
    }
    jobs.pop().expect("the last").end();
    coordinator.until("every instance has left", SOON, || {
        approve_all(&coordinator);
        (cloud.count("running") == 0).then_some(())
    });
    coordinator.until("no node is left behind", SOON, || {
        coordinator
            .ask(&["nodes", "list"])
            .as_array()
            .is_some_and(Vec::is_empty)
            .then_some(())
    });
    let ledger = cloud.ledger();
    for (what, count) in [
        ("launched", 3),
        ("terminated", 3),
        ("killed_jobs", 0),
        ("died", 0),
    ] {
        assert_eq!(ledger[what], count, "{what}: {ledger}");
    }
}

#[test]
fn sc_16_a_coordinator_that_dies_every_few_writes_gets_there_and_does_it_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut coordinator, cloud) = cloud(dir.path());
    let mut deaths = 0;
    // Before a write is durable, and right after it is.
    coordinator.kill();
    deaths += coordinator.run_mortal(
        "store.before_commit=5*off->panic",
        LIVES,
        "it has grown",
        |it| {
            // A request whose answer was lost is made again under its name: it is one request.
            it.cli(&WISH);
            ready(it).len() == 1
        },
    );
    let instance = ready(&coordinator).pop().expect("it is ready");
    let job = Job::start(&cloud.instance_dir(&instance).join("jobs"), &[0], 600);
    coordinator.kill_if_alive();
    coordinator.run(&[]);
    coordinator.ask(&["requests", "wait", "job", "--timeout", "180s"]);
    coordinator.ask(&["requests", "cancel", "job"]);
    coordinator.kill();
    job.end();
    deaths += coordinator.run_mortal(
        "store.after_commit=6*off->panic",
        LIVES,
        "it has shrunk",
        |it| {
            approve_all(it);
            cloud.count("running") == 0
        },
    );
    coordinator.kill_if_alive();
    assert!(deaths >= 2, "it died {deaths} times only");
    coordinator.run(&[]);
    coordinator.until("no node is left behind", SOON, || {
        coordinator
            .ask(&["nodes", "list"])
            .as_array()
            .is_some_and(Vec::is_empty)
            .then_some(())
    });
    let ledger = cloud.ledger();
    for (what, count) in [
        ("launched", 1),
        ("terminated", 1),
        ("killed_jobs", 0),
        ("died", 0),
    ] {
        assert_eq!(
            ledger[what], count,
            "{what} after {deaths} deaths: {ledger}"
        );
    }
}

#[test]
fn an_agent_that_dies_at_each_state_of_a_drain_takes_no_job_along() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, mut hosts) = fleet(dir.path(), &["a"]);
    let host = &mut hosts[0];
    let job = host.job(&[1], 600);
    // Ordered while it is dead.
    host.kill();
    coordinator.ask(&["nodes", "drain", "a", "--reason", "dust"]);
    host.start();
    coordinator.explained("a", &job.pid().to_string(), SOON);
    // Dead while it waits, and the job ends meanwhile.
    host.kill();
    job.end();
    host.start();
    coordinator.node_in("a", "drained", SOON);
    // Dead while drained: it stays so, and a new job there would be seen.
    host.kill();
    host.start();
    coordinator.node_in("a", "drained", SOON);
    // Taken back while it is dead.
    host.kill();
    coordinator.ask(&["nodes", "cancel-drain", "a"]);
    host.start();
    let node = coordinator.node_in("a", "ready", Duration::from_secs(60));
    assert_eq!(node["cordoned"], false, "{node}");
}
