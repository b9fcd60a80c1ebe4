//! What a coordinator does not start with, and what it does not take: exit codes and texts.

use crate::{QUICK, SOON, fleet, rack};
use drover_tests::coordinator::Coordinator;
use drover_tests::wait;
use std::fs;
use std::time::Duration;

/// Starts it in vain; the exit code and what it said.
fn in_vain(coordinator: &mut Coordinator) -> (Option<i32>, String) {
    coordinator.spawn(&[]);
    let code = coordinator.ended(SOON);
    (code, coordinator.tail())
}

#[test]
fn a_truncated_store_is_named_with_the_way_back() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut coordinator, _hosts) = fleet(dir.path(), &["a"]);
    // The second start has moved all of the first into the file.
    coordinator.kill();
    coordinator.run(&[]);
    assert_eq!(coordinator.stop(Duration::from_secs(30)), Some(0));
    let store = coordinator.state_dir().join("drover.db");
    for name in ["drover.db-wal", "drover.db-shm"] {
        let _ = fs::remove_file(coordinator.state_dir().join(name));
    }
    let whole = fs::read(&store).expect("the store is there");
    for left in [whole.len() / 2 + 100, 4096, 50] {
        fs::write(&store, &whole[..left]).expect("it can be cut");
        let (code, said) = in_vain(&mut coordinator);
        assert_eq!(code, Some(1), "{left} bytes left: {said}");
        assert!(
            said.contains("is damaged") && said.contains("drover restore"),
            "{left} bytes left: {said}"
        );
        let after = fs::read(&store).expect("it is there");
        assert_eq!(after.len(), left, "it was not made anew in its place");
    }
    // Nor is a new one made beside the key of the old.
    fs::remove_file(&store).expect("it can be lost");
    let (code, said) = in_vain(&mut coordinator);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("ca.key") && said.contains("restore"),
        "{said}"
    );
    for name in ["drover.db-wal", "drover.db-shm"] {
        let _ = fs::remove_file(coordinator.state_dir().join(name));
    }
    fs::write(&store, &whole).expect("it can be put back");
    coordinator.run(&[]);
    coordinator.node_in("a", "ready", SOON);
}

#[test]
fn a_missing_or_foreign_ca_key_refuses_to_start() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut coordinator, _hosts) = fleet(dir.path(), &["a"]);
    coordinator.kill();
    let key = coordinator.state_dir().join("ca.key");
    let aside = dir.path().join("ca.key");
    fs::rename(&key, &aside).expect("it is there");
    let (code, said) = in_vain(&mut coordinator);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("is missing") && said.contains("put the file back"),
        "{said}"
    );
    assert!(!key.exists(), "no other CA was made in its place");

    let mut other = Coordinator::start(&dir.path().join("other"), QUICK, &rack(&["b"], ""));
    other.kill();
    fs::copy(other.state_dir().join("ca.key"), &key).expect("it can be copied");
    let (code, said) = in_vain(&mut coordinator);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("does not belong to the store"), "{said}");

    fs::rename(&aside, &key).expect("it can be put back");
    coordinator.run(&[]);
    coordinator.node_in("a", "ready", SOON);
}

#[test]
fn a_second_coordinator_on_the_same_port_does_not_take_the_store() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, _hosts) = fleet(dir.path(), &["a"]);
    let fence = coordinator.ask(&["status"])["fence"].clone();
    let second = coordinator.serve_again();
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains("cannot listen on"), "{said}");
    assert_eq!(coordinator.ask(&["status"])["fence"], fence);
}

#[test]
fn everything_that_is_wrong_with_a_config_is_told_at_once_with_64() {
    let dir = tempfile::tempdir().expect("a folder");
    let sim = |name: &str, group: &str, more: &str| {
        format!(
            "[[pool]]\nname = \"{name}\"\nkind = \"sim\"\nsite = \"west\"\ngroup = \"{group}\"\n{more}\n"
        )
    };
    let pools = rack(&["a"], "colour = \"green\"\nidle_after = \"10\"")
        + &sim("one", "g", "min = 5\nmax = 3")
        + &sim("two", "g", "max = 3")
        + "[sim]\ncloud = \"http://127.0.0.1:9\"\n";
    let mut coordinator = Coordinator::prepare(&dir.path().join("c"), QUICK, &pools);
    let config = coordinator.config();
    let path = config.to_str().expect("a path of text");
    let checked = coordinator.cli(&["check-config", "--config", path]);
    let by_check = String::from_utf8_lossy(&checked.stderr).into_owned();
    let (code, by_serve) = in_vain(&mut coordinator);
    for (code, said) in [(checked.status.code(), by_check), (code, by_serve)] {
        assert_eq!(code, Some(64), "{said}");
        for what in ["colour", "idle_after", "min", "group"] {
            let line = said
                .lines()
                .find(|line| line.contains("drover.toml:") && line.contains(what));
            assert!(line.is_some(), "{what} is not told:\n{said}");
        }
    }
}

#[test]
fn a_request_that_no_pool_can_serve_says_why_of_each() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, _hosts) = fleet(dir.path(), &["a"]);
    let ask = |name: &str, more: &[&str]| {
        coordinator.ask(&[&["requests", "create", "--name", name], more].concat());
    };
    // SC-55: what is asked for, what there is, what differs.
    ask("h100", &["--gpus", "1", "--gpu-model", "h100"]);
    ask("wide", &["--units", "1", "--gpus-per-unit", "5"]);
    ask("many", &["--gpus", "400", "--gang"]);
    for (name, why) in [("h100", "h100"), ("wide", "rack"), ("many", "rack")] {
        let request = wait::until(
            &format!("{name} is called impossible\n{}", coordinator.tail()),
            SOON,
            || {
                let request = coordinator.ask(&["requests", "show", name]);
                (request["state"] == "impossible").then_some(request)
            },
        );
        let reasons = request["reasons"].to_string();
        assert!(reasons.contains(why), "{name}: {reasons}");
        coordinator.explained(name, why, SOON);
    }
    // What can be served is, beside them.
    ask("small", &["--gpus", "4"]);
    coordinator.ask(&["requests", "wait", "small", "--timeout", "180s"]);
}
