//! The budget by a clock of its own, and around a fake.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::*;
use crate::{AwsMend, AwsOffers, Budgeted, GroupName, Reservation, ReservationId, SpotPrice};

/// Time passes only by waiting, and then at once; or never, when it stands.
#[derive(Default)]
struct Played {
    now: AtomicU64,
    stands: bool,
}

#[async_trait]
impl BudgetClock for Played {
    fn now_ms(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    async fn wait_ms(&self, ms: u64) {
        if self.stands {
            std::future::pending::<()>().await;
        }
        self.now.fetch_add(ms, Ordering::SeqCst);
    }
}

fn settings() -> BudgetSettings {
    BudgetSettings {
        autoscaling_reads: Limit::new(4, 2),
        autoscaling_changes: Limit::new(2, 1),
        ..BudgetSettings::default()
    }
}

fn budget() -> (Arc<Budget>, Arc<Played>) {
    let clock = Arc::new(Played::default());
    (Arc::new(Budget::new(settings(), clock.clone())), clock)
}

fn here() -> Region {
    Region::from("us-east-1")
}

const READ: Call = Call::DescribeAutoScalingGroups;
const CHANGE: Call = Call::SetDesiredCapacity;

fn figures(budget: &Budget, region: &Region, call: Call) -> CallFigures {
    let all = budget.snapshot();
    let found = all
        .into_iter()
        .find(|f| f.region == *region && f.call == call);
    found.expect("was counted")
}

/// Answers as told, and counts.
#[derive(Default)]
struct Fake {
    asked: AtomicU64,
    fails: Mutex<Vec<AwsError>>,
}

impl Fake {
    fn answer(&self) -> Result<(), AwsError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.fails.lock().expect("is whole").pop() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl AwsMend for Fake {
    async fn protect_new(&self, _: &Region, _: &GroupName) -> Result<(), AwsError> {
        self.answer()
    }
    async fn suspend_own_removals(&self, _: &Region, _: &GroupName) -> Result<(), AwsError> {
        self.answer()
    }
    async fn capacity_rebalance_off(&self, _: &Region, _: &GroupName) -> Result<(), AwsError> {
        self.answer()
    }
}

#[async_trait]
impl AwsOffers for Fake {
    async fn spot_prices(&self, _: &Region, _: &[String]) -> Result<Vec<SpotPrice>, AwsError> {
        self.answer().map(|()| Vec::new())
    }
    async fn zones_of(
        &self,
        _: &Region,
        _: &[String],
    ) -> Result<BTreeMap<String, BTreeSet<String>>, AwsError> {
        self.answer().map(|()| BTreeMap::new())
    }
    async fn reservations(
        &self,
        _: &Region,
        _: &[ReservationId],
    ) -> Result<Vec<Reservation>, AwsError> {
        self.answer().map(|()| Vec::new())
    }
}

#[tokio::test]
async fn what_is_beyond_the_burst_waits_for_its_token() {
    let (budget, clock) = budget();
    for _ in 0..6 {
        budget.admit(&here(), READ).await.expect("goes");
    }
    assert_eq!(clock.now_ms(), 1_000, "two calls waited half a second each");
    let seen = figures(&budget, &here(), READ);
    assert_eq!((seen.sent, seen.waited_ms, seen.not_sent), (6, 1_000, 0));
    assert_eq!(seen.last_minute, 6);
    let bucket = seen.bucket.expect("is limited");
    assert_eq!(bucket.name, "autoscaling reads");
    assert_eq!((bucket.limit, bucket.left), (Limit::new(4, 2), 0));
    assert!(bucket.assumed);
}

#[tokio::test]
async fn changes_never_wait_behind_reads() {
    let (budget, clock) = budget();
    for _ in 0..10 {
        budget.admit(&here(), READ).await.expect("goes");
    }
    let before = clock.now_ms();
    budget.admit(&here(), CHANGE).await.expect("goes");
    budget
        .admit(&here(), Call::LaunchInstances)
        .await
        .expect("goes");
    assert_eq!(clock.now_ms(), before, "nothing waited");
    budget.admit(&here(), CHANGE).await.expect("goes");
    assert_eq!(clock.now_ms(), before + 1_000, "changes share one bucket");
}

#[tokio::test]
async fn without_a_token_in_time_the_call_fails_unsent_and_at_once() {
    let (budget, clock) = budget();
    for _ in 0..4 {
        budget.admit(&here(), READ).await.expect("goes");
    }
    let refused = within(Duration::ZERO, budget.admit(&here(), READ))
        .await
        .expect_err("no token");
    assert_eq!(refused.kind, FailureKind::Throttle);
    assert!(!refused.may_have_applied);
    assert!(
        refused.to_string().contains("next may go in 500 ms"),
        "{refused}"
    );
    assert_eq!(clock.now_ms(), 0, "nobody waited");
    // An outer deadline is not stretched by an inner one.
    let region = here();
    let inner = within(Duration::from_secs(3_600), budget.admit(&region, READ));
    within(Duration::ZERO, inner).await.expect_err("no token");
    within(Duration::from_secs(3_600), budget.admit(&here(), READ))
        .await
        .expect("has time");
    assert_eq!(clock.now_ms(), 500);
    // Without a deadline the longest wait of the settings counts.
    for _ in 0..2 {
        budget.admit(&here(), CHANGE).await.expect("goes");
    }
    let slow = BudgetSettings {
        autoscaling_changes: Limit {
            burst: 2,
            milli_per_second: 200,
        },
        ..settings()
    };
    budget.set(slow);
    budget
        .admit(&here(), CHANGE)
        .await
        .expect_err("5 s are too long for a change");
    let (reads, changes) = (
        figures(&budget, &here(), READ),
        figures(&budget, &here(), CHANGE),
    );
    assert_eq!((reads.sent, reads.not_sent), (5, 2));
    assert_eq!((changes.sent, changes.not_sent), (2, 1));
    assert!(changes.failed.is_empty(), "AWS was not asked");
}

#[tokio::test]
async fn regions_and_accounts_have_buckets_of_their_own() {
    let (budget, clock) = budget();
    let other = here().with_role("arn:aws:iam::123456789012:role/drover");
    for region in [here(), other, Region::from("eu-west-1")] {
        for _ in 0..4 {
            budget.admit(&region, READ).await.expect("goes");
        }
    }
    assert_eq!(clock.now_ms(), 0);
}

#[tokio::test]
async fn each_call_of_ec2_has_its_published_bucket() {
    let (budget, clock) = budget();
    for call in [Call::DescribeInstances, Call::DescribeInstanceTypes] {
        for _ in 0..50 {
            budget.admit(&here(), call).await.expect("goes");
        }
    }
    assert_eq!(clock.now_ms(), 0, "half of 100 each");
    budget
        .admit(&here(), Call::DescribeInstances)
        .await
        .expect("goes");
    assert_eq!(clock.now_ms(), 100, "half of 20 a second");
    let bucket = figures(&budget, &here(), Call::DescribeInstances).bucket;
    assert!(!bucket.expect("is limited").assumed);
    for _ in 0..500 {
        budget
            .admit(&here(), Call::ReceiveMessage)
            .await
            .expect("goes");
    }
    let seen = figures(&budget, &here(), Call::ReceiveMessage);
    assert_eq!(
        (seen.sent, seen.bucket),
        (500, None),
        "queues are only counted"
    );
    assert_eq!(clock.now_ms(), 100);
}

#[test]
fn a_wait_that_is_given_up_gives_its_token_back() {
    let clock = Arc::new(Played {
        now: AtomicU64::new(0),
        stands: true,
    });
    let budget = Budget::new(settings(), clock);
    let context = &mut Context::from_waker(Waker::noop());
    let region = here();
    let admit = || Box::pin(budget.admit(&region, CHANGE));
    for _ in 0..2 {
        assert!(matches!(
            admit().as_mut().poll(context),
            Poll::Ready(Ok(()))
        ));
    }
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let mut one = admit();
        assert!(one.as_mut().poll(context).is_pending());
        waiting.push(one);
    }
    assert!(
        matches!(admit().as_mut().poll(context), Poll::Ready(Err(_))),
        "4 s are too long"
    );
    waiting.pop();
    assert!(admit().as_mut().poll(context).is_pending(), "3 s are not");
    assert_eq!(
        figures(&budget, &region, CHANGE).sent,
        2,
        "the others are not sent yet"
    );
}

#[tokio::test]
async fn what_aws_throttles_is_asked_less_for_a_while() {
    let (budget, clock) = budget();
    let throttled = || {
        AwsError::reported(
            Call::UpdateAutoScalingGroup,
            &here(),
            400,
            Some("Throttling"),
            "Rate exceeded",
        )
    };
    let fake = Fake::default();
    fake.fails.lock().expect("is whole").push(throttled());
    let aws = Budgeted::new(fake, budget.clone());
    aws.protect_new(&here(), &"g".into())
        .await
        .expect_err("is throttled");
    let changes = figures(&budget, &here(), Call::UpdateAutoScalingGroup);
    assert_eq!((changes.sent, changes.throttled), (1, 1));
    assert_eq!(changes.failed, BTreeMap::from([(FailureKind::Throttle, 1)]));
    let bucket = changes.bucket.expect("limited");
    assert_eq!((bucket.milli_per_second_now, bucket.left), (500, 0));
    budget.admit(&here(), READ).await.expect("goes");
    assert_eq!(
        clock.now_ms(),
        1_000,
        "reads make room: not 4 at once, and one a second"
    );
    let reads = figures(&budget, &here(), READ).bucket.expect("limited");
    assert!((1_000..1_050).contains(&reads.milli_per_second_now));
    clock.now.store(200_000, Ordering::SeqCst);
    let changes = figures(&budget, &here(), Call::UpdateAutoScalingGroup);
    let bucket = changes.bucket.expect("limited");
    assert_eq!((bucket.milli_per_second_now, bucket.left), (1_000, 2));
    // Elsewhere nothing changed.
    let other = Region::from("eu-west-1");
    budget.admit(&other, CHANGE).await.expect("goes");
    let bucket = figures(&budget, &other, CHANGE).bucket.expect("limited");
    assert_eq!(bucket.milli_per_second_now, 1_000);
}

#[tokio::test]
async fn other_failures_are_counted_by_kind_and_change_no_pace() {
    let (budget, _) = budget();
    let call = Call::DescribeSpotPriceHistory;
    let fake = Fake::default();
    let failed = |status, code| AwsError::reported(call, &here(), status, Some(code), "");
    *fake.fails.lock().expect("is whole") = vec![
        failed(500, "InternalError"),
        failed(403, "UnauthorizedOperation"),
    ];
    let aws = Budgeted::new(fake, budget.clone());
    let types = ["g5.xlarge".to_owned()];
    for _ in 0..2 {
        aws.spot_prices(&here(), &types).await.expect_err("fails");
    }
    aws.spot_prices(&here(), &types).await.expect("goes");
    aws.spot_prices(&here(), &[])
        .await
        .expect("nothing is nothing");
    let seen = figures(&budget, &here(), call);
    let expect = BTreeMap::from([(FailureKind::Permission, 1), (FailureKind::Transient, 1)]);
    assert_eq!((seen.sent, seen.throttled, seen.failed), (3, 0, expect));
    assert_eq!(aws.inner_for_test().asked.load(Ordering::SeqCst), 3);
    let bucket = seen.bucket.expect("limited");
    assert_eq!(bucket.milli_per_second_now, 10_000);
}

#[tokio::test]
async fn repetitions_and_pages_pay_like_every_request() {
    let (budget, clock) = budget();
    budget.admit(&here(), READ).await.expect("goes");
    let failed = AwsError::reported(READ, &here(), 503, Some("ServiceUnavailable"), "");
    budget.repeats(&failed);
    for _ in 0..4 {
        budget.again(&here(), READ).await.expect("goes");
    }
    assert_eq!(clock.now_ms(), 500);
    let seen = figures(&budget, &here(), READ);
    assert_eq!((seen.sent, seen.repeated), (5, 1));
    assert_eq!(seen.failed, BTreeMap::from([(FailureKind::Transient, 1)]));
    // A page that was held back in the middle of a call is no refusal of AWS.
    let held = within(Duration::ZERO, budget.again(&here(), READ))
        .await
        .expect_err("no token");
    budget.ended(&held);
    let seen = figures(&budget, &here(), READ);
    assert_eq!((seen.throttled, seen.not_sent), (0, 1));
    let pace = seen.bucket.expect("limited").milli_per_second_now;
    assert_eq!(pace, 2_000);
}
