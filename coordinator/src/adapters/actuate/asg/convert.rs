//! From AWS's words to the port's.
//!
//! Called by the rest of the adapter. Wire types end here.

use drover_aws::{
    AwsError, FailureKind as AwsKind, InstanceState as Ec2State, Member, MemberState,
};
use drover_core::model::{FailureKind, InstanceId, OfferingId, PoolId, UnixMs};

use super::look::Known;
use crate::ports::actuate::{
    ActuateError, Instance, InstanceState, NO_CREDENTIALS, NOT_ASKED, OUTCOME_UNKNOWN,
};

/// The kind that decides the response.
pub(super) fn kind(kind: AwsKind) -> FailureKind {
    match kind {
        AwsKind::Shortage | AwsKind::Unsupported => FailureKind::Shortage,
        // The group's own bounds are a limit like an account's: hold at what was reached, ask elsewhere.
        AwsKind::Quota | AwsKind::GroupLimit => FailureKind::Quota,
        AwsKind::Price => FailureKind::Price,
        AwsKind::Config | AwsKind::Gone => FailureKind::Config,
        AwsKind::Permission => FailureKind::Permission,
        AwsKind::Suspended => FailureKind::Suspended,
        AwsKind::Throttle => FailureKind::Throttle,
        AwsKind::IdempotentInProgress
        | AwsKind::TokenMismatch
        | AwsKind::Contention
        | AwsKind::UnparsableReply
        | AwsKind::Transient => FailureKind::Transient,
    }
}

/// A failed call.
pub(super) fn failed(error: &AwsError) -> ActuateError {
    ActuateError {
        kind: kind(error.kind),
        code: if error.is_credentials() {
            NO_CREDENTIALS.to_owned()
        } else {
            error.code.clone().unwrap_or_default()
        },
        message: error.to_string(),
    }
}

/// A failed change. Credentials say nothing about the pool: a change that meets bad ones passes as soon as there are good
/// ones, and stops no pool. A reading that meets them is one that cannot be believed for growth, as without permission.
pub(super) fn failed_change(error: ActuateError) -> ActuateError {
    if error.code != NO_CREDENTIALS {
        return error;
    }
    ActuateError {
        kind: FailureKind::Transient,
        ..error
    }
}

/// An ask that may have been taken: it is to be settled and not to be made anew.
pub(super) fn unknown(error: &AwsError) -> ActuateError {
    ActuateError {
        kind: FailureKind::Transient,
        code: OUTCOME_UNKNOWN.to_owned(),
        message: format!("the outcome is not known: {error}"),
    }
}

/// Passing trouble with a first ask that was certainly not taken.
pub(super) fn not_asked(error: ActuateError) -> ActuateError {
    let error = failed_change(error);
    let passing = matches!(error.kind, FailureKind::Throttle | FailureKind::Transient);
    let told = [OUTCOME_UNKNOWN, NO_CREDENTIALS].contains(&error.code.as_str());
    if passing && !told {
        let code = NOT_ASKED.to_owned();
        return ActuateError { code, ..error };
    }
    error
}

/// [`ActuateError::code`] of a group that AWS shows, and that somebody else owns or nobody gave away.
pub(super) const NOT_OURS: &str = "NotOurs";

/// Why an ask could not be settled. That AWS did not let us look, or not now, tells nothing about the ask.
pub(super) fn not_settled(error: ActuateError) -> ActuateError {
    use FailureKind::{Permission, Throttle, Transient};
    if matches!(error.kind, Permission | Throttle | Transient) && error.code != NOT_OURS {
        return still_unknown(error);
    }
    error
}

/// What a repetition met, while the first call's outcome is not known.
pub(super) fn still_unknown(error: ActuateError) -> ActuateError {
    if error.code == OUTCOME_UNKNOWN {
        return error;
    }
    let message = format!(
        "an earlier call of this ask may have been taken, and a repetition failed: {}",
        error.message
    );
    ActuateError {
        kind: FailureKind::Transient,
        code: OUTCOME_UNKNOWN.to_owned(),
        message,
    }
}

/// A refusal of our own.
pub(super) fn refused(kind: FailureKind, code: &str, message: String) -> ActuateError {
    ActuateError {
        kind,
        code: code.to_owned(),
        message,
    }
}

/// The id of an offering; an empty zone means that the group chooses.
pub(super) fn offering_id(
    pool: &PoolId,
    instance_type: &str,
    zone: &str,
    market: &str,
) -> OfferingId {
    OfferingId::new(format!("{pool}/{instance_type}/{zone}/{market}"))
}

/// A member as an instance; nothing for the warm pool, which holds no capacity.
pub(super) fn instance(
    member: &Member,
    offering: Option<OfferingId>,
    known: Option<&Known>,
    ends: Option<UnixMs>,
) -> Option<Instance> {
    let state = match member.state {
        MemberState::Warmed(_) => return None,
        _ if known.is_some_and(|k| k.state == Ec2State::Terminated) => InstanceState::Gone,
        _ if known.is_some_and(|k| k.state == Ec2State::ShuttingDown) => InstanceState::Leaving,
        MemberState::Pending => InstanceState::Pending,
        MemberState::InService | MemberState::Standby | MemberState::Other(_) => {
            InstanceState::Running
        }
        MemberState::Detaching | MemberState::Terminating => InstanceState::Leaving,
    };
    Some(Instance {
        id: InstanceId::new(member.id.as_str()),
        state,
        offering,
        zone: member.zone.clone().unwrap_or_default(),
        instance_type: member.instance_type.clone().unwrap_or_default(),
        protected: Some(member.protected),
        launched: known.and_then(|known| known.launched),
        ends,
    })
}

/// AWS's time as ours; nothing before 1970.
pub(super) fn unix_ms(at: i64) -> Option<UnixMs> {
    u64::try_from(at).ok().map(UnixMs)
}
