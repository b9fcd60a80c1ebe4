//! Wrong clocks: of a host, of the coordinator, and of a coordinator that was away for days.

use crate::{QUICK, SOON, fleet, rack};
use drover_tests::clock::{Clock, hours};
use drover_tests::coordinator::Coordinator;
use drover_tests::host::Host;
use drover_tests::wait;

#[test]
fn certificates_that_expired_while_the_coordinator_was_down_are_renewed() {
    let dir = tempfile::tempdir().expect("a folder");
    let clock = Clock::new(dir.path(), "clock");
    let mut coordinator =
        Coordinator::prepare(&dir.path().join("c"), QUICK, &rack(&["a", "b"], ""));
    coordinator.set_clock(&clock);
    coordinator.run(&[]);
    let token = coordinator.token(&["--pool", "rack", "--uses", "2"]);
    let mut hosts = ["a", "b"].map(|name| Host::new(dir.path(), name, "titan-x", 4));
    for host in &mut hosts {
        host.set_clock(&clock);
        host.join(&coordinator, &token);
    }
    let before = ["a", "b"].map(|name| coordinator.node_in(name, "ready", SOON));
    let job = hosts[1].job(&[0], 600);

    coordinator.kill();
    clock.ahead(hours(48));
    // One agent lived through it, the other's host was off.
    hosts[0].kill();
    coordinator.run(&[]);
    hosts[0].start();
    for (host, before) in hosts.iter().zip(before) {
        let after = coordinator.node_in(host.name(), "ready", SOON);
        assert_eq!(after["id"], before["id"], "the same node, not a new one");
        host.logged("certificate renewed", SOON);
    }
    drop(job);
}

#[test]
fn a_renewal_whose_reply_was_lost_in_a_crash_is_repeated() {
    let dir = tempfile::tempdir().expect("a folder");
    let clock = Clock::new(dir.path(), "clock");
    let mut coordinator = Coordinator::prepare(&dir.path().join("c"), QUICK, &rack(&["a"], ""));
    coordinator.set_clock(&clock);
    coordinator.run(&[]);
    let token = coordinator.token(&["--pool", "rack"]);
    let mut host = Host::new(dir.path(), "a", "titan-x", 4);
    host.set_clock(&clock);
    host.join(&coordinator, &token);
    let before = coordinator.node_in("a", "ready", SOON);
    coordinator.kill();
    clock.ahead(hours(48));
    coordinator.spawn(&[("FAILPOINTS", "renew.committed=panic")]);
    coordinator.ended(SOON);
    coordinator.run(&[]);
    let after = coordinator.node_in("a", "ready", SOON);
    assert_eq!(after["id"], before["id"]);
}

#[test]
fn hosts_whose_clocks_are_an_hour_wrong_are_told_of_and_drain_on_time() {
    let dir = tempfile::tempdir().expect("a folder");
    let coordinator =
        Coordinator::start(&dir.path().join("c"), QUICK, &rack(&["fast", "slow"], ""));
    let token = coordinator.token(&["--pool", "rack", "--uses", "2"]);
    let mut hosts = ["fast", "slow"].map(|name| Host::new(dir.path(), name, "titan-x", 4));
    for host in &mut hosts {
        let clock = Clock::new(host.dir(), "clock");
        if host.name() == "fast" {
            clock.ahead(hours(1));
        } else {
            clock.behind(hours(1));
        }
        host.set_clock(&clock);
        host.join(&coordinator, &token);
    }
    for host in &hosts {
        let name = host.name();
        coordinator.node_in(name, "ready", SOON);
        coordinator.explained(name, "clock", SOON);
        // Half an hour is neither over at once nor an hour and a half: the deadline is counted, not compared.
        let mut job = host.job(&[0], 600);
        coordinator.ask(&["nodes", "drain", name, "--deadline", "30m"]);
        coordinator.explained(name, &job.pid().to_string(), SOON);
        coordinator.node_in(name, "draining", SOON);
        coordinator.ask(&["nodes", "cancel-drain", name]);
        coordinator.node_in(name, "ready", SOON);
        // One that is short is over on time.
        coordinator.ask(&["nodes", "drain", name, "--deadline", "2s"]);
        wait::until("the drain ends at its deadline", SOON, || {
            let node = coordinator.node(name)?;
            (node["state"] == "ready" && node["drain"].is_null()).then_some(())
        });
        assert!(job.runs(), "a deadline of policy wait ends nothing");
        // And the coordinator's word is fresh whatever the host's clock says.
        coordinator.ask(&["nodes", "drain", name, "--policy", "evict", "--grace", "1s"]);
        wait::until("the job is ended", SOON, || (!job.runs()).then_some(()));
        coordinator.node_in(name, "drained", SOON);
    }
}

#[test]
fn a_coordinators_clock_that_jumps_a_day_removes_nothing_for_an_idle_period() {
    let dir = tempfile::tempdir().expect("a folder");
    let clock = Clock::new(dir.path(), "clock");
    let pools = rack(
        &["a", "b"],
        "power_on = [\"true\"]\npower_off = [\"true\"]\nidle_after = \"30s\"",
    );
    let mut coordinator = Coordinator::prepare(&dir.path().join("c"), QUICK, &pools);
    coordinator.set_clock(&clock);
    coordinator.run(&[]);
    let token = coordinator.token(&["--pool", "rack", "--uses", "2"]);
    let hosts = ["a", "b"].map(|name| {
        let mut host = Host::new(dir.path(), name, "titan-x", 4);
        host.join(&coordinator, &token);
        host
    });
    for host in &hosts {
        coordinator.node_in(host.name(), "ready", SOON);
    }
    wait::until("they are idle", SOON, || {
        coordinator.node("a")?["idle_since_unix_ms"]
            .is_u64()
            .then_some(())
    });
    // By this clock they have been idle for a day.
    clock.ahead(hours(24));
    let drift = wait::until("the drift is told", SOON, || {
        coordinator.events("clock_drift").pop()
    });
    assert_eq!(drift["severity"], "alarm", "{drift}");
    coordinator.explained("rack", "clock", SOON);
    let cycles = coordinator.ask(&["status"])["cycles"]
        .as_u64()
        .expect("a count");
    wait::until("it has thought again", SOON, || {
        let status = coordinator.ask(&["status"]);
        (status["cycles"].as_u64()? > cycles + 5).then_some(())
    });
    assert!(
        coordinator.events("drain_started").is_empty(),
        "{}",
        coordinator.tail()
    );
    for host in &hosts {
        coordinator.node_in(host.name(), "ready", SOON);
    }
}

/// The fleet of a coordinator that was told nothing of clocks is the counterpart: the same jump, seen by nobody.
#[test]
fn a_right_clock_is_no_news() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, _hosts) = fleet(dir.path(), &["a"]);
    assert!(coordinator.events("clock_drift").is_empty());
    let said = coordinator.ask(&["explain", "a"]).to_string();
    assert!(!said.contains("clock"), "{said}");
}
