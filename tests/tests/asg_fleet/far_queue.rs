//! A queue of AWS's notices that lies in another region than the groups that it tells of.

use super::*;
use drover_tests::aws_proxy::{Deed, EventKind, QueueRow};

/// Two groups of one name in two regions; what happens in the first is told by a queue in the second. An instance that waits
/// in a hook is told of long before its group shows it, and is looked for in the region that it is in.
#[test]
fn a_queue_in_another_region_tells_of_groups_where_they_are() {
    let mut east = pool(EAST, "far");
    east.more = "[pool.notices]\nlaunch_hooks = [\"in\"]";
    let mut west = pool(WEST, "far");
    west.price = "2.0";
    let timing = vec![Timing {
        hide_ms: 5_000,
        ..Timing::default()
    }];
    let scenario = |queues| Scenario {
        queues,
        timing: timing.clone(),
        ..Scenario::default()
    };
    let mut field = Field::prepare(&[east.clone(), west.clone()], scenario(Vec::new()));
    let queue = RUNTIME.block_on(field.proxy.create_queue(WEST, "far-events"));
    field.set(scenario(vec![QueueRow {
        region: Some(EAST.into()),
        queue_region: Some(WEST.into()),
        url: queue.clone(),
        kinds: Some(vec![EventKind::Lifecycle, EventKind::SpotInterruption]),
    }]));
    let hook = [
        ("AutoScalingGroupName", "far"),
        ("LifecycleHookName", "in"),
        ("LifecycleTransition", "autoscaling:EC2_INSTANCE_LAUNCHING"),
        ("DefaultResult", "ABANDON"),
        ("HeartbeatTimeout", "3600"),
    ];
    field.by_hand(EAST, "PutLifecycleHook", &hook);
    let other = west
        .table()
        .replacen("name = \"far\"", "name = \"far-w\"", 1);
    let aws = format!(
        "[aws]\nendpoint = \"{}\"\n[[aws.queue]]\nregion = \"{WEST}\"\nurl = \"{queue}\"\n",
        field.proxy.url()
    );
    field
        .coordinator
        .configure(QUICK, &(east.table() + &other + &aws));
    field.run("");
    field.knows(&[east]);
    field.coordinator.until("far-w is read", SOON, || {
        let shown = field.coordinator.try_ask(&["pools", "show", "far-w"])?;
        shown["offerings"].get(0).map(|_| ())
    });

    field.ask_for("job", 1);
    let id = field.boot("far", EAST, 1).remove(0);
    field.served("job");
    let host = format!("ip-{id}");
    let node = field.coordinator.node_in(&host, "ready", SOON);
    assert_eq!(node["pool"], "far", "{node}");
    field.coordinator.until("its hook is completed", SOON, || {
        let ledger = field.ledger();
        let story = ledger.hook_story(&id, "in");
        (story.last() == Some(&"completed")).then_some(())
    });
    let told = field.ledger().lifecycle;
    assert!(
        told.iter()
            .all(|of| of.region == EAST && of.what != "refused"),
        "{told:?}"
    );

    let deed = Deed::SpotInterruption {
        instance: Some(id.clone()),
        notice_ms: 120_000,
    };
    RUNTIME.block_on(field.proxy.act(EAST, "far", deed));
    field.coordinator.until("it is drained for it", SOON, || {
        let begun = format!("{:?}", field.coordinator.events("drain_started"));
        (begun.contains("policy force") && begun.contains("spot notice")).then_some(())
    });
    let notices = field.coordinator.events("notice");
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(field.ledger().launched(WEST, "far"), 0);
    field.nobody_was_hurt();
}
