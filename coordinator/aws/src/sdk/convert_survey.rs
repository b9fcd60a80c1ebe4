//! What surveys and offers find: from the SDK's types to ours.
//!
//! Called by `survey` and `offers`. What AWS left out stays out; what it always sends is refused by name without it.

use aws_sdk_autoscaling::types as sdk;
use aws_sdk_ec2::types as ec2;
use aws_sdk_servicequotas::types::ServiceQuota;

use super::convert::{BadField, unix_ms};
use crate::{
    HookDefault, HookOn, LifecycleHook, QuotaFact, Refresh, Reservation, ReservationKind,
    ScalingPolicy, ScheduledAction, SpotPrice, WarmPool,
};

fn count(value: Option<i32>) -> Option<u32> {
    value.and_then(|v| u32::try_from(v).ok())
}

pub(super) fn scaling_policy(raw: sdk::ScalingPolicy) -> ScalingPolicy {
    ScalingPolicy {
        name: raw.policy_name.unwrap_or_default(),
        kind: raw.policy_type,
        enabled: raw.enabled.unwrap_or(true),
    }
}

pub(super) fn scheduled_action(raw: sdk::ScheduledUpdateGroupAction) -> ScheduledAction {
    ScheduledAction {
        name: raw.scheduled_action_name.unwrap_or_default(),
        // `Time` is AWS's older name of the same.
        next_unix_ms: unix_ms(raw.start_time.or(raw.time)),
        recurrence: raw.recurrence,
        min: count(raw.min_size),
        max: count(raw.max_size),
        desired: count(raw.desired_capacity),
    }
}

pub(super) fn refresh(raw: sdk::InstanceRefresh) -> Result<Refresh, BadField> {
    use sdk::InstanceRefreshStatus as S;
    let bad = |field| BadField {
        what: "an instance refresh".to_owned(),
        field,
    };
    let status = raw.status.ok_or_else(|| bad("Status"))?;
    Ok(Refresh {
        id: raw
            .instance_refresh_id
            .ok_or_else(|| bad("InstanceRefreshId"))?,
        // A word that this release does not know may well end members.
        at_work: !matches!(
            status,
            S::Successful | S::Failed | S::Cancelled | S::RollbackFailed | S::RollbackSuccessful
        ),
        status: status.as_str().to_owned(),
    })
}

pub(super) fn lifecycle_hook(raw: sdk::LifecycleHook) -> Result<LifecycleHook, BadField> {
    let name = raw.lifecycle_hook_name.ok_or_else(|| BadField {
        what: "a lifecycle hook".to_owned(),
        field: "LifecycleHookName",
    })?;
    Ok(LifecycleHook {
        name,
        on: match raw.lifecycle_transition.as_deref() {
            Some("autoscaling:EC2_INSTANCE_LAUNCHING") => Some(HookOn::Launching),
            Some("autoscaling:EC2_INSTANCE_TERMINATING") => Some(HookOn::Terminating),
            _ => None,
        },
        heartbeat_seconds: count(raw.heartbeat_timeout),
        global_seconds: count(raw.global_timeout),
        default: match raw.default_result.as_deref() {
            Some("CONTINUE") => HookDefault::Continue,
            _ => HookDefault::Abandon,
        },
        target: raw.notification_target_arn.filter(|arn| !arn.is_empty()),
    })
}

/// The configuration; members are added by the caller, page by page.
pub(super) fn warm_pool(raw: sdk::WarmPoolConfiguration) -> WarmPool {
    WarmPool {
        // AWS's defaults: 0, no bound of its own (which it also spells -1), Stopped, no reuse.
        min: count(raw.min_size).unwrap_or(0),
        max_prepared: count(raw.max_group_prepared_capacity),
        state: raw
            .pool_state
            .map_or_else(|| "Stopped".to_owned(), |s| s.as_str().to_owned()),
        reuses: raw
            .instance_reuse_policy
            .and_then(|p| p.reuse_on_scale_in)
            .unwrap_or(false),
        status: raw.status.map(|s| s.as_str().to_owned()),
        members: Vec::new(),
    }
}

/// A quota of running instances; `None` for EC2's many others.
pub(super) fn quota(raw: ServiceQuota) -> Option<QuotaFact> {
    let name = raw.quota_name?;
    let running =
        name.starts_with("Running On-Demand ") || name.ends_with(" Spot Instance Requests");
    let value = raw.value.filter(|v| v.is_finite() && *v >= 0.0)?;
    running.then_some(QuotaFact {
        code: raw.quota_code?,
        name,
        // Whole numbers, as the quota's unit is a count; up to 2^53, and no account has that many.
        value: whole(value),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be finite and not negative; the cast saturates"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

pub(super) fn spot_price(raw: ec2::SpotPrice) -> Result<SpotPrice, BadField> {
    let bad = |field| BadField {
        what: "a spot price".to_owned(),
        field,
    };
    Ok(SpotPrice {
        instance_type: raw
            .instance_type
            .ok_or_else(|| bad("instanceType"))?
            .as_str()
            .to_owned(),
        zone: raw
            .availability_zone
            .ok_or_else(|| bad("availabilityZone"))?,
        micro_usd_per_hour: raw
            .spot_price
            .as_deref()
            .and_then(micro_usd)
            .ok_or_else(|| bad("spotPrice"))?,
        since_unix_ms: unix_ms(raw.timestamp),
    })
}

/// Millionths from AWS's decimal text, for instance `0.452300`; digits beyond the sixth are left out.
pub(super) fn micro_usd(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let micro: u64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000)?
        .checked_add(micro)
}

pub(super) fn reservation(raw: ec2::CapacityReservation) -> Result<Reservation, BadField> {
    let id = raw.capacity_reservation_id.unwrap_or_default();
    let bad = |field| BadField {
        what: format!("capacity reservation {id:?}"),
        field,
    };
    let state = raw.state.ok_or_else(|| bad("state"))?;
    let total = count(raw.total_instance_count).ok_or_else(|| bad("totalInstanceCount"))?;
    let available =
        count(raw.available_instance_count).ok_or_else(|| bad("availableInstanceCount"))?;
    let instance_type = raw
        .instance_type
        .clone()
        .ok_or_else(|| bad("instanceType"))?;
    let zone = raw
        .availability_zone
        .clone()
        .ok_or_else(|| bad("availabilityZone"))?;
    if id.is_empty() {
        return Err(bad("capacityReservationId"));
    }
    Ok(Reservation {
        kind: match raw.reservation_type {
            None | Some(ec2::CapacityReservationType::Default) => ReservationKind::OnDemand,
            Some(ec2::CapacityReservationType::CapacityBlock) => ReservationKind::CapacityBlock,
            Some(other) => ReservationKind::Other(other.as_str().to_owned()),
        },
        instance_type,
        zone,
        active: state == ec2::CapacityReservationState::Active,
        state: state.as_str().to_owned(),
        total,
        available,
        targeted: raw.instance_match_criteria == Some(ec2::InstanceMatchCriteria::Targeted),
        start_unix_ms: unix_ms(raw.start_date),
        end_unix_ms: unix_ms(raw.end_date),
        id: id.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_read_to_the_millionth() {
        let table = [
            ("0.452300", Some(452_300)),
            ("12", Some(12_000_000)),
            ("3.9", Some(3_900_000)),
            ("0.0000019", Some(1)),
            ("55.04", Some(55_040_000)),
            ("", None),
            (".5", None),
            ("-1.0", None),
            ("1,5", None),
            ("99999999999999999999", None),
        ];
        for (text, expect) in table {
            assert_eq!(micro_usd(text), expect, "{text:?}");
        }
    }

    #[test]
    fn a_refresh_of_an_unknown_state_is_at_work() {
        let of = |status: &str| {
            let raw = sdk::InstanceRefresh::builder()
                .instance_refresh_id("r")
                .status(sdk::InstanceRefreshStatus::from(status))
                .build();
            refresh(raw).expect("is whole").at_work
        };
        for over in [
            "Successful",
            "Failed",
            "Cancelled",
            "RollbackFailed",
            "RollbackSuccessful",
        ] {
            assert!(!of(over), "{over}");
        }
        for at_work in [
            "Pending",
            "InProgress",
            "Baking",
            "Cancelling",
            "RollbackInProgress",
            "Dreaming",
        ] {
            assert!(of(at_work), "{at_work}");
        }
    }
}
