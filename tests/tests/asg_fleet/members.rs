//! Members: those that the group launches by itself, those that may not go, and how many may go at once.

use super::*;
use drover_tests::aws_proxy::Deed;

#[test]
fn sc_15_what_the_group_launches_by_itself_is_adopted_and_goes_when_idle() {
    let mut both = pool(EAST, "own");
    both.group.zones = vec!["us-east-1a".to_owned(), "us-east-1b".to_owned()];
    let mut field = Field::start(&[both], Scenario::default());
    field.explained("own", "AZRebalance");
    field.ask_where("job", 2, &["-l", "topology.kubernetes.io/zone=us-east-1a"]);
    let busy = field.boot("own", EAST, 2);
    field.served("job");
    // The group launches one more, where it has none.
    let done = RUNTIME.block_on(
        field
            .proxy
            .act(EAST, "own", Deed::SetDesired { desired: 3 }),
    );
    assert_eq!(done.refused, None, "{done:?}");
    field.coordinator.until("it is adopted", SOON, || {
        (!field.coordinator.events("adopted").is_empty()).then_some(())
    });
    let shown = field.coordinator.ask(&["pools", "show", "own"]);
    assert_eq!(shown["unmanaged"], 1, "it counts: {shown}");
    let all = field.boot("own", EAST, 3);
    let strange = all.iter().find(|id| !busy.contains(id));
    let strange = strange.expect("a third one");
    field.coordinator.until("it is ended", SOON, || {
        (!field.ledger().ends.is_empty()).then_some(())
    });
    field.readings(3);
    let ledger = field.ledger();
    assert_eq!(ledger.ends.len(), 1, "{:?}", ledger.ends);
    let end = (&ledger.ends[0].instance, ledger.ends[0].cause);
    assert_eq!(end, (strange, Cause::Decrement));
    assert_eq!(
        field.asked_of("own").iter().sum::<u32>(),
        2,
        "no more than the job wants"
    );
    field.nobody_was_hurt();
}

/// The quota is of what is there, rounded up: never none, and never more at once.
#[test]
fn sc_50_a_quota_is_no_wall() {
    const NODES: usize = 8;
    let mut many = pool(EAST, "quota");
    many.more = "removal_quota = \"20%\"";
    // Beside them there are others, so that it is the quota that bounds and not the breaker.
    let mut rest = pool(EAST, "quota-rest");
    rest.group.desired = 20;
    rest.max = 0;
    let mut field = Field::start(&[many, rest], Scenario::default());
    field.ask_for("job", u32::try_from(NODES).expect("few"));
    field.boot("quota", EAST, NODES);
    field.served("job");
    field.coordinator.ask(&["requests", "cancel", "job"]);
    field.coordinator.until("all are ended", SOON, || {
        (field.ledger().ends.len() == NODES).then_some(())
    });
    field.coordinator.until("all are gone", SOON, || {
        (field.coordinator.events("gone").len() == NODES).then_some(())
    });
    let told = field.coordinator.ask(&["events", "--limit", "1000"]);
    let (mut leaving, mut there, mut most) = (0_usize, NODES, 0);
    for event in told.as_array().expect("events") {
        match event["what"].as_str() {
            Some("drain_started") => leaving += 1,
            Some("gone") => (leaving, there) = (leaving - 1, there - 1),
            _ => continue,
        }
        most = most.max(leaving);
        assert!(
            leaving <= there.div_ceil(5),
            "{leaving} of {there} leave: {told}"
        );
    }
    assert_eq!((there, most), (0, 2), "{told}");
    assert!(
        field
            .ledger()
            .ends
            .iter()
            .all(|end| end.cause == Cause::Decrement)
    );
    field.nobody_was_hurt();
}

#[test]
fn sc_51_a_termination_that_is_not_allowed_brings_the_node_back() {
    let refused = Fault {
        action: Some("TerminateInstanceInAutoScalingGroup".into()),
        effect: Effect::Error {
            status: 403,
            code: "AccessDenied".into(),
            message:
                "User is not authorized to perform: autoscaling:TerminateInstanceInAutoScalingGroup"
                    .into(),
        },
        ..Fault::default()
    };
    let scenario = Scenario {
        faults: vec![refused],
        ..Scenario::default()
    };
    // Beside it there are others, so that the breaker lets it go a second time.
    let mut rest = pool(EAST, "kept-rest");
    rest.group.desired = 4;
    rest.price = "2.0";
    let mut field = Field::start(&[pool(EAST, "kept"), rest], scenario);
    field.ask_for("job", 1);
    let id = field.boot("kept", EAST, 1).remove(0);
    field.served("job");
    field.coordinator.ask(&["requests", "cancel", "job"]);
    let host = format!("ip-{id}");
    field.explained(
        "kept",
        "not authorized to perform: autoscaling:TerminateInstanceInAutoScalingGroup",
    );
    field.coordinator.node_in(&host, "ready", SOON);
    let shown = field.coordinator.ask(&["pools", "show", "kept"]);
    assert!(!shown["stopped"].is_null(), "{shown}");
    let alarms = field.coordinator.ask(&["status"]).to_string();
    assert!(alarms.contains("kept"), "{alarms}");
    field.readings(3);
    assert_eq!(
        field
            .ledger()
            .calls_of("TerminateInstanceInAutoScalingGroup"),
        1,
        "a person has to look"
    );
    assert!(field.ledger().ends.is_empty());
    // Once it is allowed and somebody says so, it goes.
    field.set(Scenario::default());
    field.coordinator.ask(&["pools", "resume", "kept"]);
    field.coordinator.until("it is ended", SOON, || {
        (field.ledger().ends.len() == 1).then_some(())
    });
    field.coordinator.until("its record is gone", SOON, || {
        field.coordinator.node(&host).is_none().then_some(())
    });
    field.nobody_was_hurt();
}
