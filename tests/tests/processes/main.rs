//! Coordinator, agents and cloud as processes, and what happens to them on bad days: crashes at each step, partitions,
//! wrong clocks, lost identities, damaged stores, strangers. One binary, since each costs a link.
//!
//! Which requirement is held by which test is in tests/README.md.

mod adoption;
mod clocks;
mod crashes;
mod identity;
mod instances;
mod notices;
mod partitions;
mod power;
mod refusals;
mod restore;
mod strangers;

use drover_tests::coordinator::Coordinator;
use drover_tests::host::Host;
use std::path::Path;
use std::time::Duration;

/// Every wait's end, on a loaded machine.
const SOON: Duration = Duration::from_secs(60);

/// `[control]` of an impatient coordinator.
const QUICK: &str = "interval = \"1s\"\nsettle = \"1s\"\nsilence = \"6s\"\nreport_interval = \"1s\"\n\
                     full_interval = \"2s\"\nbreaker_fleet_percent = 50\nbreaker_pool = 100";

/// A static pool of these hosts with 4 Titan X each; `extra` are more of its lines.
fn rack(hosts: &[&str], extra: &str) -> String {
    format!(
        "[[pool]]\nname = \"rack\"\nkind = \"static\"\nsite = \"office\"\nmode = \"full\"\nhosts = {hosts:?}\n\
         gpus = 4\ngpu_model = \"titan-x\"\ncpus = 12\nmemory = \"64GiB\"\n{extra}\n"
    )
}

/// A coordinator over a rack with these hosts, which all have joined.
fn fleet(dir: &Path, hosts: &[&str]) -> (Coordinator, Vec<Host>) {
    let coordinator = Coordinator::start(&dir.join("c"), QUICK, &rack(hosts, ""));
    let uses = hosts.len().to_string();
    let token = coordinator.token(&["--pool", "rack", "--uses", &uses]);
    let mut all = Vec::new();
    for name in hosts {
        let mut host = Host::new(dir, name, "titan-x", 4);
        host.join(&coordinator, &token);
        all.push(host);
    }
    for name in hosts {
        coordinator.node_in(name, "ready", SOON);
    }
    (coordinator, all)
}
