//! An agent that cannot hear its coordinator: what goes on, what must not.

use crate::{QUICK, SOON, rack};
use drover_tests::coordinator::Coordinator;
use drover_tests::host::Host;
use drover_tests::wait;
use drover_tests::wire::Wire;
use std::path::Path;

/// A host that hears its coordinator over a wire.
fn wired(dir: &Path) -> (Coordinator, Wire, Host) {
    let coordinator = Coordinator::start(&dir.join("c"), QUICK, &rack(&["a"], ""));
    let wire = Wire::to(coordinator.port());
    let token = coordinator.token(&["--pool", "rack"]);
    let mut host = Host::new(dir, "a", "titan-x", 4);
    host.configure(&wire.address(), &token, "");
    host.start();
    coordinator.node_in("a", "ready", SOON);
    (coordinator, wire, host)
}

fn unreachable(coordinator: &Coordinator) {
    wait::until("the node is unreachable", SOON, || {
        (coordinator.node("a")?["unreachable"] == true).then_some(())
    });
}

#[test]
fn an_eviction_on_disk_does_not_fire_during_a_partition_and_is_taken_back_after_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, wire, mut host) = wired(dir.path());
    // Nothing to evict yet: the order is carried out and stays on disk.
    coordinator.ask(&["nodes", "drain", "a", "--policy", "evict", "--grace", "1s"]);
    coordinator.node_in("a", "drained", SOON);
    wire.cut();
    host.kill();
    let mut job = host.job(&[0], 600);
    host.start();
    // It knows its order, sees the job, hears nobody.
    let sessions = |host: &Host| {
        host.log()
            .matches("no session with the coordinator")
            .count()
    };
    let before = sessions(&host);
    wait::until("it tried to be heard again and again", SOON, || {
        (sessions(&host) >= before + 4).then_some(())
    });
    unreachable(&coordinator);
    assert!(
        job.runs(),
        "nothing is ended without fresh word\n{}",
        host.log()
    );
    // Taken back while nobody hears it.
    coordinator.ask(&["nodes", "cancel-drain", "a"]);
    wire.mend();
    let node = coordinator.node_in("a", "ready", SOON);
    assert_eq!(node["cordoned"], false, "{node}");
    assert!(job.runs(), "a drain that was taken back ends nobody");
    // Word that is fresh, and wanted, does.
    coordinator.ask(&["nodes", "drain", "a", "--policy", "evict", "--grace", "1s"]);
    wait::until("the job is ended", SOON, || (!job.runs()).then_some(()));
}

#[test]
fn a_force_ordered_during_a_partition_ends_nothing_until_it_is_heard() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, wire, host) = wired(dir.path());
    let mut job = host.job(&[0], 600);
    // Nothing is closed and nothing arrives.
    wire.stall();
    unreachable(&coordinator);
    coordinator.ask(&[
        "nodes",
        "drain",
        "a",
        "--policy",
        "force",
        "--deadline",
        "1s",
    ]);
    coordinator.explained("a", "silent", SOON);
    assert!(job.runs());
    coordinator.ask(&["nodes", "cancel-drain", "a"]);
    wire.mend();
    let node = coordinator.node_in("a", "ready", SOON);
    assert!(node["drain"].is_null(), "{node}");
    assert!(
        job.runs(),
        "what was ordered and taken back in the partition never happened"
    );
}

#[test]
fn a_waiting_drain_goes_on_alone_and_is_told_when_the_wire_is_mended() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, wire, host) = wired(dir.path());
    let job = host.job(&[0], 600);
    coordinator.ask(&["nodes", "drain", "a"]);
    coordinator.explained("a", &job.pid().to_string(), SOON);
    wire.cut();
    unreachable(&coordinator);
    assert_eq!(
        coordinator.node("a").expect("it is kept")["state"],
        "draining"
    );
    job.end();
    wire.mend();
    coordinator.node_in("a", "drained", SOON);
}

#[test]
fn a_connection_that_hangs_is_given_up_and_made_anew() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, wire, host) = wired(dir.path());
    wire.stall();
    unreachable(&coordinator);
    wire.cut();
    host.logged("no session with the coordinator", SOON);
    wire.mend();
    coordinator.node_in("a", "ready", SOON);
    assert_eq!(coordinator.events("returned").len(), 1);
}
