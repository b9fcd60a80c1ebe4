//! Which bucket a call takes from, and how large it is.
//!
//! Used by `budget` alone. EC2's figures are AWS's, from the page "Request throttling for the Amazon EC2 API" of its
//! developer guide: every call has a bucket of its own, by account and region, with 100 tokens and 20 more each second
//! for calls that change nothing, and 5 and 2 for RunInstances. Auto Scaling, STS, IAM and Service Quotas publish none.

use std::fmt;

use super::bucket::Limit;
use super::unlimited;
use crate::{Api, Call};

/// EC2's calls that change nothing.
const EC2_READS: Limit = Limit::new(100, 20);
/// EC2's RunInstances, which Drover sends as a dry run only.
const EC2_RUN_INSTANCES: Limit = Limit::new(5, 2);
/// For the APIs that are asked rarely and publish no limits.
const RARE: Limit = Limit::new(10, 2);

/// A bucket of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BucketName {
    AutoScalingReads,
    AutoScalingChanges,
    Ec2(Call),
    Rare(Api),
}

impl BucketName {
    /// `None`: the call is not limited.
    pub(super) fn of(call: Call) -> Option<Self> {
        match call.api() {
            Api::AutoScaling if call.is_mutation() => Some(Self::AutoScalingChanges),
            Api::AutoScaling => Some(Self::AutoScalingReads),
            Api::Ec2 => Some(Self::Ec2(call)),
            api if unlimited(api) => None,
            api => Some(Self::Rare(api)),
        }
    }

    pub(super) fn is_assumed(self) -> bool {
        !matches!(self, Self::Ec2(_))
    }
}

impl fmt::Display for BucketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AutoScalingReads => f.write_str("autoscaling reads"),
            Self::AutoScalingChanges => f.write_str("autoscaling changes"),
            Self::Ec2(call) => write!(f, "ec2 {call}"),
            Self::Rare(api) => write!(f, "{api}"),
        }
    }
}

/// How much may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetSettings {
    /// Auto Scaling's describes, of one region, all together. Assumed: AWS publishes no figures.
    pub autoscaling_reads: Limit,
    /// Auto Scaling's changes, of one region, all together. Assumed as well. They never wait for reads.
    pub autoscaling_changes: Limit,
    /// Drover's share of EC2's published buckets, which all callers of the account share, percent.
    pub ec2_share_percent: u32,
    /// Longest wait of a read for a token, ms.
    pub longest_read_wait_ms: u64,
    /// Longest wait of a change for a token, ms. With the five seconds that it may take it must stay within the ten
    /// seconds of lease with which a change is begun.
    pub longest_change_wait_ms: u64,
}

impl Default for BudgetSettings {
    fn default() -> Self {
        Self {
            autoscaling_reads: Limit::new(40, 10),
            autoscaling_changes: Limit::new(20, 5),
            ec2_share_percent: 50,
            longest_read_wait_ms: 5_000,
            longest_change_wait_ms: 3_000,
        }
    }
}

impl BudgetSettings {
    pub(super) fn limit(&self, name: BucketName) -> Limit {
        match name {
            BucketName::AutoScalingReads => self.autoscaling_reads,
            BucketName::AutoScalingChanges => self.autoscaling_changes,
            BucketName::Ec2(Call::RunInstances) => EC2_RUN_INSTANCES.share(self.ec2_share_percent),
            BucketName::Ec2(_) => EC2_READS.share(self.ec2_share_percent),
            BucketName::Rare(_) => RARE,
        }
    }

    pub(super) fn longest_wait_ms(&self, call: Call) -> u64 {
        if call.is_mutation() {
            self.longest_change_wait_ms
        } else {
            self.longest_read_wait_ms
        }
    }
}
