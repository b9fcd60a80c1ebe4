//! Tests of what is decided on a hook, on a clock of its own.

use super::*;
use crate::records::DrainPolicy;
use drover_core::model::{InstanceId, PoolId};

const START: UnixMs = UnixMs(1_800_000_000_000);

fn hook(on: HookOn, timeout_s: u64, deadline_s: u64) -> HookRecord {
    HookRecord {
        pool: PoolId::from("a"),
        instance: InstanceId::from("i-1"),
        hook: "out".to_owned(),
        on,
        since: START,
        by: "agent".to_owned(),
        timeout: Some(Millis::seconds(timeout_s)),
        limit: Some(START.after(Millis::seconds(timeout_s * 100))),
        deadline: Some(START.after(Millis::seconds(deadline_s))),
        policy: DrainPolicy::Wait,
        beat: None,
        beats: 0,
        warned: false,
        state: HookState::Waits,
        why: String::new(),
    }
}

/// Every ten seconds a look; what was done at which second. Calls are answered at once.
fn play(record: &mut HookRecord, until_s: u64, look: impl Fn(u64) -> Look) -> Vec<(u64, String)> {
    let mut done = Vec::new();
    for second in (0..=until_s).step_by(10) {
        let now = START.after(Millis::seconds(second));
        match judge(record, look(second), now) {
            Act::Nothing => {}
            Act::Beat => {
                record.beat = Some(now);
                done.push((second, "beat".to_owned()));
            }
            Act::Complete(why) => {
                record.state = HookState::Over;
                done.push((second, why));
            }
            Act::LeaveBe(why) => {
                record.state = HookState::Over;
                done.push((second, format!("left: {why}")));
            }
            Act::Forget => done.push((second, "forgotten".to_owned())),
        }
    }
    done
}

fn drained_from(second: u64) -> impl Fn(u64) -> Look {
    move |now| Look {
        drained: now >= second,
        ..Look::default()
    }
}

fn beats(done: &[(u64, String)]) -> Vec<u64> {
    let beats = done.iter().filter(|(_, what)| what == "beat");
    beats.map(|(second, _)| *second).collect()
}

#[test]
fn ag_21_beats_at_half_the_time_then_one_completion_and_no_beat_after_it() {
    let mut record = hook(HookOn::Terminating, 300, 29_000);
    let done = play(&mut record, 3_000, drained_from(700));
    assert_eq!(beats(&done), [150, 300, 450, 600]);
    assert_eq!(done.last(), Some(&(700, "drained".to_owned())));
    assert_eq!(done.len(), 5);
}

#[test]
fn ag_21_the_deadline_policy_gives_up_and_the_record_names_it() {
    let mut record = hook(HookOn::Terminating, 300, 200);
    let done = play(&mut record, 3_000, |_| Look::default());
    assert_eq!(beats(&done), [150]);
    assert_eq!(done.len(), 2);
    let (second, why) = &done[1];
    assert_eq!(*second, 200);
    assert!(
        why.contains("policy wait of pool a gave the drain up after 200 s"),
        "{why}"
    );
}

#[test]
fn ag_21_a_node_that_nobody_knows_is_completed() {
    let mut record = hook(HookOn::Terminating, 300, 29_000);
    let done = play(&mut record, 1_000, |_| Look {
        unknown: true,
        ..Look::default()
    });
    assert_eq!(done, [(0, "unknown node".to_owned())]);
}

#[test]
fn ag_21_a_drain_beyond_the_hooks_limit_ends_before_it_with_a_warning() {
    // 100 times 30 s, less a margin.
    let mut record = hook(HookOn::Terminating, 30, 2_985);
    let end = START.after(Millis::seconds(2_985));
    assert!(!is_near(&record, UnixMs(end.0 - 301_000)));
    assert!(is_near(&record, UnixMs(end.0 - 299_000)));
    let done = play(&mut record, 4_000, |_| Look::default());
    let beats = beats(&done);
    // Looked at every ten seconds, a beat that is due at 15 s comes at 20 s.
    assert_eq!(beats.first(), Some(&20));
    assert!(beats.windows(2).all(|pair| pair[1] - pair[0] == 20));
    assert!(beats.last().is_some_and(|last| *last < 2_985));
    assert_eq!(done.len(), beats.len() + 1);
    assert!(record.state == HookState::Over);
}

#[test]
fn a_decision_outlives_a_crash_and_is_made_once() {
    let mut record = hook(HookOn::Terminating, 300, 29_000);
    record.state = HookState::Completing;
    record.why = "drained".to_owned();
    // The node works again, or is unknown: what was decided stays.
    let act = judge(&record, Look::default(), START.after(Millis::seconds(900)));
    assert_eq!(act, Act::Complete("drained".to_owned()));
    record.state = HookState::Over;
    let after = START.after(Millis::seconds(900));
    assert_eq!(judge(&record, Look::default(), after), Act::Nothing);
    let gone = Look {
        gone: true,
        ..Look::default()
    };
    assert_eq!(judge(&record, gone, after), Act::Forget);
}

#[test]
fn a_launching_hook_is_completed_when_its_node_takes_work_or_left_to_the_group() {
    let mut record = hook(HookOn::Launching, 300, 900);
    let done = play(&mut record, 2_000, |second| Look {
        ready: second >= 400,
        unknown: second < 300,
        ..Look::default()
    });
    assert_eq!(beats(&done), [150, 300]);
    assert_eq!(done.last(), Some(&(400, "its node takes work".to_owned())));
    let mut record = hook(HookOn::Launching, 300, 900);
    let done = play(&mut record, 2_000, |_| Look::default());
    assert_eq!(beats(&done), [150, 300, 450, 600, 750]);
    assert_eq!(done.last().map(|(second, _)| *second), Some(900));
    assert!(
        done.last()
            .is_some_and(|(_, what)| what.starts_with("left: "))
    );
}

#[test]
fn a_hook_that_was_not_read_yet_is_not_beaten() {
    let mut record = hook(HookOn::Terminating, 300, 29_000);
    record.timeout = None;
    record.deadline = None;
    assert_eq!(play(&mut record, 600, |_| Look::default()), []);
}
