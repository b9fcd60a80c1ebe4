//! What a config and a request say of the fleet's habits reaches the plan, on a reload like at a start: windows of
//! disruption, room to keep, teams, GPU use as a witness, run times, deadlines.

use crate::rig::{GPUS, Rig, two_pools};
use drover::ports::clock::Clock;
use drover::records::REQUEST_LABEL;
use drover_core::model::{
    Busy, Lifecycle, MicroUsd, Millis, NodeInput, PlanInput, Quota, Resources, UnixMs,
};
use drover_proto::v1;
use std::sync::Arc;

fn input(rig: &Rig) -> PlanInput {
    rig.view().plan.as_ref().expect("a plan").0.clone()
}

fn node(rig: &Rig, instance: &str) -> NodeInput {
    let id = format!("n-{instance}");
    let input = input(rig);
    let found = input.nodes.iter().find(|node| node.id.as_str() == id);
    found.unwrap_or_else(|| panic!("no node {id}")).clone()
}

fn with(keys: &str) -> String {
    two_pools().replace("name = \"a\"\n", &format!("name = \"a\"\n{keys}"))
}

async fn idle_node(rig: &mut Rig, id: &str) {
    rig.cloud.add("a", id);
    rig.join("a", id).await;
    rig.cycle().await;
}

#[tokio::test]
async fn a_reload_takes_headroom_teams_consolidation_expiry_and_budgets() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cycle().await;
    let before = input(&rig).policy;
    assert!(before.headroom.is_empty() && before.teams.is_empty() && !before.consolidate);
    let text = with("expire_after = \"30d\"\n").replace(
        "[control]\n",
        "[[control.headroom]]\nname = \"soon\"\ncount = 2\ngpus = 4\npools = [\"a\"]\n\
         [control.team.vision]\nmax_cost_usd_per_hour = 10.5\nmax_gpus = 8\n[control]\nconsolidate = true\n",
    ) + "[[pool.disruption]]\nname = \"never\"\nnodes = 0\nreasons = [\"surplus\"]\n";
    rig.push_config(&text).await;
    rig.cycle().await;
    let after = input(&rig);
    assert!(after.policy.consolidate);
    let room = &after.policy.headroom[0];
    assert_eq!(
        (room.name.as_str(), room.count, room.unit.gpus),
        ("soon", 2, 4)
    );
    let vision = &after.policy.teams["vision"];
    assert_eq!(
        (vision.max_cost, vision.max_gpus),
        (Some(MicroUsd(10_500_000)), Some(8))
    );
    assert_eq!(
        after.pools[0].expire_after,
        Some(Millis::minutes(30 * 24 * 60))
    );
    assert_eq!(after.pools[1].expire_after, None);
    let budget = &after.pools[1].disruption[0];
    assert_eq!((budget.most, budget.until), (Quota::Count(0), None));
}

#[tokio::test]
async fn a_disruption_window_holds_removals_until_it_closes() {
    // The rig's clock begins at 08:00 UTC and some minutes.
    let window = "[[pool.disruption]]\nname = \"morning\"\nnodes = 0\nschedule = \"0 9 * * *\"\n\
                  duration = \"1h\"\ntime_zone = \"Europe/Berlin\"\n";
    let text = two_pools().replacen(
        "[[pool]]\nname = \"b\"",
        &format!("{window}[[pool]]\nname = \"b\""),
        1,
    );
    let mut rig = Rig::new(&text).await;
    idle_node(&mut rig, "i-1").await;
    rig.pass(Millis::minutes(30)).await;
    let budget = input(&rig).pools[0].disruption[0].clone();
    let nine = UnixMs(1_800_000_000_000 + 3_600_000);
    assert_eq!(
        (budget.name.as_str(), budget.until),
        ("morning", Some(nine))
    );
    assert_eq!(rig.cloud.alive("a"), ["i-1"]);
    assert_eq!(rig.node("i-1").lifecycle, Lifecycle::Ready);
    let reason = rig.node("i-1").reason;
    assert!(reason.contains("morning"), "{reason}");
    let left = nine.since(rig.clock.wall());
    rig.pass(Millis(left.0 + 60_000)).await;
    assert!(input(&rig).pools[0].disruption.is_empty());
    assert!(rig.cloud.alive("a").is_empty(), "the window is closed");
}

#[tokio::test]
async fn i13_gpu_use_keeps_a_node_where_the_pool_says_so() {
    let mut rig = Rig::new(&with("idle_gpu_below = \"5%\"\n")).await;
    rig.cloud.add("a", "i-1");
    let id = rig.join("a", "i-1").await;
    let used = |percent: Option<u32>| {
        Arc::new(v1::Telemetry {
            gpus: (0..GPUS)
                .map(|index| v1::GpuUse {
                    uuid: format!("GPU-{index}"),
                    utilisation_percent: percent,
                    ..v1::GpuUse::default()
                })
                .collect(),
            ..v1::Telemetry::default()
        })
    };
    for (percent, why) in [
        (None, "does not tell its use"),
        (Some(40), "GPU 0 at 40 % (idle below 5 %)"),
    ] {
        rig.agent(&id, |agent| agent.view.telemetry = Some(used(percent)));
        rig.pass(Millis::minutes(15)).await;
        assert_eq!(rig.cloud.alive("a"), ["i-1"], "{percent:?}");
        let busy = rig.node("i-1").busy.join(" ");
        assert!(busy.contains(why), "{busy}");
    }
    rig.agent(&id, |agent| agent.view.telemetry = Some(used(Some(4))));
    rig.pass(Millis::minutes(9)).await;
    assert!(matches!(node(&rig, "i-1").busy, Busy::Idle { .. }));
    // Use that comes back shortly before it leaves counts.
    rig.agent(&id, |agent| agent.view.telemetry = Some(used(Some(5))));
    rig.pass(Millis::minutes(2)).await;
    assert_eq!(rig.cloud.alive("a"), ["i-1"]);
    rig.agent(&id, |agent| agent.view.telemetry = Some(used(Some(0))));
    rig.pass(Millis::minutes(11)).await;
    assert!(rig.cloud.alive("a").is_empty());
}

#[tokio::test]
async fn a_requests_team_run_time_and_end_reach_the_plan() {
    let mut rig = Rig::new(&two_pools()).await;
    idle_node(&mut rig, "i-1").await;
    rig.ask_with("big", 40, 1, |spec| {
        spec.team = "vision".to_owned();
        spec.max_wait = Some(Millis::minutes(3));
        spec.deadline = Some(UnixMs(1_900_000_000_000));
    })
    .await;
    rig.once_only().await;
    let class = input(&rig).classes[0].clone();
    assert_eq!(class.team, "vision");
    assert_eq!(class.run_time, Some(Millis::minutes(30)));
    assert_eq!(class.max_wait, Some(Millis::minutes(3)));
    assert_eq!(class.deadline, Some(UnixMs(1_900_000_000_000)));
    rig.cycle().await;
    let held = node(&rig, "i-1").reserved[0].clone();
    assert_eq!(
        (held.team.as_str(), held.ends),
        ("vision", None),
        "not served yet"
    );
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("big"), "served");
    let found = node(&rig, "i-1");
    let ends = rig.view().request("big").expect("there").record.ends;
    assert!(ends.is_some());
    assert_eq!(found.reserved[0].ends, ends);
    let running = &found.workloads[0];
    assert_eq!(running.labels[REQUEST_LABEL], "big");
    assert_eq!((running.count, running.ends), (held.units, ends));
    assert_eq!(
        running.unit,
        Resources::default(),
        "its amount is in what is held"
    );
    assert!(found.launched.is_some());
}

#[tokio::test]
async fn a_request_that_cannot_start_by_its_deadline_ends() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| script.capacity = Some(0));
    rig.cloud.script("b", |script| script.capacity = Some(0));
    let by = rig.clock.wall().after(Millis::minutes(20));
    rig.ask_with("late", 4, GPUS, |spec| spec.deadline = Some(by))
        .await;
    rig.pass(Millis::minutes(19)).await;
    assert_eq!(rig.shown("late"), "pending");
    rig.pass(Millis::minutes(2)).await;
    assert_eq!(rig.shown("late"), "ended");
    let told = rig.events("ended").await;
    assert!(
        told[0].message.contains("deadline passed"),
        "{}",
        told[0].message
    );
    // One that has begun goes on.
    rig.cloud.script("a", |script| script.capacity = None);
    let by = rig.clock.wall().after(Millis::minutes(40));
    rig.ask_with("in-time", 1, GPUS, |spec| {
        spec.deadline = Some(by);
        spec.duration = None;
    })
    .await;
    rig.pass(Millis::minutes(31)).await;
    rig.boot_all().await;
    rig.pass(Millis::minutes(20)).await;
    assert_eq!(rig.shown("in-time"), "served");
}

#[tokio::test]
async fn what_units_ask_for_is_learnt_once_each_and_survives_a_restart() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| script.capacity = Some(0));
    rig.cloud.script("b", |script| script.capacity = Some(0));
    rig.ask("first", 12, 1).await;
    rig.ask("second", 12, 4).await;
    for _ in 0..3 {
        rig.once_only().await;
    }
    let asked = input(&rig).learnt.asked;
    assert_eq!(asked.units, 24, "who still waits is not counted again");
    let kinds: Vec<u32> = asked.kinds.iter().map(|kind| kind.gpus).collect();
    assert_eq!(kinds, [1, 4]);
    // It is written now and then.
    rig.pass(Millis::minutes(11)).await;
    rig.once_only().await;
    rig.restart().await;
    rig.once_only().await;
    let again = input(&rig).learnt.asked;
    assert_eq!(again.units, 48, "what was kept, and once more what waits");
    assert_eq!(again.kinds[0].weight, 2 * asked.kinds[0].weight);
}
