//! Orders: which are taken, and what is kept until the coordinator has it.

use std::time::Duration;

use drover_agent::drain::ToDrain;
use drover_agent::session::outbox::Notice;
use drover_proto::v1::{Desired, Drain, DrainPolicy, DrainState, Order};

use crate::fake::Fake;
use crate::inside::{Inside, Work, busy, until};

pub fn order(epoch: u64, generation: u64, desired: Desired) -> Order {
    Order {
        epoch,
        generation,
        desired: desired.into(),
        drain: None,
        now_unix_ms: 0,
    }
}

pub fn drain(epoch: u64, generation: u64, policy: DrainPolicy, deadline_unix_ms: u64) -> Order {
    Order {
        drain: Some(Drain {
            id: "d-1".into(),
            policy: policy.into(),
            deadline_unix_ms,
            grace_ms: 5_000,
            reason: "for the test".into(),
        }),
        ..order(epoch, generation, Desired::Draining)
    }
}

/// Until word that was heard before is older than the 300 ms of these tests.
async fn grow_old() {
    let heard = drover_agent::clock::BootMs::now();
    until("old word", || {
        drover_agent::clock::BootMs::now().since(heard) > 400
    })
    .await;
}

fn notice() -> Notice {
    Notice {
        id: "xid-95-0000:3b:00-1".into(),
        kind: "xid".into(),
        at_unix_ms: 1_000,
        deadline_unix_ms: None,
        subject: "0000:3b:00.0".into(),
        message: "XID 95".into(),
        withdrawn: false,
    }
}

#[tokio::test]
async fn ag_16_stale_and_contradicting_orders_change_nothing_and_old_notices_say_so() {
    let fake = Fake::start().await;
    fake.script().epoch = 3;
    fake.script().ack = false;
    let dir = tempfile::tempdir().unwrap();
    let agent = Inside::start(&fake, dir.path(), "");
    agent.mail.raise(notice());
    fake.until("the notice", |script| script.notices.first().cloned())
        .await;
    let mut work = Work::start();
    agent.see(busy(&work.0));
    fake.order(drain(3, 7, DrainPolicy::Wait, 0)).await;
    fake.status("draining", |status| {
        status.generation == 7 && !status.blockers.is_empty()
    })
    .await;
    fake.order(order(3, 8, Desired::Active)).await;
    fake.status("active", |status| status.generation == 8).await;
    fake.hang_up();
    let hello = fake
        .until("hello again", |script| script.hellos.get(1).cloned())
        .await;
    assert_eq!(hello.highest_epoch, 3);
    assert_eq!(hello.observed, Some(order(3, 8, Desired::Active)));
    let again = fake
        .until("the notice again", |script| script.notices.get(1).cloned())
        .await;
    assert_eq!(
        (again.id.as_str(), again.at_unix_ms),
        ("xid-95-0000:3b:00-1", 1_000)
    );
    fake.order(drain(3, 7, DrainPolicy::Force, 0)).await;
    let status = fake
        .status("refused", |status| !status.refused.is_empty())
        .await;
    assert_eq!((status.refused.as_str(), status.generation), ("stale", 7));
    fake.order(order(3, 8, Desired::Cordoned)).await;
    fake.status("contradiction", |status| status.refused == "contradicting")
        .await;
    fake.order(order(2, 99, Desired::Cordoned)).await;
    fake.status("an epoch of before", |status| {
        status.epoch == 2 && status.refused == "stale"
    })
    .await;
    let mut senseless = order(3, 9, Desired::Draining);
    senseless.drain = None;
    fake.order(senseless).await;
    let status = fake
        .status("invalid", |status| status.refused == "invalid")
        .await;
    assert!(status.reason.contains("order.drain"), "{}", status.reason);
    assert!(!dir.path().join("cordoned").exists());
    assert!(work.is_alive());
    // Taken at last: it is sent no more.
    fake.script().ack = true;
    fake.hang_up();
    fake.until("hello once more", |script| script.hellos.get(2).cloned())
        .await;
    until("settled", || agent.mail.is_settled()).await;
}

#[tokio::test]
async fn notices_survive_the_agent() {
    let fake = Fake::start().await;
    fake.script().ack = false;
    let dir = tempfile::tempdir().unwrap();
    let agent = Inside::start(&fake, dir.path(), "");
    agent.mail.raise(notice());
    fake.until("the notice", |script| script.notices.first().cloned())
        .await;
    drop(agent);
    fake.script().ack = true;
    let _agent = Inside::start(&fake, dir.path(), "");
    let again = fake
        .until("the notice again", |script| script.notices.get(1).cloned())
        .await;
    assert_eq!(again.at_unix_ms, 1_000);
}

#[tokio::test]
async fn nothing_is_ended_while_the_coordinator_is_silent() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let agent = Inside::start(&fake, dir.path(), "[drain]\nword_limit = \"300ms\"");
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    let mut work = Work::start();
    fake.order(drain(1, 1, DrainPolicy::Evict, 0)).await;
    fake.status("taken", |status| status.generation == 1).await;
    // Word about another order is no word.
    fake.script().beat = Some((1, 9));
    grow_old().await;
    agent.see(busy(&work.0));
    let status = fake
        .status("blocked", |status| {
            status
                .blockers
                .iter()
                .any(|blocker| blocker.kind == "no_fresh_word")
        })
        .await;
    assert_eq!(status.drain_state(), DrainState::Blocked);
    agent.see(busy(&work.0));
    assert!(work.is_alive());
    fake.script().beat = Some((1, 1));
    assert_eq!(work.ended_by().await, Some(15));
}

#[tokio::test]
async fn the_hardwares_own_notice_needs_no_word() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let agent = Inside::start(&fake, dir.path(), "[drain]\nword_limit = \"300ms\"");
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    let mut work = Work::start();
    fake.order(drain(1, 1, DrainPolicy::Evict, 0)).await;
    grow_old().await;
    agent.see(busy(&work.0));
    fake.status("blocked", |status| {
        status.drain_state() == DrainState::Blocked
    })
    .await;
    let emergency = ToDrain::Emergency {
        by: None,
        local: None,
    };
    agent.drain.send(emergency).await.unwrap();
    assert_eq!(work.ended_by().await, Some(15));
}

#[tokio::test]
async fn a_foreign_clock_does_not_move_deadlines() {
    tokio::join!(deadline_by_clock(-3_600_000), deadline_by_clock(3_600_000));
}

/// A drain with a deadline in 5 s by a coordinator's clock that is so far from ours.
async fn deadline_by_clock(clock_ms: i64) {
    let fake = Fake::start().await;
    fake.script().clock_ms = clock_ms;
    let dir = tempfile::tempdir().unwrap();
    let agent = Inside::start(&fake, dir.path(), "");
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    let mut work = Work::start();
    agent.see(busy(&work.0));
    let began = tokio::time::Instant::now();
    let theirs = drover_agent::clock::unix_ms().saturating_add_signed(clock_ms);
    fake.order(drain(1, 1, DrainPolicy::Wait, theirs + 5_000))
        .await;
    fake.status("waits", |status| {
        status.drain_state() == DrainState::Waiting
    })
    .await;
    let status = fake
        .status("rolled back", |status| {
            status.drain_state() == DrainState::RolledBack
        })
        .await;
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(4_900), "{took:?}");
    assert!(status.reason.contains("deadline"), "{}", status.reason);
    assert!(work.is_alive());
}
