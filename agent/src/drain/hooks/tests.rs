//! Tests of hooks, with real executables.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;

use super::process::{OUTPUT_BYTES, capped};
use super::*;

struct Bench {
    dir: tempfile::TempDir,
    cancel: watch::Sender<bool>,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("hooks")).unwrap();
        mode(&dir.path().join("hooks"), 0o755);
        Self {
            dir,
            cancel: watch::channel(false).0,
        }
    }

    fn out(&self) -> String {
        fs::read_to_string(self.dir.path().join("out")).unwrap_or_default()
    }

    fn hook(&self, name: &str, script: &str) -> PathBuf {
        let path = self.dir.path().join("hooks").join(name);
        let out = self.dir.path().join("out");
        // Written by another process: a file that is open for writing here may be so in a child of another test as
        // well, and what is open for writing cannot be run.
        let text = format!("#!/bin/sh\nOUT={}\n{script}", out.display());
        let written = std::process::Command::new("sh")
            .args(["-c", r#"printf '%s\n' "$2" > "$1" && chmod 755 "$1""#, "sh"])
            .args([path.as_os_str(), text.as_ref()])
            .status()
            .unwrap();
        assert!(written.success());
        path
    }

    fn hooks(&self, deadline_ms: u64, fail_open: bool) -> Hooks {
        Hooks {
            config: config::Hooks {
                dir: self.dir.path().join("hooks"),
                deadline: Duration::from_millis(deadline_ms),
                grace: Duration::from_millis(200),
                fail_open,
            },
            in_scopes: false,
        }
    }

    fn job(&self) -> Job {
        Job {
            drain_id: "d-1".into(),
            reason: "spot; rm -rf $HOME".into(),
            deadline_unix_ms: Some(1_234_567),
            cancel: self.cancel.subscribe(),
        }
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn run_by_name_with_phase_and_environment() {
    let bench = Bench::new();
    bench.hook("20-b", r#"echo "b $1" >> $OUT"#);
    bench.hook(
        "10-a",
        r#"echo "a $1 $DROVER_PHASE $DROVER_DRAIN_ID $DROVER_DEADLINE_UNIX $DROVER_REASON" >> $OUT"#,
    );
    let plain = bench.hook("30-not-executable", "echo no >> $OUT");
    mode(&plain, 0o644);
    let hooks = bench.hooks(10_000, false);
    hooks.checkpoint(&bench.job(), None).await.unwrap();
    hooks.undo(&bench.job(), false).await.unwrap();
    assert_eq!(
        bench.out(),
        "a checkpoint checkpoint d-1 1234 spot; rm -rf $HOME\nb checkpoint\n\
         a undo undo d-1 1234 spot; rm -rf $HOME\nb undo\n"
    );
}

#[tokio::test]
async fn a_failure_names_the_hook_and_stops_the_rest_unless_ignored() {
    let bench = Bench::new();
    bench.hook("10-a", "echo disk full >&2; exit 3");
    bench.hook("20-b", "echo b >> $OUT");
    let blocker = bench
        .hooks(10_000, false)
        .cordon(&bench.job())
        .await
        .unwrap_err();
    assert_eq!(
        (blocker.kind, blocker.subject.as_str()),
        (BlockerKind::Hook, "10-a")
    );
    assert_eq!(
        blocker.message,
        "hook 10-a (cordon) failed with exit status: 3: disk full"
    );
    assert_eq!(bench.out(), "");
    assert_eq!(bench.hooks(10_000, true).cordon(&bench.job()).await, Ok(()));
}

#[tokio::test]
async fn one_that_hangs_is_ended_with_its_children() {
    let bench = Bench::new();
    bench.hook(
        "10-a",
        "trap '' TERM\nsleep 600 &\necho $! >> $OUT\nwait\nsleep 600",
    );
    let began = std::time::Instant::now();
    let blocker = bench
        .hooks(3_000, false)
        .announce(&bench.job())
        .await
        .unwrap_err();
    assert!(
        blocker.message.contains("did not end within 3s"),
        "{}",
        blocker.message
    );
    assert!(began.elapsed() < Duration::from_secs(30));
    let child: i32 = bench.out().trim().parse().unwrap();
    let gone = || match fs::read_to_string(format!("/proc/{child}/stat")) {
        Ok(stat) => stat.contains(") Z "),
        Err(_) => true,
    };
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !gone() {
        assert!(std::time::Instant::now() < deadline, "its child lives on");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_cancelled_drain_ends_its_hook() {
    let bench = Bench::new();
    bench.hook("10-a", "echo began >> $OUT; sleep 600");
    let hooks = bench.hooks(60_000, false);
    let job = bench.job();
    let run = hooks.checkpoint(&job, None);
    let cancel = async {
        while bench.out().is_empty() {
            tokio::task::yield_now().await;
        }
        bench.cancel.send_replace(true);
    };
    let (result, ()) = tokio::join!(run, cancel);
    assert!(result.unwrap_err().message.contains("taken back"));
}

#[tokio::test]
async fn output_is_capped_and_a_pipe_held_open_is_not_waited_for() {
    let bench = Bench::new();
    bench.hook(
        "10-a",
        "head -c 1000000 /dev/zero; sleep 600 & echo $! >> $OUT",
    );
    bench
        .hooks(30_000, false)
        .cordon(&bench.job())
        .await
        .unwrap();
    let child: i32 = bench.out().trim().parse().unwrap();
    nix::sys::signal::kill(Pid::from_raw(child), Signal::SIGKILL).unwrap();
    assert_eq!(
        capped(Some(tokio::io::repeat(7).take(200_000))).await.len(),
        OUTPUT_BYTES
    );
}

#[test]
fn what_others_can_write_to_is_refused() {
    let bench = Bench::new();
    let hook = bench.hook("10-a", "");
    let dir = bench.dir.path().join("hooks");
    assert_eq!(list(&dir).unwrap(), std::slice::from_ref(&hook));
    mode(&hook, 0o775);
    assert!(
        list(&dir)
            .unwrap_err()
            .message
            .contains("writable by group")
    );
    mode(&hook, 0o755);
    mode(&dir, 0o757);
    assert!(
        list(&dir)
            .unwrap_err()
            .message
            .contains("writable by group")
    );
    assert_eq!(list(&dir.join("nowhere")).unwrap(), Vec::<PathBuf>::new());
}
