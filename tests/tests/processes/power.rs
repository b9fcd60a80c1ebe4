//! Physical hosts with power commands: off until they are asked for, and off again when they are idle.

use crate::{QUICK, SOON, rack};
use drover_tests::coordinator::Coordinator;
use drover_tests::host::Host;
use drover_tests::{programs, wait};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// An outlet strip: `on` starts the agent of $DROVER_HOST, `off` ends it as a lost supply would. Both keep a log.
fn outlets(dir: &Path) -> PathBuf {
    let script = dir.join("power");
    let text = format!(
        r#"#!/bin/sh
cd '{dir}' || exit 1
echo "$1 $DROVER_HOST" >> power.log
case "$1" in
on) DROVER_NVML_STUB="$DROVER_HOST/nvml.json" setsid '{agent}' run --config "$DROVER_HOST/agent.toml" \
      > "$DROVER_HOST/agent.log" 2>&1 < /dev/null & echo $! > "$DROVER_HOST/pid" ;;
off) kill -9 "$(cat "$DROVER_HOST/pid")" && rm "$DROVER_HOST/pid" ;;
esac
"#,
        dir = dir.display(),
        agent = programs::agent().display(),
    );
    fs::write(&script, text).expect("the script can be written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it can be run");
    script
}

/// Ends what a failed test left running.
struct Off<'d>(&'d Path);

impl Drop for Off<'_> {
    fn drop(&mut self) {
        for host in ["a", "b"] {
            if let Ok(pid) = fs::read_to_string(self.0.join(host).join("pid"))
                && let Ok(pid) = pid.trim().parse().map(nix::unistd::Pid::from_raw)
            {
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
            }
        }
    }
}

#[test]
fn sc_78_a_host_is_powered_on_for_a_request_and_ends_in_off() {
    let dir = tempfile::tempdir().expect("a folder");
    let _off = Off(dir.path());
    let power = outlets(dir.path());
    let pools = rack(
        &["a", "b"],
        &format!(
            "power_on = [\"{power}\", \"on\"]\npower_off = [\"{power}\", \"off\"]\nidle_after = \"2s\"",
            power = power.display()
        ),
    );
    let coordinator = Coordinator::start(&dir.path().join("c"), QUICK, &pools);
    let token = coordinator.token(&["--pool", "rack", "--uses", "2", "--ttl", "8h"]);
    for name in ["a", "b"] {
        let host = Host::new(dir.path(), name, "titan-x", 4);
        host.configure(&coordinator.address(), &token, "");
        coordinator.node_in(name, "off", SOON);
    }
    coordinator.ask(&[
        "requests",
        "create",
        "--name",
        "job",
        "--gpus",
        "3",
        "--gpu-model",
        "titan-x",
    ]);
    coordinator.ask(&["requests", "wait", "job", "--timeout", "180s"]);
    let log = || fs::read_to_string(dir.path().join("power.log")).unwrap_or_default();
    let on = log();
    assert_eq!(on.lines().count(), 1, "one host is enough: {on}");
    let name = on
        .trim()
        .strip_prefix("on ")
        .expect("it was switched on")
        .to_owned();
    let shown = coordinator.ask(&["requests", "show", "job"]);
    assert_eq!(
        shown["assignments"][0]["node_name"],
        name.as_str(),
        "{shown}"
    );

    coordinator.ask(&["requests", "cancel", "job"]);
    coordinator.node_in(&name, "off", SOON);
    wait::until("the agent is gone", SOON, || {
        (!dir.path().join(&name).join("pid").exists()).then_some(())
    });
    assert_eq!(log(), format!("on {name}\noff {name}\n"));
    let steps: Vec<_> = ["drain_started", "drained", "leaving", "gone"]
        .iter()
        .map(|what| coordinator.events(what).len())
        .collect();
    assert_eq!(steps, [1, 1, 1, 1], "{}", coordinator.tail());

    // On again: the same node, by the identity that it kept.
    coordinator.ask(&[
        "requests",
        "create",
        "--name",
        "more",
        "--gpus",
        "8",
        "--gpu-model",
        "titan-x",
    ]);
    coordinator.ask(&["requests", "wait", "more", "--timeout", "180s"]);
    let nodes = coordinator.ask(&["nodes", "list"]);
    assert_eq!(nodes.as_array().map(Vec::len), Some(2), "{nodes}");
    assert_eq!(coordinator.ask(&["tokens", "list"])[0]["uses"], 2);
}

#[test]
fn a_host_that_cannot_be_switched_on_is_said_and_the_other_serves() {
    let dir = tempfile::tempdir().expect("a folder");
    let _off = Off(dir.path());
    let good = outlets(dir.path());
    let bad = dir.path().join("bad");
    let text = "#!/bin/sh\necho no such outlet >&2\nexit 3\n";
    fs::write(&bad, text).expect("the script can be written");
    fs::set_permissions(&bad, fs::Permissions::from_mode(0o755)).expect("it can be run");
    let pool = |name: &str, host: &str, power: &Path| {
        rack(
            &[host],
            &format!(
                "power_on = [\"{}\", \"on\"]\nlabels = {{ outlet = \"{name}\" }}",
                power.display()
            ),
        )
        .replace("\"rack\"", &format!("\"{name}\""))
    };
    // The broken one comes first by name.
    let pools = pool("one", "a", &bad) + &pool("two", "b", &good);
    let coordinator = Coordinator::start(&dir.path().join("c"), QUICK, &pools);
    let token = coordinator.token(&["--pool", "two", "--ttl", "8h"]);
    Host::new(dir.path(), "b", "titan-x", 4).configure(&coordinator.address(), &token, "");
    coordinator.node_in("b", "off", SOON);
    coordinator.ask(&[
        "requests",
        "create",
        "--name",
        "job",
        "--gpus",
        "4",
        "--gpu-model",
        "titan-x",
    ]);
    coordinator.ask(&["requests", "wait", "job", "--timeout", "180s"]);
    let shown = coordinator.ask(&["requests", "show", "job"]);
    assert_eq!(shown["assignments"][0]["node_name"], "b", "{shown}");
    coordinator.explained("one", "no such outlet", SOON);
}
