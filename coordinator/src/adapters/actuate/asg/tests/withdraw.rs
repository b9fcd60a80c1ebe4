//! Giving back what a group did not fill: every step, every order of arrivals and writes, every crash.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use drover_aws::{Activities, Activity, ActivityStatus, Call, Group, MemberState};
use drover_core::model::{PoolId, Stop};

use super::fake::{Fake, error, group, member, timeout};
use super::{START, TestClock, order, pool, read};
use crate::adapters::actuate::asg::{AsgActuator, Owner};
use crate::ports::actuate::{Actuator, Withdrawal};

/// A group whose last ask, for `desired`, was our own: `there` members, all in service and protected.
fn asked(there: usize, desired: u32, min: u32) -> Group {
    let mut p4 = group("p4", &["a"]);
    p4.desired = desired;
    p4.min = min;
    p4.members = (0..there)
        .map(|n| member(&format!("i-{n}"), MemberState::InService, true))
        .collect();
    p4.tags
        .insert("drover:ask".into(), format!("t {there} {desired}"));
    p4
}

struct Bench {
    fake: Fake,
    clock: Arc<TestClock>,
    adapter: AsgActuator<Fake>,
}

impl Bench {
    fn of(group: Group) -> Self {
        let fake = Fake::of(vec![group]);
        let clock = Arc::new(TestClock::default());
        let adapter = Self::anew(&fake, &clock);
        Self {
            fake,
            clock,
            adapter,
        }
    }

    fn anew(fake: &Fake, clock: &Arc<TestClock>) -> AsgActuator<Fake> {
        let owner = Owner::new("store", 7).expect("an owner");
        let pools = [pool("p4", "r1")];
        AsgActuator::new(fake.clone(), owner, pools, clock.clone()).with_pause(Duration::ZERO)
    }

    /// A process that knows nothing but what AWS says.
    fn restart(&mut self) {
        self.adapter = Self::anew(&self.fake, &self.clock);
    }

    fn pass(&self, seconds: u64) {
        self.clock.0.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }

    fn change(&self, change: impl FnOnce(&mut Group)) {
        let mut world = self.fake.world();
        change(world.groups.values_mut().next().expect("the group"));
    }

    fn group(&self) -> Group {
        self.fake
            .world()
            .groups
            .values()
            .next()
            .cloned()
            .expect("the group")
    }

    fn suspended(&self) -> bool {
        self.group().suspended.contains_key("Launch")
    }

    async fn step(&self) -> Withdrawal {
        let step = self.adapter.withdraw(&PoolId::new("p4")).await;
        step.expect("a step")
    }

    async fn waits(&self, for_what: &str) {
        match self.step().await {
            Withdrawal::Waits { why } => assert!(why.contains(for_what), "{why}"),
            other => panic!("{other:?} instead of waiting for {for_what:?}"),
        }
    }

    fn desired_writes(&self) -> Vec<String> {
        let calls = self.fake.mutations();
        calls
            .into_iter()
            .filter(|c| c.starts_with("desired"))
            .collect()
    }
}

fn launching(id: &str, status: ActivityStatus) -> Activities {
    let activity = Activity {
        id: format!("a-{id}"),
        started_unix_ms: Some(i64::try_from(START).expect("fits")),
        ended_unix_ms: None,
        status,
        description: format!("Launching a new EC2 instance: {id}"),
        cause: String::new(),
        message: None,
        class: None,
        details: None,
    };
    Activities {
        items: vec![activity],
        complete: true,
    }
}

#[tokio::test]
async fn sc_05_a_group_that_does_not_follow_is_lowered_to_what_is_there() {
    let bench = Bench::of(asked(10, 50, 0));
    bench.waits("suspended").await;
    assert!(bench.suspended());
    let shown = read(&bench.adapter).await;
    assert!(shown.withdrawing && shown.unfilled == 40, "{shown:?}");
    let told = format!("{:?}", shown.stops);
    assert!(
        told.contains("being withdrawn") && matches!(shown.stops[0], Stop::Failed { .. }),
        "{told}"
    );
    bench.waits("settle").await;
    bench.pass(5);
    assert_eq!(bench.step().await, Withdrawal::Done { from: 50, to: 10 });
    assert!(!bench.suspended());
    assert_eq!(bench.step().await, Withdrawal::Nothing);
    let expect = [
        &format!("tag drover:withdraw={START}"),
        "suspend",
        "desired 10",
        "resume",
        "tag drover:withdraw=over t",
    ];
    assert_eq!(bench.fake.mutations(), expect);
    // The next ask starts from what is wanted now, not from what was wanted before.
    bench.change(|g| *g = super::spread(g.clone(), 50, None));
    read(&bench.adapter).await;
    let more = order(2, "", "t2");
    bench.adapter.launch(&more).await.expect("asks");
    assert_eq!(bench.group().desired, 12);
}

#[tokio::test]
async fn sc_01_desired_is_never_lowered_on_an_old_reading() {
    let arrive = |bench: &Bench, state: &MemberState, protected| {
        bench.change(|g| {
            for id in ["i-late-1", "i-late-2"] {
                g.members.push(member(id, state.clone(), protected));
            }
        });
    };
    let serve = |bench: &Bench| {
        bench.change(|g| {
            for late in g
                .members
                .iter_mut()
                .filter(|m| m.id.as_str().contains("late"))
            {
                late.state = MemberState::InService;
            }
        });
    };
    // The two arrive before Launch is suspended.
    let bench = Bench::of(asked(9, 12, 0));
    arrive(&bench, &MemberState::InService, true);
    bench.waits("suspended").await;
    bench.pass(5);
    assert_eq!(bench.step().await, Withdrawal::Done { from: 12, to: 11 });

    // They arrive while it settles: pending at first, then without protection.
    let bench = Bench::of(asked(9, 12, 0));
    bench.waits("suspended").await;
    arrive(&bench, &MemberState::Pending, false);
    bench.pass(5);
    bench.waits("not in service").await;
    serve(&bench);
    assert_eq!(bench.step().await, Withdrawal::Done { from: 12, to: 11 });
    let calls = bench.fake.mutations();
    let at = |what: &str| calls.iter().position(|c| c == what).expect(what);
    assert!(
        at("protect i-late-1,i-late-2") < at("desired 11"),
        "protection comes before any write: {calls:?}"
    );

    // They are launched and in no describe: the activities know.
    let bench = Bench::of(asked(9, 12, 0));
    bench.waits("suspended").await;
    bench.pass(5);
    let running = ActivityStatus::Running("InProgress".into());
    bench.fake.world().activities = launching("i-late-1", running);
    bench.waits("under way").await;
    bench.fake.world().activities = launching("i-late-1", ActivityStatus::Successful);
    bench.waits("does not show").await;
    arrive(&bench, &MemberState::InService, true);
    assert_eq!(bench.step().await, Withdrawal::Done { from: 12, to: 11 });

    // Everything came after all: nothing is lowered, and Launch is resumed.
    let bench = Bench::of(asked(9, 11, 0));
    bench.waits("suspended").await;
    arrive(&bench, &MemberState::InService, true);
    assert_eq!(bench.step().await, Withdrawal::Nothing);
    assert!(!bench.suspended() && bench.desired_writes().is_empty());
}

#[tokio::test]
async fn sc_01_missing_protection_is_set_before_any_write() {
    let mut p4 = asked(9, 12, 0);
    p4.members[3].protected = false;
    let bench = Bench::of(p4);
    bench.waits("suspended").await;
    bench.pass(5);
    assert_eq!(bench.step().await, Withdrawal::Done { from: 12, to: 9 });
    let calls = bench.fake.mutations();
    let at = |what: &str| calls.iter().position(|c| c == what).expect(what);
    assert!(at("protect i-3") < at("desired 9"), "{calls:?}");
}

#[tokio::test]
async fn sc_02_never_below_the_minimum() {
    let bench = Bench::of(asked(1, 5, 3));
    bench.waits("suspended").await;
    bench.pass(5);
    assert_eq!(bench.step().await, Withdrawal::Done { from: 5, to: 3 });
    assert_eq!(bench.step().await, Withdrawal::Nothing);
    assert_eq!(bench.group().members.len(), 1);
}

#[tokio::test]
async fn what_others_wanted_or_suspended_stays() {
    // A person asked for more than we did.
    let bench = Bench::of(asked(2, 4, 0));
    bench.change(|g| g.desired = 6);
    bench.waits("not set by this coordinator").await;
    bench.change(|g| {
        g.tags.remove("drover:ask");
    });
    bench.waits("not set by this coordinator").await;
    // A person asks for what was ours once, and was given back.
    let bench = Bench::of(asked(2, 4, 0));
    bench.waits("suspended").await;
    bench.pass(5);
    assert_eq!(bench.step().await, Withdrawal::Done { from: 4, to: 2 });
    for theirs in [3, 4] {
        bench.change(|g| g.desired = theirs);
        bench.waits("not set by this coordinator").await;
    }
    assert_eq!(bench.desired_writes(), ["desired 2"]);
    // A person suspended Launch.
    let bench = Bench::of(asked(2, 4, 0));
    bench.change(|g| {
        g.suspended.insert("Launch".into(), "User suspended".into());
    });
    bench.waits("not by this coordinator").await;
    assert!(bench.fake.mutations().is_empty());
    // A person froze it in the middle: nothing more is done.
    let bench = Bench::of(asked(2, 4, 0));
    bench.waits("suspended").await;
    bench.pass(5);
    bench.change(|g| {
        g.tags.insert("drover:freeze".into(), String::new());
    });
    let frozen = bench.adapter.withdraw(&PoolId::new("p4")).await;
    assert!(frozen.expect_err("frozen").message.contains("frozen"));
    assert!(bench.desired_writes().is_empty());
}

/// Each call fails once, taken or not taken, and after each failure a new process goes on: in the end the desired
/// capacity is what is there, and Launch is resumed.
#[tokio::test]
async fn a_crash_at_any_step_is_mended() {
    let calls = [
        (Call::CreateOrUpdateTags, 0),
        (Call::CreateOrUpdateTags, 1),
        (Call::SuspendProcesses, 0),
        (Call::SetDesiredCapacity, 0),
        (Call::ResumeProcesses, 0),
    ];
    for (call, after) in calls {
        for applied in [true, false] {
            let mut bench = Bench::of(asked(2, 6, 0));
            bench.fake.world().applied = applied;
            let failure = if applied {
                timeout(call)
            } else {
                error(call, 503, "ServiceUnavailable", "later")
            };
            let mut queue = vec![None; after];
            queue.push(Some(failure));
            bench.fake.fail(call, queue);
            let mut failed = 0;
            for _ in 0..12 {
                match bench.adapter.withdraw(&PoolId::new("p4")).await {
                    Ok(_) => {}
                    Err(_) => {
                        failed += 1;
                        bench.restart();
                    }
                }
                bench.pass(5);
            }
            let group = bench.group();
            let said = format!("{call:?} {applied}: {:?}", bench.fake.mutations());
            assert_eq!(failed, 1, "{said}");
            assert_eq!((group.desired, bench.suspended()), (2, false), "{said}");
            assert_eq!(group.tags["drover:withdraw"], "over t", "{said}");
            assert_eq!(group.members.len(), 2, "{said}");
            assert_eq!(bench.step().await, Withdrawal::Nothing, "{said}");
        }
    }
}

#[tokio::test]
async fn launch_does_not_stay_suspended_for_ever() {
    let bench = Bench::of(asked(2, 6, 0));
    bench.waits("suspended").await;
    bench.change(|g| {
        g.members
            .push(member("i-slow", MemberState::Pending, false))
    });
    bench.pass(60);
    bench.waits("not in service").await;
    bench.pass(15 * 60);
    let given_up = bench.adapter.withdraw(&PoolId::new("p4")).await;
    assert!(
        given_up
            .expect_err("given up")
            .message
            .contains("withdrawn")
    );
    assert!(!bench.suspended() && bench.desired_writes().is_empty());
}
