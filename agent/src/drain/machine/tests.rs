//! Tests of the drain machine: each edge, by scripts of events and the actions and phases they give.

use super::*;
use crate::drain::status::{Blocker, BlockerKind, Phase};
use crate::order::{Desired, DrainSpec, Policy};

const SETTINGS: Settings = Settings {
    word_limit_ms: 60_000,
};

/// A machine with a clock, looks that number themselves, and executors that succeed unless told otherwise.
struct Bench {
    state: State,
    now: u64,
    looks: u64,
    actions: Vec<Action>,
}

impl Bench {
    fn new() -> Self {
        Self {
            state: State::default(),
            now: 1_000,
            looks: 0,
            actions: Vec::new(),
        }
    }

    fn event(&mut self, event: Event) -> &mut Self {
        // As the agent does: every state goes through the disk's format without losing what it needs.
        let before = std::mem::take(&mut self.state);
        let (state, action) = step(before, event, BootMs(self.now), SETTINGS);
        self.state = state;
        self.actions.extend(action);
        self
    }

    /// Carries out what is asked until nothing is asked any more.
    fn settle(&mut self) -> &mut Self {
        while let Some(did) = self.state.busy {
            self.event(Event::Did(did, Ok(())));
        }
        self
    }

    fn order(&mut self, generation: u64, desired: Desired) -> &mut Self {
        let deadline = match &desired {
            Desired::Draining(spec) => spec.deadline_unix_ms.map(BootMs),
            _ => None,
        };
        self.event(Event::Ordered {
            id: OrderId {
                epoch: 1,
                generation,
            },
            desired,
            deadline,
        })
    }

    fn word(&mut self) -> &mut Self {
        let now = BootMs(self.now);
        self.event(Event::Word(now))
    }

    fn look(&mut self, work: &[&str]) -> &mut Self {
        self.look_with(work, &[])
    }

    fn look_with(&mut self, work: &[&str], unreadable: &[&str]) -> &mut Self {
        self.looks += 1;
        let look = Look {
            number: self.looks,
            work: work
                .iter()
                .map(|id| Work {
                    id: (*id).to_owned(),
                    text: format!("process {id}"),
                    protected: id
                        .starts_with("own")
                        .then(|| "the agent runs under it".to_owned()),
                })
                .collect(),
            unreadable: unreadable
                .iter()
                .map(|name| ((*name).to_owned(), "probe hung".to_owned()))
                .collect(),
        };
        self.event(Event::Looked(look))
    }

    fn after(&mut self, ms: u64) -> &mut Self {
        self.now += ms;
        self.event(Event::Tick)
    }

    fn restart(&mut self) -> &mut Self {
        let text = serde_json::to_string(&self.state).unwrap();
        self.state = serde_json::from_str(&text).unwrap();
        self.looks = 0;
        self
    }

    fn phase(&self) -> Option<Phase> {
        self.state.status().phase
    }

    fn blockers(&self) -> Vec<(BlockerKind, String)> {
        let blockers = self.state.status().blockers;
        blockers
            .into_iter()
            .map(|blocker| (blocker.kind, blocker.subject))
            .collect()
    }

    fn taken(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }
}

fn drain(policy: Policy, deadline: Option<u64>) -> Desired {
    named("d", policy, deadline)
}

fn named(id: &str, policy: Policy, deadline: Option<u64>) -> Desired {
    Desired::Draining(DrainSpec {
        id: id.into(),
        policy,
        deadline_unix_ms: deadline,
        grace_ms: 10_000,
        reason: "why".into(),
    })
}

fn evict(ids: &[&str], how: How) -> Action {
    Action::Evict {
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        how,
    }
}

const CHECKPOINT: Action = Action::Checkpoint { by: None };
const UNDO: Action = Action::Undo { keep_cordon: false };
const UNDO_KEEP: Action = Action::Undo { keep_cordon: true };

fn failure(subject: &str) -> Blocker {
    Blocker {
        kind: BlockerKind::Hook,
        subject: subject.into(),
        message: "failed".into(),
    }
}

/// A drain under way that has seen this work.
fn under_way(policy: Policy, deadline: Option<u64>, work: &[&str]) -> Bench {
    let mut bench = Bench::new();
    bench
        .order(1, drain(policy, deadline))
        .word()
        .settle()
        .look(work);
    bench
}

#[test]
fn an_empty_node_is_cordoned_looked_at_twice_and_drained() {
    let mut bench = Bench::new();
    bench
        .look(&[])
        .look(&[])
        .order(1, drain(Policy::Wait, None));
    assert_eq!(bench.phase(), Some(Phase::Cordoning));
    assert_eq!(bench.taken(), [Action::Cordon]);
    bench.look(&[]);
    assert_eq!(
        bench.phase(),
        Some(Phase::Cordoning),
        "looks before the cordon do not count"
    );
    bench.settle().look(&[]);
    assert_eq!(bench.phase(), Some(Phase::Confirming));
    assert_eq!(bench.taken(), []);
    bench.look(&[]);
    assert_eq!(bench.taken(), [Action::Announce]);
    assert_eq!(
        bench.phase(),
        Some(Phase::Confirming),
        "not before the hooks know"
    );
    bench.settle();
    assert_eq!(bench.phase(), Some(Phase::Drained));
    bench.after(99_999_999).look(&[]);
    assert_eq!(
        (bench.phase(), bench.taken().len()),
        (Some(Phase::Drained), 0)
    );
}

#[test]
fn waiting_ends_nobody_and_names_what_it_waits_for() {
    let mut bench = under_way(Policy::Wait, None, &["7:1"]);
    bench.after(999_999_999).look(&["7:1"]);
    assert_eq!(bench.phase(), Some(Phase::Waiting));
    assert_eq!(bench.blockers(), [(BlockerKind::Workload, "7:1".into())]);
    assert_eq!(bench.taken(), [Action::Cordon]);
    let status = bench.state.status();
    assert_eq!((status.workloads_at_start, status.workloads_now), (1, 1));
    bench.look(&[]).look(&["8:2"]).look(&[]);
    assert_eq!(
        bench.phase(),
        Some(Phase::Confirming),
        "one empty look since the last work"
    );
    bench.look(&[]).settle();
    assert_eq!(bench.phase(), Some(Phase::Drained));
    assert_eq!(bench.state.status().ended, Vec::<String>::new());
}

#[test]
fn a_witness_that_cannot_be_read_is_never_empty() {
    for policy in [Policy::Wait, Policy::Evict, Policy::Force] {
        let mut bench = under_way(policy, None, &[]);
        bench.look_with(&[], &["gpu-processes"]);
        for _ in 0..5 {
            bench.look_with(&[], &["gpu-processes"]);
        }
        assert_eq!(bench.phase(), Some(Phase::Blocked), "{policy:?}");
        assert_eq!(
            bench.blockers(),
            [(BlockerKind::UnreadableGpu, "gpu-processes".into())]
        );
        assert_eq!(bench.taken(), [Action::Cordon]);
        bench.look(&[]);
        assert_eq!(bench.phase(), Some(Phase::Confirming));
        bench.look(&[]).settle();
        assert_eq!(bench.phase(), Some(Phase::Drained));
    }
}

#[test]
fn evicting_runs_hooks_then_term_then_kill_after_the_grace() {
    let mut bench = under_way(Policy::Evict, None, &["7:1", "8:2"]);
    assert_eq!(bench.taken(), [Action::Cordon, CHECKPOINT]);
    bench.look(&["7:1", "8:2"]);
    assert_eq!(bench.taken(), [], "one thing at a time");
    bench.settle();
    assert_eq!(bench.taken(), [evict(&["7:1", "8:2"], How::Term)]);
    bench.look(&["7:1"]).after(9_999).word();
    assert_eq!(bench.taken(), []);
    assert_eq!(bench.state.status().ended, ["8:2 TERM"]);
    bench.after(1).settle();
    assert_eq!(bench.taken(), [evict(&["7:1"], How::Kill)]);
    bench.look(&[]).look(&[]).settle();
    assert_eq!(bench.phase(), Some(Phase::Drained));
    assert_eq!(bench.state.status().ended, ["7:1 KILL", "8:2 TERM"]);
}

#[test]
fn what_lands_while_evicting_is_asked_too() {
    let mut bench = under_way(Policy::Evict, None, &["7:1"]);
    bench.settle().taken();
    bench.look(&["7:1", "9:3"]).settle();
    assert_eq!(bench.taken(), [evict(&["9:3"], How::Term)]);
}

#[test]
fn nothing_is_ended_without_fresh_word() {
    for policy in [Policy::Evict, Policy::Force] {
        let mut bench = Bench::new();
        bench.order(1, drain(policy, None)).settle().look(&["7:1"]);
        assert_eq!(
            bench.taken(),
            [Action::Cordon],
            "from disk after a start, no word yet"
        );
        assert_eq!(bench.phase(), Some(Phase::Blocked));
        assert!(
            bench
                .blockers()
                .contains(&(BlockerKind::NoFreshWord, String::new()))
        );
        bench.word();
        assert_eq!(bench.taken(), [CHECKPOINT]);
        bench.now += 60_001;
        bench.settle();
        assert_eq!(bench.taken(), [], "the word grew old during the checkpoint");
        bench.word().settle();
        assert_eq!(bench.taken(), [evict(&["7:1"], How::Term)]);
        bench.after(60_001);
        assert_eq!(bench.taken(), [], "no KILL either");
        bench.event(Event::Emergency(None)).settle();
        assert_eq!(
            bench.taken(),
            [evict(&["7:1"], How::Kill)],
            "the hardware's own word suffices"
        );
    }
}

#[test]
fn older_word_does_not_make_it_staler() {
    let mut bench = Bench::new();
    bench.now = 100_000;
    bench.order(1, drain(Policy::Evict, None)).word().settle();
    bench.event(Event::Word(BootMs(1))).look(&["7:1"]);
    assert_eq!(bench.taken(), [Action::Cordon, CHECKPOINT]);
}

#[test]
fn a_deadline_rolls_wait_and_evict_back_and_keeps_the_reason() {
    for policy in [Policy::Wait, Policy::Evict] {
        let mut bench = under_way(policy, Some(50_000), &["7:1"]);
        bench.settle();
        bench.now = 49_999;
        bench.event(Event::Tick).settle().look(&["7:1"]);
        assert_ne!(bench.phase(), Some(Phase::RolledBack));
        bench.settle().taken();
        bench.after(1);
        assert_eq!(bench.phase(), Some(Phase::RolledBack), "{policy:?}");
        assert_eq!(bench.taken(), [UNDO]);
        assert_eq!(
            bench.state.status().reason,
            "not empty at its deadline: process 7:1"
        );
        bench.settle();
        assert!(!bench.state.is_cordoned() && !bench.state.is_touched());
        bench.look(&[]).look(&[]).after(99_999);
        assert_eq!(
            (bench.phase(), bench.taken().len()),
            (Some(Phase::RolledBack), 0),
            "it stays so"
        );
    }
}

#[test]
fn a_deadline_that_has_passed_already_touches_nothing() {
    let mut bench = Bench::new();
    bench.order(1, drain(Policy::Evict, Some(10)));
    assert_eq!(bench.phase(), Some(Phase::RolledBack));
    assert_eq!(bench.taken(), []);
}

#[test]
fn force_kills_before_the_deadline_and_never_rolls_back() {
    let mut bench = under_way(Policy::Force, Some(40_000), &["7:1"]);
    let by = Some(BootMs(25_000));
    assert_eq!(bench.taken(), [Action::Cordon, Action::Checkpoint { by }]);
    bench.now = 30_000;
    bench.word();
    bench
        .event(Event::Did(Did::Checkpoint, Err(failure("save"))))
        .settle();
    assert_eq!(
        bench.taken(),
        [evict(&["7:1"], How::Term)],
        "a failed hook does not hold it"
    );
    bench.now = 35_000;
    bench.word().settle();
    assert_eq!(
        bench.taken(),
        [evict(&["7:1"], How::Kill)],
        "5 s before the deadline, grace or not"
    );
    bench.now = 90_000;
    bench.word().settle().look(&["7:1"]);
    assert_eq!(bench.phase(), Some(Phase::Blocked));
    assert!(
        bench.state.status().blockers[0]
            .message
            .contains("does not end after KILL")
    );
    assert_eq!(bench.taken(), [evict(&["7:1"], How::Kill)], "asked again");
}

#[test]
fn a_late_force_skips_the_hooks() {
    let mut bench = under_way(Policy::Force, Some(12_000), &["7:1"]);
    bench.settle();
    assert_eq!(bench.taken(), [Action::Cordon, evict(&["7:1"], How::Term)]);
}

#[test]
fn ag_22_an_operators_drain_shrinks_to_the_notices_deadline() {
    let mut bench = under_way(Policy::Evict, Some(1_800_000), &["7:1"]);
    bench.settle().taken();
    bench.event(Event::Emergency(Some(BootMs(120_000))));
    bench.order(1, drain(Policy::Evict, Some(1_800_000)));
    bench.now = 119_999;
    bench.word().settle();
    assert_ne!(
        bench.phase(),
        Some(Phase::RolledBack),
        "the order told again does not lengthen it"
    );
    bench.after(1);
    assert_eq!(bench.phase(), Some(Phase::RolledBack));
}

fn alone(bench: &mut Bench, deadline: u64) -> &mut Bench {
    let Desired::Draining(spec) = named("local-s", Policy::Force, Some(deadline)) else {
        unreachable!("it drains")
    };
    bench.event(Event::Local {
        spec,
        deadline: BootMs(deadline),
    })
}

#[test]
fn sc_90_a_spot_notice_drains_without_an_order_hooks_first() {
    let mut bench = Bench::new();
    alone(&mut bench, 121_000).settle();
    bench.look(&["1:1"]);
    assert_eq!(
        bench.taken(),
        [
            Action::Cordon,
            Action::Checkpoint {
                // Grace and what is kept free before the end.
                by: Some(BootMs(121_000 - 10_000 - 5_000)),
            },
        ]
    );
    bench.settle();
    bench.settle().after(10_000).settle();
    assert_eq!(
        bench.taken(),
        [evict(&["1:1"], How::Term), evict(&["1:1"], How::Kill)]
    );
    bench.look(&[]).look(&[]).settle();
    assert_eq!(bench.phase(), Some(Phase::Drained));
    assert_eq!(bench.state.status().drain_id, "local-s");
}

#[test]
fn what_was_begun_alone_becomes_what_is_ordered_and_runs_no_hook_twice() {
    let mut bench = Bench::new();
    bench.order(1, Desired::Active);
    alone(&mut bench, 121_000).settle();
    bench.look(&["1:1"]).settle();
    bench.taken();
    // The agent restarts: the order of before is told again and means nothing now.
    bench.restart().order(1, Desired::Active);
    bench.look(&["1:1"]);
    assert_eq!(bench.phase(), Some(Phase::Evicting));
    bench.order(2, named("d-7", Policy::Force, Some(106_000)));
    assert_eq!(bench.state.status().drain_id, "d-7");
    bench.after(10_000).settle();
    let taken = bench.taken();
    assert!(
        taken.iter().all(|action| action.did() == Did::Evict),
        "{taken:?}"
    );
    // And can be taken back.
    bench.order(3, Desired::Active).settle();
    assert_eq!(bench.taken(), [Action::Undo { keep_cordon: false }]);
}

#[test]
fn a_waiting_drain_is_overtaken_and_a_forced_one_goes_on() {
    let mut bench = under_way(Policy::Wait, None, &["1:1"]);
    alone(&mut bench, 200_000);
    bench.look(&["1:1"]);
    let taken = bench.taken();
    assert_eq!(taken.last().map(Action::did), Some(Did::Checkpoint));
    let mut bench = under_way(Policy::Force, Some(900_000), &["1:1"]);
    alone(&mut bench, 200_000);
    assert_eq!(bench.state.status().drain_id, "d");
    let run = bench.state.run.as_ref().expect("it runs");
    assert_eq!(run.deadline, Some(BootMs(200_000)), "sooner");
}

#[test]
fn a_boot_ends_what_the_cloud_meant_before_it() {
    let mut bench = Bench::new();
    bench.order(1, Desired::Active);
    alone(&mut bench, 121_000).settle();
    bench.look(&["1:1"]).settle();
    bench.taken();
    bench.state.new_boot(BootMs(5));
    bench.order(1, Desired::Active).settle();
    bench.look(&["2:1"]).settle();
    assert_eq!(bench.taken(), [Action::Undo { keep_cordon: false }]);
    assert_eq!(bench.phase(), None);
}

#[test]
fn a_failed_hook_blocks_and_is_tried_again() {
    let mut bench = under_way(Policy::Evict, None, &["7:1"]);
    bench.taken();
    bench.event(Event::Did(Did::Checkpoint, Err(failure("save"))));
    assert_eq!(bench.phase(), Some(Phase::Blocked));
    assert!(
        bench
            .blockers()
            .contains(&(BlockerKind::Hook, "save".into()))
    );
    bench.after(9_999);
    assert_eq!(bench.taken(), []);
    bench.after(1);
    assert_eq!(bench.taken(), [CHECKPOINT]);
    bench.settle();
    assert_eq!(bench.taken(), [evict(&["7:1"], How::Term)]);
    assert_eq!(bench.phase(), Some(Phase::Evicting));
}

#[test]
fn a_failed_cordon_is_tried_again_and_undone_when_taken_back() {
    let mut bench = Bench::new();
    bench.order(1, drain(Policy::Wait, None));
    bench.event(Event::Did(Did::Cordon, Err(failure("nfs"))));
    assert_eq!(bench.phase(), Some(Phase::Blocked));
    bench.after(10_000);
    assert_eq!(bench.taken(), [Action::Cordon, Action::Cordon]);
    bench.event(Event::Did(Did::Cordon, Err(failure("nfs"))));
    bench.order(2, Desired::Active);
    assert_eq!(bench.taken(), [UNDO], "half a cordon is ours as well");
    assert_eq!(bench.phase(), Some(Phase::Cancelled));
}

#[test]
fn a_failed_last_hook_keeps_it_from_being_drained() {
    let mut bench = under_way(Policy::Wait, None, &[]);
    bench.look(&[]).look(&[]).taken();
    bench.event(Event::Did(Did::Announce, Err(failure("unmount"))));
    assert_eq!(bench.phase(), Some(Phase::Blocked));
    bench.after(10_000).settle();
    assert_eq!(bench.taken(), [Action::Announce]);
    assert_eq!(bench.phase(), Some(Phase::Drained));
}

#[test]
fn cancelling_restores_the_state_before_at_every_step() {
    type Script = fn(&mut Bench);
    let scripts: [(&str, Script); 5] = [
        ("cordoning", |_| {}),
        ("waiting", |bench| {
            bench.settle().look(&["7:1"]);
        }),
        ("evicting", |bench| {
            bench.settle().look(&["7:1"]).settle();
        }),
        ("confirming", |bench| {
            bench.settle().look(&[]);
        }),
        ("drained", |bench| {
            bench.settle().look(&[]).look(&[]).settle();
        }),
    ];
    for (name, script) in scripts {
        for policy in [Policy::Wait, Policy::Evict, Policy::Force] {
            for cordoned_before in [false, true] {
                let mut bench = Bench::new();
                if cordoned_before {
                    bench.order(1, Desired::Cordoned).settle();
                }
                bench.order(2, drain(policy, None)).word();
                script(&mut bench);
                bench.taken();
                let back = if cordoned_before {
                    Desired::Cordoned
                } else {
                    Desired::Active
                };
                bench.order(3, back).settle();
                let undo = if cordoned_before { UNDO_KEEP } else { UNDO };
                assert_eq!(bench.taken(), [undo], "{name} {policy:?} {cordoned_before}");
                assert_eq!(bench.phase(), Some(Phase::Cancelled), "{name}");
                assert_eq!(bench.state.is_cordoned(), cordoned_before, "{name}");
                bench.look(&["7:1"]).after(99_999).word();
                assert_eq!(bench.taken(), [], "{name}: nothing more");
            }
        }
    }
}

#[test]
fn a_cordon_before_the_drain_survives_its_roll_back() {
    let mut bench = Bench::new();
    bench.order(1, Desired::Cordoned).settle();
    bench
        .order(2, drain(Policy::Wait, Some(50_000)))
        .look(&["7:1"])
        .taken();
    bench.now = 50_000;
    bench.event(Event::Tick).settle();
    assert_eq!(bench.taken(), [UNDO_KEEP]);
    assert!(bench.state.is_cordoned());
    bench.order(3, Desired::Active).settle();
    assert_eq!(bench.taken(), [UNDO]);
    assert!(!bench.state.is_cordoned());
}

#[test]
fn cordon_and_uncordon_without_a_drain() {
    let mut bench = Bench::new();
    bench.order(1, Desired::Active);
    assert_eq!(bench.taken(), [], "nothing of ours, nothing to undo");
    bench.order(2, Desired::Cordoned).settle();
    assert_eq!(bench.taken(), [Action::Cordon]);
    assert!(bench.state.is_cordoned());
    assert_eq!(bench.phase(), None);
    bench.order(3, Desired::Active).settle();
    assert_eq!(bench.taken(), [UNDO]);
    assert!(!bench.state.is_cordoned());
}

#[test]
fn the_step_under_way_is_unwanted_once_its_drain_is_taken_back() {
    let mut bench = under_way(Policy::Evict, None, &["7:1"]);
    assert_eq!(bench.state.busy, Some(Did::Checkpoint));
    assert!(!bench.state.unwanted());
    bench.taken();
    bench.order(2, Desired::Active);
    assert!(bench.state.unwanted());
    assert_eq!(bench.taken(), [], "it ends first");
    bench.event(Event::Did(Did::Checkpoint, Err(failure("save"))));
    assert_eq!(bench.taken(), [UNDO]);
}

#[test]
fn an_undo_that_fails_is_tried_again() {
    let mut bench = under_way(Policy::Wait, None, &["7:1"]);
    bench.taken();
    bench.order(2, Desired::Active);
    bench.event(Event::Did(Did::Undo, Err(failure("undo"))));
    assert_eq!(bench.blockers(), [(BlockerKind::Hook, "undo".into())]);
    assert!(bench.state.is_cordoned());
    bench.after(10_000).settle();
    assert_eq!(bench.taken(), [UNDO, UNDO]);
    assert!(!bench.state.is_touched());
}

#[test]
fn work_that_lands_after_drained_takes_the_word_back() {
    let mut bench = under_way(Policy::Wait, Some(90_000), &[]);
    bench.look(&[]).look(&[]).settle();
    assert_eq!(bench.phase(), Some(Phase::Drained));
    bench.look(&["7:1"]);
    assert_eq!(bench.phase(), Some(Phase::Waiting));
    assert_eq!(bench.state.status().workloads_now, 1);
}

#[test]
fn ag_19_all_that_is_in_the_way_is_in_one_report_and_the_deadline_restores_the_state_before() {
    for cordoned_before in [false, true] {
        let mut bench = Bench::new();
        if cordoned_before {
            bench.order(1, Desired::Cordoned).settle();
        }
        bench.order(2, drain(Policy::Evict, Some(601_000))).word();
        bench.settle().look(&["own:1", "own:2"]).settle();
        bench.look(&["own:1", "own:2"]).settle();
        assert_eq!(bench.phase(), Some(Phase::Blocked));
        let both = ["own:1", "own:2"].map(|id| (BlockerKind::Workload, id.to_owned()));
        assert_eq!(bench.blockers(), both);
        let done = bench.taken();
        assert!(
            done.iter().all(|action| action.did() != Did::Evict),
            "{done:?}"
        );
        bench.after(601_000).settle();
        assert_eq!(bench.phase(), Some(Phase::RolledBack));
        let undone = Action::Undo {
            keep_cordon: cordoned_before,
        };
        assert_eq!(bench.taken(), [undone]);
        assert_eq!(bench.state.is_cordoned(), cordoned_before);
        let reason = bench.state.status().reason;
        assert!(reason.contains("own:1"), "{reason}");
    }
}

#[test]
fn what_may_not_be_ended_is_spared_and_named() {
    let mut bench = under_way(Policy::Force, None, &["own:1", "7:1"]);
    bench.settle();
    assert_eq!(bench.taken().last(), Some(&evict(&["7:1"], How::Term)));
    bench.look(&["own:1"]);
    assert_eq!(bench.phase(), Some(Phase::Blocked));
    assert!(
        bench.state.status().blockers[0]
            .message
            .contains("the agent runs under it")
    );
    bench.after(99_999).word();
    assert_eq!(bench.taken(), []);
}

#[test]
fn an_eviction_that_is_not_allowed_is_told() {
    let mut bench = under_way(Policy::Evict, None, &["7:1"]);
    bench.event(Event::Did(Did::Checkpoint, Ok(())));
    let denied = Blocker {
        kind: BlockerKind::Executor,
        subject: "7:1".into(),
        message: "not permitted".into(),
    };
    bench.event(Event::Did(Did::Evict, Err(denied)));
    assert_eq!(bench.phase(), Some(Phase::Blocked));
    assert!(
        bench
            .blockers()
            .contains(&(BlockerKind::Executor, "7:1".into()))
    );
}

#[test]
fn a_restart_at_every_step_carries_on() {
    // Cordoning: the cordon is asked again.
    let mut bench = Bench::new();
    bench.order(1, drain(Policy::Evict, None)).taken();
    bench.restart().order(1, drain(Policy::Evict, None));
    assert_eq!(bench.taken(), [Action::Cordon]);
    // Checkpoint under way: begun again, and only on fresh word.
    bench.settle().look(&["7:1"]);
    assert_eq!(bench.taken(), []);
    bench.word();
    assert_eq!(bench.taken(), [CHECKPOINT]);
    bench
        .restart()
        .order(1, drain(Policy::Evict, None))
        .look(&["7:1"])
        .word();
    assert_eq!(bench.taken(), [CHECKPOINT]);
    // TERM was sent: the grace goes on from then.
    bench.settle().taken();
    bench.now += 10_000;
    bench
        .restart()
        .order(1, drain(Policy::Evict, None))
        .look(&["7:1"])
        .word();
    assert_eq!(bench.taken(), [evict(&["7:1"], How::Kill)]);
    bench.settle().look(&[]).look(&[]).settle();
    assert_eq!(bench.phase(), Some(Phase::Drained));
    // Drained stays so, and is not announced twice.
    bench.taken();
    bench
        .restart()
        .order(1, drain(Policy::Evict, None))
        .look(&[])
        .look(&[]);
    assert_eq!(
        (bench.phase(), bench.taken().len()),
        (Some(Phase::Drained), 0)
    );
    // Undo under way: begun again.
    bench.order(2, Desired::Active);
    assert_eq!(bench.taken(), [UNDO]);
    bench.restart().event(Event::Tick);
    assert_eq!(bench.taken(), [UNDO]);
}

#[test]
fn a_new_boot_asserts_the_cordon_again_and_forgets_processes() {
    let mut bench = under_way(Policy::Evict, None, &["7:1"]);
    bench.settle().taken();
    bench.restart();
    bench.now = 50;
    bench.state.new_boot(BootMs(50));
    bench.order(1, drain(Policy::Evict, None)).settle();
    assert_eq!(bench.taken(), [Action::Cordon]);
    bench.word().look(&["7:1"]).settle();
    assert_eq!(
        bench.taken(),
        [evict(&["7:1"], How::Term)],
        "another process, asked anew"
    );
}

#[test]
fn the_same_drain_told_again_goes_on_with_new_terms() {
    let mut bench = under_way(Policy::Wait, None, &["7:1"]);
    bench.taken();
    bench.order(2, drain(Policy::Evict, Some(90_000))).settle();
    assert_eq!(bench.taken(), [CHECKPOINT, evict(&["7:1"], How::Term)]);
    assert_eq!(bench.state.status().order.generation, 2);
    bench.now = 90_000;
    bench.event(Event::Tick).settle().taken();
    assert_eq!(bench.phase(), Some(Phase::RolledBack));
    bench.order(3, drain(Policy::Evict, Some(90_000)));
    assert_eq!(
        (bench.phase(), bench.taken().len()),
        (Some(Phase::RolledBack), 0)
    );
    bench.order(4, drain(Policy::Evict, Some(900_000)));
    assert_eq!(
        bench.taken(),
        [Action::Cordon],
        "a later deadline begins it anew"
    );
}

#[test]
fn another_drain_takes_over_with_the_state_before_the_first() {
    let mut bench = under_way(Policy::Wait, None, &["7:1"]);
    bench.taken();
    bench.order(2, named("e", Policy::Force, None)).settle();
    assert_eq!(bench.state.status().drain_id, "e");
    assert_eq!(bench.taken(), [CHECKPOINT, evict(&["7:1"], How::Term)]);
    bench.order(3, Desired::Active).settle();
    assert_eq!(bench.taken(), [UNDO]);
}

#[test]
fn released_by_root_undoes_ours_and_lets_orders_wait() {
    let mut bench = under_way(Policy::Evict, None, &["7:1"]);
    bench.settle().taken();
    bench.event(Event::Released(true)).settle();
    assert_eq!(bench.taken(), [UNDO]);
    assert_eq!(bench.phase(), Some(Phase::Cancelled));
    assert_eq!(bench.state.status().reason, "released by root on the host");
    bench
        .order(2, named("e", Policy::Force, None))
        .word()
        .look(&["7:1"])
        .after(99_999)
        .word();
    bench.order(3, Desired::Cordoned).after(1);
    bench.order(4, drain(Policy::Evict, None)).word();
    assert_eq!(bench.taken(), [], "orders wait");
    assert!(bench.state.is_released() && !bench.state.is_cordoned());
    bench.event(Event::Released(false));
    bench.order(4, drain(Policy::Evict, None));
    assert_eq!(bench.taken(), [Action::Cordon], "taken up at resume");
}

#[test]
fn a_release_survives_a_restart_but_not_a_boot() {
    let mut bench = Bench::new();
    bench.event(Event::Released(true)).restart();
    bench.order(1, Desired::Cordoned);
    assert_eq!(bench.taken(), []);
    bench.state.new_boot(BootMs(1));
    bench.order(1, Desired::Cordoned);
    assert_eq!(bench.taken(), [Action::Cordon]);
}

mod never {
    //! What must hold whatever happens in whatever order.

    use proptest::prelude::*;

    use super::*;

    fn any_event() -> impl Strategy<Value = u8> {
        0_u8..14
    }

    fn happen(bench: &mut Bench, number: u8, generation: u64) {
        let policy = match number % 3 {
            0 => Policy::Wait,
            1 => Policy::Evict,
            _ => Policy::Force,
        };
        match number {
            0 => bench.order(generation, Desired::Active),
            1 => bench.order(generation, Desired::Cordoned),
            2..=4 => bench.order(generation, drain(policy, None)),
            5 => bench.order(generation, drain(policy, Some(bench.now + 30_000))),
            6 => bench.look(&[]),
            7 => bench.look(&["7:1", "own:2"]),
            8 => bench.look_with(&[], &["gpu-processes"]),
            9 => bench.word(),
            10 => bench.after(7_000),
            11 => bench.after(61_000),
            12 => bench.restart(),
            _ => {
                let released = !bench.state.is_released();
                bench.event(Event::Released(released))
            }
        };
    }

    proptest! {
        #[test]
        fn i1_only_a_wanted_drain_with_fresh_word_ends_anything(
            script in proptest::collection::vec((any_event(), any::<bool>()), 1..60)
        ) {
            let mut bench = Bench::new();
            for (index, (number, settle)) in script.into_iter().enumerate() {
                let word_before = bench.state.word;
                happen(&mut bench, number, index as u64 + 1);
                if settle {
                    bench.settle();
                }
                let fresh = bench.state.word.max(word_before)
                    .is_some_and(|at| bench.now - at.0 <= SETTINGS.word_limit_ms);
                for action in bench.taken() {
                    if let Action::Evict { ids, .. } = action {
                        prop_assert!(fresh, "ended without word");
                        prop_assert!(!bench.state.is_released(), "ended while released");
                        prop_assert!(!ids.iter().any(|id| id.starts_with("own")));
                        let run = bench.state.run.as_ref();
                        prop_assert!(run.is_some_and(|run| run.spec.policy != Policy::Wait));
                    }
                }
                // Whatever happened: taken back, all of ours goes.
                let mut back = Bench { state: bench.state.clone(), actions: Vec::new(), ..bench };
                back.settle().event(Event::Released(false));
                back.order(1_000, Desired::Active).after(10_000).settle();
                prop_assert!(!back.state.is_cordoned() && !back.state.is_touched());
                bench.state = bench.state.clone();
            }
        }
    }
}
