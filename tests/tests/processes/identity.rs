//! Tokens and certificates between real processes: what is refused, what the agent says of it, what brings it back.

use crate::{QUICK, SOON, fleet, rack};
use drover_tests::clock::{Clock, hours};
use drover_tests::coordinator::Coordinator;
use drover_tests::host::Host;
use drover_tests::wait;

#[test]
fn a_revoked_node_is_cut_off_says_so_and_comes_back_with_a_new_token() {
    let dir = tempfile::tempdir().expect("a folder");
    let (coordinator, mut hosts) = fleet(dir.path(), &["a", "b"]);
    let before = coordinator.node("a").expect("it is there");
    coordinator.ask(&["nodes", "revoke", "a", "--reason", "stolen"]);
    let host = &mut hosts[0];
    host.logged("refused this node's identity", SOON);
    // Its old identity and its used token get it nowhere, also after a restart.
    host.kill();
    host.start();
    let told = |host: &Host| host.log().matches("refused this node's identity").count();
    wait::until("it is told again", SOON, || (told(host) >= 2).then_some(()));
    // Others are not touched by that.
    coordinator.node_in("b", "ready", SOON);

    host.kill();
    let token = coordinator.token(&["--pool", "rack", "--host", "a"]);
    host.configure(&coordinator.address(), &token, "");
    host.start();
    let after = wait::until("it is a new node", SOON, || {
        let nodes = coordinator.ask(&["nodes", "list"]);
        let found = nodes.as_array()?.iter().find(|node| {
            node["name"] == "a" && node["state"] == "ready" && node["unreachable"] == false
        });
        found.cloned()
    });
    assert_ne!(after["id"], before["id"]);
    let named: Vec<_> = coordinator
        .ask(&["nodes", "list"])
        .as_array()
        .expect("a list")
        .iter()
        .filter(|node| node["name"] == "a")
        .cloned()
        .collect();
    let usable = named
        .iter()
        .filter(|node| node["state"] == "ready" && node["unreachable"] == false);
    assert_eq!(usable.count(), 1, "one host is supply once: {named:?}");
}

#[test]
fn an_agent_tells_its_secret_to_no_other_coordinator() {
    let dir = tempfile::tempdir().expect("a folder");
    let right = Coordinator::start(&dir.path().join("right"), QUICK, &rack(&["a"], ""));
    let wrong = Coordinator::start(&dir.path().join("wrong"), QUICK, &rack(&["a"], ""));
    let token = right.token(&["--pool", "rack"]);
    let mut host = Host::new(dir.path(), "a", "titan-x", 4);
    // The address of one, the token of the other: the certificate authority is not the token's.
    host.configure(&wrong.address(), &token, "");
    host.start();
    host.logged("no session with the coordinator", SOON);
    host.logged("check ca_sha256", SOON);
    assert!(
        wrong
            .node("a")
            .is_none_or(|node| node["joined_unix_ms"].is_null())
    );
    assert_eq!(right.ask(&["tokens", "list"])[0]["uses"], 0);
    // The right address is all that was missing.
    host.kill();
    host.configure(&right.address(), &token, "");
    host.start();
    right.node_in("a", "ready", SOON);
}

#[test]
fn expired_used_up_foreign_and_unknown_tokens_are_refused_by_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let clock = Clock::new(dir.path(), "clock");
    let hosts = ["a", "b", "c", "d"];
    let mut coordinator = Coordinator::prepare(&dir.path().join("c"), QUICK, &rack(&hosts, ""));
    coordinator.set_clock(&clock);
    coordinator.run(&[]);
    let expired = coordinator.token(&["--pool", "rack", "--ttl", "1h"]);
    let one = coordinator.token(&["--pool", "rack", "--ttl", "8h"]);
    let bound = coordinator.token(&["--pool", "rack", "--ttl", "8h", "--host", "a"]);
    let cut = one[..one.len() - 1].to_owned();
    let twisted = {
        let mut parts: Vec<String> = one.split('.').map(str::to_owned).collect();
        let secret = &mut parts[2];
        let other = if secret.ends_with('0') { '1' } else { '0' };
        secret.pop();
        secret.push(other);
        parts.join(".")
    };
    clock.ahead(hours(2));

    let mut first = Host::new(dir.path(), "a", "titan-x", 4);
    first.join(&coordinator, &one);
    coordinator.node_in("a", "ready", SOON);
    let table = [
        ("b", &expired, "has expired"),
        ("c", &one, "used 1 times"),
        ("d", &bound, "for host"),
        ("e", &twisted, "not known here"),
    ];
    let mut others = Vec::new();
    for (name, token, _) in &table {
        let mut host = Host::new(dir.path(), name, "titan-x", 4);
        host.join(&coordinator, token);
        others.push(host);
    }
    for (host, (_, _, why)) in others.iter().zip(table) {
        host.logged(why, SOON);
        host.logged("drover tokens create", SOON);
    }
    // One that was cut off is the config's error, told before anything is dialled.
    let torn = Host::new(dir.path(), "f", "titan-x", 4);
    torn.configure(&coordinator.address(), &cut, "");
    let (code, said) = torn.check_config();
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("join_token"), "{said}");
    let joined = coordinator.ask(&["nodes", "list"]);
    let joined = joined.as_array().expect("a list").iter();
    let ready: Vec<_> = joined.filter(|node| node["state"] == "ready").collect();
    assert_eq!(ready.len(), 1, "{ready:?}");
}
