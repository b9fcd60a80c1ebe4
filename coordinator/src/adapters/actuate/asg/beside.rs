//! A first ask by LaunchInstances goes beside other such asks of its group: each has its token, and AWS adds what they
//! launch. Everything else waits until they have ended.
//!
//! Called by `grow` before it takes the group for itself. It asks in no other way and repeats nothing that may have been
//! taken.

use drover_aws::{AwsApi, Group, LaunchPlace};

use super::journal::Ask;
use super::launch::{Launched, place};
use super::memory::Flight;
use super::reading::{is_warm, no_launch_instances};
use super::{AsgActuator, AsgPool, convert};
use crate::ports::actuate::{ActuateError, LaunchOrder, LaunchOutcome, OUTCOME_UNKNOWN};

impl<A: AwsApi> AsgActuator<A> {
    /// `None`: it has to be asked alone, and nothing was asked here.
    pub(super) async fn launch_beside(
        &self,
        pool: &AsgPool,
        order: &LaunchOrder,
    ) -> Option<Result<LaunchOutcome, ActuateError>> {
        let memory = self.memory(pool);
        let _place = memory.place().await?;
        let mut flight = memory.flight().await;
        let told = flight.open.contains(&order.token) || flight.unsettled.is_some();
        if told || self.way_is_barred(pool) {
            return None;
        }
        let group = match self.prepare(pool, &mut flight).await {
            Ok(group) => group,
            Err(error) => return Some(Err(convert::not_asked(error))),
        };
        let (zone, place) = self.may_go_beside(pool, order, &group).await?;
        flight.begin_beside(&group, self.clock.mono());
        drop(flight);
        let answer = self.launch_instances(pool, order, place, &zone).await;
        let mut flight = memory.flight().await;
        match answer {
            Ok(Launched::Answered(outcome)) => {
                let gave = u32::try_from(outcome.instances.len()).unwrap_or(u32::MAX);
                flight.end_beside(gave, self.clock.mono());
                Some(Ok(outcome))
            }
            Ok(Launched::NotThisWay(error)) => {
                flight.end_beside(0, self.clock.mono());
                self.bar_the_way(pool, &error);
                None
            }
            Err(error) => {
                flight.end_beside(0, self.clock.mono());
                keep_open(&mut flight, order, &error);
                Some(Err(convert::not_asked(error)))
            }
        }
    }

    /// Zone and place of a call that may go beside others.
    async fn may_go_beside(
        &self,
        pool: &AsgPool,
        order: &LaunchOrder,
        group: &Group,
    ) -> Option<(String, Option<LaunchPlace>)> {
        let noted = Ask::read(&group.tags).is_some_and(|ask| ask.token == order.token);
        if noted
            || group.suspended.contains_key("Launch")
            || no_launch_instances(group).is_some()
            || is_warm(group).is_some()
        {
            return None;
        }
        let zone = self.zone_of(pool, order).await?;
        let place = place(group, &zone);
        let clear = place.is_some() || group.zones.len() <= 1;
        clear.then_some((zone, place))
    }
}

/// What may have been taken is to be settled.
fn keep_open(flight: &mut Flight, order: &LaunchOrder, error: &ActuateError) {
    if error.code == OUTCOME_UNKNOWN {
        flight.open.insert(order.token.clone());
    }
}
