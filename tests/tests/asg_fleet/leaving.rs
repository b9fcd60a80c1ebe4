//! Leaving: whatever the crash, ended once by id and with decrement; refusals, groups that are gone, regions that are dead.

use super::*;

/// Acceptance: kill -9 at every fail point of leaving, in both ways of growing.
#[test]
fn i2_leaving_survives_a_crash_at_each_of_its_steps() {
    let table = [
        ("left-1", "drain.committed", vec![]),
        ("left-2", "asg-leave-before", vec![]),
        ("left-3", "asg-leave-asked", vec![]),
        ("left-4", "leave.called", vec![]),
        ("left-5", "asg-leave-before", vec![denied()]),
        ("left-6", "asg-leave-asked", vec![denied()]),
    ];
    std::thread::scope(|threads| {
        for (name, point, faults) in table {
            threads.spawn(move || leave_once(name, point, faults));
        }
    });
}

fn leave_once(name: &str, point: &str, faults: Vec<Fault>) {
    let scenario = Scenario {
        faults,
        ..Scenario::default()
    };
    let mut field = Field::prepare(&[pool(EAST, name)], scenario);
    // The second time it passes, it ends: an instance leaves, the coordinator dies.
    field.run(&format!("{point}=panic"));
    field.ask_for("job", 1);
    let id = field.boot(name, EAST, 1).remove(0);
    field.served("job");
    let host = format!("ip-{id}");
    let mut end = field.coordinator.spawn_cli(&["requests", "cancel", "job"]);
    field.coordinator.ended(SOON);
    end.wait().expect("it ends with the connection");
    field.run("");
    wait::until(
        &format!(
            "{name}: its instance is ended\n{}",
            field.coordinator.tail()
        ),
        SOON,
        || (!field.ledger().ends.is_empty()).then_some(()),
    );
    wait::until(&format!("{name}: its record is gone"), SOON, || {
        field.coordinator.node(&host).is_none().then_some(())
    });
    field.readings(2);
    let ledger = field.ledger();
    let told = format!("{name}: {:?}", ledger.mutations);
    assert_eq!(
        (ledger.ends.len(), ledger.launched(EAST, name)),
        (1, 1),
        "{told}"
    );
    assert_eq!(
        (ledger.ends[0].instance.as_str(), ledger.ends[0].cause),
        (id.as_str(), Cause::Decrement),
        "{told}"
    );
    field.nobody_was_hurt();
}

#[test]
fn sc_22_a_group_that_holds_its_members_keeps_them_uncordoned() {
    let mut held = pool(EAST, "held");
    held.group.min = 1;
    held.group.desired = 1;
    let mut field = Field::start(&[held], Scenario::default());
    let members = RUNTIME.block_on(async {
        let form = [(
            "AutoScalingGroupNames.member.1".to_owned(),
            "held".to_owned(),
        )];
        Moto::shared()
            .await
            .autoscaling(EAST, "DescribeAutoScalingGroups", &form)
            .await
    });
    let text = members.expect("the group");
    let at = text.find("<InstanceId>").expect("a member") + "<InstanceId>".len();
    let id = text[at..].split('<').next().expect("an id").to_owned();
    let token = field.coordinator.token(&["--pool", "held"]);
    let mut host = Host::new(field.dir.path(), &format!("ip-{id}"), "k80", 1);
    host.configure(
        &field.coordinator.address(),
        &token,
        &field.metadata.of(&id),
    );
    host.start();
    field.hosts.insert(id.clone(), host);
    field
        .coordinator
        .node_in(&format!("ip-{id}"), "ready", SOON);
    // Idle for long: the group's own minimum holds it, and it is not even cordoned.
    field.explained(&format!("ip-{id}"), "at minimum");
    field.by_hand(
        EAST,
        "SuspendProcesses",
        &[
            ("AutoScalingGroupName", "held"),
            ("ScalingProcesses.member.1", "Terminate"),
        ],
    );
    field.by_hand(
        EAST,
        "UpdateAutoScalingGroup",
        &[("AutoScalingGroupName", "held"), ("MinSize", "0")],
    );
    field.explained(&format!("ip-{id}"), "Terminate is suspended");
    assert!(field.coordinator.events("drain_started").is_empty());
    assert!(field.ledger().ends.is_empty());
    field.by_hand(
        EAST,
        "ResumeProcesses",
        &[
            ("AutoScalingGroupName", "held"),
            ("ScalingProcesses.member.1", "Terminate"),
        ],
    );
    wait::until("it may go now", SOON, || {
        (field.ledger().ends.len() == 1).then_some(())
    });
    field.nobody_was_hurt();
}

/// A region that dies while nodes leave, members are guarded and wishes are withdrawn there holds up no other.
#[test]
fn a_region_that_dies_in_the_middle_of_leaving_holds_up_no_other() {
    let mut east = pool(EAST, "dying-e");
    east.max = 1;
    let mut west = pool(WEST, "dying-w");
    west.price = "2.0";
    let mut field = Field::start(&[east, west], Scenario::default());
    field.ask_for("first", 1);
    field.boot("dying-e", EAST, 1);
    field.served("first");
    let slow = |action: &str| Fault {
        region: Some(EAST.into()),
        action: Some(action.into()),
        effect: Effect::Latency { ms: 60_000 },
        ..Fault::default()
    };
    field.set(Scenario {
        faults: vec![
            slow("TerminateInstanceInAutoScalingGroup"),
            slow("SetInstanceProtection"),
            slow("CreateOrUpdateTags"),
            slow("SuspendProcesses"),
        ],
        ..Scenario::default()
    });
    field.coordinator.ask(&["requests", "cancel", "first"]);
    wait::until("its termination is asked", SOON, || {
        (field
            .ledger()
            .calls_of("TerminateInstanceInAutoScalingGroup")
            > 0)
        .then_some(())
    });
    // The first pool is at its maximum until the node is gone.
    let begun = Instant::now();
    field.ask_for("second", 1);
    wait::until("the other region is asked", SOON, || {
        (field.ledger().launched(WEST, "dying-w") == 1).then_some(())
    });
    let asked = begun.elapsed();
    assert!(asked < Duration::from_secs(30), "{asked:?}");
    field.boot("dying-w", WEST, 1);
    field.served("second");
    field.nobody_was_hurt();
}

#[test]
fn a_group_deleted_under_our_feet_is_told_and_others_go_on() {
    let mut gone = pool(EAST, "deleted");
    gone.price = "0.5";
    let mut field = Field::start(&[gone, pool(EAST, "stays")], Scenario::default());
    field.explained("deleted", "not claimed yet");
    field.by_hand(
        EAST,
        "DeleteAutoScalingGroup",
        &[("AutoScalingGroupName", "deleted"), ("ForceDelete", "true")],
    );
    field.explained("deleted", "there is no group deleted in us-east-1");
    field.ask_for("job", 1);
    field.boot("stays", EAST, 1);
    field.served("job");
    assert_eq!(field.ledger().launched(EAST, "deleted"), 0);
    let alarms = field.coordinator.ask(&["status"]).to_string();
    assert!(alarms.contains("pool_stopped"), "{alarms}");
}
