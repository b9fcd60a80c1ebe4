//! What EC2 says of members: who died behind the group's back, and why a launch ended.

use drover_aws::{Instance, InstanceState, MemberState};
use drover_core::model::{FailureKind, InstanceId, PoolId};

use super::fake::{Fake, group, member};
use super::{START, TestClock, adapter, read};
use crate::adapters::actuate::asg::{AsgActuator, Owner};
use crate::ports::actuate::{Actuator, InstanceState as State};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn instance(id: &str, state: InstanceState, why: Option<&str>) -> Instance {
    Instance {
        id: id.into(),
        instance_type: Some("p4d.24xlarge".into()),
        state,
        state_reason: why.map(str::to_owned),
        zone: Some("a".into()),
        market: drover_aws::Market::OnDemand,
        launched_unix_ms: Some(i64::try_from(START).expect("fits")),
        private_ip: None,
        reservation: None,
        image: None,
        tags: Default::default(),
    }
}

fn field(members: &[(&str, MemberState, InstanceState, Option<&str>)]) -> Fake {
    let mut p4 = group("p4", &["a"]);
    p4.desired = u32::try_from(members.len()).expect("few");
    p4.members = members
        .iter()
        .map(|(id, state, _, _)| member(id, state.clone(), true))
        .collect();
    let fake = Fake::of(vec![p4]);
    fake.world().instances = members
        .iter()
        .map(|(id, _, state, why)| ((*id).into(), instance(id, state.clone(), *why)))
        .collect();
    fake
}

fn set(fake: &Fake, id: &str, state: InstanceState, why: Option<&str>) {
    let found = instance(id, state, why);
    fake.world().instances.insert(id.into(), found);
}

/// The adapter with a clock that the test moves.
fn timed(fake: &Fake) -> (AsgActuator<Fake>, Arc<TestClock>) {
    let clock = Arc::new(TestClock::default());
    let owner = Owner::new("store", 7).expect("an owner");
    let adapter = AsgActuator::new(
        fake.clone(),
        owner,
        [super::pool("p4", "r1")],
        clock.clone(),
    );
    (adapter, clock)
}

const SHUT: Option<&str> = Some("Client.UserInitiatedShutdown: User initiated shutdown");

#[tokio::test]
async fn dead_members_are_told_and_taken_out_with_decrement() {
    let fake = field(&[
        (
            "i-lives",
            MemberState::InService,
            InstanceState::Running,
            None,
        ),
        (
            "i-ended",
            MemberState::InService,
            InstanceState::Terminated,
            SHUT,
        ),
        (
            "i-stopped",
            MemberState::InService,
            InstanceState::Stopped,
            SHUT,
        ),
        ("i-kept", MemberState::Standby, InstanceState::Stopped, SHUT),
        (
            "i-warm",
            MemberState::Warmed("Warmed:Stopped".into()),
            InstanceState::Stopped,
            SHUT,
        ),
    ]);
    let adapter = adapter(&fake);
    let reading = read(&adapter).await;
    let dead: Vec<_> = reading
        .dead
        .iter()
        .map(|dead| (dead.id.as_str(), dead.stopped, dead.kind))
        .collect();
    assert_eq!(
        dead,
        [("i-ended", false, None), ("i-stopped", true, None)],
        "what a person keeps aside or the warm pool holds is not dead"
    );
    assert!(
        reading.failures.is_empty(),
        "a person's shutdown says nothing about capacity"
    );
    let state = |id: &str| {
        let found = reading.instances.iter().find(|i| i.id.as_str() == id);
        found.map(|i| i.state)
    };
    assert_eq!(
        (state("i-lives"), state("i-ended")),
        (Some(State::Running), Some(State::Gone))
    );
    let pool = PoolId::new("p4");
    for id in ["i-ended", "i-stopped"] {
        adapter
            .bury(&pool, &InstanceId::new(id))
            .await
            .expect("is taken out");
    }
    assert_eq!(
        fake.mutations(),
        ["terminate i-ended", "terminate i-stopped"]
    );
    assert_eq!(fake.world().groups.values().next().expect("p4").desired, 3);
    assert!(read(&adapter).await.dead.is_empty());
}

#[tokio::test]
async fn i1_what_runs_at_the_time_of_the_call_is_left_alone() {
    let hibernated = Some("Client.UserInitiatedHibernate: User initiated hibernate");
    for (now, why) in [
        (InstanceState::Running, None),
        (InstanceState::Pending, None),
        (InstanceState::Stopped, hibernated),
    ] {
        let fake = field(&[("i-1", MemberState::InService, InstanceState::Stopped, SHUT)]);
        let adapter = adapter(&fake);
        assert_eq!(read(&adapter).await.dead.len(), 1);
        set(&fake, "i-1", now, why);
        let refused = adapter
            .bury(&PoolId::new("p4"), &InstanceId::new("i-1"))
            .await
            .expect_err("somebody started it again");
        assert_eq!(refused.kind, FailureKind::Transient, "{refused}");
        assert!(fake.mutations().is_empty(), "{:?}", fake.mutations());
    }
}

#[tokio::test]
async fn an_instance_that_ends_in_its_launch_says_why_once() {
    let fake = field(&[
        ("i-kms", MemberState::Pending, InstanceState::Pending, None),
        ("i-dry", MemberState::Pending, InstanceState::Pending, None),
        ("i-own", MemberState::Pending, InstanceState::Pending, None),
    ]);
    let (adapter, clock) = timed(&fake);
    assert!(read(&adapter).await.failures.is_empty());
    let kms = "Client.InternalError: Client error on launch";
    let dry =
        "Server.InsufficientInstanceCapacity: Insufficient capacity to satisfy instance request";
    set(&fake, "i-kms", InstanceState::Terminated, Some(kms));
    set(&fake, "i-dry", InstanceState::Terminated, Some(dry));
    let own = Some("Client.InstanceInitiatedShutdown: Instance initiated shutdown");
    set(&fake, "i-own", InstanceState::Terminated, own);
    // The one has left the group before anybody looked.
    fake.world()
        .groups
        .values_mut()
        .for_each(|g| g.members.retain(|m| m.id.as_str() != "i-dry"));
    clock.0.store(6_000, Ordering::SeqCst);
    let reading = read(&adapter).await;
    let told: Vec<_> = reading
        .failures
        .iter()
        .map(|f| (f.id.as_str(), f.kind, f.offering.is_some()))
        .collect();
    assert_eq!(
        told,
        [
            ("ec2/i-dry", FailureKind::Shortage, true),
            ("ec2/i-kms", FailureKind::Config, true)
        ]
    );
    assert!(reading.failures[1].message.contains(kms), "in AWS's words");
    let kinds: Vec<_> = reading
        .dead
        .iter()
        .map(|d| (d.id.as_str(), d.kind))
        .collect();
    assert_eq!(
        kinds,
        [("i-kms", Some(FailureKind::Config)), ("i-own", None)]
    );
    clock.0.store(12_000, Ordering::SeqCst);
    assert!(read(&adapter).await.failures.is_empty(), "told once");
}

#[tokio::test]
async fn sc_24_one_answer_without_a_member_means_nothing() {
    let fake = field(&[("i-9", MemberState::InService, InstanceState::Running, None)]);
    let (adapter, clock) = timed(&fake);
    read(&adapter).await;
    fake.world().instances.clear();
    for (n, dead) in [(1, 0), (2, 0), (3, 1)] {
        clock.0.store(60_000 + n * 6_000, Ordering::SeqCst);
        assert_eq!(
            read(&adapter).await.dead.len(),
            dead,
            "answer {n} without it"
        );
    }
}

#[tokio::test]
async fn ec2_is_asked_seldom_for_what_runs_and_often_for_what_boots() {
    let fake = field(&[("i-1", MemberState::InService, InstanceState::Running, None)]);
    let (adapter, clock) = timed(&fake);
    let asked = || {
        let world = fake.world();
        world
            .calls
            .iter()
            .filter(|c| *c == "describe instances")
            .count()
    };
    for at in [0, 2_000, 10_000, 30_000, 59_000] {
        clock.0.store(at, Ordering::SeqCst);
        read(&adapter).await;
    }
    assert_eq!(asked(), 1);
    clock.0.store(60_000, Ordering::SeqCst);
    read(&adapter).await;
    assert_eq!(asked(), 2);
    set(&fake, "i-2", InstanceState::Pending, None);
    fake.world()
        .groups
        .values_mut()
        .for_each(|g| g.members.push(member("i-2", MemberState::Pending, false)));
    for at in [61_000, 63_000, 66_500] {
        clock.0.store(at, Ordering::SeqCst);
        read(&adapter).await;
    }
    assert_eq!(
        asked(),
        4,
        "the new one at once, and again after five seconds"
    );
}
