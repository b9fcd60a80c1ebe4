//! Coordinator and agents as processes: enrol, report, drain, crash, come back.

use drover_tests::coordinator::Coordinator;
use drover_tests::host::Host;
use drover_tests::wait;
use std::time::Duration;

const QUICK: &str = "interval = \"1s\"\nsettle = \"1s\"\nsilence = \"6s\"\nreport_interval = \"1s\"\nfull_interval = \"5s\"";
const RACK: &str = "[[pool]]\nname = \"rack\"\nkind = \"static\"\nsite = \"office\"\nmode = \"full\"\n\
                    hosts = [\"titan-01\", \"titan-02\"]\ngpus = 4\ngpu_model = \"titan-x\"\ncpus = 12\nmemory = \"64GiB\"\n";
const SOON: Duration = Duration::from_secs(60);

fn fleet(dir: &std::path::Path) -> (Coordinator, Host) {
    let coordinator = Coordinator::start(&dir.join("c"), QUICK, RACK);
    let token = coordinator.token(&["--pool", "rack"]);
    let mut host = Host::new(dir, "titan-01", "titan-x", 4);
    host.join(&coordinator, &token);
    coordinator.node_in("titan-01", "ready", SOON);
    (coordinator, host)
}

/// Explains a subject until a line holds `text`.
fn explained(coordinator: &Coordinator, subject: &str, text: &str) {
    wait::until(&format!("explain {subject} says {text:?}"), SOON, || {
        coordinator
            .ask(&["explain", subject])
            .to_string()
            .contains(text)
            .then_some(())
    });
}

#[test]
fn a_host_joins_and_is_seen_as_it_is() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, host) = fleet(dir.path());
    let node = wait::until("its first report", SOON, || {
        coordinator
            .node(host.name())
            .filter(|n| n["telemetry"]["cpu_permille"].is_u64() || n["cpu_percent"].is_number())
    });
    assert_eq!(node["pool"], "rack");
    assert_eq!(node["gpus"], 4);
    assert!(
        node["gpu_model"]
            .as_str()
            .is_some_and(|m| m.to_lowercase().contains("titan")),
        "{node}"
    );
    let shown = coordinator.ask(&["nodes", "show", "titan-01"]);
    let cpus = std::thread::available_parallelism()
        .expect("it has CPUs")
        .get();
    assert_eq!(shown["facts"]["cpus"], cpus, "{shown}");
}

#[test]
fn a_drain_waits_for_the_process_that_holds_a_gpu_and_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, host) = fleet(dir.path());
    let mut job = host.job(&[0, 1], 600);
    coordinator.ask(&["nodes", "drain", "titan-01", "--reason", "dust"]);
    explained(&coordinator, "titan-01", &job.pid().to_string());
    assert_eq!(
        coordinator.node("titan-01").expect("it is there")["state"],
        "draining"
    );
    assert!(
        job.runs(),
        "a drain with policy wait must not touch the job"
    );
    job.end();
    coordinator.node_in("titan-01", "drained", SOON);
    // The state before it is restored when it is taken back.
    coordinator.ask(&["nodes", "uncordon", "titan-01"]);
    coordinator.node_in("titan-01", "ready", SOON);
}

#[test]
fn either_side_may_die_in_the_middle_of_a_drain() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut coordinator, mut host) = fleet(dir.path());
    let mut job = host.job(&[2], 600);
    coordinator.ask(&["nodes", "drain", "titan-01", "--reason", "dust"]);
    explained(&coordinator, "titan-01", &job.pid().to_string());
    coordinator.kill();
    assert!(job.runs());
    coordinator.run(&[]);
    coordinator.node_in("titan-01", "draining", SOON);
    host.kill();
    assert!(job.runs(), "the agent's death is not the job's");
    host.start();
    explained(&coordinator, "titan-01", &job.pid().to_string());
    host.kill();
    job.end();
    host.start();
    coordinator.node_in("titan-01", "drained", SOON);
}

#[test]
fn evict_ends_the_job_with_grace_and_a_cancelled_drain_restores() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, host) = fleet(dir.path());
    let mut job = host.job(&[0], 600);
    coordinator.ask(&["nodes", "drain", "titan-01", "--reason", "first"]);
    explained(&coordinator, "titan-01", &job.pid().to_string());
    coordinator.ask(&["nodes", "cancel-drain", "titan-01"]);
    coordinator.node_in("titan-01", "ready", SOON);
    assert!(job.runs());
    coordinator.ask(&[
        "nodes", "drain", "titan-01", "--policy", "evict", "--grace", "2s", "--reason", "second",
    ]);
    wait::until("the job is ended", SOON, || (!job.runs()).then_some(()));
    coordinator.node_in("titan-01", "drained", SOON);
}

#[test]
fn a_persons_cordon_outlives_drains_and_restarts() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut coordinator, _host) = fleet(dir.path());
    coordinator.ask(&["nodes", "cordon", "titan-01", "--reason", "fan"]);
    wait::until("it is cordoned", SOON, || {
        (coordinator.node("titan-01")?["cordoned"] == true).then_some(())
    });
    coordinator.ask(&["nodes", "drain", "titan-01", "--reason", "dust"]);
    coordinator.node_in("titan-01", "drained", SOON);
    coordinator.ask(&["nodes", "cancel-drain", "titan-01"]);
    coordinator.kill();
    coordinator.run(&[]);
    let node = wait::until("it is back", SOON, || {
        coordinator
            .node("titan-01")
            .filter(|n| n["unreachable"] == false)
    });
    assert_eq!(node["cordoned"], true, "{node}");
    assert!(
        node["cordon_reason"]
            .as_str()
            .is_some_and(|r| r.contains("fan")),
        "{node}"
    );
}

#[test]
fn a_silent_agent_is_unreachable_and_its_node_untouched() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, mut host) = fleet(dir.path());
    let mut job = host.job(&[0], 600);
    host.kill();
    wait::until("it is unreachable", SOON, || {
        (coordinator.node("titan-01")?["unreachable"] == true).then_some(())
    });
    explained(&coordinator, "titan-01", "silent");
    assert!(job.runs());
    host.start();
    coordinator.node_in("titan-01", "ready", SOON);
}

#[test]
fn tokens_are_bound_to_uses_pool_host_and_time() {
    let dir = tempfile::tempdir().expect("a folder");
    let coordinator = Coordinator::start(&dir.path().join("c"), QUICK, RACK);
    let token = coordinator.token(&["--pool", "rack"]);
    let mut first = Host::new(dir.path(), "titan-01", "titan-x", 4);
    first.join(&coordinator, &token);
    coordinator.node_in("titan-01", "ready", SOON);
    // A second key may not use it.
    let mut second = Host::new(dir.path(), "titan-02", "titan-x", 4);
    second.join(&coordinator, &token);
    wait::until("the second host is told why", SOON, || {
        second.log().contains("join_token").then_some(())
    });
    assert!(
        coordinator
            .node("titan-02")
            .is_none_or(|n| n["state"] == "off" || n["unreachable"] == true)
    );
    // A revoked one neither.
    let revoked = coordinator.ask(&["tokens", "create", "--pool", "rack"]);
    coordinator.ask(&[
        "tokens",
        "revoke",
        revoked["id"]
            .as_str()
            .or(revoked["token"]["id"].as_str())
            .expect("an id"),
    ]);
    let listed = coordinator.ask(&["tokens", "list"]);
    assert!(
        listed
            .as_array()
            .expect("a list")
            .iter()
            .any(|t| t["revoked"] == true),
        "{listed}"
    );
    assert!(
        coordinator
            .refuses(&["tokens", "create", "--pool", "attic"])
            .contains("attic")
    );
}

#[test]
fn a_request_is_assigned_a_host_holds_it_and_gives_it_back() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, _host) = fleet(dir.path());
    coordinator.ask(&[
        "requests",
        "create",
        "--name",
        "job-7",
        "--gpus",
        "3",
        "--gpu-model",
        "titan-x",
        "--for",
        "8h",
    ]);
    coordinator.ask(&["requests", "wait", "job-7", "--timeout", "180s"]);
    let request = coordinator.ask(&["requests", "show", "job-7"]);
    assert_eq!(request["units_ready"], 3);
    assert_eq!(request["assignments"][0]["node_name"], "titan-01");
    // Only one GPU is left there, and nothing else can grow: explained, not silent.
    coordinator.ask(&[
        "requests", "create", "--name", "job-8", "--gpus", "2", "--gang",
    ]);
    explained(&coordinator, "job-8", "2");
    let waits = coordinator.ask(&["requests", "show", "job-8"]);
    assert_eq!(waits["state"], "pending", "{waits}");
    assert!(!waits["reasons"].as_array().expect("reasons").is_empty());
    coordinator.ask(&["requests", "cancel", "job-7"]);
    coordinator.ask(&["requests", "wait", "job-8", "--timeout", "180s"]);
}

#[test]
fn a_request_that_no_pool_can_ever_serve_is_called_impossible() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, _host) = fleet(dir.path());
    coordinator.ask(&[
        "requests",
        "create",
        "--name",
        "dream",
        "--gpus",
        "16",
        "--gpus-per-unit",
        "16",
    ]);
    let request = wait::until("it is called impossible", SOON, || {
        let request = coordinator.ask(&["requests", "show", "dream"]);
        (request["state"] == "impossible").then_some(request)
    });
    assert!(
        !request["reasons"].as_array().expect("reasons").is_empty(),
        "{request}"
    );
    let waited = coordinator.cli(&["requests", "wait", "dream", "--timeout", "180s"]);
    assert_eq!(waited.status.code(), Some(1));
}

#[test]
fn a_bad_config_push_leaves_the_last_good_one_running() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, _host) = fleet(dir.path());
    coordinator.configure(
        QUICK,
        "[[pool]]\nname = \"rack\"\nkind = \"static\"\nhosst = []\n",
    );
    coordinator.hang_up();
    let alarm = wait::until("the push is refused", SOON, || {
        let status = coordinator.ask(&["status"]).to_string();
        status.contains("config_refused").then_some(status)
    });
    assert!(alarm.contains("hosst"), "the alarm names the key: {alarm}");
    assert_eq!(
        coordinator.node("titan-01").expect("it is there")["state"],
        "ready"
    );
    let wider = RACK.replace("\"titan-02\"]", "\"titan-02\", \"titan-03\"]");
    coordinator.configure(QUICK, &wider);
    coordinator.hang_up();
    wait::until("the new host is known", SOON, || {
        coordinator.node("titan-03")
    });
    assert!(
        !coordinator
            .ask(&["status"])
            .to_string()
            .contains("config_refused")
    );
    assert_eq!(
        coordinator.node("titan-01").expect("it is there")["state"],
        "ready"
    );
}
