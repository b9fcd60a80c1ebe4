//! `drover simulate` as a process: a newcomer's CSV, the formats, what is refused, the same run twice, the public traces.

use std::path::{Path, PathBuf};
use std::process::Command;

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn drover(arguments: &[&str]) -> Ran {
    let out = Command::new(env!("CARGO_BIN_EXE_drover"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran {
        code: out.status.code(),
        stdout: text(&out.stdout),
        stderr: text(&out.stderr),
    }
}

fn example(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/simulate");
    root.join(name).to_str().expect("a path").to_owned()
}

fn write(dir: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path: PathBuf = dir.path().join(name);
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("a path").to_owned()
}

fn json(ran: &Ran) -> serde_json::Value {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("one JSON object")
}

#[test]
fn a_newcomers_csv_gives_a_table_an_object_and_a_file_of_jobs() {
    let dir = tempfile::tempdir().expect("a folder");
    let trace = write(
        &dir,
        "mine.csv",
        "job,submit,duration,gpus,units\ntrain,0s,2h,8,2\nsweep-1,10m,30m,1,1\nsweep-2,10m,1h,1,1\n",
    );
    let config = example("philly.toml");
    let ran = drover(&["simulate", &trace, "--config", &config, "--format", "csv"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let row = |name: &str| ran.stdout.lines().find(|line| line.starts_with(name));
    let placer = row("placer").expect("a row");
    assert!(placer.ends_with("planner"), "{}", ran.stdout);
    let cost = row("cost ").expect("a row");
    assert!(cost.contains("5.0"), "{}", ran.stdout);

    let jobs = dir.path().join("jobs.csv");
    let jobs = jobs.to_str().expect("a path");
    let found = json(&drover(&[
        "simulate", &trace, "--config", &config, "--format", "csv", "-o", "json", "--jobs", jobs,
    ]));
    // Two nodes for two hours, and one for an hour.
    assert_eq!(found["cost_node_hours"], 5.0);
    assert_eq!(found["jobs"], 3);
    for none in ["jobs_killed", "jobs_unstarted", "violations"] {
        assert_eq!(found[none], 0, "{none}");
    }
    let text = std::fs::read_to_string(jobs).expect("written");
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(
        text.lines().any(|line| line.starts_with("train,2,0,")),
        "{text}"
    );
}

#[test]
fn a_bad_trace_names_file_line_column_and_what_was_expected() {
    let dir = tempfile::tempdir().expect("a folder");
    let trace = write(
        &dir,
        "bad.csv",
        "job,submit_s,num_gpus,duration_s\na,0,1,60\nb,soon,1,60\nc,0,1,-5\n",
    );
    let ran = drover(&["simulate", &trace, "--config", &example("philly.toml")]);
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(ran.stdout.is_empty());
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(
        lines[0].ends_with(
            "bad.csv:3: column 2 (submit_s) is \"soon\"; write seconds, not negative, as in 3600"
        ),
        "{}",
        ran.stderr
    );
    assert!(
        lines[1].contains("bad.csv:4: column 4 (duration_s) is \"-5\""),
        "{}",
        ran.stderr
    );
    assert!(
        lines[2].starts_with("error: ") && lines[2].contains("2 problems"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_bad_config_and_missing_files_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let config = write(&dir, "bad.toml", "[simulate]\nplacr = \"planner\"\n");
    let trace = write(&dir, "one.csv", "submit_s,duration_s,gpus\n0,60,1\n");
    let ran = drover(&["simulate", &trace, "--config", &config]);
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("bad.toml:2: simulate.placr is an unknown key; did you mean placer?"),
        "{}",
        ran.stderr
    );
    let ran = drover(&[
        "simulate",
        "/nowhere/x.csv",
        "--config",
        &example("philly.toml"),
    ]);
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("cannot read /nowhere/x.csv"),
        "{}",
        ran.stderr
    );
    let ran = drover(&["simulate", &trace]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--config"), "{}", ran.stderr);
}

#[test]
fn a_generated_workload_plays_and_the_same_seed_gives_the_same_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("jobs.jsonl");
    let file = file.to_str().expect("a path");
    let make = [
        "simulate", "generate", "--seed", "11", "--jobs", "60", "--days", "2",
    ];
    let ran = drover(&[&make[..], &["--file", file]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let text = std::fs::read_to_string(file).expect("written");
    assert_eq!(text.lines().count(), 60);
    assert_eq!(drover(&make).stdout, text, "to stdout the same");
    let play = |seed: &str| {
        let config = example("philly-boot.toml");
        let ran = drover(&[
            "simulate", file, "--config", &config, "--format", "lines", "--seed", seed, "-o",
            "json",
        ]);
        let mut found = json(&ran);
        found
            .as_object_mut()
            .expect("an object")
            .remove("plan_seconds");
        found
    };
    let first = play("1");
    assert_eq!(first["violations"], 0, "{first}");
    assert_eq!(first["jobs_killed"], 0);
    assert_eq!(first, play("1"));
}

#[test]
fn the_public_traces_play() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/traces");
    let name = "philly_e13805.csv";
    let trace = traces.join(name);
    if !trace.exists() {
        eprintln!("{name} is not there: not played");
        return;
    }
    let trace = trace.to_str().expect("a path");
    let found = json(&drover(&[
        "simulate",
        trace,
        "--config",
        &example("philly.toml"),
        "-o",
        "json",
    ]));
    eprintln!("played {name}: {found}");
    assert_eq!(found["jobs"], 374);
    for none in ["jobs_killed", "jobs_unstarted", "violations", "wait_p99_s"] {
        assert_eq!(found[none].as_f64(), Some(0.0), "{none}");
    }
    let cost = found["cost_node_hours"].as_f64().expect("a number");
    assert!((2_641.0..2_641.0 * 1.2).contains(&cost), "{cost}");
}

/// Scenarios that once violated an invariant, made small. Each plays alone: `drover simulate --config FILE`.
#[test]
fn scenarios_that_once_failed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut names: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it is listed").path())
        .collect();
    names.sort();
    assert!(names.len() >= 2, "{names:?}");
    for name in names {
        let file = name.to_str().expect("a path");
        let played = json(&drover(&["simulate", "--config", file, "-o", "json"]));
        assert_eq!(played["violations"], 0, "{file}: {played}");
    }
}

#[test]
fn days_of_mishaps_are_played_by_seed() {
    let dir = tempfile::tempdir().expect("a folder");
    let keep = dir.path().join("keep");
    let arguments = [
        "simulate", "seeds", "--days", "3", "--first", "40", "--keep",
    ];
    let ran = drover(
        &[
            &arguments[..],
            &[keep.to_str().expect("a path"), "-o", "json"],
        ]
        .concat(),
    );
    let sum = json(&ran);
    assert_eq!((&sum["days"], &sum["violations"]), (&3.into(), &0.into()));
    assert!(sum["jobs"].as_u64() > Some(0) && sum["days_per_minute"].as_f64() > Some(0.0));
    assert_eq!(std::fs::read_dir(&keep).expect("made").count(), 0);
}

/// What was submitted first starts on the node that was asked for it, however much comes in the meantime.
#[test]
fn later_work_does_not_take_the_node_that_was_asked_for_earlier_work() {
    let dir = tempfile::tempdir().expect("a folder");
    let config = write(&dir, "one.toml", ONE_POOL);
    let late = |gpus: u32, units: u32| {
        let rows = (0..40).map(|n| format!("late-{n},{},120,{gpus},{units}\n", 250 + 40 * n));
        rows.collect::<String>()
    };
    let cases = [(8, "gangs", late(8, 2)), (1, "larger jobs", late(8, 1))];
    for (gpus, what, rows) in cases {
        let head = "id,submit_s,duration_s,gpus,units\n";
        let trace = format!("{head}first,0,1800,{gpus},1\n{rows}");
        let trace = write(&dir, "mini.csv", &trace);
        let jobs = dir.path().join("jobs.json");
        let jobs = jobs.to_str().expect("a path");
        let played = drover(&[
            "simulate", &trace, "--config", &config, "--jobs", jobs, "-o", "json",
        ]);
        let score = json(&played);
        // Everybody waits for one boot at most.
        assert_eq!(score["wait_max_s"], 0.0, "{what}: {score}");
        assert_eq!(score["jobs_unstarted"], 0, "{what}");
        let text = std::fs::read_to_string(jobs).expect("the jobs");
        let jobs: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let mut all = jobs["jobs"].as_array().expect("a list").iter();
        let first = all.find(|job| job["job"] == "first").expect("it is there");
        assert_eq!(first["start_s"], 300.0, "{what}: {first}");
    }
}

const ONE_POOL: &str = r#"
[simulate]
cost = "node-hours"
[control]
breaker_fleet_percent = 50
breaker_pool = 100
[[pool]]
name = "v100"
kind = "sim"
site = "sim-1"
group = "v100"
mode = "full"
max = 1000
idle_after = "10m"
removal_quota = "100%"
[[group]]
name = "v100"
region = "sim-1"
max = 1000
[[group.offering]]
instance_type = "p3.16xlarge"
zone = "sim-1a"
price_micro_usd_per_hour = 1000000
gpus = 8
gpu_model = "v100"
cpus = 64
memory_gib = 488
boot_ms = 300000
"#;

#[test]
fn a_config_without_jobs_needs_a_trace() {
    let ran = drover(&["simulate", "--config", &example("philly.toml")]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("TRACE"), "{}", ran.stderr);
    let ran = drover(&["simulate"]);
    assert!(ran.stderr.contains("--config"), "{}", ran.stderr);
}

const SMALL: &str = "id,submit_s,duration_s,gpus\na,0,36000,8\nb,100,36000,8\ne,400,3600,1\n";

/// The example with boot time, with another text in place of one of its.
fn another(dir: &tempfile::TempDir, name: &str, from: &str, to: &str) -> String {
    let text = std::fs::read_to_string(example("philly-boot.toml")).expect("is there");
    assert!(text.contains(from), "{from}");
    write(dir, name, &text.replace(from, to))
}

#[test]
fn a_policy_that_does_nothing_wins_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let trace = write(&dir, "small.csv", SMALL);
    let observe = another(
        &dir,
        "observe.toml",
        "mode = \"full\"",
        "mode = \"observe\"",
    );
    let report = dir.path().join("report");
    let asked = [
        "simulate",
        &trace,
        "--config",
        &example("philly-boot.toml"),
        "--compare",
        &observe,
        "--report",
        report.to_str().expect("a path"),
    ];
    let ran = drover(&asked);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.contains(" h less"), "{}", ran.stdout);
    for says in [
        "drover observe: 3 of 3 jobs never started",
        "drover observe waited for: would ask v100",
        "jobs never started: 0 with drover philly-boot, 3 with drover observe",
        "not started / not started / not started",
    ] {
        assert!(ran.stdout.contains(says), "{says}: {}", ran.stdout);
    }
    let page = std::fs::read_to_string(report.join("index.html")).expect("written");
    assert!(page.contains("3 of 3 jobs never started") && !page.contains(" h less"));
    let found = json(&drover(&[&asked[..], &["-o", "json"]].concat()));
    let none = &found["policies"][1];
    for key in [
        "wait_p50_s",
        "wait_p99_s",
        "cost_over_bound",
        "gap_closed",
        "cost_usd",
    ] {
        assert_eq!(none.get(key), Some(&serde_json::Value::Null), "{key}");
    }
    assert!(none["simulated_days"].as_f64() >= Some(1.0), "{none}");
    assert_eq!(none["share_waited"], 1.0);
    let causes = none["jobs_waited_for"].as_array().expect("a list");
    assert!(!causes.is_empty());
}

#[test]
fn a_share_of_a_gpu_that_cannot_be_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut text = String::new();
    for unit in [
        "\"gpus\":1,\"gpu_milli\":500",
        "\"gpu_milli\":1500",
        "\"gpu_milli\":1000",
    ] {
        text.push_str(&format!(
            "{{\"id\":\"{}\",\"submit_ms\":0,\"duration_ms\":1,\"unit\":{{{unit}}}}}\n",
            text.len()
        ));
    }
    let trace = write(&dir, "gm.jsonl", &text);
    let ran = drover(&["simulate", &trace, "--config", &example("philly.toml")]);
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    for line in [
        "gm.jsonl:1: column 58 (unit.gpu_milli) stands beside whole GPUs; keep gpus",
        "gm.jsonl:2: column 50 (unit.gpu_milli) is 1500; write a share of one GPU from 1 to 999",
        "gm.jsonl:3: column 51 (unit.gpu_milli) is 1000; write",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
}

#[test]
fn configs_of_one_name_are_told_apart() {
    let dir = tempfile::tempdir().expect("a folder");
    let trace = write(&dir, "small.csv", SMALL);
    std::fs::create_dir(dir.path().join("maybe")).expect("made");
    let other = another(
        &dir,
        "maybe/philly-boot.toml",
        "idle_after = \"10m\"",
        "idle_after = \"2h\"",
    );
    let ran = drover(&[
        "simulate",
        &trace,
        "--config",
        &example("philly-boot.toml"),
        "--compare",
        &other,
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let policies = ran.stdout.lines().next().unwrap_or_default();
    assert!(
        policies.contains("drover simulate/philly-boot")
            && policies.contains("drover maybe/philly-boot"),
        "{policies}"
    );
}

#[test]
fn files_that_cannot_be_written_are_told_before_anything_is_played() {
    let dir = tempfile::tempdir().expect("a folder");
    let trace = write(&dir, "small.csv", SMALL);
    let config = example("philly-boot.toml");
    let file = write(&dir, "file", "kept");
    let inside = dir.path().join("file/x");
    let inside = inside.to_str().expect("a path");
    for flag in ["--jobs", "--report"] {
        let ran = drover(&["simulate", &trace, "--config", &config, flag, inside]);
        assert_eq!(ran.code, Some(1), "{flag}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("cannot write"),
            "{flag}: {}",
            ran.stderr
        );
        assert!(
            ran.stdout.is_empty(),
            "{flag}: it was played: {}",
            ran.stdout
        );
    }
    assert_eq!(std::fs::read_to_string(&file).expect("is there"), "kept");
    // What is refused leaves files as they are; what cannot be written after all costs no result.
    let ran = drover(&[
        "simulate",
        &trace,
        "--config",
        &config,
        "--jobs",
        &file,
        "--policy",
        "best-fit:x",
    ]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&file).expect("is there"), "kept");
    let full = Path::new("/dev/full");
    if full.exists() {
        let ran = drover(&[
            "simulate",
            &trace,
            "--config",
            &config,
            "--jobs",
            "/dev/full",
        ]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(
            ran.stdout.contains("lower bound"),
            "no result: {}",
            ran.stdout
        );
    }
}
