//! Tests of the hub: merging, orders, acknowledgements, endings and clones, on a clock of their own.

use super::super::clock::ManualClock;
use super::*;
use crate::records::DesiredState;
use drover_core::model::{Millis, UnixMs};
use drover_proto::v1;

fn hub() -> (Arc<ManualClock>, Arc<Hub>) {
    let clock = Arc::new(ManualClock::at(UnixMs(1_000_000)));
    (clock.clone(), Hub::new(clock))
}

fn node() -> NodeId {
    NodeId::from("n-1")
}

fn hello(boot: &str) -> Opening {
    Opening {
        facts: v1::Facts {
            boot_id: boot.into(),
            hostname: "titan-01".into(),
            ..v1::Facts::default()
        },
        highest_epoch: 3,
        observed: None,
        actual: None,
        now: UnixMs(1_000_500),
    }
}

fn order(epoch: u64, generation: u64) -> OrderRecord {
    OrderRecord {
        epoch,
        generation,
        desired: DesiredState::Cordoned,
        drain: None,
        by: "drover".into(),
        reason: String::new(),
    }
}

fn workloads(ids: &[&str]) -> v1::WorkloadList {
    let items = ids.iter().map(|id| v1::Workload {
        id: (*id).into(),
        ..v1::Workload::default()
    });
    v1::WorkloadList {
        items: items.collect(),
        ..v1::WorkloadList::default()
    }
}

fn notice(id: &str) -> v1::Notice {
    v1::Notice {
        id: id.into(),
        ..v1::Notice::default()
    }
}

#[test]
fn reports_are_merged_and_only_what_matters_wakes_the_cycle() {
    let (_, hub) = hub();
    let mut changed = hub.changed();
    let mut session = hub.open(&node(), hello("b1"), None).unwrap();
    assert!(changed.has_changed().unwrap());
    let mut say = |report: v1::Report| {
        changed.mark_unchanged();
        session.report(report).unwrap();
        (hub.view(&node()).unwrap(), changed.has_changed().unwrap())
    };
    let telemetry = || {
        Some(v1::Telemetry {
            cpu_permille: Some(7),
            ..v1::Telemetry::default()
        })
    };

    let (view, woke) = say(v1::Report {
        telemetry: telemetry(),
        ..v1::Report::default()
    });
    assert!(!woke && view.telemetry.is_some());
    assert_eq!(view.workloads, None, "no list yet is not an empty list");
    assert_eq!((view.clock_offset_ms, view.highest_epoch), (500, 3));

    let (view, woke) = say(v1::Report {
        full: true,
        workloads: Some(workloads(&["1"])),
        conditions: Some(v1::ConditionList {
            items: vec![v1::Condition::default()],
        }),
        ..v1::Report::default()
    });
    assert!(woke);
    assert_eq!(view.workloads.as_deref(), Some(&workloads(&["1"])));
    assert_eq!(
        view.facts.hostname, "titan-01",
        "facts that are not said stay"
    );

    let (view, woke) = say(v1::Report {
        workloads: Some(workloads(&["1"])),
        ..v1::Report::default()
    });
    assert!(!woke, "the same list is no news");
    assert_eq!(
        view.conditions.len(),
        1,
        "a delta leaves what it does not name"
    );

    let mut grown = workloads(&["1"]);
    grown.items[0].gpu_memory_bytes = Some(1 << 30);
    let (view, woke) = say(v1::Report {
        workloads: Some(grown.clone()),
        conditions: Some(v1::ConditionList {
            items: vec![v1::Condition {
                message: "for 20 s".into(),
                ..v1::Condition::default()
            }],
        }),
        ..v1::Report::default()
    });
    assert!(!woke, "memory that grows and words decide nothing");
    assert_eq!(view.workloads.as_deref(), Some(&grown), "but are shown");
    assert_eq!(view.conditions[0].message, "for 20 s");

    let mut held = grown.clone();
    held.items[0].gpus = vec!["GPU-1".into()];
    let (_, woke) = say(v1::Report {
        workloads: Some(held),
        ..v1::Report::default()
    });
    assert!(woke, "another GPU is held");

    let (view, woke) = say(v1::Report {
        full: true,
        ..v1::Report::default()
    });
    assert!(woke);
    assert_eq!(view.workloads, None);
    assert!(view.conditions.is_empty());
    assert!(view.telemetry.is_some());
}

#[test]
fn a_list_of_a_former_session_does_not_count_in_the_next() {
    let (_, hub) = hub();
    let mut first = hub.open(&node(), hello("b1"), None).unwrap();
    let report = v1::Report {
        full: true,
        workloads: Some(workloads(&[])),
        ..v1::Report::default()
    };
    first.report(report).unwrap();
    drop(first);
    let view = hub.view(&node()).unwrap();
    assert!(!view.connected && view.workloads.is_some());
    let _second = hub.open(&node(), hello("b1"), None).unwrap();
    let view = hub.view(&node()).unwrap();
    assert!(view.connected && view.workloads.is_none());
}

#[test]
fn orders_are_sent_once_and_only_after_control_has_spoken() {
    let (_, hub) = hub();
    let mut session = hub.open(&node(), hello("b1"), Some(order(4, 1))).unwrap();
    assert_eq!(
        session.work(),
        Work::default(),
        "a stored order waits for control"
    );
    assert_eq!(session.meant(), None);
    hub.desire(&node(), order(4, 1));
    assert_eq!(session.work().order, Some(order(4, 1)));
    assert_eq!(session.work().order, None);
    hub.desire(&node(), order(4, 1));
    hub.desire(&node(), order(3, 9));
    let mut other = order(4, 1);
    other.desired = DesiredState::Active;
    hub.desire(&node(), other);
    assert_eq!(
        session.work().order,
        None,
        "repeated, older or contradicting"
    );
    hub.desire(&node(), order(4, 2));
    assert_eq!(session.work().order, Some(order(4, 2)));
    assert_eq!(session.meant(), Some((4, 2)));

    // The next session gets it at once, under its new epoch.
    drop(session);
    let mut next = hub.open(&node(), hello("b1"), Some(order(5, 2))).unwrap();
    assert_eq!(next.work().order, Some(order(5, 2)));
}

#[test]
fn what_is_desired_before_the_first_session_is_sent_in_it() {
    let (_, hub) = hub();
    hub.desire(&node(), order(4, 1));
    assert!(
        hub.views().is_empty(),
        "an agent never heard of has no view"
    );
    let mut session = hub.open(&node(), hello("b1"), None).unwrap();
    assert_eq!(session.work().order, Some(order(4, 1)));
}

#[test]
fn acknowledgement_waits_for_the_first_notice_that_is_not_settled() {
    let (_, hub) = hub();
    let mut session = hub.open(&node(), hello("b1"), None).unwrap();
    session.order_status(2, v1::OrderStatus::default()).unwrap();
    assert_eq!(session.work().ack, Some(2));
    session.notice(3, notice("a")).unwrap();
    session.notice(4, notice("b")).unwrap();
    session.order_status(5, v1::OrderStatus::default()).unwrap();
    assert_eq!(session.work().ack, None);
    let ids =
        |hub: &Hub| -> Vec<String> { hub.notices().into_iter().map(|n| n.notice.id).collect() };
    assert_eq!(ids(&hub), ["a", "b"]);
    hub.settle_notices(&[(node(), "b".into())]);
    assert_eq!(session.work().ack, None, "a is still open");
    hub.settle_notices(&[(node(), "a".into()), (node(), "never".into())]);
    assert_eq!(session.work().ack, Some(5));
    assert!(hub.notices().is_empty());

    // Said again after the acknowledgement was lost: acknowledged, not delivered.
    drop(session);
    let mut next = hub.open(&node(), hello("b1"), None).unwrap();
    next.notice(1, notice("a")).unwrap();
    assert!(hub.notices().is_empty());
    assert_eq!(next.work().ack, Some(1));
    // Not settled before the session broke: one notice, acknowledged in the new session.
    next.notice(2, notice("c")).unwrap();
    drop(next);
    let mut last = hub.open(&node(), hello("b1"), None).unwrap();
    last.notice(1, notice("c")).unwrap();
    assert_eq!(ids(&hub), ["c"]);
    assert_eq!(last.work().ack, None);
    hub.settle_notices(&[(node(), "c".into())]);
    assert_eq!(last.work().ack, Some(1));
}

#[test]
fn notices_of_one_node_are_bounded() {
    let (_, hub) = hub();
    let mut session = hub.open(&node(), hello("b1"), None).unwrap();
    for n in 0..1_000 {
        session.notice(n + 1, notice(&format!("x{n}"))).unwrap();
    }
    assert_eq!(
        session.notice(1_001, notice("more")),
        Err(LinkError::Notices)
    );
}

#[tokio::test]
async fn one_session_per_node_and_ends_are_told() {
    let (_, hub) = hub();
    let mut first = hub.open(&node(), hello("b1"), None).unwrap();
    first.kicked().await;
    let mut second = hub.open(&node(), hello("b1"), None).unwrap();
    assert_eq!(first.work().end, Some(Ending::Replaced));
    assert_eq!(
        first.report(v1::Report::default()),
        Err(LinkError::Ended(Ending::Replaced))
    );
    drop(first);
    assert!(
        hub.view(&node()).unwrap().connected,
        "the newer one is still open"
    );

    second.kicked().await;
    hub.forget(&node());
    second.kicked().await;
    assert_eq!(second.work().end, Some(Ending::Forgotten));
    assert!(hub.view(&node()).is_none() && hub.is_forgotten(&node()));
    drop(second);
    assert!(hub.views().is_empty());

    let mut third = hub.open(&node(), hello("b1"), None).unwrap();
    assert!(!hub.is_forgotten(&node()));
    hub.stop(Ending::Stopping);
    assert_eq!(third.work().end, Some(Ending::Stopping));
    assert_eq!(
        hub.open(&node(), hello("b1"), None).err(),
        Some(Ending::Stopping)
    );
}

#[test]
fn two_machines_with_one_certificate_are_alarmed_and_a_reboot_is_not() {
    let alarms = |boots: &[&str], live: bool, pause: u64| {
        let (clock, hub) = hub();
        let mut kept = Vec::new();
        for boot in boots {
            clock.advance(Millis(pause));
            let session = hub.open(&node(), hello(boot), None).unwrap();
            if live {
                kept.push(session);
            }
        }
        hub.notices()
            .into_iter()
            .filter(|n| n.notice.kind == "identity_cloned")
            .count()
    };
    assert_eq!(alarms(&["b1", "b2", "b3"], true, 20_000), 0, "reboots");
    assert_eq!(
        alarms(&["b1", "b1", "b1", "b1"], true, 1_000),
        0,
        "a poor network"
    );
    assert_eq!(
        alarms(&["b1"; 20], false, 1_000),
        0,
        "sessions that ended by themselves"
    );
    assert_eq!(
        alarms(&["b1", "b2", "b1"], false, 60_000),
        1,
        "a boot came back"
    );
    assert_eq!(alarms(&["b1"; 6], true, 1_000), 1, "two agents on one host");
    assert_eq!(
        alarms(&["b1"; 6], true, 30_000),
        0,
        "rare enough for a poor network"
    );
}
