//! A coordinator that comes to a cloud which is already full of instances.

use crate::{QUICK, SOON};
use drover_proto::sim::LaunchRequest;
use drover_proto::sim::cloud_service_client::CloudServiceClient;
use drover_tests::cloud::{Cloud, CloudGroup};
use drover_tests::coordinator::Coordinator;
use drover_tests::wait;

/// Instances that somebody launched before.
const BEFORE: u32 = 200;

fn launch(cloud: &Cloud, group: &CloudGroup) {
    let request = LaunchRequest {
        group: group.name.clone(),
        instance_type: drover_tests::cloud::INSTANCE_TYPE.to_owned(),
        zone: group.zone(),
        count: BEFORE,
        token: "somebody".to_owned(),
        market: "on-demand".to_owned(),
    };
    let reply = tokio::runtime::Runtime::new()
        .expect("a runtime")
        .block_on(async {
            let mut client = CloudServiceClient::connect(cloud.address())
                .await
                .expect("it answers");
            client
                .launch(request)
                .await
                .expect("it launches")
                .into_inner()
        });
    assert_eq!(reply.instance_ids.len(), BEFORE as usize, "{reply:?}");
}

#[test]
fn running_instances_are_adopted_and_neither_reaped_nor_changed() {
    let dir = tempfile::tempdir().expect("a folder");
    let group = CloudGroup {
        capacity: BEFORE + 50,
        max: BEFORE + 10,
        ..CloudGroup::new("west")
    };
    let mut cloud = Cloud::new(dir.path(), vec![group.clone()]);
    cloud.without_processes();
    // Told to remove everything that is idle, and that it may.
    let pools = cloud.pools("mode = \"observe\"\nidle_after = \"1s\"");
    let mut coordinator = Coordinator::start(&dir.path().join("c"), QUICK, &pools);
    cloud.start(&coordinator);
    coordinator.kill();
    launch(&cloud, &group);
    let thinks = |coordinator: &Coordinator| {
        let seen = coordinator.ask(&["status"])["cycles"].as_u64();
        wait::until("it thinks again", SOON, || {
            let now = coordinator.ask(&["status"])["cycles"].as_u64();
            (now > seen.map(|seen| seen + 3)).then_some(())
        });
    };
    let counts = |launched: u32| {
        let ledger = cloud.ledger();
        for (what, count) in [
            ("launched", launched),
            ("running", launched),
            ("terminated", 0),
        ] {
            assert_eq!(ledger[what], count, "{what}: {ledger}");
        }
    };
    coordinator.run(&[]);
    // No agent speaks for them, and they count.
    wait::until("they are counted", SOON, || {
        let pool = coordinator.ask(&["pools", "show", "west"]);
        (pool["unmanaged"] == BEFORE).then_some(())
    });
    assert_eq!(coordinator.events("adopted").len(), BEFORE as usize);
    // Asked for, planned, explained and not done.
    let wish = ["requests", "create", "--name", "job", "--gpus", "60"];
    coordinator.ask(&[&wish[..], &["--gpus-per-unit", "2"]].concat());
    coordinator.explained("west", "observe", SOON);
    thinks(&coordinator);
    counts(BEFORE);
    // May do everything: grows up to the maximum, which the adopted fill but for ten, and ends none of them.
    coordinator.ask(&["pools", "mode", "west", "full", "--reason", "looked at it"]);
    wait::until("it grows", SOON, || {
        (cloud.count("launched") == u64::from(BEFORE) + 10).then_some(())
    });
    thinks(&coordinator);
    counts(BEFORE + 10);
}
