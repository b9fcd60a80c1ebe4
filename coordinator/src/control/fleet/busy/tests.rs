//! What counts as busy and as idle, witness by witness.

use super::*;
use crate::control::testing::view;
use drover_proto::v1::{GpuFacts, GpuUse, Telemetry};
use std::sync::Arc;

const FRESH: Evidence = Evidence {
    mono: Millis(100_000),
    report_interval: Millis(5_000),
    full_interval: Millis(60_000),
    gpu_below: None,
};
const NOW: UnixMs = UnixMs(1_000_000);

fn judged(change: impl FnOnce(&mut AgentView)) -> Busy {
    judged_by(FRESH, change)
}

fn judged_by(evidence: Evidence, change: impl FnOnce(&mut AgentView)) -> Busy {
    let mut view = view("n1");
    view.last_seen_mono = 99_000;
    view.workloads_at = UnixMs(990_000);
    change(&mut view);
    busy(&view, evidence, NOW, UnixMs(5))
}

fn list(view: &mut AgentView) -> &mut drover_proto::v1::WorkloadList {
    Arc::make_mut(view.workloads.as_mut().expect("listed"))
}

#[test]
fn i13_idle_needs_witnesses() {
    assert_eq!(judged(|_| {}), Busy::Idle { since: UnixMs(5) });
    let unknown = |found: Busy| matches!(found, Busy::Unknown { .. });
    assert!(unknown(judged(|view| view.connected = false)));
    assert!(unknown(judged(|view| view.last_seen_mono = 80_000)));
    assert!(unknown(judged(|view| view.workloads = None)));
    assert!(unknown(judged(|view| view.workloads_at = UnixMs(1))));
    assert!(unknown(judged(|view| list(view).witnesses.clear())));
    assert!(unknown(judged(|view| {
        list(view).witnesses.retain(|name| name != "gpu-processes");
    })));
    assert!(unknown(judged(|view| {
        list(view).unreadable = vec!["gpu-processes: probe hung".into()];
    })));
    // A host without GPUs has nothing to ask.
    assert_eq!(
        judged(|view| {
            list(view).witnesses.retain(|name| name != "gpu-processes");
            Arc::make_mut(&mut view.facts).pci_gpus = Some(0);
        }),
        Busy::Idle { since: UnixMs(5) }
    );
}

#[test]
fn sc_34_what_runs_is_named() {
    let found = judged(|view| {
        list(view).items = vec![Workload {
            kind: WorkloadKind::GpuProcess.into(),
            id: "4711:9".into(),
            user: "alice".into(),
            command: "python train.py".into(),
            ..Workload::default()
        }];
    });
    let Busy::Working { what, movable } = found else {
        panic!("busy")
    };
    assert_eq!(what, ["GPU process 4711:9 (alice) python train.py"]);
    assert!(!movable);
}

#[test]
fn sc_20_movable_only_if_every_workload_says_so_and_nothing_is_unread() {
    let work = |id: &str, movable| Workload {
        id: id.into(),
        gpus: vec!["GPU-0".into()],
        movable,
        ..Workload::default()
    };
    let movable = |below: Option<u32>, change: &dyn Fn(&mut AgentView)| {
        let evidence = Evidence {
            gpu_below: below,
            ..FRESH
        };
        let found = judged_by(evidence, |view| {
            list(view).items = vec![work("a", true), work("b", true)];
            change(view);
        });
        let Busy::Working { movable, .. } = found else {
            panic!("it works: {found:?}")
        };
        movable
    };
    assert!(movable(None, &|_| {}));
    let cases: [&dyn Fn(&mut AgentView); 5] = [
        &|view| list(view).items.push(work("c", false)),
        &|view| list(view).unreadable.push("processes: no answer".into()),
        &|view| list(view).witnesses.retain(|name| name != "processes"),
        &|view| view.connected = false,
        &|view| view.last_seen_mono = 1,
    ];
    for (n, change) in cases.iter().enumerate() {
        assert!(!movable(None, change), "case {n}");
    }
    // GPU use is that of who holds the GPU; of a GPU that nobody holds it is somebody else's.
    let used = |uuid: &'static str| {
        move |view: &mut AgentView| {
            Arc::make_mut(&mut view.facts).gpus.push(GpuFacts {
                uuid: uuid.into(),
                ..GpuFacts::default()
            });
            let mut told = Telemetry::default();
            told.gpus.push(GpuUse {
                uuid: uuid.into(),
                utilisation_percent: Some(90),
                ..GpuUse::default()
            });
            view.telemetry = Some(Arc::new(told));
        }
    };
    assert!(movable(Some(5), &used("GPU-0")));
    assert!(!movable(Some(5), &used("GPU-1")));
}

#[test]
fn i13_gpu_use_is_a_witness_where_the_pool_says_so() {
    let told = |below: Option<u32>, uses: &[Option<u32>]| {
        let evidence = Evidence {
            gpu_below: below,
            ..FRESH
        };
        judged_by(evidence, |view| {
            let facts = Arc::make_mut(&mut view.facts);
            let mut telemetry = Telemetry::default();
            for (n, used) in uses.iter().enumerate() {
                facts.gpus.push(GpuFacts {
                    uuid: format!("GPU-{n}"),
                    ..GpuFacts::default()
                });
                telemetry.gpus.push(GpuUse {
                    uuid: format!("GPU-{n}"),
                    utilisation_percent: *used,
                    ..GpuUse::default()
                });
            }
            view.telemetry = Some(Arc::new(telemetry));
        })
    };
    let idle = Busy::Idle { since: UnixMs(5) };
    assert_eq!(told(None, &[Some(90), None]), idle, "not asked for");
    assert_eq!(told(Some(5), &[Some(0), Some(4)]), idle);
    assert_eq!(told(Some(5), &[]), idle, "no GPUs, nothing to ask");
    for (uses, says) in [
        ([Some(0), Some(5)], "GPU 1 at 5 % (idle below 5 %)"),
        ([Some(100), None], "GPU 0 at 100 % (idle below 5 %)"),
    ] {
        let Busy::Working { what, .. } = told(Some(5), &uses) else {
            panic!("{uses:?} is work")
        };
        assert_eq!(what, [says]);
    }
    let why = "GPU 1 does not tell its use".to_owned();
    assert_eq!(told(Some(5), &[Some(0), None]), Busy::Unknown { why });
    // Before the first report.
    let evidence = Evidence {
        gpu_below: Some(5),
        ..FRESH
    };
    let unread = judged_by(evidence, |view| {
        Arc::make_mut(&mut view.facts)
            .gpus
            .push(GpuFacts::default());
    });
    assert!(matches!(unread, Busy::Unknown { .. }));
}
