//! The coordinator dies at whatever it writes: a cycle, an agent's enrolment, what a person asked for.

use super::tests::{job, setup, trace};
use super::*;
use drover_core::model::Millis;

/// Played with these mishaps: how often the coordinator died.
fn deaths(faults: &str) -> usize {
    let setup = setup(faults, &["a"], "boot_ms = 60000\n");
    let jobs = [job("one", 0, 600, 8), job("two", 300, 600, 8)];
    let history = run(&trace(&jobs), &setup, 1).unwrap_or_else(|error| panic!("{error}: {faults}"));
    assert_eq!(history.violations, [], "{faults}");
    assert!(history.jobs.iter().all(|job| job.kills == 0), "{faults}");
    assert!(history.jobs.iter().all(|j| j.ended.is_some()), "{faults}");
    let died = |what: &&(Millis, String)| what.1 == "the coordinator died";
    history.notes.iter().filter(died).count()
}

fn fault(kind: &str, at: &str, lasts: &str, count: u32) -> String {
    format!(
        "[[simulate.fault]]\nkind = {kind:?}\nat = {at:?}\nlasts = {lasts:?}\ncount = {count}\n"
    )
}

#[test]
fn at_each_write_around_the_enrolment_of_agents() {
    for writes in 1..=8 {
        assert_eq!(deaths(&fault("crash", "59s", "5m", writes)), 1, "{writes}");
    }
}

#[test]
fn at_what_a_person_asked_for() {
    let crash = |at| fault("crash", at, "1m", 1);
    // What begins at the same moment begins in this order, and what ends comes before what begins.
    let cordon = fault("cordon", "100s", "100s", 1);
    assert_eq!(deaths(&(crash("100s") + &cordon)), 1, "a cordon");
    assert_eq!(deaths(&(crash("199s") + &cordon)), 1, "an uncordon");
    // Thawed ten minutes after the end.
    let restore = fault("restore", "90s", "10s", 1);
    assert_eq!(deaths(&(crash("699s") + &restore)), 1, "a thaw");
}

#[test]
fn a_write_that_nobody_watches_is_told_as_waiting_for_ever() {
    let setup = setup("", &["a"], "boot_ms = 0\n");
    let trace = trace(&[job("one", 0, 600, 8)]);
    let rest = Arc::new(Rest::default());
    let parks = rest.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .on_thread_park(move || parks.parked())
        .build()
        .expect("a runtime");
    let text = runtime.block_on(async {
        let mut engine = Engine::new(&trace, &setup, 1).await.expect("it starts");
        engine.death.after(1);
        let played = unless_stuck(&rest, async {
            engine.awaited = "an answer";
            let store = engine.store.clone();
            store.commit(store.fence(), &[], &[]).await
        });
        assert!(played.await.is_none());
        engine.stuck().to_string()
    });
    assert_eq!(
        text,
        "nothing goes on after 0 s of virtual time: it waits for ever for an answer"
    );
}
