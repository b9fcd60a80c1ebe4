//! What reading many groups asks of AWS, through the budget.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use drover_aws::{Api, Budget, BudgetClock, BudgetSettings, Budgeted, Call, Limit, MemberState};
use drover_core::model::PoolId;

use super::fake::{Fake, group, member};
use super::{TestClock, pool};
use crate::adapters::actuate::asg::{AsgActuator, Owner};
use crate::ports::actuate::Actuator;

/// Time passes by waiting, for the adapter as well, and then at once.
struct Played(Arc<TestClock>);

#[async_trait]
impl BudgetClock for Played {
    fn now_ms(&self) -> u64 {
        self.0.0.load(Ordering::SeqCst)
    }
    async fn wait_ms(&self, ms: u64) {
        self.0.0.fetch_add(ms, Ordering::SeqCst);
    }
}

struct Fleet {
    clock: Arc<TestClock>,
    budget: Arc<Budget>,
    adapter: AsgActuator<Budgeted<Fake>>,
    ids: Vec<PoolId>,
}

/// So many groups of ten members each, all of one region.
fn fleet(groups: usize, settings: BudgetSettings) -> Fleet {
    let names: Vec<String> = (0..groups).map(|n| format!("g{n:03}")).collect();
    let all = names.iter().map(|name| {
        let mut one = group(name, &["a"]);
        one.desired = 10;
        one.members = (0..10)
            .map(|n| member(&format!("i-{name}-{n}"), MemberState::InService, true))
            .collect();
        one
    });
    let fake = Fake::of(all.collect());
    let clock = Arc::new(TestClock::default());
    let budget = Arc::new(Budget::new(settings, Arc::new(Played(clock.clone()))));
    let adapter = AsgActuator::new(
        Budgeted::new(fake, budget.clone()),
        Owner::new("store", 7).expect("an owner"),
        names.iter().map(|name| pool(name, "r1")),
        clock.clone(),
    );
    let ids = names.iter().map(PoolId::new).collect();
    Fleet {
        clock,
        budget,
        adapter,
        ids,
    }
}

impl Fleet {
    /// Cycles of ten seconds until `until_ms`.
    async fn run(&self, until_ms: u64) {
        while self.clock.0.load(Ordering::SeqCst) < until_ms {
            let before = self.clock.0.load(Ordering::SeqCst);
            for (id, read) in self.adapter.read(&self.ids).await {
                read.unwrap_or_else(|e| panic!("{id}: {e}"));
            }
            self.clock.0.fetch_max(before + 10_000, Ordering::SeqCst);
        }
    }

    fn last_minute(&self) -> BTreeMap<Call, u64> {
        let all = self.budget.snapshot().into_iter();
        all.map(|f| (f.call, f.last_minute)).collect()
    }
}

#[tokio::test]
async fn two_hundred_groups_are_read_within_the_limits() {
    let fleet = fleet(200, BudgetSettings::default());
    fleet.run(600_000).await;
    let minute = fleet.last_minute();
    println!(
        "requests of a minute, by call: {minute:?}; Auto Scaling's limit: 600, a describe of EC2: 600"
    );
    let of = |api: Api| -> u64 {
        let calls = minute.iter().filter(|(call, _)| call.api() == api);
        calls.map(|(_, sent)| sent).sum()
    };
    assert!(
        (5..=7).contains(&minute[&Call::DescribeAutoScalingGroups]),
        "once a cycle: {minute:?}"
    );
    assert!(
        (160..=240).contains(&minute[&Call::DescribeScalingActivities]),
        "once a minute for each group: {minute:?}"
    );
    assert!(minute[&Call::DescribeInstances] <= 7, "{minute:?}");
    assert!(of(Api::AutoScaling) < 300, "{minute:?}");
    let all = fleet.budget.snapshot();
    let waited = |call| all.iter().find(|f| f.call == call).map(|f| f.waited_ms);
    assert_eq!(
        waited(Call::DescribeScalingActivities),
        Some(0),
        "no reading waits for them"
    );
}

#[tokio::test]
async fn with_a_budget_that_is_too_small_the_groups_are_read_all_the_same() {
    let settings = BudgetSettings {
        autoscaling_reads: Limit::new(10, 1),
        ..BudgetSettings::default()
    };
    // Every reading succeeds; what waits are activities, and they come in turn.
    let fleet = fleet(50, settings);
    fleet.run(600_000).await;
    let all = fleet.budget.snapshot();
    let reads = all.iter().filter(|f| f.call.api() == Api::AutoScaling);
    let reads: u64 = reads.map(|f| f.sent).sum();
    let elapsed = fleet.clock.0.load(Ordering::SeqCst) / 1_000;
    assert!(reads <= 10 + elapsed, "{reads} in {elapsed} s");
    let asked = fleet.last_minute()[&Call::DescribeScalingActivities];
    assert!(asked >= 40, "{asked} of the last minute");
}
