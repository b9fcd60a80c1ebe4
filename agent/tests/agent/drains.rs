//! Drains with real processes and hooks.

use std::process::Command;

use drover_proto::v1::{Desired, DrainPolicy, DrainState};

use crate::fake::Fake;
use crate::inside::{Inside, Work, busy, idle, until};
use crate::orders::{drain, order};

const BOTH: &str = "[drain]\nexecutors = [\"processes\", \"hooks\"]";

#[tokio::test]
async fn waiting_names_the_process_and_ends_when_it_ends() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let agent = Inside::start(&fake, dir.path(), "");
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    let mut work = Work::start();
    agent.see(busy(&work.0));
    fake.order(drain(1, 1, DrainPolicy::Wait, 0)).await;
    let status = fake
        .status("blockers", |status| !status.blockers.is_empty())
        .await;
    assert_eq!(status.drain_state(), DrainState::Waiting);
    let text = format!("process {} (alice) sleep 600 holds 1 GPU", work.0.id());
    assert_eq!(status.blockers[0].message, text);
    assert_eq!((status.workloads_at_start, status.workloads_now), (1, 1));
    assert!(dir.path().join("cordoned").exists());
    assert!(work.is_alive());
    work.0.kill().unwrap();
    work.0.wait().unwrap();
    agent.see(idle());
    let status = fake
        .status("drained", |status| {
            status.drain_state() == DrainState::Drained
        })
        .await;
    assert!(status.ended.is_empty(), "{:?}", status.ended);
    let cordoned = |script: &crate::fake::Script| {
        let actual = script.reports.last()?.actual.clone()?;
        actual.cordoned_by_us.then_some(())
    };
    fake.until("the cordon in reports", cordoned).await;
}

#[tokio::test]
async fn cancelling_restores_and_ends_nobody() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let agent = Inside::start(&fake, dir.path(), "");
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    let mut work = Work::start();
    agent.see(busy(&work.0));
    fake.order(drain(1, 1, DrainPolicy::Wait, 0)).await;
    fake.status("waiting", |status| {
        status.drain_state() == DrainState::Waiting
    })
    .await;
    fake.order(order(1, 2, Desired::Active)).await;
    let status = fake
        .status("cancelled", |status| {
            status.drain_state() == DrainState::Cancelled
        })
        .await;
    assert_eq!((status.generation, status.drain_id.as_str()), (2, "d-1"));
    until("uncordoned", || !dir.path().join("cordoned").exists()).await;
    assert!(work.is_alive());
}

#[tokio::test]
async fn evicting_runs_the_checkpoint_then_ends_the_process_and_tells_how() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let agent = Inside::start(&fake, dir.path(), BOTH);
    let hook = dir.path().join("hooks.d/10-save");
    let script = format!(
        "#!/bin/sh\necho \"$1 $DROVER_DRAIN_ID\" >> {}",
        out.display()
    );
    // Written by another process: a file that is open for writing here may be so in a child of another test as well,
    // and what is open for writing cannot be run.
    let written = Command::new("sh")
        .args(["-c", r#"printf '%s\n' "$2" > "$1" && chmod 755 "$1""#, "sh"])
        .args([hook.as_os_str(), script.as_ref()])
        .status()
        .unwrap();
    assert!(written.success());
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    let mut work = Work::start();
    let id = format!("{}:{}", work.0.id(), busy(&work.0).workloads[0].start_ticks);
    agent.see(busy(&work.0));
    fake.order(drain(1, 1, DrainPolicy::Evict, 0)).await;
    assert_eq!(work.ended_by().await, Some(15));
    agent.see(idle());
    let status = fake
        .status("drained", |status| {
            status.drain_state() == DrainState::Drained
        })
        .await;
    assert_eq!(status.ended, [format!("{id} TERM")]);
    assert_eq!(
        std::fs::read_to_string(&out).unwrap(),
        "cordon d-1\ncheckpoint d-1\ndrained d-1\n"
    );
}

#[tokio::test]
async fn ag_04_a_gpu_that_cannot_be_read_is_not_confirmed_empty() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let agent = Inside::start(&fake, dir.path(), "");
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    let mut hung = idle();
    hung.witnesses.clear();
    hung.unreadable
        .insert("gpu-processes".into(), "probe hung (power_usage)".into());
    agent.see(hung);
    fake.order(drain(1, 1, DrainPolicy::Wait, 0)).await;
    let status = fake
        .status("blocked", |status| {
            status.drain_state() == DrainState::Blocked
        })
        .await;
    assert_eq!(status.blockers[0].kind, "unreadable_gpu");
    assert!(status.blockers[0].message.contains("power_usage"));
    agent.see(idle());
    fake.status("drained", |status| {
        status.drain_state() == DrainState::Drained
    })
    .await;
}

#[tokio::test]
async fn a_drain_carries_on_after_the_agent_was_lost() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let agent = Inside::start(&fake, dir.path(), "");
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    let mut work = Work::start();
    agent.see(busy(&work.0));
    fake.order(drain(1, 1, DrainPolicy::Wait, 0)).await;
    fake.status("waiting", |status| {
        status.drain_state() == DrainState::Waiting
    })
    .await;
    drop(agent);
    work.0.kill().unwrap();
    work.0.wait().unwrap();
    let agent = Inside::start(&fake, dir.path(), "");
    let hello = fake
        .until("hello again", |script| script.hellos.get(1).cloned())
        .await;
    assert_eq!(hello.observed.unwrap().drain.unwrap().id, "d-1");
    assert!(hello.actual.unwrap().cordoned_by_us);
    agent.see(idle());
    let status = fake
        .status("drained", |status| {
            status.drain_state() == DrainState::Drained
        })
        .await;
    assert_eq!(status.workloads_at_start, 1);
}
