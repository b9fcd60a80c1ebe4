//! Learning of failure: what is told of it in AWS's own words, and what it does not stop.

use super::*;
use drover_tests::aws_proxy::{Deed, Mutation};

/// Acceptance: two regions, the first one dry. What was asked where, what failed in AWS's own words, what was withdrawn,
/// and when the first is tried again.
#[test]
fn sc_03_explain_tells_what_was_asked_what_failed_what_was_withdrawn_and_when_it_is_tried_again() {
    let mut costly = pool(WEST, "told-w");
    costly.price = "2.0";
    let scenario = Scenario {
        rations: vec![short("told-e", 1)],
        faults: vec![denied()],
        ..Scenario::default()
    };
    let mut field = Field::start(&[pool(EAST, "told-e"), costly], scenario);
    field.ask_for("job", 3);
    field.boot("told-w", WEST, 2);
    field.boot("told-e", EAST, 1);
    field.served("job");
    field.withdrawn("told-e", 1);
    for subject in ["told-e", "job"] {
        field.explained(subject, "told-e: asks for 3 of told-e/g5.xlarge");
        field.explained(
            subject,
            "do not have sufficient g5.xlarge capacity in the Availability Zone you requested",
        );
        field.explained(subject, "withdrawn: 1 are wanted of it instead of 3");
        field.explained(subject, "shortage, next probe at 20");
    }
    field.explained(
        "told-e",
        "grows by SetDesiredCapacity, without a choice of zone: ",
    );
    field.explained("job", "told-w: asks for 2 of told-w/g5.xlarge");
    let launches = field.coordinator.ask(&["pools", "show", "told-e"]);
    assert_eq!(
        launches["offerings"][0]["failure"], "shortage",
        "{launches}"
    );
    field.nobody_was_hurt();
}

#[test]
fn sc_33_every_launch_ends_and_no_text_recommends() {
    let short_of = |group: &str, zone: &str, other: &str| Ration {
        message: Some(format!(
            "We currently do not have sufficient g5.xlarge capacity in the Availability Zone you requested ({zone}). Our \
             system will be working on provisioning additional capacity. You can currently get g5.xlarge capacity by not \
             specifying an Availability Zone in your request or choosing {other}."
        )),
        ..short(group, 0)
    };
    let zoned = |name: &str, zone: &str, price: &'static str| {
        let mut made = pool(EAST, name);
        made.group.zones = vec![zone.to_owned()];
        made.price = price;
        made
    };
    let pools = [
        zoned("ends-a", "us-east-1a", "1.0"),
        zoned("ends-b", "us-east-1b", "1.1"),
        zoned("ends-c", "us-east-1c", "1.2"),
    ];
    let scenario = Scenario {
        rations: vec![
            short_of("ends-a", "us-east-1a", "us-east-1c"),
            short_of("ends-b", "us-east-1b", "us-east-1a"),
            short_of("ends-c", "us-east-1c", "us-east-1a"),
        ],
        ..Scenario::default()
    };
    let field = Field::start(&pools, scenario);
    field.ask_for("job", 5);
    field.explained("job", "next probe at");
    for (name, _) in [("ends-a", 1), ("ends-b", 1), ("ends-c", 1)] {
        field.explained(name, "do not have sufficient g5.xlarge capacity");
    }
    field.readings(4);
    let ledger = field.ledger();
    assert_eq!(
        ledger.calls_of("LaunchInstances"),
        3,
        "each once: {:?}",
        ledger.calls
    );
    let asked = field.coordinator.events("launch_asked");
    let order: Vec<&str> = asked
        .iter()
        .filter_map(|event| event["subject"].as_str())
        .collect();
    assert_eq!(
        order,
        ["ends-a", "ends-b", "ends-c"],
        "in the order of price"
    );
    let launches = field.coordinator.ask(&["pools", "show", "ends-a"]);
    assert_eq!(
        launches["launches"].as_array().map(Vec::len),
        Some(0),
        "{launches}"
    );
}

#[test]
fn a_text_never_seen_before_is_kept_verbatim_and_stops_nothing() {
    let text = "The moon is full (reference 0815), and so are we.";
    let mut odd = pool(EAST, "odd-e");
    odd.price = "0.5";
    let ration = Ration {
        message: Some(text.to_owned()),
        ..short("odd-e", 0)
    };
    let scenario = Scenario {
        rations: vec![ration],
        faults: vec![denied()],
        ..Scenario::default()
    };
    let mut field = Field::start(&[odd, pool(WEST, "odd-w")], scenario);
    field.ask_for("job", 1);
    field.explained("odd-e", text);
    field.explained("odd-e", "transient, ");
    let shown = field.coordinator.ask(&["pools", "show", "odd-e"]);
    assert!(shown["stopped"].is_null(), "{shown}");
    field.boot("odd-w", WEST, 1);
    field.served("job");
}

/// From now on AWS answers this call in the east so.
fn refuse(field: &Field, call: &str, status: u16, code: &str, message: &str) {
    let fault = Fault {
        region: Some(EAST.into()),
        action: Some(call.into()),
        effect: Effect::Error {
            status,
            code: code.into(),
            message: message.into(),
        },
        ..Fault::default()
    };
    field.set(Scenario {
        faults: vec![fault],
        ..Scenario::default()
    });
}

/// Credentials that expire between a reading and an ask say nothing about the pool.
#[test]
fn an_ask_that_meets_expired_credentials_stops_no_pool() {
    let mut east = pool(EAST, "stale-e");
    east.price = "0.5";
    let mut field = Field::start(&[east, pool(WEST, "stale-w")], Scenario::default());
    field.explained("stale-e", "not claimed yet");
    refuse(
        &field,
        "LaunchInstances",
        403,
        "ExpiredToken",
        "The security token included in the request is expired",
    );
    field.ask_for("job", 1);
    field.boot("stale-w", WEST, 1);
    field.served("job");
    let shown = field.coordinator.ask(&["pools", "show", "stale-e"]);
    assert!(shown["stopped"].is_null(), "{shown}");
    field.explained("stale-e", "credentials have expired");
    field.nobody_was_hurt();
}

/// Clear, retried, nothing else stops.
#[test]
fn expired_credentials_are_told_retried_and_stop_no_other_region() {
    let mut east = pool(EAST, "expired-e");
    east.max = 1;
    let mut west = pool(WEST, "expired-w");
    west.price = "2.0";
    let mut field = Field::start(&[east, west], Scenario::default());
    field.explained("expired-e", "not claimed yet");
    let expired = Fault {
        region: Some(EAST.into()),
        effect: Effect::Error {
            status: 403,
            code: "ExpiredToken".into(),
            message: "The security token included in the request is expired".into(),
        },
        ..Fault::default()
    };
    field.set(Scenario {
        faults: vec![expired],
        ..Scenario::default()
    });
    field.explained("expired-e", "cannot be read: ");
    field.explained(
        "expired-e",
        "The security token included in the request is expired",
    );
    field.ask_for("first", 1);
    field.boot("expired-w", WEST, 1);
    field.served("first");
    // Whoever mends it need not tell.
    field.set(Scenario::default());
    wait::until("it is read again", SOON, || {
        field.coordinator.ask(&["pools", "show", "expired-e"])["read_error"]
            .is_null()
            .then_some(())
    });
    let pool = field.coordinator.ask(&["pools", "show", "expired-e"]);
    assert!(pool["offerings"][0]["failure"].is_null(), "{pool}");
    field.nobody_was_hurt();
}

#[test]
fn sc_35_throttled_reading_teaches_nothing_about_capacity() {
    let mut east = pool(EAST, "slow-e");
    east.price = "0.5";
    let mut field = Field::start(&[east, pool(WEST, "slow-w")], Scenario::default());
    field.explained("slow-e", "not claimed yet");
    refuse(
        &field,
        "DescribeAutoScalingGroups",
        503,
        "RequestLimitExceeded",
        "Request limit exceeded.",
    );
    field.explained("slow-e", "Request limit exceeded");
    field.ask_for("job", 1);
    field.boot("slow-w", WEST, 1);
    field.served("job");
    let pool = field.coordinator.ask(&["pools", "show", "slow-e"]);
    assert!(pool["offerings"][0]["failure"].is_null(), "{pool}");
}

/// SC-40 and SC-83: what launches and never joins is no supply, stops its pool after three, and is ended bounded.
#[test]
fn sc_83_instances_that_never_join_are_told_and_ended_within_their_bounds() {
    let mut broken = pool(EAST, "broken");
    broken.more = "provision_deadline = \"3s\"";
    let field = Field::start(&[broken], Scenario::default());
    field.ask_for("job", 1);
    field.explained("broken", "3 launches in a row never joined");
    let shown = field.coordinator.ask(&["pools", "show", "broken"]);
    assert_eq!(
        (&shown["ready"], &shown["nodes"]),
        (&0.into(), &0.into()),
        "{shown}"
    );
    let alarms = field.coordinator.ask(&["status"]).to_string();
    assert!(
        alarms.contains("never_joined") && alarms.contains("USD/h"),
        "{alarms}"
    );
    wait::until("one is ended", SOON, || {
        (!field.ledger().ends.is_empty()).then_some(())
    });
    field.explained("broken", "drover approve");
    field.readings(4);
    let ledger = field.ledger();
    assert_eq!(
        ledger.launched(EAST, "broken"),
        3,
        "never a fourth before a person"
    );
    assert_eq!(
        ledger.ends.len(),
        1,
        "one in twenty of a pool: {:?}",
        ledger.ends
    );
    field.nobody_was_hurt();
}

/// Whose failures the events tell of: how many of asks of ours, and how many of nobody's that is known.
fn failures_told(field: &Field, pool: &str) -> (usize, usize) {
    let told = field.coordinator.events("launch_failed");
    let of_it: Vec<&Value> = told.iter().filter(|e| e["subject"] == pool).collect();
    let nobodys = |e: &&&Value| e["message"].to_string().contains("of no ask of Drover's");
    let others = of_it.iter().filter(nobodys).count();
    (of_it.len() - others, others)
}

/// LaunchInstances is denied, so failures are told by scaling activities, and somebody else raises the group as well.
#[test]
fn a_failed_activity_is_laid_to_the_ask_that_raised_the_group_and_to_no_other() {
    let mut costly = pool(WEST, "whose-w");
    costly.price = "2.0";
    let scenario = Scenario {
        rations: vec![short("whose-e", 1)],
        faults: vec![denied()],
        ..Scenario::default()
    };
    let mut field = Field::start(&[pool(EAST, "whose-e"), costly], scenario);
    field.ask_for("job", 3);
    field.explained("job", "whose-e/g5.xlarge//on-demand: shortage (");
    field.withdrawn("whose-e", 1);
    let ours = failures_told(&field, "whose-e");
    assert_eq!((ours.0 > 0, ours.1), (true, 0), "{}", field.events());
    // One of three has come and has not joined. What is asked for now is not its launch's, although that once was.
    let theirs = Deed::SetDesired { desired: 3 };
    RUNTIME.block_on(field.proxy.act(EAST, "whose-e", theirs));
    field.explained(
        "whose-e",
        "the group's own, of no ask of Drover's that is known: ",
    );
    let (after, others) = failures_told(&field, "whose-e");
    assert_eq!((after, others > 0), (ours.0, true), "{}", field.events());
    field.readings(4);
    let given_back = |m: &&Mutation| m.action == "SetDesiredCapacity" && m.what == "1";
    let mutations = field.ledger().mutations;
    assert_eq!(
        mutations.iter().filter(given_back).count(),
        1,
        "what they raised stays: {mutations:?}"
    );
    field.boot("whose-w", WEST, 2);
    field.boot("whose-e", EAST, 1);
    field.served("job");
    field.nobody_was_hurt();
}
