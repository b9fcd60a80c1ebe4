//! SetDesiredCapacity: an absolute target, written on the group before it is set, so that it may be set again.
//!
//! Called by `grow` and `settle`. It does not choose this way.

use drover_aws::{AwsApi, Group};
use drover_core::model::FailureKind;
use fail::fail_point;

use super::again::{ATTEMPTS, passes};
use super::journal::{ASK_TAG, Ask};
use super::memory::Flight;
use super::{AsgActuator, AsgPool, convert};
use crate::ports::actuate::{
    ActuateError, LaunchOrder, LaunchOutcome, OUTCOME_UNKNOWN, ProviderFailure, Raise, Trace, Way,
};

impl<A: AwsApi> AsgActuator<A> {
    /// SetDesiredCapacity: an absolute target, written on the group before it is set.
    pub(super) async fn raise(
        &self,
        pool: &AsgPool,
        order: &LaunchOrder,
        group: &Group,
        flight: &mut Flight,
    ) -> Result<LaunchOutcome, ActuateError> {
        let base = flight.wanted(group, self.clock.mono());
        let target = base.saturating_add(order.count).min(group.max);
        if target <= base {
            let text = format!("group {} has {base} of at most {}", pool.group, group.max);
            return Err(convert::refused(FailureKind::Quota, "", text));
        }
        let ask = Ask {
            token: order.token.clone(),
            base,
            target,
        };
        let noted = self
            .api
            .tag_group(&pool.region, &pool.group, ASK_TAG, &ask.tag())
            .await;
        noted.map_err(|e| convert::failed(&e))?;
        flight.unsettled = Some(order.token.clone());
        fail_point!("asg-desired-noted", |_| Err(convert::unknown(
            &super::again::lost(pool, drover_aws::Call::CreateOrUpdateTags)
        )));
        let set = self.set(pool, &ask, flight).await;
        if set.as_ref().err().is_none_or(|e| e.code != OUTCOME_UNKNOWN) {
            flight.unsettled = None;
        }
        set.map(|()| self.raised(order, &ask))
    }

    /// An ask by SetDesiredCapacity that was noted before: its target is absolute and may be set again.
    pub(super) async fn repeat_desired(
        &self,
        pool: &AsgPool,
        order: &LaunchOrder,
        ask: &Ask,
        group: &Group,
        flight: &mut Flight,
    ) -> Result<LaunchOutcome, ActuateError> {
        if group.desired < ask.target {
            self.set(pool, ask, flight).await?;
        }
        if flight.unsettled.as_ref() == Some(&order.token) {
            flight.unsettled = None;
        }
        flight.raised(ask.target.max(group.desired), self.clock.mono());
        Ok(self.raised(order, ask))
    }

    /// Sets an ask's target, again if need be: it is absolute.
    pub(super) async fn set(
        &self,
        pool: &AsgPool,
        ask: &Ask,
        flight: &mut Flight,
    ) -> Result<(), ActuateError> {
        let mut attempt = 1;
        let mut open = false;
        loop {
            let answer = self
                .api
                .set_desired_capacity(&pool.region, &pool.group, ask.target)
                .await;
            fail_point!("asg-desired-asked", |_| Err(convert::unknown(
                &super::again::lost(pool, drover_aws::Call::SetDesiredCapacity)
            )));
            let Err(error) = answer else {
                flight.raised(ask.target, self.clock.mono());
                return Ok(());
            };
            open |= error.may_have_applied;
            if error.may_have_applied
                && self
                    .describe(pool)
                    .await
                    .is_ok_and(|group| group.desired >= ask.target)
            {
                flight.raised(ask.target, self.clock.mono());
                return Ok(());
            }
            if attempt == ATTEMPTS || !passes(&error) {
                return Err(if open {
                    convert::unknown(&error)
                } else {
                    convert::failed(&error)
                });
            }
            self.wait(attempt).await;
            attempt += 1;
        }
    }

    /// The outcome of an ask that AWS has taken. No ids yet: the group will tell.
    pub(super) fn raised(&self, order: &LaunchOrder, ask: &Ask) -> LaunchOutcome {
        let mut failures = Vec::new();
        if ask.count() < order.count {
            failures.push(ProviderFailure {
                id: format!("{}/max", order.token),
                offering: Some(order.offering.clone()),
                kind: FailureKind::Quota,
                message: format!("the group's maximum lets it grow to {} only", ask.target),
                at: self.clock.wall(),
                trace: Trace::Absent,
            });
        }
        LaunchOutcome {
            way: Way::SetDesiredCapacity,
            instances: Vec::new(),
            granted: ask.count(),
            failures,
            raised: Some(Raise {
                from: ask.base,
                to: ask.target,
            }),
        }
    }
}
