//! What is told of asks, and what is not told twice.

use super::*;
use crate::control::explain::once::once;
use crate::records::Severity;

const WORDS: &str = "LaunchInstances in us-east-1: config (ValidationError): the security group sg-1 does not exist";

fn event(at: u64, what: &str, message: String) -> Arc<EventRecord> {
    Arc::new(EventRecord {
        seq: at,
        at: UnixMs(at),
        kind: "pool".to_owned(),
        subject: "p4".to_owned(),
        what: what.to_owned(),
        message,
        severity: Severity::Info,
        launch: None,
        requests: None,
        names: Vec::new(),
    })
}

#[test]
fn one_failure_of_four_zones_is_one_line_and_its_words_are_said_once() {
    let failed = |zone: &str| {
        let message = format!("p4/p4d/{zone}/on-demand: config ({WORDS})");
        event(7_000, "launch_failed", message)
    };
    let events = [
        event(5_000, "launch_asked", "asks for 2".to_owned()),
        failed("a"),
        failed("b"),
        failed("c"),
        failed("d"),
        event(7_000, "joined", "nothing of ours".to_owned()),
    ];
    let told: Vec<String> = acts(events.iter()).iter().map(Act::told).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[1].contains("p4/p4d/a/on-demand, p4/p4d/b/on-demand, "),
        "{told:?}"
    );

    let mut lines = vec![format!("stopped: config: {WORDS}; once that is mended")];
    lines.extend(told);
    lines.push(format!(
        "p4/p4d/a/on-demand: transient, probed with the next demand ({WORDS})"
    ));
    let shown = once(lines);
    let times = shown.iter().filter(|line| line.contains("sg-1")).count();
    assert_eq!(times, 1, "{shown:?}");
    assert!(shown[2].ends_with("config (as above)"), "{shown:?}");
    assert!(shown[3].ends_with("next demand (as above)"), "{shown:?}");
}

#[test]
fn what_failed_is_never_shortened_away() {
    let offering = "p4/p4d.24xlarge/us-east-1a/on-demand: transient";
    let again = format!("2026-11-30 12:00:07Z p4: {offering} ({WORDS})");
    let lines = vec![
        format!("2026-11-30 12:00:01Z p4: {offering} ({WORDS})"),
        again,
    ];
    let shown = once(lines);
    let said = "12:00:07Z p4: p4/p4d.24xlarge/us-east-1a/on-demand: as above";
    assert!(shown[1].ends_with(said), "{shown:?}");
}

#[test]
fn acts_of_several_pools_stand_as_they_happened() {
    let of = |pool: &str, what: &str, message: &str| {
        let mut found = event(7_000, what, message.to_owned());
        Arc::make_mut(&mut found).subject = pool.to_owned();
        found
    };
    let events = [
        of("p4", "launch_asked", "asks for 2"),
        of("p4", "launch_failed", "p4/a: shortage (none)"),
        of("b", "launch_asked", "asks for 2"),
        of("p4", "launch_failed", "p4/b: shortage (none)"),
    ];
    let told: Vec<&str> = acts(events.iter()).iter().map(|act| act.pool).collect();
    assert_eq!(told, ["p4", "p4", "b", "p4"]);
}

#[test]
fn short_words_and_new_ones_stay() {
    let lines = [
        "a: shortage (none)",
        "b: shortage (none)",
        "a: shortage (none)",
    ];
    let shown = once(lines.map(str::to_owned).to_vec());
    assert_eq!(shown, ["a: shortage (none)", "b: shortage (none)"]);
}

#[test]
fn words_that_are_said_again_leave_no_bracket_open() {
    let words = "there is not enough capacity for p4d.24xlarge in us-east-1a now";
    let lines = [
        format!("7 of 9 came (shortage: {words})"),
        format!("p4 is out of capacity until 12:30 (shortage: {words})"),
        format!("p4 again ({words})"),
    ];
    let told = once(lines.to_vec());
    assert_eq!(
        told[1],
        "p4 is out of capacity until 12:30 (shortage: as above)"
    );
    assert_eq!(told[2], "p4 again (as above)");
}
