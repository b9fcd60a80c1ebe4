//! The CLI as a process against an admin service over real TLS: exit codes, stable JSON, waiting, plans, files.

#[path = "cli/fake.rs"]
mod fake;
#[path = "cli/peer.rs"]
mod peer;
#[path = "cli/samples.rs"]
mod samples;

use drover_proto::v1;
use fake::{Fake, Script};
use peer::Ca;
use samples::FIXED;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use tonic::Status;

/// A coordinator that is a script, and a user with a context for it.
struct Bench {
    script: Arc<Mutex<Script>>,
    home: tempfile::TempDir,
    _runtime: tokio::runtime::Runtime,
}

/// What a run of the CLI gave.
#[derive(Debug)]
struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Bench {
    fn new(mut script: Script) -> Self {
        let ca = Ca::new();
        let home = tempfile::tempdir().expect("directory");
        ca.write_client(home.path());
        let acceptor = ca.acceptor();
        script.ca = Some(ca);
        let script = Arc::new(Mutex::new(script));
        let runtime = tokio::runtime::Runtime::new().expect("runtime");
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .expect("port");
        let address = listener.local_addr().expect("address");
        let service = v1::admin_service_server::AdminServiceServer::new(Fake(Arc::clone(&script)));
        runtime.spawn(
            tonic::transport::Server::builder()
                .add_service(service)
                .serve_with_incoming(peer::incoming(listener, acceptor)),
        );
        context(home.path(), &address.to_string());
        Self {
            script,
            home,
            _runtime: runtime,
        }
    }

    fn run(&self, line: &str) -> Ran {
        drover(self.home.path(), line)
    }

    /// Runs, and must end with 0.
    fn stdout(&self, line: &str) -> String {
        let ran = self.run(line);
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
        ran.stdout
    }

    fn asked(&self) -> String {
        self.script
            .lock()
            .expect("script")
            .asked
            .last()
            .cloned()
            .unwrap_or_default()
    }
}

fn context(home: &Path, address: &str) {
    let text = format!(
        "current = \"test\"\n[context.test]\naddress = \"{address}\"\nca = \"ca.crt\"\ncert = \"me.crt\"\nkey = \"me.key\"\n"
    );
    std::fs::write(home.join("config.toml"), text).expect("context");
}

fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drover"));
    command
        .env_clear()
        .env("DROVER_CONFIG_DIR", home)
        .current_dir(home)
        .stdin(Stdio::null());
    command
}

fn drover(home: &Path, line: &str) -> Ran {
    finish(command(home).args(line.split_whitespace()))
}

fn finish(command: &mut Command) -> Ran {
    let output = command.output().expect("run");
    Ran {
        code: output.status.code().expect("exit code"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// Three days ago, so that ages read the same for an hour.
fn three_days_ago() -> u64 {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("clock");
    u64::try_from(now.as_millis()).expect("clock") - 86_400_000 * 3
}

#[test]
fn json_names_are_stable() {
    let bench = Bench::new(samples::script(FIXED));
    for (name, line) in [
        ("nodes", "nodes list -o json"),
        ("pools", "pools list -o json"),
        ("requests", "requests list -o json"),
        ("demand", "demand list -o json"),
        ("events", "events -o json"),
        ("status", "status -o json"),
        ("tokens", "tokens list -o json"),
        (
            "token_created",
            "tokens create --pool rack --uses 15 -o json",
        ),
        ("audit", "audit list -o json"),
        ("api_calls", "api-calls -o json"),
        ("approvals", "approve --list -o json"),
        ("freezes", "freeze -o json --reason maintenance"),
        ("explain", "explain titan-01 -o json"),
    ] {
        insta::assert_snapshot!(format!("json_{name}"), bench.stdout(line));
    }
}

#[test]
fn one_thing_is_an_object_and_yaml_says_the_same() {
    let bench = Bench::new(samples::script(FIXED));
    for line in [
        "nodes show n1",
        "pools show rack",
        "requests show job-7",
        "status",
        "nodes cordon n1",
    ] {
        let json: serde_json::Value =
            serde_json::from_str(&bench.stdout(&format!("{line} -o json"))).expect(line);
        assert!(json.is_object(), "{line}");
        let yaml: serde_json::Value =
            serde_yaml_ng::from_str(&bench.stdout(&format!("{line} -o yaml"))).expect(line);
        assert_eq!(json, yaml, "{line}");
    }
    let node: serde_json::Value =
        serde_json::from_str(&bench.stdout("nodes show i-0abc -o json")).expect("node");
    assert!(node["gpus"].is_null(), "missing is not zero: {node}");
    assert!(node["telemetry"].is_null(), "missing is not zero: {node}");
}

#[test]
fn tables_read_like_kubectls() {
    let bench = Bench::new(samples::script(three_days_ago()));
    for (name, line) in [
        ("nodes", "nodes list"),
        ("nodes_wide", "nodes list -o wide"),
        ("node", "nodes show titan-01"),
        ("pools", "pools list"),
        ("requests", "requests list"),
        ("request", "requests show job-7"),
        ("demand", "demand list"),
        ("status", "status"),
        ("tokens", "tokens list"),
        ("audit", "audit list"),
        ("api_calls", "api-calls"),
        ("api_calls_wide", "api-calls -o wide"),
        ("approvals", "approve --list"),
        ("explain", "explain titan-01"),
    ] {
        insta::assert_snapshot!(format!("table_{name}"), bench.stdout(line));
    }
}

#[test]
fn nothing_to_show_is_said_on_stderr() {
    let bench = Bench::new(Script::default());
    let ran = bench.run("nodes list");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert_eq!(ran.stderr, "nothing to show\n");
    assert_eq!(bench.stdout("nodes list -o json"), "[]\n");
}

#[test]
fn no_colour_without_a_terminal() {
    let bench = Bench::new(samples::script(FIXED));
    for line in ["nodes list", "--no-color nodes list", "requests wait job-7"] {
        let ran = bench.run(line);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(
            !ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'),
            "{ran:?}"
        );
    }
}

/// Runs with a terminal of its own and gives what it shows there.
fn on_a_terminal(home: &Path, line: &str, no_color: Option<&str>) -> String {
    use std::io::Read as _;
    let pty = nix::pty::openpty(None, None).expect("terminal");
    let mut command = command(home);
    command
        .args(line.split_whitespace())
        .env("TERM", "xterm")
        .stdout(pty.slave.try_clone().expect("terminal"))
        .stderr(pty.slave);
    if let Some(value) = no_color {
        command.env("NO_COLOR", value);
    }
    let mut child = command.spawn().expect("run");
    // The child holds the only other end: reading ends (with EIO) when it does.
    drop(command);
    let mut shown = Vec::new();
    let mut master = std::fs::File::from(pty.master);
    let mut part = [0; 4096];
    while let Ok(bytes @ 1..) = master.read(&mut part) {
        shown.extend_from_slice(&part[..bytes]);
    }
    assert!(child.wait().expect("end").success());
    String::from_utf8(shown).expect("text")
}

#[test]
fn a_terminal_gets_colour_and_no_color_takes_it_away() {
    let bench = Bench::new(samples::script(FIXED));
    let green = "\u{1b}[32m";
    let home = bench.home.path();
    assert!(on_a_terminal(home, "requests list", None).contains(green));
    assert!(
        on_a_terminal(home, "requests list", Some("")).contains(green),
        "an empty NO_COLOR is none"
    );
    for plain in [
        on_a_terminal(home, "requests list", Some("1")),
        on_a_terminal(home, "--no-color requests list", None),
    ] {
        assert!(
            plain.contains("job-7") && !plain.contains('\u{1b}'),
            "{plain:?}"
        );
    }
}

#[test]
fn usage_is_2_and_says_the_fix() {
    let home = tempfile::tempdir().expect("directory");
    for (line, needle) in [
        ("", "Usage"),
        ("nodes fly", "unrecognized"),
        ("nodes show", "required"),
        ("nodes list -o xml", "possible values"),
        ("requests create --gpus 4 --for 8", "no unit"),
        ("requests create --gpus 10 --gpus-per-unit 4", "multiple"),
        ("requests create", "required"),
        ("nodes drain n1 --policy force", "--deadline"),
        ("pools limits rack", "required"),
        ("pools limits rack --min 3 --max 2", "at least 3"),
        ("pools mode rack loud", "possible values"),
        ("pools doctor rack --group p5 --region r", "cannot be used"),
        ("pools doctor --group p5", "--region"),
        ("pools doctor --fix", "--group and --region"),
        ("pools adopt", "required"),
        ("pools adopt p5", "--region"),
        ("pools adopt p5 --region r --for never", "--for"),
        ("pools policy --account me", "12 digits"),
        ("pools policy --region moon", "us-east-1"),
        (
            "pools policy --region us-gov-west-1 --region us-east-1",
            "one partition",
        ),
        (
            "requests create --gpus 1 --gpu-model=",
            "'--gpu-model <MODEL>': is empty",
        ),
        (
            "requests create --gpus 1 --name=",
            "'--name <NAME>': is empty",
        ),
        (
            "requests create --gpus 1 --pool=",
            "'--pool <POOL>': is empty",
        ),
        (
            "requests create --gpus 1 --max-wait 1h --deadline 10m",
            "shorten --max-wait",
        ),
        (
            "requests create --gpus 1.5",
            "--gpus <GPUS>: it is no whole number",
        ),
        (
            "requests create --gpus -4",
            "no value of --gpus: it cannot be negative",
        ),
        (
            "pools limits rack --max -1",
            "no value of --max: it cannot be negative",
        ),
        (
            "requests extend try --by -1h",
            "no value of --by: it cannot be negative",
        ),
        ("tokens create --uses 0", "0"),
        ("tokens create --ttl 5", "no unit"),
        ("approve", "required"),
        ("plan --from a --fresh", "cannot be used with"),
        ("nodes list --timeout 0s", "no time"),
        ("certificates issue a/b --role viewer", "not a name"),
        ("backup file", "passphrase"),
    ] {
        let ran = drover(home.path(), line);
        assert_eq!(ran.code, 2, "{line}: {ran:?}");
        assert!(ran.stderr.contains(needle), "{line}: {ran:?}");
        assert_eq!(ran.stdout, "", "{line}");
    }
}

fn found(severity: &str, words: &str, fixable: bool) -> v1::Finding {
    v1::Finding {
        severity: severity.to_owned(),
        kind: "new_unprotected".to_owned(),
        words: words.to_owned(),
        commands: vec!["aws autoscaling update-auto-scaling-group --region r".to_owned()],
        fixable,
    }
}

#[test]
fn the_doctor_is_silent_about_a_right_group_and_fails_for_a_must() {
    let bench = Bench::new(samples::script(FIXED));
    let doubt = "organisations may deny".to_owned();
    let change = |findings: Vec<v1::Finding>| {
        let mut script = bench.script.lock().expect("script");
        script.survey = v1::GroupSurvey {
            pool: "rack".to_owned(),
            group: "p5".to_owned(),
            region: "us-east-1".to_owned(),
            standing: "ours".to_owned(),
            sizes: Some(v1::GroupSizes {
                max: 9,
                ..Default::default()
            }),
            findings,
            doubts: vec![doubt.clone()],
            ..Default::default()
        };
        script.mended = vec!["suspended AZRebalance".to_owned()];
    };
    change(Vec::new());
    for line in ["pools doctor rack", "pools doctor"] {
        let ran = bench.run(line);
        assert_eq!(
            (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
            (0, "", ""),
            "{line}"
        );
    }
    assert!(bench.stdout("pools doctor rack -o wide").contains(&doubt));
    let json: serde_json::Value =
        serde_json::from_str(&bench.stdout("pools doctor rack -o json")).expect("JSON");
    assert_eq!(
        (json["findings"].as_array().map(Vec::len), &json["max"]),
        (Some(0), &9.into())
    );
    assert!(
        json["done"].is_null() && json["role_arn"].is_null(),
        "{json}"
    );

    change(vec![found("should", "hooks are short", false)]);
    let told = bench.stdout("pools doctor rack");
    assert!(told.contains("should  hooks are short\n"), "{told}");
    assert!(told.contains("\n            aws autoscaling"), "{told}");
    assert!(told.contains(&doubt), "{told}");

    change(vec![
        found("must", "it is bare", true),
        found("note", "by the way", false),
    ]);
    for line in [
        "pools doctor rack",
        "pools doctor",
        "pools doctor rack -o json",
    ] {
        let ran = bench.run(line);
        assert_eq!(ran.code, 1, "{line}: {ran:?}");
        assert_eq!(ran.stderr, "error: 1 thing must be mended\n", "{line}");
        assert!(ran.stdout.contains("it is bare"), "{line}: {ran:?}");
    }
    assert!(
        bench
            .run("pools doctor rack")
            .stdout
            .contains("it is bare (--fix does it)")
    );
    let ran = bench.run("pools doctor rack --fix -o json");
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(json["done"][0], "suspended AZRebalance");
    assert!(ran.stderr.contains("suspended AZRebalance"), "{ran:?}");
}

#[test]
fn an_adoption_says_what_comes_next() {
    let bench = Bench::new(samples::script(FIXED));
    let hour = 3_600_000;
    let mut adoption = v1::Adoption {
        pool: "rack".to_owned(),
        group: "p5".to_owned(),
        region: "us-east-1".to_owned(),
        by: "admin/ada".to_owned(),
        since_unix_ms: FIXED,
        for_ms: 24 * hour,
        watched_ms: 6 * hour,
        mode: "observe".to_owned(),
        tally: Some(v1::AdoptionTally {
            would_ask: 3,
            would_remove: 7,
            removable_gpu_ms: 120 * hour + hour / 2,
            removable_micro_usd: 310_220_000,
            ..Default::default()
        }),
        samples: vec![v1::AdoptionSample {
            at_unix_ms: FIXED,
            size: 200,
            ..Default::default()
        }],
        decisions: vec![v1::AdoptionDecision {
            at_unix_ms: FIXED,
            what: "3 more nodes".to_owned(),
        }],
        ..Default::default()
    };
    let show = |adoption: &v1::Adoption, table: &str| {
        let mut script = bench.script.lock().expect("script");
        script.adoptions = vec![adoption.clone()];
        script.config_table = table.to_owned();
    };
    show(&adoption, "[[pool]]\nname = \"rack\"\n");
    let told = bench.stdout("pools adopt p5 --region us-east-1");
    assert!(told.contains("\n[[pool]]\nname = \"rack\"\n"), "{told}");
    let told = bench.stdout("pools adopted rack");
    for word in [
        "6h of 1d",
        "200 members",
        "7 nodes; at least 120.5 GPU-hours and 310.22 USD",
        "watched for 18h more",
        "--yes",
        "3 more nodes",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
    adoption.watched_ms = adoption.for_ms;
    show(&adoption, "");
    for line in [
        "pools adopted rack",
        "pools adopted",
        "pools adopt --status",
    ] {
        let told = bench.stdout(line);
        assert!(
            told.contains("drover pools mode rack grow` lets"),
            "{line}: {told}"
        );
        assert!(!told.contains("--yes"), "{line}: {told}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&bench.stdout("pools adopted -o json")).expect("JSON");
    assert_eq!(
        (&json[0]["complete"], &json[0]["would_ask"]),
        (&true.into(), &3.into())
    );
}

#[test]
fn a_policy_needs_no_coordinator() {
    let home = tempfile::tempdir().expect("directory");
    let ran = drover(
        home.path(),
        "pools policy --mode observe --region us-east-1",
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    let policy: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(policy["Version"], "2012-10-17");
    assert!(!ran.stdout.contains("Terminate"), "{}", ran.stdout);
}

#[test]
fn nobody_there_is_3() {
    let home = tempfile::tempdir().expect("directory");
    Ca::new().write_client(home.path());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("port");
    let address = listener.local_addr().expect("address").to_string();
    drop(listener);
    context(home.path(), &address);
    let ran = drover(home.path(), "nodes list");
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(
        ran.stderr.contains(&address) && ran.stderr.contains("refused"),
        "{ran:?}"
    );
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
}

#[test]
fn a_coordinator_of_another_ca_is_not_spoken_to() {
    let bench = Bench::new(Script::default());
    let stranger = tempfile::tempdir().expect("directory");
    Ca::new().write_client(stranger.path());
    std::fs::copy(
        stranger.path().join("ca.crt"),
        bench.home.path().join("ca.crt"),
    )
    .expect("copy");
    let ran = bench.run("nodes list");
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains("CA this context pins"), "{ran:?}");
    assert_eq!(bench.asked(), "");
}

#[test]
fn a_client_of_another_ca_is_not_heard() {
    let bench = Bench::new(samples::script(FIXED));
    let stranger = tempfile::tempdir().expect("directory");
    Ca::new().write_client(stranger.path());
    for file in ["me.crt", "me.key"] {
        std::fs::copy(stranger.path().join(file), bench.home.path().join(file)).expect("copy");
    }
    let ran = bench.run("nodes list");
    assert_eq!(ran.code, 3, "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    assert_eq!(bench.asked(), "");
}

#[test]
fn a_silent_coordinator_is_3_after_the_timeout() {
    let home = tempfile::tempdir().expect("directory");
    Ca::new().write_client(home.path());
    // Accepts in the kernel's queue and never says a word.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("port");
    context(
        home.path(),
        &listener.local_addr().expect("address").to_string(),
    );
    let ran = drover(home.path(), "nodes list --timeout 300ms");
    assert_eq!(ran.code, 3, "{ran:?}");
}

#[test]
fn bad_contexts_are_64() {
    let home = tempfile::tempdir().expect("directory");
    let ran = drover(home.path(), "nodes list");
    assert_eq!(ran.code, 64, "{ran:?}");
    assert!(ran.stderr.contains("drover serve"), "{ran:?}");
    context(home.path(), "127.0.0.1:1");
    let ran = drover(home.path(), "nodes list");
    assert_eq!(ran.code, 64, "{ran:?}");
    assert!(ran.stderr.contains("ca.crt"), "{ran:?}");
    Ca::new().write_client(home.path());
    context(home.path(), "nowhere");
    let ran = drover(home.path(), "nodes list");
    assert_eq!(ran.code, 64, "{ran:?}");
    assert!(ran.stderr.contains("host:port"), "{ran:?}");
    std::fs::write(home.path().join("config.toml"), "curent = \"x\"\n").expect("file");
    let ran = drover(home.path(), "nodes list");
    assert_eq!(ran.code, 64, "{ran:?}");
    assert!(
        ran.stderr.contains("config.toml:1") && ran.stderr.contains("curent"),
        "{ran:?}"
    );
}

#[test]
fn refusals_are_one_line_and_1() {
    let bench = Bench::new(Script {
        refuse: Some(Status::invalid_argument(
            "max: 2 is below min 5;\ngive at least 5",
        )),
        ..samples::script(FIXED)
    });
    let ran = bench.run("pools limits rack --max 2");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(
        ran.stderr,
        "error: max: 2 is below min 5; give at least 5\n"
    );
    assert_eq!(bench.run("nodes show nobody").code, 1);
}

#[test]
fn what_is_said_is_what_is_asked() {
    let bench = Bench::new(samples::script(FIXED));
    for (line, needles) in [
        (
            "requests create --name job-9 --gpus 60 --gpu-model titan-x --for 8h --gang --min 60 --locality site --pool rack -l team=vision",
            &[
                "units: 60",
                "gpus_per_unit: 1",
                "min_units: 60",
                "duration_ms: 28800000",
                "locality: \"site\"",
                "\"rack\"",
                "\"team\": \"vision\"",
            ][..],
        ),
        (
            "nodes drain titan-01 --policy evict --deadline 1h --grace 30s --reason fan --then power-off",
            &[
                "policy: Evict",
                "deadline_ms: 3600000",
                "grace_ms: 30000",
                "reason: \"fan\"",
                "then: \"power_off\"",
            ],
        ),
        (
            "nodes drain n1",
            &["policy: Wait", "deadline_ms: 0", "then: \"cordoned\""],
        ),
        (
            "nodes cancel-drain n1",
            &["CancelDrainRequest { node: \"n1\" }"],
        ),
        (
            "nodes revoke n1 --reason stolen",
            &["RevokeNodeRequest", "stolen"],
        ),
        (
            "nodes readmit n1 --reason looked",
            &["ReadmitNodeRequest", "looked"],
        ),
        (
            "pools limits rack --max 7",
            &["min: None", "max: Some(7)", "spare: None", "reset: false"],
        ),
        ("pools limits rack --reset", &["reset: true"]),
        ("pools mode rack grow", &["mode: \"grow\""]),
        (
            "pools pause rack --reason cost",
            &["PausePoolRequest", "cost"],
        ),
        ("pools resume rack", &["ResumePoolRequest"]),
        (
            "pools mode rack grow --yes",
            &["mode: \"grow\"", "sooner: true"],
        ),
        (
            "pools doctor --group p5 --region us-east-1 --role-arn arn:x --fix",
            &["MendGroupRequest", "group: \"p5\"", "role_arn: \"arn:x\""],
        ),
        (
            "pools adopt p5 --region us-east-1 --for 2h --name east",
            &["AdoptGroupRequest", "for_ms: 7200000", "name: \"east\""],
        ),
        (
            "pools adopted rack",
            &["ListAdoptionsRequest { pool: \"rack\" }"],
        ),
        ("requests extend job-7 --by 90m", &["by_ms: 5400000"]),
        (
            "requests cancel job-7",
            &["CancelRequestRequest { name: \"job-7\" }"],
        ),
        ("requests list --all", &["all: true"]),
        (
            "freeze rack --reason x",
            &["FreezeRequest { pool: \"rack\", reason: \"x\" }"],
        ),
        ("thaw", &["ThawRequest { pool: \"\" }"]),
        ("approve a1", &["ApproveRequest { id: \"a1\" }"]),
        (
            "tokens create --pool rack --uses 15 --ttl 2d --host h1",
            &["max_uses: 15", "ttl_ms: 172800000", "host: \"h1\""],
        ),
        ("tokens revoke t1", &["RevokeTokenRequest { id: \"t1\" }"]),
        (
            "events --subject n1 --limit 5 --after-seq 9",
            &[
                "subject: \"n1\"",
                "limit: 5",
                "after_seq: 9",
                "follow: false",
            ],
        ),
    ] {
        bench.stdout(line);
        let asked = bench.asked();
        for needle in needles {
            assert!(asked.contains(needle), "{line}: {needle} not in {asked}");
        }
    }
}

#[test]
fn a_tokens_text_is_all_of_stdout() {
    let bench = Bench::new(samples::script(FIXED));
    let ran = bench.run("tokens create");
    assert_eq!(ran.stdout, "drover-join-v1.t1.secret.abcd\n");
    assert!(ran.stderr.contains("shown only now"), "{ran:?}");
}

#[test]
fn wait_follows_a_request_until_its_nodes_are_ready() {
    let away = || Err(Status::unavailable("restarting"));
    let bench = Bench::new(Script {
        requests: vec![
            Ok(samples::request(FIXED, "pending", 0)),
            Ok(samples::request(FIXED, "partial", 1)),
            away(),
            // Served on paper, but one of its nodes is not ready.
            Ok(samples::request(FIXED, "served", 1)),
            Ok(samples::request(FIXED, "served", 2)),
        ],
        ..Script::default()
    });
    let ran = bench.run("requests wait job-7 --timeout 1m -o json");
    assert_eq!(ran.code, 0, "{ran:?}");
    let request: serde_json::Value = serde_json::from_str(&ran.stdout).expect("json");
    assert_eq!(request["units_ready"], 2);
    for needle in [
        "0 of 2 units ready",
        "1 of 2 units ready",
        "restarting",
        "2 of 2 units ready",
    ] {
        assert!(ran.stderr.contains(needle), "{needle}: {ran:?}");
    }
}

#[test]
fn wait_gives_up_with_the_reason() {
    for (state, line, needles) in [
        (
            "impossible",
            "requests wait job-7",
            &["can never be served", "titan-02 is coming"][..],
        ),
        ("cancelled", "requests wait job-7", &["was cancelled"]),
        ("ended", "requests wait job-7", &["has ended"]),
        (
            "pending",
            "requests wait job-7 --timeout 700ms",
            &[
                "not served within 700ms",
                "0 of 2 units ready",
                "titan-02 is coming",
            ],
        ),
    ] {
        let bench = Bench::new(Script {
            requests: vec![Ok(samples::request(FIXED, state, 0))],
            ..Script::default()
        });
        let ran = bench.run(line);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{state}: {ran:?}");
        for needle in needles {
            assert!(ran.stderr.contains(needle), "{state}: {ran:?}");
        }
    }
    let ran = Bench::new(Script::default()).run("requests wait nobody");
    assert_eq!(ran.code, 1, "{ran:?}");
}

#[test]
fn create_can_wait() {
    let bench = Bench::new(Script {
        requests: vec![
            Ok(samples::request(FIXED, "pending", 0)),
            Ok(samples::request(FIXED, "served", 2)),
        ],
        ..Script::default()
    });
    let ran = bench.run("requests create --name job-7 --gpus 2 --wait");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("titan-01"), "{ran:?}");
}

#[test]
fn wait_shows_a_bar_on_a_terminal() {
    let bench = Bench::new(Script {
        requests: vec![
            Ok(samples::request(FIXED, "pending", 1)),
            Ok(samples::request(FIXED, "served", 2)),
        ],
        ..Script::default()
    });
    let shown = on_a_terminal(bench.home.path(), "requests wait job-7", None);
    assert!(shown.contains("1/2 units ready"), "{shown:?}");
}

fn plan_files() -> (Vec<u8>, Vec<u8>) {
    let input: drover_core::model::PlanInput = serde_json::from_value(serde_json::json!({
        "version": drover_core::model::PLAN_VERSION, "now": FIXED, "seed": 7,
        "pools": [], "nodes": [], "launches": [], "memory": [], "policy": {},
        "classes": [{"source": {"request": "job-7"}, "unit": {"gpus": 1}, "count": 3, "submitted": FIXED}],
    }))
    .expect("input");
    let planned = drover_core::planner::plan(&input);
    (
        drover_core::planner::to_bytes(&input),
        drover_core::planner::to_bytes(&planned),
    )
}

#[test]
fn a_saved_input_plans_to_the_same_bytes_without_a_coordinator() {
    let (input_json, plan_json) = plan_files();
    let bench = Bench::new(Script {
        plan: v1::PlanReply {
            input_json: input_json.clone(),
            plan_json: plan_json.clone(),
            cycle: 3,
        },
        ..Script::default()
    });
    assert_eq!(
        bench.stdout("plan -o json --save now.json").as_bytes(),
        plan_json
    );
    assert_eq!(
        std::fs::read(bench.home.path().join("now.json")).expect("saved"),
        input_json
    );
    bench.stdout("plan --fresh");
    assert!(bench.asked().contains("fresh: true"));
    let home = tempfile::tempdir().expect("directory");
    std::fs::write(home.path().join("0001.input.json"), &input_json).expect("file");
    let ran = drover(home.path(), "plan --from 0001.input.json -o json");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stdout.as_bytes(), plan_json);
    let ran = drover(home.path(), "plan --from 0001.input.json");
    assert!(
        ran.stdout.contains("request/job-7") && ran.stdout.contains("UNPLACED"),
        "{ran:?}"
    );
    let ran = drover(
        home.path(),
        "plan --from 0001.input.json --redact --save hidden.json",
    );
    assert!(
        ran.stdout.contains("request/n0-request") && !ran.stdout.contains("job-7"),
        "{ran:?}"
    );
    let hidden = std::fs::read_to_string(home.path().join("hidden.json")).expect("saved");
    assert!(
        hidden.contains("n0-request") && !hidden.contains("job-7"),
        "{hidden}"
    );
    bench.stdout("plan --redact --save hidden.json");
    let asked = std::fs::read_to_string(bench.home.path().join("hidden.json")).expect("saved");
    assert_eq!(asked, hidden);
    std::fs::write(home.path().join("bad.json"), b"{\"version\": 99}").expect("file");
    let ran = drover(home.path(), "plan --from bad.json");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("version 99"), "{ran:?}");
}

#[test]
fn a_backup_is_whole_private_and_never_overwritten() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new(Script {
        backup: vec![b"abc".to_vec(), b"def".to_vec()],
        ..Script::default()
    });
    let run = |passphrase: &str| {
        finish(
            command(bench.home.path())
                .env("DROVER_BACKUP_PASSPHRASE", passphrase)
                .args(["backup", "b.drover"]),
        )
    };
    assert_eq!(run("short").code, 2);
    let ran = run("a long passphrase");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(bench.asked().contains("a long passphrase"));
    let file = bench.home.path().join("b.drover");
    assert_eq!(std::fs::read(&file).expect("backup"), b"abcdef");
    assert_eq!(
        std::fs::metadata(&file)
            .expect("backup")
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
    assert_eq!(run("a long passphrase").code, 1);
    bench.script.lock().expect("script").backup.clear();
    std::fs::remove_file(&file).expect("remove");
    assert_eq!(run("a long passphrase").code, 1);
    assert!(!file.exists());
}

#[test]
fn an_issued_certificate_becomes_a_context() {
    let bench = Bench::new(samples::script(FIXED));
    bench.stdout("certificates issue ann --role operator");
    let asked = bench.asked();
    assert!(
        asked.contains("role: \"operator\"") && asked.contains("ttl_ms: 7776000000"),
        "{asked}"
    );
    let home = bench.home.path();
    let contexts = std::fs::read_to_string(home.join("config.toml")).expect("contexts");
    let address = contexts
        .lines()
        .find_map(|l| l.strip_prefix("address = "))
        .expect("address")
        .trim_matches('"')
        .to_owned();
    bench.stdout(&format!(
        "context add ann --address {address} --ca ann.ca.crt --cert ann.crt --key ann.key"
    ));
    bench.stdout("--context ann nodes list");
    bench.stdout("context use ann");
    assert!(bench.stdout("context show").contains("ann.key"));
    let list: serde_json::Value =
        serde_json::from_str(&bench.stdout("context list -o json")).expect("json");
    assert_eq!(list[0]["name"], "ann");
    assert_eq!(list[0]["current"], true);
    assert_eq!(
        bench.run("certificates issue ann --role operator").code,
        1,
        "nothing is overwritten"
    );
    assert_eq!(bench.run("context use nobody").code, 64);
}

#[test]
fn completions_and_version_need_no_coordinator() {
    let home = tempfile::tempdir().expect("directory");
    for shell in ["bash", "zsh", "fish"] {
        let ran = drover(home.path(), &format!("completions {shell}"));
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.contains("cancel-drain"), "{shell}");
    }
    let ran = drover(home.path(), "version");
    assert_eq!(
        ran.stdout,
        format!("drover {}\n", env!("CARGO_PKG_VERSION"))
    );
    let bench = Bench::new(samples::script(FIXED));
    assert!(
        bench
            .stdout("version --coordinator")
            .contains("coordinator 0.1.0")
    );
}

#[test]
fn the_reference_is_what_the_binary_says() {
    let home = tempfile::tempdir().expect("directory");
    let ran = drover(home.path(), "reference");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    let written = std::fs::read_to_string(&path).expect("docs/cli.md");
    assert!(
        written == ran.stdout,
        "docs/cli.md is old: write it with `drover reference > docs/cli.md`"
    );
}
