//! What a cloud tells an agent through its metadata service, from there to the job that is saved.

use crate::{QUICK, SOON, rack};
use drover_tests::coordinator::Coordinator;
use drover_tests::host::Host;
use drover_tests::imds::{Answer, Metadata, TOKEN_PATH};
use drover_tests::wait;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const INSTANCE: &str = "i-0123456789abcdef0";

/// In so many seconds, as AWS writes it.
fn at(seconds: i64) -> String {
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A spot instance with a checkpoint hook, whose phases land in the file that is given back.
fn spot_host(dir: &Path, coordinator: &Coordinator, metadata: &Metadata) -> (Host, PathBuf) {
    let mut host = Host::new(dir, "spot", "titan-x", 4);
    let hooks = host.dir().join("hooks.d");
    fs::create_dir_all(&hooks).expect("a folder");
    let told = host.dir().join("phases");
    let hook = hooks.join("10-checkpoint");
    let text = format!(
        "#!/bin/sh\necho \"$1: $DROVER_REASON\" >> '{}'\n",
        told.display()
    );
    fs::write(&hook, text).expect("written");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("it can be run");
    fs::set_permissions(&hooks, fs::Permissions::from_mode(0o755)).expect("closed to others");
    let token = coordinator.token(&["--pool", "rack"]);
    let extra = format!(
        "[notices]\npoll = \"200ms\"\ngrace = \"1s\"\n[drain]\nexecutors = [\"processes\", \"hooks\"]\n{}",
        metadata.of(INSTANCE)
    );
    host.configure(&coordinator.address(), &token, &extra);
    host.start();
    coordinator.node_in("spot", "ready", SOON);
    (host, told)
}

/// The coordinator knows that something runs there.
fn seen(coordinator: &Coordinator) {
    wait::until("the job is seen", SOON, || {
        let busy = coordinator.node("spot")?["busy"].as_array()?.len();
        (busy > 0).then_some(())
    });
}

fn told_phases(told: &Path) -> Vec<String> {
    let text = fs::read_to_string(told).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn sc_90_a_spot_notice_saves_the_job_and_is_told_once() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let metadata = runtime.block_on(Metadata::start("g5.12xlarge"));
    let dir = tempfile::tempdir().expect("a folder");
    let pools = rack(&["spot"], "grace = \"1s\"");
    let coordinator = Coordinator::start(&dir.path().join("c"), QUICK, &pools);
    let (host, told) = spot_host(dir.path(), &coordinator, &metadata);
    let mut job = host.job(&[0, 1], 600);
    seen(&coordinator);
    let begin = Instant::now();
    metadata.spot(INSTANCE, "terminate", &at(60));
    let started = wait::until("a drain", SOON, || {
        coordinator.events("drain_started").into_iter().next()
    });
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "well before the end"
    );
    let said = started["message"].as_str().unwrap_or_default();
    assert!(
        said.contains("force") && said.contains("spot notice"),
        "{said}"
    );
    wait::until("the job is ended", SOON, || (!job.runs()).then_some(()));
    assert!(
        begin.elapsed() < Duration::from_secs(50),
        "before the instance"
    );
    let phases = told_phases(&told);
    assert_eq!(
        &phases[..2],
        ["cordon: spot notice", "checkpoint: spot notice"],
        "saved before it was ended"
    );
    coordinator.node_in("spot", "drained", SOON);
    // The document stays, and many rounds later it is still one notice.
    let asked = metadata
        .asked(INSTANCE)
        .gets_of("meta-data/spot/instance-action");
    wait::until("more rounds", SOON, || {
        let now = metadata
            .asked(INSTANCE)
            .gets_of("meta-data/spot/instance-action");
        (now > asked + 5).then_some(())
    });
    assert_eq!(coordinator.events("notice").len(), 1);
    assert_eq!(coordinator.events("drain_started").len(), 1);
}

#[test]
fn an_agent_that_cannot_hear_its_coordinator_saves_the_job_itself() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let metadata = runtime.block_on(Metadata::start("g5.12xlarge"));
    let dir = tempfile::tempdir().expect("a folder");
    let pools = rack(&["spot"], "grace = \"1s\"");
    let mut coordinator = Coordinator::start(&dir.path().join("c"), QUICK, &pools);
    let (host, told) = spot_host(dir.path(), &coordinator, &metadata);
    let mut job = host.job(&[0], 600);
    seen(&coordinator);
    coordinator.kill();
    metadata.spot(INSTANCE, "terminate", &at(90));
    wait::until("the job is ended", SOON, || (!job.runs()).then_some(()));
    host.logged("drains without an order", SOON);
    let phases = told_phases(&told);
    assert_eq!(
        &phases[..2],
        ["cordon: spot notice", "checkpoint: spot notice"]
    );
    // The coordinator is back: it is told, orders the same, and no hook runs twice.
    coordinator.run(&[]);
    coordinator.node_in("spot", "drained", SOON);
    assert_eq!(coordinator.events("notice").len(), 1);
    let checkpoints = told_phases(&told)
        .iter()
        .filter(|phase| phase.starts_with("checkpoint"))
        .count();
    assert_eq!(checkpoints, 1);
}

#[test]
fn ag_20_a_metadata_service_that_refuses_tokens_is_a_condition_and_nothing_else() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let metadata = runtime.block_on(Metadata::start("g5.12xlarge"));
    metadata.say(INSTANCE, TOKEN_PATH, [Answer::status(403)]);
    let dir = tempfile::tempdir().expect("a folder");
    let pools = rack(&["spot"], "");
    let coordinator = Coordinator::start(&dir.path().join("c"), QUICK, &pools);
    let (host, _) = spot_host(dir.path(), &coordinator, &metadata);
    wait::until("the condition", SOON, || {
        let shown = coordinator.ask(&["nodes", "show", "spot"]);
        shown
            .to_string()
            .contains("metadata_disabled")
            .then_some(())
    });
    coordinator.node_in("spot", "ready", SOON);
    drop(host);
}
