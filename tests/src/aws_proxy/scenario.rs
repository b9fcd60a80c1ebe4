//! What the proxy is told to do: how much capacity there is, what fails, and how late things show.
//!
//! Plain data, JSON on the admin path. Read by every other part of the proxy; documented for its users in
//! `tests/README-aws-proxy.md`. It must not know HTTP or moto.

use serde::{Deserialize, Serialize};

mod acts;
mod world;

pub use acts::{Act, Deed};
pub use world::{
    Decision, EventKind, OverlayRow, PermissionRow, QueueRow, QuotaRow, RefreshRow, ReservationRow,
    SpotPriceRow,
};

/// Everything that makes the proxy differ from an AWS that always obliges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// Capacity, each row a bound on the launches that it matches.
    pub rations: Vec<Ration>,
    /// Failures of calls; the first that matches and is due acts.
    pub faults: Vec<Fault>,
    /// How late things happen; the first row that matches a group counts.
    pub timing: Vec<Timing>,
    /// How long a ClientToken is remembered, milliseconds; absent: for ever.
    pub token_memory_ms: Option<u64>,
    /// How often AWS tries an unfilled desired capacity again, milliseconds.
    pub retry_ms: u64,
    /// Spot prices.
    pub spot_prices: Vec<SpotPriceRow>,
    /// Capacity reservations and blocks.
    pub reservations: Vec<ReservationRow>,
    /// Service quotas; where none is named for EC2, plenty.
    pub quotas: Vec<QuotaRow>,
    /// Permissions; the first row that names the action counts, without one it is allowed.
    pub permissions: Vec<PermissionRow>,
    /// Instance refreshes, newest first.
    pub refreshes: Vec<RefreshRow>,
    /// What answers show in place of what is; all rows that match, in order.
    pub overlays: Vec<OverlayRow>,
    /// Queues that get events.
    pub queues: Vec<QueueRow>,
    /// What happens by itself.
    pub acts: Vec<Act>,
    /// How long a second of a lifecycle hook's time-outs lasts, milliseconds.
    pub hook_second_ms: u64,
    /// How long AWS takes to see that a member has ended or is unhealthy, milliseconds.
    pub health_check_ms: u64,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            rations: Vec::new(),
            faults: Vec::new(),
            timing: Vec::new(),
            token_memory_ms: None,
            retry_ms: 60_000,
            spot_prices: Vec::new(),
            reservations: Vec::new(),
            quotas: Vec::new(),
            permissions: Vec::new(),
            refreshes: Vec::new(),
            overlays: Vec::new(),
            queues: Vec::new(),
            acts: Vec::new(),
            hook_second_ms: 1_000,
            health_check_ms: 0,
        }
    }
}

/// How many more instances may be launched where.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ration {
    /// Only in this region.
    pub region: Option<String>,
    /// Only in this group.
    pub group: Option<String>,
    /// Only in this zone.
    pub zone: Option<String>,
    /// Only of this type.
    pub instance_type: Option<String>,
    /// How many may still be launched.
    pub left: u32,
    /// What the refusal is, in AWS's code and words; absent: a shortage.
    pub why: Option<Why>,
    /// Code of the refusal in place of AWS's.
    pub code: Option<String>,
    /// Words of the refusal in place of AWS's.
    pub message: Option<String>,
    /// No activity tells of what is missing (SetDesiredCapacity only).
    pub silent: bool,
}

/// Why a launch is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// `InsufficientInstanceCapacity`
    Shortage,
    /// `UnfulfillableCapacity`
    Unfulfillable,
    /// `Unsupported`: the type is not in that zone
    Unsupported,
    /// `ReservationCapacityExceeded`
    Reservation,
    /// `VcpuLimitExceeded`
    Vcpus,
    /// `MaxSpotInstanceCountExceeded`
    SpotCount,
    /// `InsufficientFreeAddressesInSubnet`
    Addresses,
    /// `VolumeLimitExceeded`
    Volumes,
    /// `SpotMaxPriceTooLow`
    SpotPrice,
    /// `InvalidAMIID.NotFound`
    Image,
    /// A launch template that is wrong
    Template,
    /// `Client.InternalError`: the key of a volume may not be used; the instance ends as it starts
    Kms,
    /// `UnauthorizedOperation` of the group's own role
    Permission,
    /// `RequestLimitExceeded`
    Throttle,
    /// `InternalError`
    Internal,
}

impl Why {
    /// Whether an activity names the code before the words.
    pub(super) fn is_coded(self) -> bool {
        matches!(
            self,
            Self::Unfulfillable | Self::SpotCount | Self::SpotPrice | Self::Addresses
        )
    }
}

/// A failure of calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fault {
    /// The action, as AWS spells it; absent: every one.
    pub action: Option<String>,
    /// Only in this region.
    pub region: Option<String>,
    /// Only for this group (where the call names one).
    pub group: Option<String>,
    /// The first matching call that it strikes, counted from 1.
    pub from: Option<u32>,
    /// How many calls it strikes; absent: all from then on.
    pub times: Option<u32>,
    /// What happens.
    pub effect: Effect,
}

/// What happens to a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing.
    #[default]
    None,
    /// AWS answers with an error; nothing is applied.
    Error {
        /// HTTP status.
        status: u16,
        /// Code.
        code: String,
        /// Words.
        message: String,
    },
    /// An answer that is no AWS answer; nothing is applied.
    Html {
        /// HTTP status.
        status: u16,
    },
    /// The call is applied, later.
    Latency {
        /// How much later, milliseconds.
        ms: u64,
    },
    /// The connection ends without an answer; nothing is applied.
    Drop,
    /// The call is applied and the connection ends without an answer.
    ReplyLost,
    /// The call is applied and the answer comes after this time (longer than the caller waits).
    ReplyLate {
        /// How much later, milliseconds.
        ms: u64,
    },
}

/// How late things happen in a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timing {
    /// Only in this region.
    pub region: Option<String>,
    /// Only in this group.
    pub group: Option<String>,
    /// New instances are in no describe for so long, milliseconds.
    pub hide_ms: u64,
    /// New instances are Pending for so long, milliseconds.
    pub pending_ms: u64,
    /// Instances that are ended stay as Terminating, and as shutting down in EC2, for so long, milliseconds.
    pub terminating_ms: u64,
    /// Instances are on their way into a warm pool for so long, milliseconds.
    pub warming_ms: u64,
    /// DescribeAutoScalingGroups answers with what was true up to so long ago, milliseconds.
    pub describe_lag_ms: u64,
    /// A LaunchInstances call is at work for so long, milliseconds.
    pub launch_ms: u64,
}

/// Whether a row that may name `want` concerns `have`.
pub(super) fn concerns(want: Option<&String>, have: &str) -> bool {
    want.is_none_or(|w| w == have)
}

impl Scenario {
    /// The timing of a group.
    pub(super) fn timing(&self, region: &str, group: &str) -> Timing {
        let found = self
            .timing
            .iter()
            .find(|t| concerns(t.region.as_ref(), region) && concerns(t.group.as_ref(), group));
        found.cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_reads_from_json_and_refuses_unknown_keys() {
        let text = r#"{"rations":[{"zone":"us-east-1b","left":1}],
            "faults":[{"action":"SetDesiredCapacity","from":3,"times":1,"effect":"reply_lost"},
                      {"effect":{"error":{"status":400,"code":"Throttling","message":"Rate exceeded"}}}],
            "timing":[{"hide_ms":30000}]}"#;
        let scenario: Scenario = serde_json::from_str(text).expect("reads");
        assert_eq!(scenario.faults[0].effect, Effect::ReplyLost);
        assert_eq!(scenario.timing("r", "g").hide_ms, 30_000);
        assert_eq!(scenario.retry_ms, 60_000);
        assert!(serde_json::from_str::<Scenario>(r#"{"rationz":[]}"#).is_err());
    }
}
