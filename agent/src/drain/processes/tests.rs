//! Tests of ending processes, with real ones.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};

use super::*;

fn sleeper() -> (Child, u64) {
    let child = Command::new("sleep").arg("60").spawn().unwrap();
    let start = start_of(Path::new("/proc"), child.id()).unwrap();
    (child, start)
}

fn workload(pid: u32, gpus: &[&str]) -> Workload {
    Workload {
        kind: crate::observation::WorkloadKind::GpuProcess,
        pid,
        start_ticks: 7,
        user: "alice".into(),
        command: "python train.py".into(),
        gpus: gpus.iter().map(|gpu| (*gpu).to_owned()).collect(),
        gpu_memory_bytes: None,
        request: None,
        movable: false,
    }
}

#[test]
fn only_the_very_process_is_ended() {
    let (mut child, start) = sleeper();
    let none = BTreeSet::new();
    signal(&format!("{}:{}", child.id(), start + 1), How::Kill, &none).unwrap();
    signal(
        &format!("{}:{start}", child.id()),
        How::Kill,
        &BTreeSet::from([child.id()]),
    )
    .unwrap();
    signal("1:0", How::Kill, &none).unwrap();
    signal("0:0", How::Kill, &none).unwrap();
    signal("pod/web-1", How::Kill, &none).unwrap();
    assert!(child.try_wait().unwrap().is_none(), "still there");
    signal(&format!("{}:{start}", child.id()), How::Term, &none).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}

#[test]
fn the_agent_and_what_it_runs_under_are_spared() {
    let chain = own_chain(Path::new("/proc"));
    assert!(chain.contains(&1));
    assert!(chain.contains(&std::process::id()));
    assert!(chain.contains(&std::os::unix::process::parent_id()));
    let seen = Observation {
        workloads: vec![
            workload(std::process::id(), &["a"]),
            workload(4_000_000, &["a", "b"]),
        ],
        ..Observation::default()
    };
    let work = workloads(&seen, None);
    assert!(work[0].protected.is_some());
    assert_eq!(work[1].protected, None);
    assert_eq!(
        work[1].text,
        "process 4000000 (alice) python train.py holds 2 GPUs"
    );
    assert!(workloads(&seen, Some("off"))[1].protected.is_some());
}

#[test]
fn names_with_brackets_do_not_confuse_the_fields() {
    let proc = tempfile::tempdir().unwrap();
    let dir = proc.path().join("7");
    std::fs::create_dir(&dir).unwrap();
    let stat = "7 (a) b (c) S 3 4 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 4242 0";
    std::fs::write(dir.join("stat"), stat).unwrap();
    assert_eq!(stat_field(proc.path(), 7, 4).as_deref(), Some("3"));
    assert_eq!(start_of(proc.path(), 7), Some(4242));
}
