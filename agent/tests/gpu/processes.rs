//! AG-10, and what is said of a real process that holds a GPU.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command};

use drover_agent::collector::{GPU_PROCESSES, PROCESSES, ProcessMatcher};
use drover_agent::observation::{Observation, WorkloadKind};
use serde_json::json;

use crate::bed::{Bed, gpus};

const GIB: u64 = 1 << 30;

/// A job that holds GPUs, as the stub's folder wants it.
struct Job(Child);

impl Job {
    fn start(folder: &Path, lines: &str, request: &str) -> Self {
        let script = r#"printf "$LINES_OF_JOB" > "$FOLDER/$$"; exec sleep 600"#;
        let child = Command::new("sh")
            .args(["-c", script])
            .env("FOLDER", folder)
            .env("LINES_OF_JOB", lines)
            .env("DROVER_REQUEST", request)
            .env("DROVER_MOVABLE", if request.is_empty() { "" } else { "1" })
            .spawn()
            .unwrap();
        Self(child)
    }

    fn end(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // Ended already, mostly.
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[tokio::test]
async fn a_process_that_holds_gpus_is_a_workload() {
    let bed = Bed::new(json!([{"profile": "titan-x", "count": 4}]), 4);
    let mut agent = bed.start();
    let idle = agent.wait_gpus(4).await;
    assert!(
        gpus(&idle)
            .iter()
            .all(|gpu| gpu.utilisation_percent == Some(0))
    );
    assert!(idle.workloads.is_empty() && idle.witnesses.contains(GPU_PROCESSES));

    let job = Job::start(
        &bed.path("processes"),
        "1 1073741824\\n2 2147483648\\n",
        "night",
    );
    let pid = job.0.id();
    // The list of one GPU may be older than the job, those of the others not.
    let used = |seen: &Observation| -> Vec<_> {
        let gpus = gpus(seen).iter();
        gpus.map(|gpu| gpu.utilisation_percent).collect()
    };
    let busy = agent
        .wait("the job", |seen| {
            seen.workloads.len() == 1
                && seen.workloads[0].command.starts_with("sleep")
                && seen.workloads[0].gpus.len() == 2
                && used(seen) == [Some(0), Some(97), Some(97), Some(0)]
        })
        .await;
    let workload = &busy.workloads[0];
    assert_eq!(
        (workload.kind, workload.pid),
        (WorkloadKind::GpuProcess, pid)
    );
    assert_eq!(workload.command, "sleep 600");
    assert_eq!(workload.request.as_deref(), Some("night"));
    assert!(workload.movable);
    assert_eq!(workload.gpu_memory_bytes, Some(3 * GIB));
    let uuid = |index: usize| busy.facts.gpus[index].uuid.clone();
    assert_eq!(workload.gpus, BTreeSet::from([uuid(1), uuid(2)]));
    let me = nix::unistd::User::from_uid(nix::unistd::geteuid())
        .unwrap()
        .unwrap();
    assert_eq!(workload.user, me.name);
    assert!(workload.start_ticks > 0);

    job.end();
    agent
        .wait("an idle node", |seen| {
            seen.workloads.is_empty() && seen.witnesses.contains(GPU_PROCESSES)
        })
        .await;
    agent.collector.stop().await;
}

#[tokio::test]
async fn a_process_that_runs_another_program_is_told_anew() {
    let bed = Bed::new(json!([{"profile": "titan-x"}]), 1);
    let mut agent = bed.start();
    let gate = bed.path("gate");
    let made = Command::new("mkfifo").arg(&gate).status().unwrap();
    assert!(made.success());
    let script = r#"echo "0 1073741824" > "$FOLDER/$$"
        read go < "$GATE"
        exec env -u DROVER_MOVABLE sleep 600"#;
    let child = Command::new("sh")
        .args(["-c", script])
        .env("FOLDER", bed.path("processes"))
        .env("GATE", &gate)
        .env("DROVER_REQUEST", "night")
        .env("DROVER_MOVABLE", "1")
        .spawn()
        .unwrap();
    let job = Job(child);
    let before = agent
        .wait("the shell", |seen| !seen.workloads.is_empty())
        .await;
    let before = &before.workloads[0];
    assert!(before.command.starts_with("sh -c"), "{}", before.command);
    assert!(before.movable);

    // The shell reads from it until it has a line.
    std::fs::write(&gate, "go\n").unwrap();
    let after = agent
        .wait("the other program", |seen| {
            seen.workloads
                .iter()
                .any(|workload| workload.command == "sleep 600")
        })
        .await;
    let after = &after.workloads[0];
    assert_eq!(after.id(), before.id());
    assert!(!after.movable, "it says so no more");
    assert_eq!(after.request.as_deref(), Some("night"));
    job.end();
    agent.collector.stop().await;
}

#[tokio::test]
async fn ag_10_nonsense_is_unknown_and_never_a_number() {
    let mut bed = Bed::new(json!([{"profile": "titan-x", "memory": 24 * GIB}]), 1);
    let jobs = [
        Job::start(Path::new("/nonexistent"), "", ""),
        Job::start(Path::new("/nonexistent"), "", ""),
        Job::start(Path::new("/nonexistent"), "", ""),
    ];
    let pid = |at: usize| jobs[at].0.id();
    bed.edit(|script| {
        script["processes"] = json!([
            {"gpu": 0, "pid": pid(0), "memory": GIB},
            {"gpu": 0, "pid": pid(0), "memory": 2 * GIB, "type": "graphics"},
            {"gpu": 0, "pid": pid(1), "memory": u64::MAX},
            {"gpu": 0, "pid": pid(2), "memory": 40 * GIB},
            {"gpu": 0, "pid": 1_073_741_824, "memory": 4242},
            {"gpu": 0, "pid": 0, "memory": 0},
        ]);
    });
    let mut agent = bed.start();
    let seen = agent
        .wait("three processes", |seen| seen.workloads.len() == 3)
        .await;
    let mut found: Vec<_> = seen
        .workloads
        .iter()
        .map(|w| (w.pid, w.gpu_memory_bytes))
        .collect();
    found.sort_unstable();
    let mut want = vec![(pid(0), Some(2 * GIB)), (pid(1), None), (pid(2), None)];
    want.sort_unstable();
    assert_eq!(found, want);
    assert!(seen.witnesses.contains(GPU_PROCESSES));

    // Only nonsense on a GPU with memory in use: not known to be idle.
    bed.edit(|script| {
        script["processes"] = json!([{"gpu": 0, "pid": 1_073_741_824, "memory": 4242}]);
        script["gpus"][0]["used"] = json!(GIB);
    });
    let why = |seen: &Observation| seen.unreadable.get(GPU_PROCESSES).cloned();
    // A probe that is late makes it unknown as well, for another reason.
    let seen = agent
        .wait("unknown", |seen| {
            why(seen).is_some_and(|why| why.contains("makes sense"))
        })
        .await;
    assert!(seen.workloads.is_empty() && !seen.witnesses.contains(GPU_PROCESSES));
    // The memory may have been asked for before the change, the list in the same round after it.
    agent
        .wait("its mark and its memory", |seen| {
            gpus(seen)
                .first()
                .is_some_and(|gpu| !gpu.processes_known && gpu.memory_used_bytes == Some(GIB))
        })
        .await;

    // A list that cannot be read at all.
    bed.edit(|script| script["gpus"][0]["calls"] = json!({"ComputeRunningProcesses": {"code": 4}}));
    agent
        .wait("no list", |seen| {
            why(seen).is_some_and(|why| why.contains("gives no list"))
        })
        .await;
    agent.collector.stop().await;
}

#[tokio::test]
async fn a_matcher_makes_a_workload_without_a_gpu() {
    let mut bed = Bed::new(json!([]), 0);
    // No other run of this test has a job like it.
    let seconds = format!("600.25{}", std::process::id());
    bed.config.matcher_interval = bed.config.interval;
    bed.config.matchers = vec![ProcessMatcher {
        executable: Some("sleep".to_owned()),
        command: Some(format!("sleep {seconds}")),
        user: None,
    }];
    let mut agent = bed.start();
    let idle = agent
        .wait("a walk", |seen| seen.witnesses.contains(PROCESSES))
        .await;
    assert!(idle.workloads.is_empty());
    let job = Job(Command::new("sleep").arg(&seconds).spawn().unwrap());
    let seen = agent
        .wait("the job", |seen| !seen.workloads.is_empty())
        .await;
    assert_eq!(seen.workloads.len(), 1);
    assert_eq!(
        (seen.workloads[0].kind, seen.workloads[0].pid),
        (WorkloadKind::Process, job.0.id())
    );
    job.end();
    agent
        .wait("its end", |seen| seen.workloads.is_empty())
        .await;
    agent.collector.stop().await;
}
