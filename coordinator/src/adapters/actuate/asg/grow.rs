//! Asks for capacity: LaunchInstances where the group can be asked so, else SetDesiredCapacity.
//!
//! Called through the port, for an order whose intent is committed. A repetition with the same token never asks
//! twice. When it ends without knowing, it says so (`OUTCOME_UNKNOWN`) and `settle` finds out.

use std::time::Duration;

use drover_aws::{
    AwsApi, AwsError, ClientToken, FailureKind as AwsKind, Group, LaunchAsk, LaunchPlace,
    LaunchReply,
};
use drover_core::model::{FailureKind, InstanceId, Millis};
use fail::fail_point;

use super::journal::{ASK_TAG, Ask};
use super::memory::Flight;
use super::reading::{is_warm, no_launch_instances};
use super::{AsgActuator, AsgPool, convert};
use crate::ports::actuate::{
    ActuateError, LaunchOrder, LaunchOutcome, OUTCOME_UNKNOWN, ProviderFailure, Way,
};

/// Up to this age an order is taken for a first try: control asks at once after it has committed the intent.
const FIRST_TRY: Millis = Millis::seconds(5);
/// From this age on an ask is not repeated but settled by describing: AWS does not say how long it remembers a token.
pub(super) const TOO_OLD: Millis = Millis::minutes(10);
/// How often one ask is repeated with the same token before its outcome counts as unknown.
const ATTEMPTS: u32 = 4;

/// How LaunchInstances ended.
pub(super) enum Launched {
    /// With an answer.
    Answered(LaunchOutcome),
    /// AWS does not let this group or caller use it, and nothing was launched.
    NotThisWay(AwsError),
}

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

    /// The zone of the order's offering, read from AWS first when this process has not seen the offering.
    pub(super) async fn zone_of(&self, pool: &AsgPool, order: &LaunchOrder) -> Option<String> {
        let known = || self.memory(pool).seen().zones.get(&order.offering).cloned();
        if let Some(zone) = known() {
            return Some(zone);
        }
        self.read_pools(std::slice::from_ref(&pool.pool)).await;
        known()
    }

    /// LaunchInstances in chunks, each with a token of its own that follows from the order's.
    pub(super) async fn launch_instances(
        &self,
        pool: &AsgPool,
        order: &LaunchOrder,
        place: Option<LaunchPlace>,
        zone: &str,
    ) -> Result<Launched, ActuateError> {
        let mut outcome = LaunchOutcome {
            way: Way::LaunchInstances,
            instances: Vec::new(),
            granted: 0,
            failures: Vec::new(),
        };
        let mut left = order.count;
        let mut chunk = 0;
        while left > 0 {
            let count = left.min(LaunchAsk::MAX_COUNT);
            let token = if chunk == 0 {
                order.token.clone()
            } else {
                format!("{}-{chunk}", order.token)
            };
            let ask = LaunchAsk {
                group: pool.group.clone(),
                count,
                place: place.clone(),
                token: ClientToken::new(token),
            };
            match self.ask(pool, &ask).await {
                Ok(reply) => self.take(pool, order, zone, &ask, reply, &mut outcome),
                Err(error) if error.may_have_applied => return Err(convert::unknown(&error)),
                Err(error) if chunk == 0 && bars_the_way(&error) => {
                    return Ok(Launched::NotThisWay(error));
                }
                Err(error) if outcome.granted == 0 => return Err(convert::failed(&error)),
                Err(error) => {
                    // What the chunks before gave stands.
                    outcome.failures.push(ProviderFailure {
                        id: ask.token.to_string(),
                        offering: Some(order.offering.clone()),
                        kind: convert::kind(error.kind),
                        message: error.to_string(),
                        at: self.clock.wall(),
                    });
                    break;
                }
            }
            if !outcome.failures.is_empty() {
                break;
            }
            left -= count;
            chunk += 1;
        }
        Ok(Launched::Answered(outcome))
    }

    /// One call, repeated with the same token while its outcome is open.
    async fn ask(&self, pool: &AsgPool, ask: &LaunchAsk) -> Result<LaunchReply, AwsError> {
        let mut attempt = 1;
        let mut open = false;
        loop {
            let answer = self.api.launch_instances(&pool.region, ask).await;
            fail_point!("asg-launch-asked", |_| Err(lost(
                pool,
                drover_aws::Call::LaunchInstances
            )));
            let error = match answer {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            open |= error.may_have_applied;
            if attempt == ATTEMPTS || !passes(&error) {
                // A later refusal says nothing about an earlier call without an answer.
                return Err(AwsError {
                    may_have_applied: open,
                    ..error
                });
            }
            self.wait(attempt).await;
            attempt += 1;
        }
    }

    fn take(
        &self,
        pool: &AsgPool,
        order: &LaunchOrder,
        zone: &str,
        ask: &LaunchAsk,
        reply: LaunchReply,
        outcome: &mut LaunchOutcome,
    ) {
        let ids = reply.instance_ids();
        outcome.granted = outcome
            .granted
            .saturating_add(u32::try_from(ids.len()).unwrap_or(u32::MAX));
        outcome
            .instances
            .extend(ids.iter().map(|id| InstanceId::new(id.as_str())));
        for (n, refused) in reply.refused.into_iter().enumerate() {
            let elsewhere = refused
                .zone
                .as_deref()
                .is_some_and(|z| !zone.is_empty() && z != zone);
            outcome.failures.push(ProviderFailure {
                id: format!("{}/{n}", ask.token),
                offering: Some(order.offering.clone()).filter(|_| !elsewhere),
                kind: convert::kind(refused.class.kind),
                message: refused.code.map_or(refused.message.clone(), |code| {
                    format!("{code}: {}", refused.message)
                }),
                at: self.clock.wall(),
            });
        }
        let missing = ask
            .count
            .saturating_sub(u32::try_from(ids.len()).unwrap_or(u32::MAX));
        if missing > 0 && outcome.failures.is_empty() {
            // AWS gave fewer and no reason: to ask on at once would be a creep without end.
            outcome.failures.push(ProviderFailure {
                id: format!("{}/short", ask.token),
                offering: Some(order.offering.clone()),
                kind: FailureKind::Shortage,
                message: format!(
                    "LaunchInstances gave {} of {} without a reason in {}",
                    ids.len(),
                    ask.count,
                    pool.group
                ),
                at: self.clock.wall(),
            });
        }
    }

    /// SetDesiredCapacity: an absolute target, written on the group before it is set.
    async fn raise(
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
        fail_point!("asg-desired-noted", |_| Err(convert::unknown(&lost(
            pool,
            drover_aws::Call::CreateOrUpdateTags
        ))));
        let set = self.set(pool, &ask, flight).await;
        if set.as_ref().err().is_none_or(|e| e.code != OUTCOME_UNKNOWN) {
            flight.unsettled = None;
        }
        set.map(|()| self.raised(order, &ask))
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
            fail_point!("asg-desired-asked", |_| Err(convert::unknown(&lost(
                pool,
                drover_aws::Call::SetDesiredCapacity
            ))));
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
            });
        }
        LaunchOutcome {
            way: Way::SetDesiredCapacity,
            instances: Vec::new(),
            granted: ask.count(),
            failures,
        }
    }

    async fn wait(&self, attempt: u32) {
        tokio::time::sleep(self.pause.saturating_mul(1 << attempt.min(4))).await;
    }
}

/// Where a launch goes; a group of one zone needs no word.
pub(super) fn place(group: &Group, zone: &str) -> Option<LaunchPlace> {
    let zone = if zone.is_empty() && group.zones.len() == 1 {
        group.zones[0].as_str()
    } else {
        zone
    };
    (!zone.is_empty()).then(|| LaunchPlace::Zone(zone.to_owned()))
}

/// Whether the same call may go better in a moment.
fn passes(error: &AwsError) -> bool {
    let kinds = [
        AwsKind::IdempotentInProgress,
        AwsKind::Contention,
        AwsKind::Transient,
        AwsKind::UnparsableReply,
    ];
    kinds.contains(&error.kind)
}

/// Whether AWS refuses LaunchInstances as such, so that the other way is to be tried.
pub(super) fn bars_the_way(error: &AwsError) -> bool {
    let codes = [
        "InvalidAction",
        "UnsupportedOperation",
        "UnknownOperationException",
    ];
    error.kind == AwsKind::Permission
        && error
            .code
            .as_deref()
            .is_some_and(|c| c.starts_with("AccessDenied") || c == "UnauthorizedOperation")
        || error.code.as_deref().is_some_and(|c| codes.contains(&c))
}

/// What a crash or a lost reply looks like, for fail points.
#[cfg_attr(
    not(feature = "failpoints"),
    expect(dead_code, reason = "only fail points lose replies")
)]
fn lost(pool: &AsgPool, call: drover_aws::Call) -> AwsError {
    AwsError::unreported(
        call,
        &pool.region,
        AwsKind::Transient,
        "a fail point".to_owned(),
        true,
    )
}

/// The pause before the first repetition.
pub(super) const PAUSE: Duration = Duration::from_millis(500);
