//! Asks for capacity: LaunchInstances (`launch`) where the group can be asked so, else SetDesiredCapacity (`desired`).
//!
//! Called through the port, for an order whose intent is committed. A repetition with the same token never asks
//! twice. When it ends without knowing, it says so (`OUTCOME_UNKNOWN`) and `settle` finds out.

use drover_aws::{AwsApi, AwsError};
use drover_core::model::{FailureKind, InstanceId, Millis};

use super::journal::Ask;
use super::launch::{Launched, place};
use super::memory::Flight;
use super::reading::{is_warm, no_launch_instances};
use super::{AsgActuator, AsgPool, convert};
use crate::ports::actuate::{ActuateError, LaunchOrder, LaunchOutcome, OUTCOME_UNKNOWN};

/// Up to this age an order is taken for a first try: control asks at once after it has committed the intent.
const FIRST_TRY: Millis = Millis::seconds(5);
/// From this age on an ask is not repeated but settled by describing: AWS does not say how long it remembers a token.
pub(super) const TOO_OLD: Millis = Millis::minutes(10);

impl<A: AwsApi> AsgActuator<A> {
    pub(super) async fn grow(
        &self,
        pool: &AsgPool,
        order: &LaunchOrder,
    ) -> Result<LaunchOutcome, ActuateError> {
        let memory = self.memory(pool);
        // Before the wait for others' calls: that wait makes no order a repetition.
        let age = self.clock.wall().since(order.asked);
        if age < FIRST_TRY
            && let Some(outcome) = self.launch_beside(pool, order).await
        {
            return outcome;
        }
        let mut flight = memory.alone().await;
        let repeated = flight.open.contains(&order.token) || age >= FIRST_TRY;
        let outcome = if age >= TOO_OLD {
            let text = format!(
                "the ask is {} s old: it is settled and not repeated",
                age.0 / 1000
            );
            Err(convert::refused(
                FailureKind::Transient,
                OUTCOME_UNKNOWN,
                text,
            ))
        } else {
            self.grow_in_turn(pool, order, repeated, &mut flight).await
        };
        // Whatever a repetition meets, it says nothing about the first call: that one is still to be settled.
        let outcome = outcome.map_err(|e| {
            if repeated {
                convert::still_unknown(e)
            } else {
                convert::not_asked(e)
            }
        });
        match &outcome {
            Err(error) if error.code == OUTCOME_UNKNOWN => flight.open.insert(order.token.clone()),
            _ => flight.open.remove(&order.token),
        };
        outcome
    }

    async fn grow_in_turn(
        &self,
        pool: &AsgPool,
        order: &LaunchOrder,
        repeated: bool,
        flight: &mut Flight,
    ) -> Result<LaunchOutcome, ActuateError> {
        if let Some(token) = flight.unsettled.as_ref().filter(|t| **t != order.token) {
            let text = format!("the ask {token} of group {} is not settled yet", pool.group);
            return Err(convert::refused(FailureKind::Transient, "", text));
        }
        let group = self.prepare(pool, flight).await?;
        if let Some(ask) = Ask::read(&group.tags).filter(|ask| ask.token == order.token) {
            return self.repeat_desired(pool, order, &ask, &group, flight).await;
        }
        // A repetition is not held up: AWS answers it as it answered the first call.
        if let Some(reason) = group.suspended.get("Launch").filter(|_| !repeated) {
            let text = format!("Launch is suspended in group {}: {reason}", pool.group);
            return Err(convert::refused(FailureKind::Suspended, "", text));
        }
        let Some(zone) = self.zone_of(pool, order).await else {
            let text = format!(
                "group {} has no offering {} any more",
                pool.group, order.offering
            );
            return Err(convert::refused(
                FailureKind::Transient,
                "StaleOffering",
                text,
            ));
        };
        let place = place(&group, &zone);
        let memory = self.memory(pool);
        let barred = memory
            .seen()
            .no_launch(self.clock.mono())
            .map(str::to_owned);
        let mut why = no_launch_instances(&group).map(str::to_owned).or(barred);
        // A repetition goes the way of the first call.
        if why.is_none() && !repeated {
            why = is_warm(&group).map(str::to_owned);
        }
        if why.is_none() && place.is_none() && group.zones.len() > 1 {
            why = Some("the offering names no zone".to_owned());
        }
        if why.is_none() {
            match self.launch_instances(pool, order, place, &zone).await? {
                Launched::Answered(outcome) => {
                    let now = self.clock.mono();
                    let wanted = flight.wanted(&group, now);
                    let there = |id: &InstanceId| {
                        group.members.iter().any(|m| m.id.as_str() == id.as_str())
                    };
                    let new = outcome.instances.iter().filter(|id| !there(id)).count();
                    let new = u32::try_from(new).unwrap_or(u32::MAX);
                    // A repetition's instances may be in the desired capacity already.
                    let floor = if repeated {
                        wanted.max(group.live_count().saturating_add(new))
                    } else {
                        wanted.saturating_add(new)
                    };
                    flight.raised(floor, now);
                    return Ok(outcome);
                }
                Launched::NotThisWay(error) if repeated => return Err(convert::failed(&error)),
                Launched::NotThisWay(error) => self.bar_the_way(pool, &error),
            }
        }
        self.raise(pool, order, &group, flight).await
    }

    /// Remembers for a while that LaunchInstances is refused as such.
    pub(super) fn bar_the_way(&self, pool: &AsgPool, error: &AwsError) {
        tracing::warn!(pool = %pool.pool, %error, "LaunchInstances is refused, SetDesiredCapacity takes its place");
        self.memory(pool)
            .seen()
            .refuse_launch(self.clock.mono(), error.to_string());
    }

    /// Whether it is, or the group's shape forbids it.
    pub(super) fn way_is_barred(&self, pool: &AsgPool) -> bool {
        let now = self.clock.mono();
        let seen = self.memory(pool).seen();
        seen.misshapen || seen.no_launch(now).is_some()
    }

    /// The zone of the order's offering, read from AWS first when this process has not seen the offering.
    pub(super) async fn zone_of(&self, pool: &AsgPool, order: &LaunchOrder) -> Option<String> {
        let known = || self.memory(pool).seen().zones.get(&order.offering).cloned();
        if let Some(zone) = known() {
            return Some(zone);
        }
        self.read_pools(std::slice::from_ref(&pool.pool)).await;
        known()
    }
}
