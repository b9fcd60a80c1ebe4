//! Tests of what waits to be sent.

use super::*;
use crate::drain::status::Phase;
use crate::order::OrderId;

fn notice(id: &str, subject: &str) -> Notice {
    Notice {
        id: id.into(),
        kind: "xid".into(),
        at_unix_ms: 1_000,
        deadline_unix_ms: None,
        subject: subject.into(),
        message: format!("message of {id}"),
        withdrawn: false,
    }
}

fn status(drain: &str, phase: Phase) -> Status {
    Status {
        order: OrderId {
            epoch: 1,
            generation: 1,
        },
        drain_id: drain.into(),
        phase: Some(phase),
        ..Status::default()
    }
}

fn all(outbox: &mut Outbox, first_seq: u64) -> Vec<Parcel> {
    (first_seq..).map_while(|seq| outbox.next(seq)).collect()
}

#[test]
fn notices_go_first_and_telemetry_coalesces() {
    let mut outbox = Outbox::default();
    outbox.report();
    outbox.report();
    outbox.status(status("d", Phase::Waiting));
    outbox.status(status("d", Phase::Evicting));
    outbox.raise(notice("n", "gpu"));
    let want = [
        Parcel::Notice(notice("n", "gpu")),
        Parcel::Status(status("d", Phase::Evicting)),
        Parcel::Report,
    ];
    assert_eq!(all(&mut outbox, 1), want);
    assert!(!outbox.is_waiting());
    assert!(!outbox.is_settled());
}

#[test]
fn notices_and_results_stay_until_acknowledged_across_sessions() {
    let mut outbox = Outbox::default();
    outbox.raise(notice("n", "gpu"));
    assert!(outbox.status(status("d", Phase::Drained)));
    assert_eq!(all(&mut outbox, 5).len(), 2);
    outbox.session_lost();
    assert_eq!(all(&mut outbox, 1).len(), 2, "sent again");
    assert!(!outbox.acknowledged(0));
    assert!(outbox.acknowledged(1), "the notice");
    assert!(outbox.acknowledged(2), "the result");
    assert!(outbox.is_settled());
}

#[test]
fn an_acknowledgement_of_before_it_was_sent_says_nothing() {
    let mut outbox = Outbox::default();
    outbox.raise(notice("n", "gpu"));
    assert!(!outbox.acknowledged(99));
    assert!(outbox.is_waiting());
}

#[test]
fn disk_keeps_notices_and_results_but_not_what_was_sent() {
    let mut outbox = Outbox::default();
    outbox.raise(notice("n", "gpu"));
    outbox.status(status("d", Phase::Drained));
    outbox.report();
    all(&mut outbox, 1);
    let text = serde_json::to_string(&outbox).unwrap();
    let mut back: Outbox = serde_json::from_str(&text).unwrap();
    assert_eq!(all(&mut back, 1).len(), 2);
}

#[test]
fn a_newer_result_of_a_drain_replaces_the_older_and_progress_takes_one_back() {
    let mut outbox = Outbox::default();
    outbox.status(status("d", Phase::Drained));
    outbox.status(status("d", Phase::Cancelled));
    outbox.status(status("e", Phase::Drained));
    let want = [
        Parcel::Status(status("d", Phase::Cancelled)),
        Parcel::Status(status("e", Phase::Drained)),
    ];
    assert_eq!(all(&mut outbox, 1), want);
    outbox.session_lost();
    outbox.status(status("e", Phase::Waiting));
    let want = [
        Parcel::Status(status("d", Phase::Cancelled)),
        Parcel::Status(status("e", Phase::Waiting)),
    ];
    assert_eq!(all(&mut outbox, 1), want);
}

#[test]
fn ag_16_an_old_notice_keeps_its_time_and_id() {
    let mut outbox = Outbox::default();
    assert_eq!(outbox.raise(notice("n", "gpu")), Raised::New);
    all(&mut outbox, 1);
    let again = Notice {
        at_unix_ms: 9_000,
        ..notice("n", "gpu")
    };
    assert_eq!(outbox.raise(again), Raised::Known);
    outbox.session_lost();
    assert_eq!(all(&mut outbox, 1), [Parcel::Notice(notice("n", "gpu"))]);
}

#[test]
fn ag_16_a_storm_stays_bounded_and_what_is_new_gets_through() {
    let mut outbox = Outbox::default();
    for number in 0..100_000 {
        outbox.raise(notice(&format!("n{number}"), &format!("gpu{}", number % 8)));
    }
    assert_eq!(outbox.notices.len(), NOTICES);
    let other = Notice {
        kind: "spot_interruption".into(),
        ..notice("spot", "")
    };
    assert_eq!(outbox.raise(other.clone()), Raised::New);
    for number in 0..5_000 {
        outbox.raise(notice(&format!("m{number}"), &format!("else{number}")));
    }
    assert_eq!(outbox.notices.len(), 2 * NOTICES);
    let sent = all(&mut outbox, 1);
    assert!(
        sent.contains(&Parcel::Notice(other)),
        "delivered behind the storm"
    );
}

#[test]
fn results_are_bounded() {
    let mut outbox = Outbox::default();
    for number in 0..1_000 {
        outbox.status(status(&format!("d{number}"), Phase::Drained));
    }
    assert_eq!(outbox.results.len(), RESULTS);
}
