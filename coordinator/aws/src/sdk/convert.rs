//! Launch replies and scaling activities: from the SDK's types to ours.
//!
//! Called by `read` and `mutate`. What AWS left out stays out.

use aws_sdk_autoscaling::operation::launch_instances::LaunchInstancesOutput;
use aws_sdk_autoscaling::types as sdk;
use aws_sdk_ec2::primitives::DateTime;
use thiserror::Error;

use crate::{Activity, ActivityStatus, LaunchRefusal, LaunchReply, Launched, Market, classify};

/// A field that AWS always sends and did not, or sent outside of its range.
#[derive(Debug, Error)]
#[error("{what}: {field} is missing or out of range")]
pub(super) struct BadField {
    /// Which thing.
    pub(super) what: String,
    /// Which field of it, as AWS spells it.
    pub(super) field: &'static str,
}

/// Milliseconds since 1970.
pub(super) fn unix_ms(time: Option<DateTime>) -> Option<i64> {
    time.and_then(|t| t.to_millis().ok())
}

pub(super) fn launch_reply(reply: LaunchInstancesOutput) -> LaunchReply {
    LaunchReply {
        launched: reply
            .instances
            .unwrap_or_default()
            .into_iter()
            .map(launched)
            .collect(),
        refused: reply
            .errors
            .unwrap_or_default()
            .into_iter()
            .map(refusal)
            .collect(),
    }
}

fn launched(raw: sdk::InstanceCollection) -> Launched {
    Launched {
        instances: raw
            .instance_ids
            .unwrap_or_default()
            .into_iter()
            .map(Into::into)
            .collect(),
        instance_type: raw.instance_type,
        zone: raw.availability_zone,
        market: raw.market_type.as_deref().map(Market::parse),
    }
}

fn refusal(raw: sdk::LaunchInstancesError) -> LaunchRefusal {
    let message = raw.error_message.unwrap_or_default();
    LaunchRefusal {
        class: classify(raw.error_code.as_deref(), &message),
        instance_type: raw.instance_type,
        zone: raw.availability_zone,
        market: raw.market_type.as_deref().map(Market::parse),
        code: raw.error_code,
        message,
    }
}

pub(super) fn activity(raw: sdk::Activity) -> Activity {
    let status = match raw.status_code {
        Some(sdk::ScalingActivityStatusCode::Successful) => ActivityStatus::Successful,
        Some(sdk::ScalingActivityStatusCode::Failed) => ActivityStatus::Failed,
        Some(sdk::ScalingActivityStatusCode::Cancelled) => ActivityStatus::Cancelled,
        Some(other) => ActivityStatus::Running(other.as_str().to_owned()),
        None => ActivityStatus::Running(String::new()),
    };
    let message = raw.status_message.filter(|m| !m.is_empty());
    let ended_badly = matches!(status, ActivityStatus::Failed | ActivityStatus::Cancelled);
    Activity {
        id: raw.activity_id.unwrap_or_default(),
        started_unix_ms: unix_ms(raw.start_time),
        ended_unix_ms: unix_ms(raw.end_time),
        class: message
            .as_deref()
            .filter(|_| ended_badly)
            .map(|m| classify(None, m)),
        status,
        description: raw.description.unwrap_or_default(),
        cause: raw.cause.unwrap_or_default(),
        message,
        details: raw.details,
    }
}
