//! Asking for capacity: once, as much as is needed, where it is remembered to be.

use super::*;
use drover_tests::clock::Clock;

const MINUTE: u64 = 60;

/// A coordinator whose clock is set by the test.
fn timed(pools: &[Pool], scenario: Scenario) -> (Field, Clock) {
    let mut field = Field::prepare(pools, scenario);
    let clock = Clock::new(field.dir.path(), "clock");
    field.coordinator.set_clock(&clock);
    field.run("");
    field.knows(pools);
    (field, clock)
}

impl Field {
    /// Waits until a group was asked so often, and gives what was asked.
    fn asked(&self, group: &str, times: usize) -> Vec<u32> {
        self.coordinator
            .until(&format!("{group} is asked {times} times"), SOON, || {
                let asked = self.asked_of(group);
                (asked.len() >= times).then_some(asked)
            })
    }
}

/// Three offerings, two of them short for an hour and a half, the third one grants little at first.
#[test]
fn sc_04_a_shortage_storm_is_a_few_probes_of_one() {
    let priced = |name: &str, price: &'static str| {
        let mut made = pool(EAST, name);
        (made.price, made.max, made.group.max) = (price, 1_000, 1_000);
        // They never join here, and that is not what it is about.
        made.more = "provision_deadline = \"12h\"";
        made
    };
    let mut third = priced("storm-c", "1.2");
    (third.max, third.group.max) = (8, 20);
    let mut calm = pool(EAST, "storm-cpu");
    calm.group.instance_type = "c5.xlarge".to_owned();
    let pools = [
        priced("storm-a", "1.0"),
        priced("storm-b", "1.1"),
        third,
        calm,
    ];
    let short_ones = vec![short("storm-a", 0), short("storm-b", 0)];
    let mut first = short_ones.clone();
    first.push(short("storm-c", 1));
    let scenario = |rations| Scenario {
        rations,
        ..Scenario::default()
    };
    let (mut field, clock) = timed(&pools, scenario(first));
    field.ask_for("job", 60);
    for group in ["storm-a", "storm-b"] {
        assert_eq!(field.asked(group, 1), [60], "{group}");
    }
    assert_eq!(field.asked("storm-c", 1), [8]);
    field.boot("storm-c", EAST, 1);
    field.coordinator.until("it has answered", SOON, || {
        let told = field.coordinator.ask(&["pools", "show", "storm-c"]);
        (told["offerings"][0]["failure"] == "shortage").then_some(())
    });
    field.set(scenario(short_ones));

    // The pauses double, up to half an hour; each may be a tenth longer.
    let mut now = 0;
    for (n, pause) in [1, 2, 4, 8, 16, 30, 30].into_iter().enumerate() {
        if pause >= 4 {
            clock.ahead(Duration::from_secs(now + pause * MINUTE * 8 / 10));
            field.readings(2);
        }
        for group in ["storm-a", "storm-b"] {
            assert_eq!(
                field.asked_of(group).len(),
                n + 1,
                "{group}: not before it is due"
            );
        }
        now += pause * MINUTE * 11 / 10 + 1;
        clock.ahead(Duration::from_secs(now));
        for group in ["storm-a", "storm-b"] {
            let asked = field.asked(group, n + 2);
            assert_eq!(
                (asked.len(), asked[n + 1]),
                (n + 2, 1),
                "{group}: {asked:?}"
            );
        }
        if n == 0 {
            // Each success doubles what the third may be asked for, what is on its way counted, up to its maximum.
            field.boot("storm-c", EAST, 8);
            let asked = field.asked_of("storm-c");
            assert_eq!(
                (asked[1], asked[1..].iter().sum::<u32>()),
                (1, 7),
                "{asked:?}"
            );
            let most = asked[1..].iter().zip(0..).all(|(n, k)| *n <= 1 << k);
            assert!(most, "{asked:?}");
        }
        if pause == 16 {
            // And nobody else waits.
            let begun = Instant::now();
            field.coordinator.ask(&[
                "requests", "create", "--name", "calm", "--cpus", "1", "--for", "8h",
            ]);
            assert_eq!(field.asked("storm-cpu", 1), [1]);
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "{:?}",
                begun.elapsed()
            );
        }
    }
    assert_eq!(field.ledger().launched(EAST, "storm-c"), 8);
    field.nobody_was_hurt();
}

/// A machine that boots for longer than it is waited for: it is adopted when it comes, and the pool says what is wrong.
#[test]
fn sc_09_slow_metal_is_adopted_late_and_the_deadline_is_called_too_short() {
    let mut slow = pool(EAST, "metal");
    slow.more = "provision_deadline = \"10m\"";
    let (mut field, clock) = timed(&[slow], Scenario::default());
    field.ask_for("job", 1);
    assert_eq!(field.asked("metal", 1), [1]);
    field.explained("metal", "1 of 1 granted");
    clock.ahead(Duration::from_secs(10 * MINUTE + 5));
    assert_eq!(field.asked("metal", 2), [1, 1], "another one is asked for");
    field.coordinator.until("the first is missed", SOON, || {
        let shown = field.coordinator.ask(&["pools", "show", "metal"]);
        (shown["misses"] == 1 && shown["ready"] == 0).then_some(())
    });
    let first = field.ledger().launches[0].instances[0].clone();
    field.boot_one("metal", &first);
    field.served("job");
    field.explained("metal", "provision_deadline is too short");
    let shown = field.coordinator.ask(&["pools", "show", "metal"]);
    assert_eq!(shown["misses"], 0, "a late one clears them: {shown}");
    // The other one comes as well, is not needed and goes.
    let second = field.boot("metal", EAST, 2).remove(1);
    field.coordinator.until("the surplus is ended", SOON, || {
        (!field.ledger().ends.is_empty()).then_some(())
    });
    let ledger = field.ledger();
    assert_eq!(
        (ledger.ends.len(), &ledger.ends[0].instance),
        (1, &second),
        "{:?}",
        ledger.ends
    );
    assert_eq!(ledger.launched(EAST, "metal"), 2, "never a third");
    field.nobody_was_hurt();
}

#[test]
fn sc_40_what_never_joins_is_promised_to_nobody() {
    let mut phantom = pool(EAST, "phantom");
    (phantom.max, phantom.group.max) = (59, 100);
    phantom.more = "provision_deadline = \"10s\"";
    let field = Field::start(&[phantom], Scenario::default());
    field.ask_for("job", 59);
    let shown = || field.coordinator.ask(&["pools", "show", "phantom"]);
    let promised_nothing = |shown: &Value| {
        for what in ["ready", "nodes"] {
            assert_eq!(shown[what], 0, "{what}: {shown}");
        }
        let job = field.coordinator.ask(&["requests", "show", "job"]);
        assert_ne!(job["state"], "served", "{job}");
        let meant = job["assignments"].as_array().expect("a list");
        let real = |of: &&Value| of["ready"] == true || !of["node"].is_null();
        assert_eq!(meant.iter().find(real), None, "{job}");
    };
    let coming = field.coordinator.until("59 are coming", SOON, || {
        let shown = shown();
        (shown["coming"] == 59).then_some(shown)
    });
    promised_nothing(&coming);
    let missed = field.coordinator.until("they are missed", SOON, || {
        let shown = shown();
        (shown["missed"].as_u64() > Some(0)).then_some(shown)
    });
    promised_nothing(&missed);
    assert_eq!(
        (&missed["missed"], &missed["coming"]),
        (&59.into(), &0.into()),
        "{missed}"
    );
    assert_eq!(
        field.asked_of("phantom"),
        [59],
        "at its maximum, missed or not"
    );
    field.nobody_was_hurt();
}

/// LaunchInstances is denied, and nothing that the raised capacity brings ever speaks.
#[test]
fn sc_83_what_a_raised_capacity_brought_is_ours_until_it_is_reaped() {
    let mut mute = pool(EAST, "deaf");
    mute.more = "provision_deadline = \"5s\"";
    let scenario = Scenario {
        faults: vec![denied()],
        ..Scenario::default()
    };
    let field = Field::start(&[mute], scenario);
    field.ask_for("job", 3);
    let ids = || -> Vec<String> {
        let launches = field.ledger().launches;
        let mine = launches.iter().filter(|l| l.group == "deaf");
        mine.flat_map(|l| l.instances.clone()).collect()
    };
    let shown = || field.coordinator.ask(&["pools", "show", "deaf"]);
    wait::until("three are theirs", SOON, || {
        let nodes = field.coordinator.ask(&["nodes", "list"]).to_string();
        let known = nodes
            .matches("launched, its agent has not enrolled")
            .count();
        (known == 3 && !nodes.contains("never touched") && ids().len() == 3).then_some(())
    });
    let stopped = field.coordinator.until("three misses stop it", SOON, || {
        let shown = shown();
        (shown["misses"] == 3).then_some(shown)
    });
    assert!(stopped["missed"].as_u64() >= Some(6), "{stopped}");
    // One in twenty of a pool goes without a person: of nine, one.
    let ended = field.coordinator.until("one is ended", SOON, || {
        let ends = field.ledger().ends;
        (!ends.is_empty()).then_some(ends)
    });
    assert!(ids().contains(&ended[0].instance), "{ended:?}");
    field.coordinator.until("a person is asked", SOON, || {
        field.events().contains("approval_needed").then_some(())
    });
    field.readings(4);
    assert_eq!(field.ledger().launched(EAST, "deaf"), 9, "no fourth");
    let told = field.coordinator.ask(&["events", "--subject", "deaf"]);
    let told: Vec<&str> = told.as_array().map_or_else(Vec::new, |all| {
        all.iter()
            .filter_map(|event| event["what"].as_str())
            .collect()
    });
    let times = |what: &str| told.iter().filter(|of| **of == what).count();
    assert_eq!(times("launch_missed"), 3, "{told:?}");
    for never in ["launch_failed", "adopted", "failover"] {
        assert_eq!(times(never), 0, "{never}: {told:?}");
    }
    field.nobody_was_hurt();
}

#[test]
fn sc_70_a_shortage_is_remembered_whatever_is_read_and_whoever_restarts() {
    let (mut field, clock) = timed(
        &[pool(EAST, "memory")],
        Scenario {
            rations: vec![short("memory", 0)],
            ..Scenario::default()
        },
    );
    field.ask_for("job", 1);
    assert_eq!(field.asked("memory", 1), [1]);
    field.explained("memory", "shortage, next probe at");
    // There is room again, and nothing tells.
    field.set(Scenario::default());
    field.readings(3);
    clock.ahead(Duration::from_secs(20));
    field.coordinator.kill();
    field.run("");
    field.explained("memory", "shortage, next probe at");
    field.readings(3);
    assert_eq!(
        field.asked_of("memory").len(),
        1,
        "neither a reading nor a restart forgets"
    );
    clock.ahead(Duration::from_secs(MINUTE * 11 / 10 + 1));
    assert_eq!(field.asked("memory", 2), [1, 1]);
    field.boot("memory", EAST, 1);
    field.served("job");
    field.nobody_was_hurt();
}

#[test]
fn sc_75_two_selector_sets_are_one_ask_of_one_pool() {
    let mut both = pool(EAST, "sets");
    both.more = "labels = { disk = \"nvme\", team = \"vision\" }";
    both.mode = "observe";
    let field = Field::start(&[both], Scenario::default());
    field.ask_where("three", 3, &["-l", "disk=nvme"]);
    field.ask_where("six", 6, &["-l", "team=vision"]);
    field.explained("sets", "9");
    assert!(field.asked_of("sets").is_empty());
    field.coordinator.ask(&["pools", "mode", "sets", "full"]);
    assert_eq!(field.asked("sets", 1), [9]);
    field.readings(4);
    assert_eq!(field.asked_of("sets"), [9], "one ask");
    assert_eq!(field.ledger().launched(EAST, "sets"), 9);
    for request in ["three", "six"] {
        field.explained(request, "sets: asks for 9 of sets/g5.xlarge");
    }
    field.nobody_was_hurt();
}

#[test]
fn sc_57_what_comes_is_counted_once() {
    let mut field = Field::start(&[pool(EAST, "once")], Scenario::default());
    field.ask_for("three", 3);
    assert_eq!(field.asked("once", 1), [3]);
    field.boot("once", EAST, 1);
    field.readings(3);
    assert_eq!(field.asked_of("once"), [3], "one joined, two come");
    field.ask_for("fourth", 1);
    assert_eq!(field.asked("once", 2), [3, 1]);
    field.readings(3);
    assert_eq!(field.asked_of("once"), [3, 1]);
    assert_eq!(field.ledger().launched(EAST, "once"), 4);
    field.nobody_was_hurt();
}

#[test]
fn sc_76_growth_is_exact_and_the_spare_stands_beside_it() {
    let mut spare = pool(EAST, "spare");
    spare.more = "spare = 2\nlabels = { team = \"vision\" }";
    spare.mode = "observe";
    let mut other = pool(WEST, "other");
    other.more = "labels = { team = \"speech\" }";
    let mut field = Field::start(&[spare, other], Scenario::default());
    field.ask_where("seen", 1, &["-l", "team=vision"]);
    field.ask_where("heard", 1, &["-l", "team=speech"]);
    field.coordinator.ask(&["pools", "mode", "spare", "full"]);
    assert_eq!(field.asked("other", 1), [1], "the spare is another pool's");
    assert_eq!(field.asked("spare", 1), [3], "1 for demand, 2 as spare");
    field.explained("spare", "2 as spare");
    field.boot("spare", EAST, 3);
    field.boot("other", WEST, 1);
    field.served("seen");
    field.served("heard");
    field.readings(4);
    assert_eq!(field.asked_of("spare"), [3]);
    assert_eq!(field.asked_of("other"), [1]);
    field.nobody_was_hurt();
}

/// A group over two zones: what only one of them may serve waits for that one, and closes no other.
#[test]
fn sc_98_the_zone_that_was_asked_for() {
    let mut zones = pool(EAST, "zoned");
    zones.group.zones = vec!["us-east-1a".to_owned(), "us-east-1b".to_owned()];
    let ration = Ration {
        zone: Some("us-east-1b".to_owned()),
        ..short("zoned", 0)
    };
    let scenario = Scenario {
        rations: vec![ration],
        ..Scenario::default()
    };
    let mut field = Field::start(&[zones], scenario);
    field.ask_where(
        "bound",
        1,
        &["-l", "topology.kubernetes.io/zone=us-east-1b"],
    );
    field.explained("bound", "do not have sufficient g5.xlarge capacity in the Availability Zone you requested (us-east-1b)");
    field.ask_for("free", 1);
    field.boot("zoned", EAST, 1);
    field.served("free");
    let ledger = field.ledger();
    let asked: Vec<&str> = ledger
        .mutations
        .iter()
        .filter(|m| m.action == "LaunchInstances")
        .map(|m| m.zone.as_str())
        .collect();
    assert_eq!(
        asked,
        ["us-east-1b", "us-east-1a"],
        "each in its zone, once"
    );
    assert_eq!(ledger.launches[0].zone, "us-east-1a");
    assert_eq!(
        ledger.calls_of("SetDesiredCapacity"),
        0,
        "nothing is left to withdraw"
    );
    let bound = field.coordinator.ask(&["requests", "show", "bound"]);
    assert_ne!(bound["state"], "served", "{bound}");
    field.nobody_was_hurt();
}

/// LaunchInstances is denied, and of what the raised capacity is to bring one comes, one never does, and nothing is said.
#[test]
fn sc_05_a_group_that_follows_in_part_is_short_at_the_deadline_and_lowered_to_what_came() {
    let mut part = pool(EAST, "part-e");
    part.more = "provision_deadline = \"10m\"";
    let mut costly = pool(WEST, "part-w");
    costly.price = "2.0";
    let ration = Ration {
        silent: true,
        ..short("part-e", 1)
    };
    // The clock is set, and AWS's is not: the other group tells its ids.
    let fault = Fault {
        region: Some(EAST.into()),
        ..denied()
    };
    let scenario = Scenario {
        rations: vec![ration],
        faults: vec![fault],
        ..Scenario::default()
    };
    let (mut field, clock) = timed(&[part, costly], scenario);
    field.ask_for("job", 3);
    let id = field.boot("part-e", EAST, 1).remove(0);
    field
        .coordinator
        .node_in(&format!("ip-{id}"), "ready", SOON);
    field.readings(2);
    assert_eq!(field.ledger().launched(WEST, "part-w"), 0, "waited for");
    clock.ahead(Duration::from_secs(10 * MINUTE + 5));
    field.explained("part-e", "shortage (accepted, but only 1 of 3 appeared)");
    field.boot("part-w", WEST, 2);
    field.served("job");
    field.withdrawn("part-e", 1);
    let shown = field.coordinator.ask(&["pools", "show", "part-e"]);
    assert_eq!(
        (&shown["misses"], &shown["offerings"][0]["failure"]),
        (&0.into(), &"shortage".into()),
        "{shown}"
    );
    assert!(field.events().contains("2 go to part-w/"));
    let ledger = field.ledger();
    assert_eq!(
        (
            ledger.launched(EAST, "part-e"),
            ledger.launched(WEST, "part-w")
        ),
        (1, 2),
        "{:?}",
        ledger.mutations
    );
    field.nobody_was_hurt();
}
