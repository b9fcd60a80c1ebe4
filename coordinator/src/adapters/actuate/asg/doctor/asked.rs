//! What else AWS keeps about a group: scaling policies, scheduled actions, refreshes, hooks, the warm pool.
//!
//! Called by `doctor`; each question fails alone.

use drover_aws::{AwsSurvey, Group, HookDefault, HookOn, LifecycleHook, Region};
use drover_core::model::Millis;
use futures::join;

use super::Notes;
use crate::ports::survey::{Finding, Hook, Question, SurveyAsk};

/// AWS's own, where it sends none.
const HEARTBEAT_SECONDS: u32 = 3_600;
/// Kinds of policies that AlarmNotification stops; a predictive one acts by schedules of its own.
const PREDICTIVE: &str = "PredictiveScaling";

/// Asks all of it at once.
pub(super) async fn judge(
    api: &impl AwsSurvey,
    place: &Region,
    group: &Group,
    ask: &SurveyAsk,
) -> Notes {
    let (policies, schedules, refreshes, hooks, warm) = join!(
        api.scaling_policies(place, &group.name),
        api.scheduled_actions(place, &group.name),
        api.instance_refreshes(place, &group.name),
        api.lifecycle_hooks(place, &group.name),
        api.warm_pool(place, &group.name),
    );
    let mut notes = Notes::default();
    let held = |process: &str| group.suspended.contains_key(process);
    for policy in notes
        .answer(Question::Policies, policies)
        .unwrap_or_default()
    {
        let kind = policy.kind.unwrap_or_else(|| "of no named kind".to_owned());
        if policy.enabled {
            notes.findings.push(Finding::ScalingPolicy {
                name: policy.name,
                held: held("AlarmNotification") && kind != PREDICTIVE,
                kind,
            });
        }
    }
    for action in notes
        .answer(Question::Schedules, schedules)
        .unwrap_or_default()
    {
        let when = match (action.recurrence, action.next_unix_ms) {
            (Some(cron), _) => format!("again and again ({cron})"),
            (None, Some(at)) => format!("next at {}", moment(at)),
            (None, None) => "at a time that AWS does not tell".to_owned(),
        };
        notes.findings.push(Finding::ScheduledAction {
            name: action.name,
            when,
            held: held("ScheduledActions"),
        });
    }
    let refreshes = notes
        .answer(Question::Refreshes, refreshes)
        .unwrap_or_default();
    for refresh in refreshes.into_iter().filter(|refresh| refresh.at_work) {
        notes.findings.push(Finding::RefreshAtWork {
            id: refresh.id,
            status: refresh.status,
        });
    }
    for hook in notes.answer(Question::Hooks, hooks).unwrap_or_default() {
        notes.findings.extend(hook_finding(hook, ask.drain));
    }
    if let Some(Some(warm)) = notes.answer(Question::WarmPool, warm)
        && warm.max_prepared.is_none()
        && warm.status.is_none()
    {
        notes.findings.push(Finding::WarmPoolRefills);
    }
    notes
}

fn hook_finding(hook: LifecycleHook, drain: Millis) -> Option<Finding> {
    let (on, default) = (hook.on?, hook.default);
    let hook = Hook {
        name: hook.name,
        heartbeat_seconds: hook.heartbeat_seconds.unwrap_or(HEARTBEAT_SECONDS),
    };
    match on {
        HookOn::Launching if default == HookDefault::Abandon => {
            Some(Finding::LaunchHookAbandons(hook))
        }
        HookOn::Terminating if u64::from(hook.heartbeat_seconds) * 1_000 < drain.0 => {
            Some(Finding::TerminateHookShort { hook, drain })
        }
        HookOn::Launching | HookOn::Terminating => None,
    }
}

fn moment(at: i64) -> String {
    let stamp = jiff::Timestamp::from_millisecond(at);
    stamp.map_or_else(|_| format!("{at} ms since 1970"), |stamp| stamp.to_string())
}
