//! What follows a failure: what counts as its probe, when a probe is over, and how all of it is told.

use crate::rig::{GPUS, Machine, Rig, two_pools};
use drover::ports::actuate::{InstanceState, ProviderFailure, Raise, Trace};
use drover::ports::clock::Clock;
use drover_core::model::{FailureKind, Millis, UnixMs};

const FLUX: &str = "Quantum flux exceeded";

/// The group of pool `a` reports a failed activity.
fn reports(rig: &Rig, id: &str, kind: FailureKind, message: &str) {
    let failure = ProviderFailure {
        id: id.to_owned(),
        offering: None,
        kind,
        message: message.to_owned(),
        at: rig.clock.wall(),
        trace: Trace::Absent,
    };
    rig.cloud
        .script("a", |script| script.failures.push(failure));
}

/// The same, with what it says of whose it is.
fn reports_of(rig: &Rig, id: &str, kind: FailureKind, trace: Trace) {
    reports(rig, id, kind, FLUX);
    rig.cloud.script("a", |script| {
        script.failures.last_mut().expect("it").trace = trace;
    });
}

/// What a failed activity says of the group's size.
fn size(there: u32, wanted: u32, changes: &[(u32, u32)]) -> Trace {
    let changes = changes.iter().map(|&(from, to)| Raise { from, to });
    Trace::Size {
        there,
        wanted,
        changes: changes.collect(),
    }
}

const NOBODYS: &str = "the group's own, of no ask of Drover's that is known";

async fn ask_a(rig: &Rig, name: &str, units: u32) {
    rig.ask_with(name, units, GPUS, |spec| spec.pools = vec!["a".into()])
        .await;
}

async fn explained(rig: &Rig, name: &str) -> String {
    let told = rig.commands.explain(name).await.expect("explained");
    format!("{}\n{}", told.summary, told.lines.join("\n"))
}

/// A machine that the group of pool `a` starts for a size that it was told.
fn appears(rig: &Rig, id: &str, launched: UnixMs) {
    let machine = Machine {
        pool: "a".to_owned(),
        state: InstanceState::Pending,
        token: String::new(),
        launched,
        ends: None,
    };
    let mut machines = rig.cloud.machines.lock().expect("lock");
    machines.insert(id.to_owned(), machine);
    drop(machines);
    rig.cloud.script("a", |script| script.unfilled -= 1);
}

fn counts(rig: &Rig) -> Vec<u32> {
    let launches = rig.cloud.launches.lock().expect("lock");
    launches.iter().map(|order| order.count).collect()
}

#[tokio::test]
async fn launches_from_before_a_failure_are_not_its_probe_and_a_granted_probe_is_over() {
    let mut rig = Rig::new(&two_pools()).await;
    ask_a(&rig, "first", 3).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("a").len(), 3, "on their way");
    rig.pass(Millis::seconds(10)).await;
    reports(&rig, "f-1", FailureKind::Transient, FLUX);
    rig.cycle().await;
    ask_a(&rig, "second", 3).await;
    rig.cycle().await;
    let told = explained(&rig, "second").await;
    assert!(
        told.contains(FLUX) && told.contains("left alone until"),
        "{told}"
    );
    assert!(!told.contains("under way"), "{told}");
    rig.clock.advance(Millis::seconds(6));
    rig.cycle().await;
    assert_eq!(
        counts(&rig),
        [3, 1, 2],
        "a probe, and all once it was granted"
    );
    assert_eq!(rig.cloud.alive("a").len(), 6, "nobody has joined");
    for name in ["second", "a"] {
        let told = explained(&rig, name).await;
        assert!(!told.contains("its probe is under way"), "{name}: {told}");
    }
}

#[tokio::test]
async fn passing_trouble_is_asked_again_after_ever_longer_pauses() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| script.sized = true);
    rig.cloud.script("a", |script| script.capacity = Some(0));
    ask_a(&rig, "job", 1).await;
    let begin = rig.clock.wall();
    let mut asked = Vec::new();
    for second in 0..180 {
        rig.cycle().await;
        if rig.cloud.asked() > asked.len() {
            asked.push(rig.clock.wall().since(begin).0 / 1_000);
        }
        rig.clock.advance(Millis::seconds(1));
        if asked.last() == Some(&second) {
            // What was asked fails a second later; its size is given back.
            reports(&rig, &format!("f-{second}"), FailureKind::Transient, FLUX);
            rig.cycle().await;
            rig.cloud.script("a", |script| script.unfilled = 0);
        }
    }
    let pauses: Vec<u64> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!((4..=6).contains(&pauses.len()), "{asked:?}");
    for (nth, pause) in pauses.iter().enumerate() {
        let least = 5 << nth;
        assert!(
            (least..=least + least / 10 + 3).contains(pause),
            "{asked:?}"
        );
    }
}

#[tokio::test]
async fn a_probe_of_a_size_is_over_when_its_instance_is_seen() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| {
        script.sized = true;
        script.whole = true;
    });
    reports(&rig, "f-1", FailureKind::Transient, FLUX);
    rig.cycle().await;
    rig.cloud.script("a", |script| script.capacity = Some(0));
    rig.pass(Millis::seconds(10)).await;
    ask_a(&rig, "job", 3).await;
    rig.cycle().await;
    assert_eq!(counts(&rig), [1]);
    let told = explained(&rig, "a").await;
    assert!(told.contains("its probe is under way"), "{told}");
    assert!(!told.contains("with the next demand"), "{told}");
    rig.pass(Millis::minutes(2)).await;
    assert_eq!(counts(&rig), [1], "that it was taken says nothing");
    appears(&rig, "i-late", rig.clock.wall());
    rig.pass(Millis::seconds(10)).await;
    assert_eq!(counts(&rig), [1, 2], "long before an agent joins");
}

#[tokio::test]
async fn one_ask_is_told_as_given_once_and_what_failed_wholly_only_as_that() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| {
        script.sized = true;
        script.capacity = Some(1);
    });
    ask_a(&rig, "job", 4).await;
    rig.cycle().await;
    reports(
        &rig,
        "f-1",
        FailureKind::Shortage,
        "no capacity in the zone",
    );
    rig.clock.advance(Millis::seconds(2));
    rig.cycle().await;
    assert_eq!(rig.events("launch_accepted").await.len(), 1);
    assert!(rig.events("launch_granted").await.is_empty());
    let lost = rig.events("launch_lost").await;
    assert_eq!(lost.len(), 1);
    assert!(lost[0].message.starts_with("3 of launch "), "{lost:?}");

    rig.cloud.script("b", |script| {
        script.launch_fails = Some(FailureKind::Shortage);
    });
    rig.ask_with("other", 1, GPUS, |spec| spec.pools = vec!["b".into()])
        .await;
    rig.cycle().await;
    let failed = rig.events("launch_failed").await;
    let of_b = failed.iter().filter(|event| event.subject == "b");
    assert_eq!(of_b.count(), 1);
    assert!(rig.events("launch_granted").await.is_empty());
}

#[tokio::test]
async fn a_request_is_told_its_own_asks_for_good_and_no_asks_for_others() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| {
        script.launch_fails = Some(FailureKind::Shortage);
    });
    rig.ask("mine", 2, GPUS).await;
    rig.cycle().await;
    let told = explained(&rig, "mine").await;
    let at = |what: &str| told.find(what).unwrap_or_else(|| panic!("{what}: {told}"));
    assert!(at(" a: asks for 2") < at(" a: a/p2/a/on-demand: shortage"));
    assert!(at(" a: a/p2/a/on-demand: shortage") < at(" b: asks for 2"));
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("mine"), "served");
    for n in 0..12 {
        rig.ask(&format!("other-{n}"), 1, GPUS).await;
        rig.pass(Millis::seconds(10)).await;
    }
    let told = explained(&rig, "mine").await;
    assert!(
        told.contains(" a: asks for 2") && told.contains(" b: asks for 2"),
        "{told}"
    );
    assert!(!told.contains("asks for 1"), "{told}");
    let other = explained(&rig, "other-11").await;
    assert_eq!(other.matches("asks for 1").count(), 1, "{other}");
    assert!(!other.contains("asks for 2"), "{other}");
}

#[tokio::test]
async fn a_request_for_one_pool_is_told_nothing_of_other_pools() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("b", |script| script.dark = true);
    rig.cloud.script("a", |script| script.capacity = Some(0));
    ask_a(&rig, "job", 1).await;
    rig.cycle().await;
    let told = explained(&rig, "job").await;
    assert!(told.contains("a/p2/a/on-demand"), "{told}");
    for word in ["does not fit", "b/", " b ", "cannot be read"] {
        assert!(!told.contains(word), "{word}: {told}");
    }
}

/// Two asks by size, the first from 0 to 1 and the second from 1 to 3, of which nothing has come.
#[tokio::test]
async fn a_failed_activity_is_laid_to_the_ask_that_it_can_only_be_of() {
    let table = [
        // What it says, and how much each of the two asks loses.
        (size(0, 1, &[]), [1, 0]),
        (size(0, 1, &[(0, 1)]), [1, 0]),
        (size(1, 3, &[]), [0, 2]),
        (size(2, 3, &[(1, 3)]), [0, 2]),
        // Of both: nobody can say of which.
        (size(0, 3, &[(0, 1), (1, 3)]), [1, 2]),
        // Somebody raised it further.
        (size(0, 9, &[(3, 9)]), [1, 2]),
        // Somebody else wished for the first node.
        (size(0, 1, &[(0, 5), (5, 1)]), [1, 2]),
        (Trace::Absent, [1, 2]),
        // All that was asked for was there.
        (size(3, 9, &[]), [0, 0]),
    ];
    for (trace, lost) in table {
        let mut rig = Rig::new(&two_pools()).await;
        rig.cloud.script("a", |script| {
            script.sized = true;
            script.capacity = Some(0);
        });
        for (name, units) in [("one", 1), ("two", 2)] {
            ask_a(&rig, name, units).await;
            rig.cycle().await;
        }
        assert_eq!(counts(&rig), [1, 2]);
        let whose = match lost {
            [1, 0] => Some("one"),
            [0, 2] => Some("two"),
            _ => None,
        };
        reports_of(&rig, "f-1", FailureKind::Shortage, trace.clone());
        rig.cycle().await;
        let said = rig.events("launch_lost").await;
        let of = |missing: u32| {
            said.iter()
                .find(|e| e.message.starts_with(&format!("{missing} of ")))
        };
        for missing in [1, 2] {
            let expected = lost.contains(&missing);
            assert_eq!(of(missing).is_some(), expected, "{trace:?}: {said:?}");
        }
        assert!(
            said.iter()
                .all(|e| e.message.contains(NOBODYS) == whose.is_none()),
            "{said:?}"
        );
        let failed = rig.events("launch_failed").await;
        assert_eq!(failed.len(), 1, "{trace:?}: {failed:?}");
        assert_eq!(failed[0].launch.is_some(), whose.is_some(), "{trace:?}");
        assert_eq!(failed[0].message.contains(NOBODYS), whose.is_none());
        for name in ["one", "two"] {
            let told = explained(&rig, name).await;
            let acts = told
                .lines()
                .filter(|line| line.contains(" a: a/p2/a/on-demand: "));
            let blamed = acts.filter(|line| !line.contains(NOBODYS)).count();
            let expected = usize::from(whose == Some(name));
            assert_eq!(blamed, expected, "{trace:?}, {name}: {told}");
        }
    }
}

#[tokio::test]
async fn what_somebody_else_misses_takes_nothing_from_an_ask_that_has_come() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| {
        script.sized = true;
        script.capacity = Some(2);
    });
    ask_a(&rig, "mine", 2).await;
    rig.cycle().await;
    rig.cycle().await;
    // Somebody raises it from 2 to 5, and nothing comes of that.
    rig.cloud.script("a", |script| script.unfilled = 3);
    for (id, trace) in [
        ("f-1", size(2, 5, &[])),
        ("f-2", Trace::Absent),
        ("f-3", size(1, 2, &[])),
    ] {
        reports_of(&rig, id, FailureKind::Shortage, trace);
        rig.cycle().await;
        let failed = rig.events("launch_failed").await;
        assert!(
            failed.iter().all(|e| e.launch.is_none()),
            "{id}: {failed:?}"
        );
        assert!(rig.events("launch_lost").await.is_empty(), "{id}");
    }
    assert_eq!(rig.events("launch_failed").await.len(), 3);
    rig.boot_all().await;
    rig.pass(Millis::seconds(10)).await;
    assert_eq!(rig.shown("mine"), "served");
    assert_eq!(counts(&rig), [2], "nothing more is asked for it");
    // What fails for others after that is nothing to it.
    rig.pass(Millis::seconds(10)).await;
    reports_of(&rig, "f-4", FailureKind::Quota, size(2, 5, &[]));
    rig.cycle().await;
    let told = explained(&rig, "mine").await;
    assert!(!told.contains("quota"), "{told}");
    let told = explained(&rig, "a").await;
    assert!(told.contains(&format!("{NOBODYS}: quota")), "{told}");
}

#[tokio::test]
async fn an_instance_that_ended_in_its_boot_is_its_launchs_even_when_that_is_told_late() {
    let mut rig = Rig::new(&two_pools()).await;
    ask_a(&rig, "job", 1).await;
    rig.cycle().await;
    rig.cycle().await;
    let id = rig.cloud.alive("a").remove(0);
    rig.cloud.terminates(&id);
    rig.cycle().await;
    assert_eq!(rig.events("launch_missed").await.len(), 1);
    let trace = |id: &str| Trace::Instance(id.into());
    reports_of(&rig, "f-1", FailureKind::Shortage, trace(&id));
    reports_of(&rig, "f-2", FailureKind::Quota, trace("i-theirs"));
    rig.cycle().await;
    let failed = rig.events("launch_failed").await;
    let asked = rig.events("launch_asked").await;
    let [ours, theirs] = failed.as_slice() else {
        panic!("{failed:?}");
    };
    assert!(ours.launch.is_some());
    assert_eq!(ours.launch, asked[0].launch);
    assert_eq!(theirs.launch, None);
}
