//! Lifecycle hooks of groups: read, held with heartbeats, completed.
//!
//! Called through the port. It sends CONTINUE and nothing else, and only to groups of the pools it was given; whether to
//! call is control's.

use std::sync::Arc;

use drover_aws::{AwsApi, AwsError, AwsEvents, AwsSurvey, HookAnswer};
use drover_core::model::{InstanceId, Millis};

use super::{AsgActuator, AsgPool, convert};
use crate::ports::actuate::ActuateError;
use crate::ports::hooks::Hook;
use crate::records::HookOn;

/// Time of a heartbeat where AWS says none, seconds.
const TIMEOUT_S: u64 = 3_600;
/// The most that any hook can be held, seconds.
const LIMIT_S: u64 = 172_800;
/// And in heartbeats.
const LIMIT_BEATS: u64 = 100;
/// What AWS says when nobody waits in a hook (any more). It has no code of its own.
const NOBODY: &str = "No active Lifecycle Action";

/// What answers hooks.
pub(super) struct Hooks {
    events: Arc<dyn AwsEvents>,
    survey: Arc<dyn AwsSurvey>,
}

impl<A: AwsApi> AsgActuator<A> {
    /// The same with answers to lifecycle hooks; without, no group has any.
    #[must_use]
    pub fn with_hooks(mut self, events: Arc<dyn AwsEvents>, survey: Arc<dyn AwsSurvey>) -> Self {
        self.hooks = Some(Hooks { events, survey });
        self
    }

    pub(super) async fn read_hooks(&self, pool: &AsgPool) -> Result<Vec<Hook>, ActuateError> {
        let Some(hooks) = &self.hooks else {
            return Ok(Vec::new());
        };
        let found = hooks
            .survey
            .lifecycle_hooks(&pool.region, &pool.group)
            .await
            .map_err(|error| convert::failed(&error))?;
        Ok(found.iter().filter_map(hook).collect())
    }

    pub(super) async fn hold_hook(
        &self,
        pool: &AsgPool,
        hook: &str,
        instance: &InstanceId,
    ) -> Result<bool, ActuateError> {
        let Some(hooks) = &self.hooks else {
            return Ok(false);
        };
        let instance = drover_aws::InstanceId::new(instance.as_str());
        let call = hooks
            .events
            .heartbeat(&pool.region, &pool.group, hook, &instance);
        answered(call.await)
    }

    pub(super) async fn complete_hook(
        &self,
        pool: &AsgPool,
        hook: &str,
        instance: &InstanceId,
    ) -> Result<bool, ActuateError> {
        let Some(hooks) = &self.hooks else {
            return Ok(false);
        };
        let instance = drover_aws::InstanceId::new(instance.as_str());
        let answer = HookAnswer::Continue;
        let call = hooks
            .events
            .complete(&pool.region, &pool.group, hook, &instance, answer);
        answered(call.await)
    }
}

fn answered(result: Result<(), AwsError>) -> Result<bool, ActuateError> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.message.contains(NOBODY) => Ok(false),
        Err(error) => Err(convert::failed(&error)),
    }
}

/// A hook that holds something that is known.
fn hook(found: &drover_aws::LifecycleHook) -> Option<Hook> {
    let timeout = found.heartbeat_seconds.map_or(TIMEOUT_S, u64::from);
    let most = LIMIT_S.min(timeout.saturating_mul(LIMIT_BEATS));
    let limit = found.global_seconds.map_or(most, u64::from);
    Some(Hook {
        name: found.name.clone(),
        on: match found.on? {
            drover_aws::HookOn::Launching => HookOn::Launching,
            drover_aws::HookOn::Terminating => HookOn::Terminating,
        },
        timeout: Millis::seconds(timeout),
        limit: Millis::seconds(limit),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use drover_aws::{Call, HookDefault, LifecycleHook, Region};

    #[test]
    fn ag_21_a_hook_is_held_for_the_smaller_of_48_h_and_a_hundred_heartbeats() {
        let read = |heartbeat: Option<u32>, global: Option<u32>, on| {
            let found = hook(&LifecycleHook {
                name: "out".to_owned(),
                on,
                heartbeat_seconds: heartbeat,
                global_seconds: global,
                default: HookDefault::Abandon,
                target: None,
            })?;
            Some((found.timeout.0 / 1_000, found.limit.0 / 1_000))
        };
        let out = Some(drover_aws::HookOn::Terminating);
        for (heartbeat, global, want) in [
            (Some(300), None, (300, 30_000)),
            (Some(7_200), None, (7_200, 172_800)),
            (None, None, (3_600, 172_800)),
            (Some(30), Some(3_000), (30, 3_000)),
        ] {
            assert_eq!(read(heartbeat, global, out), Some(want));
        }
        assert_eq!(read(Some(300), None, None), None, "a word not known");
    }

    #[test]
    fn an_action_that_is_over_is_no_failure() {
        let region = Region::new("eu-west-1");
        let reported = |code: &str, text: &str| {
            let call = Call::CompleteLifecycleAction;
            answered(Err(AwsError::reported(
                call,
                &region,
                400,
                Some(code),
                text,
            )))
        };
        assert_eq!(answered(Ok(())), Ok(true));
        let over = "No active Lifecycle Action found with instance ID i-1";
        assert_eq!(reported("ValidationError", over), Ok(false));
        assert!(reported("AccessDenied", "not authorized").is_err());
    }
}
