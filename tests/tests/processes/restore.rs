//! A store that is restored from an older backup, under agents that have seen more than it knows.

use crate::{SOON, fleet, rack};
use drover_tests::host::Host;
use drover_tests::wait;
use std::fs;

#[test]
fn a_restored_older_store_starts_frozen_and_its_fleet_carries_on() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut coordinator, mut hosts) = fleet(dir.path(), &["a", "b"]);
    coordinator.configure(crate::QUICK, &rack(&["a", "b", "late"], ""));
    let secret = dir.path().join("passphrase");
    fs::write(&secret, "correct horse battery staple\n").expect("it can be written");
    let secret = secret.to_str().expect("text").to_owned();
    let backup = dir.path().join("backup.drover");
    let backup = backup.to_str().expect("text").to_owned();
    coordinator.ask(&["nodes", "cordon", "b", "--reason", "of before"]);
    let said = coordinator.cli(&["backup", &backup, "--passphrase-file", &secret]);
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );

    // What the backup does not know: orders that grow epochs, a restart, a host that joined, its token.
    coordinator.kill();
    coordinator.run(&[]);
    for round in ["one", "two"] {
        coordinator.ask(&["nodes", "cordon", "a", "--reason", round]);
        wait::until("it is cordoned", SOON, || {
            (coordinator.node("a")?["cordoned"] == true).then_some(())
        });
        hosts[0].kill();
        hosts[0].start();
        coordinator.node_in("a", "ready", SOON);
        coordinator.ask(&["nodes", "uncordon", "a"]);
    }
    coordinator.ask(&["nodes", "uncordon", "b"]);
    let token = coordinator.token(&["--pool", "rack"]);
    let mut late = Host::new(dir.path(), "late", "titan-x", 4);
    late.join(&coordinator, &token);
    coordinator.node_in("late", "ready", SOON);
    let jobs = [hosts[0].job(&[0], 600), late.job(&[0], 600)];

    coordinator.kill();
    let state = coordinator.state_dir();
    let to = state.to_str().expect("text").to_owned();
    let restore = [
        "restore",
        &backup,
        "--state-dir",
        &to,
        "--passphrase-file",
        &secret,
    ];
    let refused = coordinator.refuses(&restore);
    assert!(
        refused.contains("empty"),
        "never over a store that is there: {refused}"
    );
    fs::rename(&state, dir.path().join("lost")).expect("it can be lost");
    let restored = coordinator.cli(&restore);
    assert!(
        restored.status.success(),
        "{}",
        String::from_utf8_lossy(&restored.stderr)
    );
    coordinator.run(&[]);

    wait::until("it says that it is frozen", SOON, || {
        let status = coordinator.ask(&["status"]);
        (status["freezes"].as_array()?.len() == 1).then_some(())
    });
    for name in ["a", "b"] {
        coordinator.node_in(name, "ready", SOON);
    }
    // The one that the store did not know is supply in no pool.
    wait::until("the late one is taken in", SOON, || {
        let nodes = coordinator.ask(&["nodes", "list"]);
        let late = nodes.as_array()?.iter().find(|node| {
            node["name"] == "late" && node["state"] == "ready" && node["unreachable"] == false
        })?;
        (late["foreign"] == true).then_some(())
    });
    // What the store knew is in force again: the person's cordon of before.
    wait::until("b is cordoned again", SOON, || {
        let b = coordinator.node("b")?;
        (b["cordoned"] == true && b["cordon_reason"].as_str()?.contains("of before")).then_some(())
    });
    assert!(coordinator.events("drain_started").is_empty());

    coordinator.ask(&["thaw"]);
    let refusals = |host: &Host| host.log().matches("order refused").count();
    let before = refusals(&hosts[0]);
    // Orders of the restored store are obeyed although the agent has seen higher epochs.
    coordinator.ask(&["nodes", "drain", "a", "--reason", "after"]);
    coordinator.explained("a", &jobs[0].pid().to_string(), SOON);
    let [job, other] = jobs;
    job.end();
    coordinator.node_in("a", "drained", SOON);
    assert_eq!(refusals(&hosts[0]), before, "{}", hosts[0].log());
    drop(other);
}
