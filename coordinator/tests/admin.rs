//! The admin service as it is in production (SQLite store, CA, gate, control cycle) and the CLI as a process: what each
//! role may do, what a change leaves behind, bad input, backup and restore.

use drover::adapters::actuate::static_hosts::StaticHosts;
use drover::adapters::ca::Ca;
use drover::adapters::clock::SystemClock;
use drover::adapters::demand::requests::Requests;
use drover::adapters::link::Hub;
use drover::adapters::store::sqlite::SqliteStore;
use drover::cli::connect;
use drover::cli::context::{self, Profile};
use drover::control::cycle::{Control, Ports};
use drover::control::journal::Journal;
use drover::files::contexts;
use drover::ports::clock::Clock;
use drover::ports::store::{Op, Store};
use drover::records::{NodeRecord, keys};
use drover::serve::admin::Admin;
use drover::serve::agents::{Admission, Agents, Intervals, Parts};
use drover::serve::auth::Gate;
use drover::serve::identities::IdentityDesk;
use drover::serve::tls;
use drover::serve::tokens::TokenDesk;
use drover_core::model::{Millis, PoolId};
use drover_core::rules::access::Role;
use drover_proto::v1;
use rcgen::{CertificateParams, KeyPair};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tonic::Code;
use tonic::codegen::http::uri::PathAndQuery;

const CONFIG: &str = r#"
[server]
listen = "127.0.0.1:0"
names = ["localhost"]
state_dir = "/nowhere"

[control]
interval = "1s"
settle = "2s"

[[pool]]
name = "rack"
kind = "static"
site = "office"
mode = "observe"
hosts = ["titan-01", "titan-02"]
gpus = 4
gpu_model = "titan-x"
cpus = 12
memory = "64GiB"
idle_after = "10m"
max = 2
"#;

struct Nobody;

impl Admission for Nobody {
    fn admit(&self, _: &v1::Facts, _: Option<&PoolId>) -> Result<Option<PoolId>, String> {
        Err("nobody joins in this test".to_owned())
    }
}

/// A coordinator without agents, and a directory with a context for each role.
struct Rig {
    runtime: tokio::runtime::Runtime,
    home: tempfile::TempDir,
    state: tempfile::TempDir,
    address: String,
}

#[derive(Debug)]
struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Rig {
    fn new() -> Self {
        Self::with(true)
    }

    /// `cycles`: whether the control cycle runs.
    fn with(cycles: bool) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("runtime");
        let home = tempfile::tempdir().expect("directory");
        let state = tempfile::tempdir().expect("directory");
        let address = runtime.block_on(start(home.path(), state.path(), cycles));
        Self {
            runtime,
            home,
            state,
            address,
        }
    }

    /// As `viewer`, `operator` or `admin`.
    fn run(&self, role: &str, line: &str) -> Ran {
        let words = ["--context", role]
            .into_iter()
            .chain(line.split_whitespace());
        drover(self.home.path(), &words.collect::<Vec<_>>())
    }

    fn json(&self, line: &str) -> serde_json::Value {
        let ran = self.run("admin", &format!("{line} -o json"));
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
        serde_json::from_str(&ran.stdout).expect(line)
    }
}

fn drover(home: &Path, words: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_drover"))
        .args(words)
        .env_clear()
        .env("DROVER_CONFIG_DIR", home)
        .env("DROVER_BACKUP_PASSPHRASE", "a long passphrase")
        .current_dir(home)
        .stdin(Stdio::null())
        .output()
        .expect("run");
    Ran {
        code: output.status.code().expect("exit code"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

async fn start(home: &Path, state: &Path, cycles: bool) -> String {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let config = Arc::new(drover::config::parse(CONFIG).expect("config"));
    let store: Arc<dyn Store> =
        Arc::new(SqliteStore::open(&state.join("drover.db")).expect("store"));
    let ca = Arc::new(Ca::open(state, &*store, &*clock).await.expect("CA"));
    let node = NodeRecord {
        pool: Some("rack".into()),
        instance: Some("titan-01".into()),
        serial: "01".to_owned(),
        not_after: clock.wall().after(Millis(3_600_000)),
        ..NodeRecord::joined("n-1".into(), "titan-01".to_owned(), clock.wall())
    };
    let put = Op::Put(
        keys::named(keys::NODE, "n-1"),
        serde_json::to_vec(&node).expect("record"),
    );
    store
        .commit(store.fence(), &[], &[put])
        .await
        .expect("node");
    let journal = Arc::new(
        Journal::open(store.clone(), clock.clone())
            .await
            .expect("journal"),
    );
    let hub = Hub::new(clock.clone());
    let control = Control::new(
        config.clone(),
        Ports {
            journal: journal.clone(),
            link: hub.clone(),
            actuators: vec![Arc::new(StaticHosts::new(&config.pools, || {
                SystemClock.wall()
            }))],
            sources: vec![Arc::new(Requests::new(
                store.clone(),
                config.control.gang_hold,
            ))],
            clock: clock.clone(),
        },
    );
    let (commands, rehearsals) = control.commands();
    let identities = IdentityDesk::new(journal.clone(), ca.clone(), hub.clone(), clock.clone());
    let tokens = TokenDesk::new(journal.clone(), ca.clone(), clock.clone());
    let agents = Agents::new(Parts {
        journal,
        ca: ca.clone(),
        hub,
        clock: clock.clone(),
        admission: Arc::new(Nobody),
        intervals: Intervals {
            report: Millis(5_000),
            full: Millis(60_000),
            heartbeat: Millis(5_000),
        },
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("port");
    let address = listener.local_addr().expect("address").to_string();
    for (role, name) in [
        (Role::Viewer, "viewer"),
        (Role::Operator, "operator"),
        (Role::Admin, "admin"),
    ] {
        let key = KeyPair::generate().expect("key");
        let csr = CertificateParams::default()
            .serialize_request(&key)
            .expect("request");
        let issued = identities
            .issue_admin(name, role, csr.der(), Millis::ZERO, "test")
            .await;
        let file = |end: &str| home.join(format!("{name}.{end}"));
        std::fs::write(file("ca"), ca.pem()).expect("file");
        std::fs::write(file("crt"), issued.expect("certificate").pem).expect("file");
        std::fs::write(file("key"), key.serialize_pem()).expect("file");
        let profile = Profile {
            address: address.clone(),
            ca: file("ca"),
            cert: file("crt"),
            key: file("key"),
        };
        contexts::save(home, name, &profile).expect("context");
    }
    let admin = Admin::new(
        commands,
        tokens,
        identities,
        state.to_owned(),
        clock.clone(),
    );
    let tls = tls::config(&ca, &["localhost".to_owned()], &clock).expect("TLS");
    let gate = Gate::new(store, clock);
    let cycle = drover::control::run::run(control, rehearsals, std::future::pending::<()>());
    if cycles {
        tokio::spawn(cycle);
    } else {
        // It holds the ends that it would read: it is kept, and never looked at.
        Box::leak(Box::new(cycle));
    }
    tokio::spawn(drover::serve::run(
        listener,
        tls,
        gate,
        agents,
        Some(admin.routes()),
        std::future::pending::<()>(),
    ));
    address
}

/// Every method of the service with the role that its section of the proto says.
fn methods() -> Vec<(String, Role)> {
    let proto = include_str!("../../proto/drover/v1/admin.proto");
    let mut role = Role::Viewer;
    let mut all = Vec::new();
    for line in proto.lines().map(str::trim).take_while(|line| *line != "}") {
        match line {
            "// viewer" => role = Role::Viewer,
            "// operator" => role = Role::Operator,
            "// admin" => role = Role::Admin,
            _ => {}
        }
        if let Some(rest) = line.strip_prefix("rpc ") {
            let name = rest.split('(').next().expect("name");
            all.push((name.to_owned(), role));
        }
    }
    all
}

/// Calls a method with an empty message and gives the code of the answer.
async fn call(channel: tonic::transport::Channel, method: &str) -> (Code, String) {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.expect("ready");
    let path = PathAndQuery::try_from(format!("/drover.v1.AdminService/{method}")).expect("path");
    let codec = tonic_prost::ProstCodec::<(), ()>::default();
    match client.unary(tonic::Request::new(()), path, codec).await {
        Ok(_) => (Code::Ok, String::new()),
        Err(status) => (status.code(), status.message().to_owned()),
    }
}

#[test]
fn every_method_has_its_role_and_a_viewer_changes_nothing() {
    let rig = Rig::new();
    let methods = methods();
    assert!(methods.len() > 25, "{methods:?}");
    for (role, name) in [
        (Role::Viewer, "viewer"),
        (Role::Operator, "operator"),
        (Role::Admin, "admin"),
    ] {
        let before = rig.json("audit list");
        rig.runtime.block_on(async {
            let (_, profile) = context::choose(rig.home.path(), Some(name)).expect("context");
            let channel = connect::channel(name, &profile, Duration::from_secs(30))
                .await
                .expect("channel");
            for (method, least) in &methods {
                let (code, message) = call(channel.clone(), method).await;
                let denied = code == Code::PermissionDenied;
                assert_eq!(
                    denied,
                    role < *least,
                    "{method} as {name}: {code:?} {message}"
                );
                assert!(
                    !denied || message.contains("needs the role"),
                    "{method}: {message}"
                );
            }
        });
        if role == Role::Viewer {
            assert_eq!(rig.json("audit list"), before, "a viewer changed something");
        }
    }
}

#[test]
fn a_change_is_shown_audited_and_told() {
    let rig = Rig::new();
    let ran = rig.run("operator", "nodes cordon titan-01 --reason fan -o json");
    assert_eq!(ran.code, 0, "{ran:?}");
    let node: serde_json::Value = serde_json::from_str(&ran.stdout).expect("node");
    assert_eq!(node["cordoned"], true, "{node}");
    assert_eq!(node["cordoned_by"], "admin/operator", "{node}");
    let audit = rig.json("audit list");
    let last = audit
        .as_array()
        .and_then(|all| all.last())
        .expect("audit")
        .clone();
    assert_eq!(
        (&last["actor"], &last["subject"]),
        (&"admin/operator".into(), &"n-1".into()),
        "{last}"
    );
    let events = rig.json("events --subject n-1");
    assert!(
        events.as_array().is_some_and(|all| !all.is_empty()),
        "{events}"
    );
    let explained = rig.run("viewer", "explain titan-01");
    assert!(explained.stdout.contains("fan"), "{explained:?}");

    assert_eq!(rig.run("admin", "freeze --reason test").code, 0);
    assert_eq!(rig.json("status")["freezes"][0]["reason"], "test");
    assert_eq!(rig.run("operator", "thaw").code, 1, "thawing is for admins");
    assert_eq!(rig.run("admin", "thaw").code, 0);
    assert_eq!(rig.json("pools mode rack grow")["mode"], "grow");
    assert_eq!(rig.json("pools limits rack --max 1")["max"], 1);
    assert_eq!(rig.json("pools limits rack --reset")["max"], 2);
    let paused = rig.json("pools pause rack --reason cost");
    assert!(
        paused["paused"]
            .as_str()
            .is_some_and(|why| why.contains("cost")),
        "{paused}"
    );
    for line in [
        "pools pause rack",
        "pools mode rack grow",
        "pools limits rack --max 2",
    ] {
        let again = rig.run("admin", line);
        assert_eq!(again.code, 0, "{again:?}");
        assert!(
            again.stderr.starts_with("nothing to change: pool rack "),
            "{again:?}"
        );
        assert!(again.stdout.contains("rack"), "and it is shown: {again:?}");
    }
    let resumed = rig.json("pools resume rack")["paused"].to_string();
    assert!(!resumed.contains("cost"), "{resumed}");
}

#[test]
fn a_request_goes_its_way_and_an_impossible_one_says_why() {
    let rig = Rig::new();
    let made = rig.json("requests create --name job-7 --gpus 4 --gpu-model titan-x --for 1h");
    assert_eq!(
        (&made["name"], &made["units"]),
        (&"job-7".into(), &4.into())
    );
    assert_eq!(made["owner"], "admin/admin");
    let again = rig.run("admin", "requests create --name job-7 --gpus 4");
    assert_eq!(again.code, 1, "{again:?}");
    assert!(
        again.stderr.contains("job-7") && again.stderr.contains("exists"),
        "{again:?}"
    );
    assert_eq!(
        rig.json("requests extend job-7 --by 30m")["duration_ms"],
        5_400_000
    );
    assert_eq!(rig.json("requests list").as_array().map(Vec::len), Some(1));
    assert_eq!(rig.json("requests cancel job-7")["state"], "cancelled");
    assert_eq!(rig.json("requests list").as_array().map(Vec::len), Some(0));
    assert_eq!(
        rig.json("requests list --all").as_array().map(Vec::len),
        Some(1)
    );

    let waited = rig.run(
        "admin",
        "requests create --name never --gpus 1 --gpu-model p9 --wait --timeout 20s",
    );
    assert_eq!(waited.code, 1, "{waited:?}");
    assert!(waited.stderr.contains("can never be served"), "{waited:?}");
    assert!(
        waited.stderr.contains("p9"),
        "the reason names what is missing: {waited:?}"
    );
}

#[test]
fn a_plan_of_the_service_is_planned_again_to_the_same_bytes() {
    let rig = Rig::new();
    rig.json("requests create --name job-7 --gpus 4");
    let online = rig.run("viewer", "plan --fresh --save now.json -o json");
    assert_eq!(online.code, 0, "{online:?}");
    let offline = drover(
        rig.home.path(),
        &["plan", "--from", "now.json", "-o", "json"],
    );
    assert_eq!(offline.code, 0, "{offline:?}");
    assert!(online.stdout.contains("job-7"));
    assert_eq!(offline.stdout, online.stdout);
}

#[test]
fn bad_wishes_name_the_field_and_the_fix() {
    let rig = Rig::new();
    for (line, needles) in [
        ("nodes show nobody", &["nobody"][..]),
        ("pools pause nowhere", &["pool", "nowhere"]),
        (
            "nodes drain titan-01 --then terminate",
            &["then", "power_off"],
        ),
        (
            "requests create --gpus 1 --pool nowhere",
            &["--pool", "nowhere"],
        ),
        ("requests create --name bad/name --gpus 1", &["name"]),
        ("tokens create --pool nowhere", &["pool", "nowhere"]),
        ("tokens create --uses 5000", &["max_uses"]),
        ("approve nothing", &["nothing"]),
        ("pools limits rack --min 5", &["max", "5"]),
        ("explain nobody", &["nobody"]),
        ("tokens revoke nothing", &["nothing"]),
        ("nodes cancel-drain titan-01", &["not being drained"]),
    ] {
        let ran = rig.run("admin", line);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{line}: {ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{line}: {ran:?}");
        for needle in needles {
            assert!(ran.stderr.contains(needle), "{line}: {needle}: {ran:?}");
        }
    }
}

#[test]
fn tokens_and_certificates_are_made_and_taken_back() {
    let rig = Rig::new();
    let made = rig.json("tokens create --pool rack --uses 2 --host titan-01");
    assert!(
        made["text"]
            .as_str()
            .is_some_and(|text| text.starts_with("drover-join-v1.")),
        "{made}"
    );
    let id = made["id"].as_str().expect("id");
    let listed = rig.run("admin", "tokens list -o json");
    let secret = made["text"]
        .as_str()
        .and_then(|text| text.split('.').nth(2))
        .expect("secret");
    assert!(
        listed.stdout.contains(id) && !listed.stdout.contains(secret),
        "the secret is shown once"
    );
    assert_eq!(rig.json(&format!("tokens revoke {id}"))["revoked"], true);

    assert_eq!(
        rig.run("admin", "certificates issue ann --role viewer --ttl 1h")
            .code,
        0
    );
    let add = format!(
        "context add ann --address {} --ca ann.ca.crt --cert ann.crt --key ann.key",
        rig.address
    );
    assert_eq!(rig.run("admin", &add).code, 0);
    assert_eq!(rig.run("ann", "nodes list").code, 0);
    let refused = rig.run("ann", "nodes cordon titan-01");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused.stderr.contains("needs the role operator"),
        "{refused:?}"
    );
}

#[test]
fn events_are_followed_as_they_happen() {
    use std::io::{BufRead as _, BufReader};
    let rig = Rig::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_drover"))
        .args([
            "--context",
            "viewer",
            "events",
            "--follow",
            "--subject",
            "n-1",
            "-o",
            "json",
        ])
        .env_clear()
        .env("DROVER_CONFIG_DIR", rig.home.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("run");
    let lines = BufReader::new(child.stdout.take().expect("stdout"));
    assert_eq!(
        rig.run("operator", "nodes cordon titan-01 --reason one")
            .code,
        0
    );
    assert_eq!(rig.run("operator", "nodes uncordon titan-01").code, 0);
    let mut seqs = Vec::new();
    for line in lines.lines() {
        let event: serde_json::Value =
            serde_json::from_str(&line.expect("line")).expect("one object a line");
        seqs.push(event["seq"].as_u64().expect("seq"));
        if event["what"]
            .as_str()
            .is_some_and(|what| what.contains("uncordon"))
        {
            break;
        }
    }
    assert!(seqs.is_sorted() && seqs.len() >= 2, "{seqs:?}");
    child.kill().expect("end");
    child.wait().expect("end");
}

/// Before the first cycle nothing is known: that a name is not known then says nothing about it.
#[test]
fn no_name_is_unknown_before_the_first_cycle() {
    let rig = Rig::with(false);
    std::thread::scope(|scope| {
        for line in [
            "events --subject n-1",
            "explain titan-01",
            "nodes show titan-01",
            "nodes cordon titan-01",
            "nodes uncordon titan-01",
            "nodes drain titan-01",
            "nodes revoke titan-01",
            "nodes readmit titan-01",
        ] {
            let rig = &rig;
            scope.spawn(move || {
                let ran = rig.run("admin", line);
                assert_ne!(ran.code, 0, "{line}: {ran:?}");
                assert!(ran.stderr.contains("has just started"), "{line}: {ran:?}");
            });
        }
    });
}

#[test]
fn a_backup_restores_frozen() {
    let rig = Rig::new();
    let ran = rig.run("admin", "backup b.drover");
    assert_eq!(ran.code, 0, "{ran:?}");
    let home = rig.home.path();
    let full = drover(
        home,
        &[
            "restore",
            "b.drover",
            "--state-dir",
            rig.state.path().to_str().expect("path"),
        ],
    );
    assert_eq!(full.code, 1, "{full:?}");
    assert!(full.stderr.contains("not empty"), "{full:?}");
    let ran = drover(home, &["restore", "b.drover", "--state-dir", "restored"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("starts frozen"), "{ran:?}");
    let audit = rig.json("audit list");
    assert!(audit.to_string().contains("backup.create"), "{audit}");
    std::fs::write(home.join("junk"), b"not a backup").expect("file");
    let ran = drover(home, &["restore", "junk", "--state-dir", "elsewhere"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("not a backup"), "{ran:?}");
}

#[test]
fn a_config_is_checked_and_compared_with_the_fleet() {
    let rig = Rig::new();
    let home = rig.home.path();
    let check = |text: &str, more: &[&str]| {
        std::fs::write(home.join("c.toml"), text).expect("file");
        let words = ["--context", "viewer", "check-config", "--config", "c.toml"];
        drover(home, &[&words[..], more].concat())
    };
    let ran = check(CONFIG, &["--against-live"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
    assert!(ran.stderr.contains("changes nothing"), "{ran:?}");
    let ran = check(
        &CONFIG.replace("\"titan-02\"]", "\"titan-02\", \"titan-03\"]"),
        &["--against-live"],
    );
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "+ host titan-03 in pool rack\n"),
        "{ran:?}"
    );
    let moved = CONFIG
        .replace("\"titan-01\", ", "")
        .replace("max = 2", "max = 1");
    let ran = check(&moved, &["--against-live", "-o", "json"]);
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).expect("json");
    assert_eq!(found["good"], true);
    assert_eq!(found["changes"]["nodes_lost"][0]["id"], "n-1", "{found}");

    let bad = CONFIG
        .replace("\"1s\"", "1")
        .replace("max = 2", "max = 2\nmin = 3\ncolour = \"red\"");
    let ran = check(&bad, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (64, ""), "{ran:?}");
    for needle in ["c.toml:8:", "colour", "min", "interval", "3 problems"] {
        assert!(ran.stderr.contains(needle), "{needle}: {ran:?}");
    }
    let ran = check(&bad, &["-o", "json"]);
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).expect("json");
    assert_eq!(
        (ran.code, found["problems"].as_array().map(Vec::len)),
        (64, Some(3)),
        "{found}"
    );
    let ran = check("", &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
    assert!(
        ran.stderr.contains("no pools: nothing will ever grow"),
        "{ran:?}"
    );
    // A pool that this build cannot drive is refused here as `serve` refuses it.
    let asg = "[[pool]]\nname = \"a\"\nkind = \"asg\"\nsite = \"s\"\nregion = \"us-west-2\"\ngroup = \"g\"\nmax = 5\n";
    let ran = check(asg, &[]);
    if cfg!(feature = "aws") {
        assert_eq!(ran.code, 0, "{ran:?}");
    } else {
        assert_eq!(ran.code, 64, "{ran:?}");
        assert!(ran.stderr.contains("pool a is of kind asg"), "{ran:?}");
    }
    let ran = drover(home, &["check-config", "--config", "nowhere.toml"]);
    assert_eq!(ran.code, 64, "{ran:?}");
}
