//! The counts of the budget of AWS's calls, as the port tells them. Made by `app`.

use std::sync::Arc;

use drover_aws::{Budget, BudgetSettings, CallFigures, Limit};

use crate::config::AwsBudget;
use crate::ports::calls::{CallBucket, CallCount, CallCounts};

/// The budget that the config asks for.
#[must_use]
pub fn budget_settings(config: &AwsBudget) -> BudgetSettings {
    BudgetSettings {
        autoscaling_reads: Limit::new(
            config.autoscaling_burst,
            config.autoscaling_calls_per_second,
        ),
        autoscaling_changes: Limit::new(
            config.autoscaling_changes_burst,
            config.autoscaling_changes_per_second,
        ),
        ec2_share_percent: config.ec2_share_percent,
        ..BudgetSettings::default()
    }
}

/// Counts of this budget.
pub struct BudgetCalls(pub Arc<Budget>);

impl CallCounts for BudgetCalls {
    fn calls(&self) -> Vec<CallCount> {
        self.0.snapshot().into_iter().map(count).collect()
    }
}

fn count(figures: CallFigures) -> CallCount {
    let per_minute = |milli_per_second: u32| u64::from(milli_per_second) * 60 / 1_000;
    CallCount {
        region: figures.region.as_str().to_owned(),
        role: figures.region.role().map(str::to_owned),
        api: figures.call.api().to_string(),
        call: figures.call.to_string(),
        sent: figures.sent,
        failed: figures
            .failed
            .into_iter()
            .map(|(kind, count)| (kind.to_string(), count))
            .collect(),
        throttled: figures.throttled,
        not_sent: figures.not_sent,
        waited_ms: figures.waited_ms,
        repetitions: figures.repeated,
        last_minute: figures.last_minute,
        bucket: figures.bucket.map(|bucket| CallBucket {
            burst: bucket.limit.burst,
            per_minute: per_minute(bucket.limit.milli_per_second),
            per_minute_now: per_minute(bucket.milli_per_second_now),
            left: bucket.left,
            assumed: bucket.assumed,
            name: bucket.name,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use drover_aws::{AwsError, AwsMend, BudgetClock, Budgeted, GroupName, Region};

    struct Still;

    #[async_trait]
    impl BudgetClock for Still {
        fn now_ms(&self) -> u64 {
            0
        }
        async fn wait_ms(&self, _: u64) {}
    }

    struct Throttled;

    #[async_trait]
    impl AwsMend for Throttled {
        async fn protect_new(&self, region: &Region, _: &GroupName) -> Result<(), AwsError> {
            let call = drover_aws::Call::UpdateAutoScalingGroup;
            Err(AwsError::reported(
                call,
                region,
                400,
                Some("Throttling"),
                "Rate exceeded",
            ))
        }
        async fn suspend_own_removals(&self, _: &Region, _: &GroupName) -> Result<(), AwsError> {
            Ok(())
        }
        async fn capacity_rebalance_off(&self, _: &Region, _: &GroupName) -> Result<(), AwsError> {
            Ok(())
        }
    }

    #[test]
    fn the_defaults_of_config_and_budget_are_the_same() {
        assert_eq!(
            budget_settings(&AwsBudget::default()),
            BudgetSettings::default()
        );
    }

    #[tokio::test]
    async fn the_port_tells_what_the_budget_counted() {
        let settings = budget_settings(&AwsBudget::default());
        let budget = Arc::new(Budget::new(settings, Arc::new(Still)));
        let aws = Budgeted::new(Throttled, budget.clone());
        let role = "arn:aws:iam::123456789012:role/drover";
        let there = Region::new("eu-west-1").with_role(role);
        aws.protect_new(&there, &"g".into())
            .await
            .expect_err("is throttled");
        let told = BudgetCalls(budget).calls();
        let [count] = told.as_slice() else {
            panic!("one call: {told:?}")
        };
        assert_eq!(
            (count.region.as_str(), count.role.as_deref()),
            ("eu-west-1", Some(role))
        );
        assert_eq!(
            (count.api.as_str(), count.call.as_str()),
            ("autoscaling", "UpdateAutoScalingGroup")
        );
        assert_eq!(
            (count.sent, count.throttled, count.failed["throttled"]),
            (1, 1, 1)
        );
        let bucket = count.bucket.as_ref().expect("is limited");
        assert_eq!(
            (bucket.burst, bucket.per_minute, bucket.per_minute_now),
            (20, 300, 150)
        );
        assert!(bucket.assumed);
    }
}
