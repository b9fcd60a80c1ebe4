//! What a group offers: from the catalogue when it is empty, at the spot market's prices, and asked once however short AWS's
//! memory is.

use super::*;
use drover_tests::aws_proxy::SpotPriceRow;
use drover_tests::clock::Clock;

/// A pool's offerings: zone, GPUs and price in millionths of a USD per hour.
fn offered(field: &Field, pool: &str) -> Vec<(String, u64, u64)> {
    let shown = field.coordinator.ask(&["pools", "show", pool]);
    let all = shown["offerings"].as_array().cloned().unwrap_or_default();
    let row = |o: &Value| {
        (
            o["zone"].as_str().unwrap_or_default().to_owned(),
            o["gpus"].as_u64().unwrap_or(u64::MAX),
            o["price_micro_usd_per_hour"].as_u64().unwrap_or(u64::MAX),
        )
    };
    all.iter().map(row).collect()
}

#[test]
fn sc_06_a_group_grows_from_zero_twice_whatever_its_first_node_said_before_it_was_ready() {
    let mut one = pool(EAST, "zero");
    one.group.instance_type = "p5.4xlarge".to_owned();
    let mut field = Field::start(&[one], Scenario::default());
    let one_gpu = |field: &Field| {
        let gpus: Vec<u64> = offered(field, "zero").iter().map(|of| of.1).collect();
        let shown = field.coordinator.ask(&["pools", "show", "zero"]);
        assert_eq!(gpus, [1], "by the catalogue, not by a node: {shown}");
    };
    one_gpu(&field);
    field.ask_for("first", 1);
    let id = wait::until("a launch", SOON, || {
        let launches = field.ledger().launches;
        launches.first().map(|of| of.instances[0].clone())
    });
    // Its driver is not loaded yet.
    field.boot_with("zero", &id, &json!({ "gpus": [] }));
    field.explained("first", "has joined, is not ready yet");
    field.readings(3);
    one_gpu(&field);
    assert_eq!(field.asked_of("zero"), [1], "it is waited for");
    let h100 = json!({ "gpus": [{ "profile": "h100", "count": 1 }] });
    field.hosts[&id].script(&h100);
    field.served("first");
    one_gpu(&field);
    field.coordinator.ask(&["requests", "cancel", "first"]);
    wait::until("the group is empty", SOON, || {
        let gone = field.coordinator.node(&format!("ip-{id}")).is_none();
        (gone && field.ledger().ends.len() == 1).then_some(())
    });
    // Nor is anything of it learnt that a restart brings back.
    field.coordinator.kill();
    field.run("");
    field.coordinator.until("it is read again", SOON, || {
        (!offered(&field, "zero").is_empty()).then_some(())
    });
    one_gpu(&field);
    field.ask_for("second", 1);
    let second = wait::until("a second launch", SOON, || {
        let launches = field.ledger().launches;
        launches.get(1).map(|of| of.instances[0].clone())
    });
    field.boot_with("zero", &second, &h100);
    field.served("second");
    assert_eq!(field.asked_of("zero"), [1, 1]);
    let told = field.coordinator.events("template_mismatch");
    assert!(told.is_empty(), "{told:?}");
    field.nobody_was_hurt();
}

/// How long AWS remembers a token is not known. Here it forgets each at once, and the answer to an ask is lost with the
/// process: an ask that is too old to be repeated is found by looking.
#[test]
fn i4_ask_once_although_aws_has_forgotten_the_token() {
    let scenario = Scenario {
        token_memory_ms: Some(1),
        ..Scenario::default()
    };
    let mut field = Field::prepare(&[pool(EAST, "forgot")], scenario);
    let clock = Clock::new(field.dir.path(), "clock");
    field.coordinator.set_clock(&clock);
    field.run("asg-launch-asked=pause");
    let mut wish = field.begin_to_ask("job", 2);
    field.coordinator.until("it is asked", SOON, || {
        (field.ledger().launched(EAST, "forgot") == 2).then_some(())
    });
    field.coordinator.kill();
    wish.wait().expect("it ends with the connection");
    clock.ahead(Duration::from_secs(11 * 60));
    field.run("");
    field.boot("forgot", EAST, 2);
    field.served("job");
    field.readings(4);
    let ledger = field.ledger();
    assert_eq!(
        (
            ledger.launched(EAST, "forgot"),
            ledger.calls_of("LaunchInstances")
        ),
        (2, 1),
        "{:?}",
        ledger.mutations
    );
    let told = field.coordinator.events("launch_settled");
    assert!(
        told.len() == 1 && told[0].to_string().contains("gave 2 of 2"),
        "{told:?}: {}",
        field.events()
    );
    field.nobody_was_hurt();
}

fn spot(zone: &str, usd: &str) -> SpotPriceRow {
    SpotPriceRow {
        instance_type: "g5.xlarge".to_owned(),
        zone: zone.to_owned(),
        usd_per_hour: usd.to_owned(),
        since_ms_ago: 60_000,
        ..SpotPriceRow::default()
    }
}

/// A group on the spot market over three zones, of which AWS names a price for two.
#[test]
fn spot_prices_decide_which_zone_is_asked_and_what_has_none_is_not_asked() {
    let mut market = pool(EAST, "market");
    let zones = ["us-east-1a", "us-east-1b", "us-east-1c"];
    market.group.zones = zones.map(str::to_owned).to_vec();
    market.group.mixed = Some(drover_tests::moto::Mixed {
        types: vec!["g5.xlarge".to_owned()],
        on_demand_percent: 0,
        weight: None,
    });
    market.price = "";
    let priced = |a: &str, b: &str| Scenario {
        spot_prices: vec![spot("us-east-1a", a), spot("us-east-1b", b)],
        ..Scenario::default()
    };
    let mut field = Field::start(&[market], priced("0.500000", "0.402500"));
    let shows = |field: &Field, a: u64, b: u64| {
        field.coordinator.until("the prices are shown", SOON, || {
            let mut all = offered(field, "market");
            all.retain(|of| of.0 != "us-east-1c");
            all.sort();
            let expected = [
                ("us-east-1a".to_owned(), 1, a),
                ("us-east-1b".to_owned(), 1, b),
            ];
            (all == expected).then_some(())
        });
    };
    shows(&field, 500_000, 402_500);
    field.explained(
        "market",
        "no spot price is known for g5.xlarge in us-east-1c",
    );
    field.ask_for("first", 1);
    field.boot("market", EAST, 1);
    field.served("first");
    // The prices change; they are read again when they are ten minutes old, and after a restart.
    field.set(priced("0.100000", "0.402500"));
    field.coordinator.kill();
    field.run("");
    shows(&field, 100_000, 402_500);
    field.ask_for("second", 1);
    field.boot("market", EAST, 2);
    field.served("second");
    let ledger = field.ledger();
    let asked: Vec<&str> = ledger
        .mutations
        .iter()
        .filter(|m| m.action == "LaunchInstances")
        .map(|m| m.zone.as_str())
        .collect();
    assert_eq!(asked, ["us-east-1b", "us-east-1a"]);
    field.nobody_was_hurt();
}
