//! Finds out what became of an ask whose answer was lost.
//!
//! Called through the port after a restart, and after an unknown outcome. The group's own note says which way was
//! used: what it names was asked by SetDesiredCapacity, all else by LaunchInstances or not at all. An ask older than
//! 10 minutes is settled by describing and never by asking again, since AWS does not say how long it remembers a
//! token.

use drover_aws::{AwsApi, Group};
use drover_core::model::{FailureKind, InstanceId, Millis, UnixMs};

use super::grow::TOO_OLD;
use super::journal::Ask;
use super::launch::{Launched, place};
use super::memory::Flight;
use super::reading::no_launch_instances;
use super::{AsgActuator, AsgPool, convert};
use crate::ports::actuate::{
    ActuateError, LaunchOrder, LaunchOutcome, OUTCOME_UNKNOWN, Raise, Way,
};

/// How far AWS's clock may be behind ours when launches since an ask are looked for.
const CLOCK_SLACK: Millis = Millis::minutes(1);

impl<A: AwsApi> AsgActuator<A> {
    pub(super) async fn find_out(
        &self,
        pool: &AsgPool,
        order: &LaunchOrder,
        known: &[InstanceId],
        now: UnixMs,
    ) -> Result<LaunchOutcome, ActuateError> {
        let memory = self.memory(pool);
        let mut flight = memory.alone().await;
        let old = now.since(order.asked) >= TOO_OLD;
        let group = if old {
            self.describe(pool).await?
        } else {
            self.prepare(pool, &mut flight).await?
        };
        let noted = Ask::read(&group.tags).filter(|ask| ask.token == order.token);
        let outcome = match noted {
            Some(ask) => {
                self.settle_desired(pool, order, &ask, &group, old, &mut flight)
                    .await
            }
            None => {
                self.settle_launch(pool, order, known, &group, old, &mut flight)
                    .await
            }
        };
        if outcome.is_ok() {
            flight.open.remove(&order.token);
        }
        if outcome.is_ok() && flight.unsettled.as_ref() == Some(&order.token) {
            flight.unsettled = None;
        }
        outcome
    }

    async fn settle_desired(
        &self,
        pool: &AsgPool,
        order: &LaunchOrder,
        ask: &Ask,
        group: &Group,
        old: bool,
        flight: &mut Flight,
    ) -> Result<LaunchOutcome, ActuateError> {
        if old {
            // Lowered since, or never set: what is wanted above the base is what came of it.
            let reached = group.desired.max(group.live_count()).min(ask.target);
            let granted = reached.saturating_sub(ask.base);
            return Ok(LaunchOutcome {
                granted,
                raised: Some(Raise {
                    from: ask.base,
                    to: reached.max(ask.base),
                }),
                ..self.raised(order, ask)
            });
        }
        self.repeat_desired(pool, order, ask, group, flight).await
    }

    async fn settle_launch(
        &self,
        pool: &AsgPool,
        order: &LaunchOrder,
        known: &[InstanceId],
        group: &Group,
        old: bool,
        flight: &mut Flight,
    ) -> Result<LaunchOutcome, ActuateError> {
        if old {
            return self.since_then(pool, order, known, group).await;
        }
        let Some(zone) = self.zone_of(pool, order).await else {
            // The call cannot be repeated as it was; new instances may not show yet.
            let text = format!(
                "group {} has no offering {} any more: the ask is settled once it is old",
                pool.group, order.offering
            );
            return Err(convert::refused(
                FailureKind::Transient,
                OUTCOME_UNKNOWN,
                text,
            ));
        };
        let place = place(group, &zone);
        if no_launch_instances(group).is_some() || (place.is_none() && group.zones.len() > 1) {
            // Such an ask is made by SetDesiredCapacity only, and there is no note of it: it was never made.
            tracing::info!(pool = %pool.pool, token = order.token, "the ask was never made");
            return Ok(none(Way::SetDesiredCapacity));
        }
        match self.launch_instances(pool, order, place, &zone).await {
            Ok(Launched::Answered(outcome)) => {
                let wanted = flight.wanted(group, self.clock.mono());
                flight.raised(wanted.max(group.live_count()), self.clock.mono());
                Ok(outcome)
            }
            // Nothing tells that the first call was refused as well: what runs tells.
            Ok(Launched::NotThisWay(_)) => self.since_then(pool, order, known, group).await,
            Err(error) if error.kind == FailureKind::Transient => Err(error),
            Err(error) => {
                let found = self.since_then(pool, order, known, group).await?;
                if found.granted > 0 {
                    Ok(found)
                } else {
                    Err(error)
                }
            }
        }
    }

    /// Instances launched since the ask that belong to nobody else, at most as many as were asked for.
    async fn since_then(
        &self,
        pool: &AsgPool,
        order: &LaunchOrder,
        known: &[InstanceId],
        group: &Group,
    ) -> Result<LaunchOutcome, ActuateError> {
        let others = |id: &drover_aws::InstanceId| known.iter().any(|k| k.as_str() == id.as_str());
        let ids: Vec<_> = group
            .members
            .iter()
            .filter(|m| !others(&m.id))
            .map(|m| m.id.clone())
            .collect();
        let instances = self
            .api
            .describe_instances(&pool.region, &ids)
            .await
            .map_err(|e| convert::failed(&e))?;
        let from = order.asked.minus(UnixMs(CLOCK_SLACK.0));
        let mut found: Vec<(UnixMs, InstanceId)> = instances
            .into_values()
            .filter_map(|i| {
                Some((
                    convert::unix_ms(i.launched_unix_ms?)?,
                    InstanceId::new(i.id.as_str()),
                ))
            })
            .filter(|(at, _)| *at >= from)
            .collect();
        found.sort_unstable();
        found.truncate(usize::try_from(order.count).unwrap_or(usize::MAX));
        let instances: Vec<InstanceId> = found.into_iter().map(|(_, id)| id).collect();
        Ok(LaunchOutcome {
            granted: u32::try_from(instances.len()).unwrap_or(u32::MAX),
            instances,
            ..none(Way::LaunchInstances)
        })
    }
}

fn none(way: Way) -> LaunchOutcome {
    LaunchOutcome {
        way,
        instances: Vec::new(),
        granted: 0,
        failures: Vec::new(),
        raised: None,
    }
}
