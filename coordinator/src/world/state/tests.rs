//! Tests of the simulated cloud: grants, shortages, boots, ends.

use super::super::spec::MarketSpec;
use super::*;

fn spec() -> WorldSpec {
    let text = r#"
        [[group]]
        name = "a"
        region = "west"
        max = 10
        [[group.offering]]
        instance_type = "p2.16xlarge"
        zone = "west-a"
        price_micro_usd_per_hour = 14400000
        gpus = 16
        gpu_model = "k80"
        cpus = 64
        memory_gib = 732
        boot_ms = 1000
        boot_jitter_ms = 500
        capacity = 4
        [[group.offering.shortage]]
        from_ms = 60000
        until_ms = 120000
    "#;
    let spec: WorldSpec = toml::from_str(text).expect("spec parses");
    assert_eq!(spec.errors(), []);
    spec
}

fn ask(count: u32, token: &str) -> Ask {
    Ask {
        group: "a".into(),
        instance_type: "p2.16xlarge".into(),
        zone: "west-a".into(),
        market: MarketSpec::OnDemand,
        count,
        token: token.into(),
    }
}

#[test]
fn grants_up_to_capacity_and_says_so_in_awss_words() {
    let mut world = World::new(spec(), 7, 0);
    let granted = world.launch(&ask(6, "t1"), 0).expect("known group");
    assert_eq!(granted.instances.len(), 4);
    assert_eq!(
        granted.refusal.map(|r| r.code),
        Some("InsufficientInstanceCapacity".to_owned())
    );
    assert_eq!(
        (
            world.tally().launched,
            world.tally().peak,
            world.tally().shortages
        ),
        (4, 4, 1)
    );
}

#[test]
fn the_same_token_never_launches_twice() {
    let mut world = World::new(spec(), 7, 0);
    let first = world.launch(&ask(2, "t1"), 0).expect("first");
    assert_eq!(world.launch(&ask(2, "t1"), 5), Ok(first));
    assert_eq!(
        world.launch(&ask(3, "t1"), 5),
        Err(WorldError::TokenMismatch)
    );
    assert_eq!(world.running(), 2);
}

#[test]
fn boots_within_delay_and_jitter_and_is_the_same_for_a_seed() {
    let run = |seed| {
        let mut world = World::new(spec(), seed, 0);
        world.launch(&ask(3, "t1"), 0).expect("granted");
        assert_eq!(world.step(999), []);
        let events = world.step(1_500);
        assert_eq!(events.len(), 3);
        (events, world.next_event_ms())
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).0, run(8).0);
}

#[test]
fn a_failover_is_a_grant_elsewhere_after_a_shortage() {
    let mut spec = spec();
    let mut east = spec.groups[0].clone();
    east.name = "b".into();
    east.region = "east".into();
    spec.groups.push(east);
    let mut world = World::new(spec, 7, 0);
    world.launch(&ask(6, "t1"), 0).expect("partly granted");
    assert_eq!(world.tally().failovers, 0);
    let elsewhere = |count, token| Ask {
        group: "b".into(),
        ..ask(count, token)
    };
    world.launch(&elsewhere(1, "t2"), 0).expect("granted");
    world.launch(&elsewhere(1, "t3"), 0).expect("granted");
    assert_eq!(world.tally().failovers, 1);
}

#[test]
fn a_window_of_shortage_grants_nothing_and_ends() {
    let mut world = World::new(spec(), 7, 0);
    assert!(
        world
            .launch(&ask(1, "t1"), 60_000)
            .expect("answer")
            .instances
            .is_empty()
    );
    assert_eq!(
        world
            .launch(&ask(1, "t2"), 120_000)
            .expect("answer")
            .instances
            .len(),
        1
    );
}

#[test]
fn terminated_is_over_and_frees_capacity() {
    let mut world = World::new(spec(), 7, 0);
    let id = world.launch(&ask(4, "t1"), 0).expect("granted").instances[0].clone();
    world.terminate(&id, 3_600_000).expect("runs");
    assert_eq!(
        world.terminate(&id, 3_600_000),
        Err(WorldError::NoInstance(id))
    );
    assert_eq!(
        world
            .launch(&ask(2, "t2"), 3_600_000)
            .expect("granted")
            .instances
            .len(),
        1
    );
    assert_eq!(world.cost_micro_usd(3_600_000), 4 * 14_400_000);
}

#[test]
fn a_bad_spec_names_every_field() {
    let mut bad = spec();
    bad.groups[0].offerings[0].cpus = 0;
    bad.groups[0].offerings[0].gpu_model.clear();
    bad.groups.push(bad.groups[0].clone());
    let fields: Vec<_> = bad.errors().into_iter().map(|e| e.field).collect();
    assert!(
        fields.contains(&"group[0].offering[0].cpus".to_owned()),
        "{fields:?}"
    );
    assert!(
        fields.contains(&"group[0].offering[0].gpu_model".to_owned()),
        "{fields:?}"
    );
    assert!(fields.contains(&"group[1].name".to_owned()), "{fields:?}");
}
