//! LaunchInstances: asks in chunks, each repeated with its token while its outcome is open.
//!
//! Called by `grow`, `beside` and `settle`. It chooses no way and notes nothing.

use drover_aws::{
    AwsApi, AwsError, ClientToken, FailureKind as AwsKind, Group, LaunchAsk, LaunchPlace,
    LaunchReply,
};
use drover_core::model::{FailureKind, InstanceId};
use fail::fail_point;

use super::again::{ATTEMPTS, passes};
use super::{AsgActuator, AsgPool, convert};
use crate::ports::actuate::{
    ActuateError, LaunchOrder, LaunchOutcome, ProviderFailure, Trace, Way,
};

/// How LaunchInstances ended.
pub(super) enum Launched {
    /// With an answer.
    Answered(LaunchOutcome),
    /// AWS does not let this group or caller use it, and nothing was launched.
    NotThisWay(AwsError),
}

impl<A: AwsApi> AsgActuator<A> {
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
            raised: None,
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
                        trace: Trace::Absent,
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
            fail_point!("asg-launch-asked", |_| Err(super::again::lost(
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
                trace: Trace::Absent,
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
                trace: Trace::Absent,
            });
        }
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

/// Whether AWS refuses LaunchInstances as such, so that the other way is to be tried.
fn bars_the_way(error: &AwsError) -> bool {
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
