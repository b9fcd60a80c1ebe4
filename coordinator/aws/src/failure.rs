//! What a failure of AWS means.
//!
//! [`classify`] is a pure function over AWS's code and words; the table that it follows is in
//! `failure/table`. Used by the SDK client for errors, by `sdk/convert` for launch refusals and for scaling
//! activities. It only names the kind: what to do about it is decided elsewhere.

use std::fmt;

use thiserror::Error;

use crate::Region;

mod call;
mod table;

pub use call::{Api, Call};
pub use table::classify;

/// The kind of a failure. The responses to most of them are in the design's section on Auto Scaling groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// AWS has no such instances just now, there.
    Shortage,
    /// This type does not exist in that zone at all: a shortage that lasts.
    Unsupported,
    /// A limit of the account or of a subnet.
    Quota,
    /// The spot price asked for is too low.
    Price,
    /// Template, image, parameters or keys are wrong: the same call fails again until someone changes them.
    Config,
    /// Not allowed, or no usable credentials.
    Permission,
    /// The process is suspended in the group.
    Suspended,
    /// The group's own minimum or maximum forbids it.
    GroupLimit,
    /// The group or the instance is not there.
    Gone,
    /// Too many calls.
    Throttle,
    /// The first call with this token is still at work: ask again with the same token.
    IdempotentInProgress,
    /// This token was used with other parameters.
    TokenMismatch,
    /// Another change to the group is at work: ask again.
    Contention,
    /// The reply is no AWS reply, so nothing is known but its status.
    UnparsableReply,
    /// It may pass by itself, or it was never seen before.
    Transient,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shortage => "shortage",
            Self::Unsupported => "type not offered in the zone",
            Self::Quota => "quota",
            Self::Price => "price",
            Self::Config => "configuration",
            Self::Permission => "permission",
            Self::Suspended => "suspended",
            Self::GroupLimit => "limit of the group",
            Self::Gone => "not there",
            Self::Throttle => "throttled",
            Self::IdempotentInProgress => "same request still in progress",
            Self::TokenMismatch => "token used with other parameters",
            Self::Contention => "another change in progress",
            Self::UnparsableReply => "unparsable reply",
            Self::Transient => "transient",
        })
    }
}

/// A limit that AWS named in its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaLimit {
    /// So many instances.
    Instances(u64),
    /// So many virtual CPUs.
    Vcpus(u64),
}

/// What a code and its words mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classified {
    /// The kind.
    pub kind: FailureKind,
    /// Whether the kind follows from something known; false means never seen before: show the words to a person.
    pub known: bool,
    /// The instance type that the words name: only that one is concerned.
    pub instance_type: Option<String>,
    /// The zone that the words name: only that one is concerned.
    pub zone: Option<String>,
    /// The limit that the words name.
    pub limit: Option<QuotaLimit>,
}

/// Code of the error for a call that the budget held back.
const NOT_SENT: &str = "NotSent";

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{call} in {region}: {kind}{}: {}{message}", code.as_ref().map(|c| format!(" ({c})")).unwrap_or_default(), self.in_words())]
pub struct AwsError {
    /// The call.
    pub call: Call,
    /// Where.
    pub region: Region,
    /// What it means.
    pub kind: FailureKind,
    /// AWS's code; absent when no AWS reply came.
    pub code: Option<String>,
    /// AWS's words in full, or ours when no AWS reply came.
    pub message: String,
    /// Whether the change can have taken effect all the same: read again before anything is repeated.
    pub may_have_applied: bool,
    /// What the words say beyond the kind.
    pub class: Box<Classified>,
}

impl AwsError {
    /// An error that AWS reported: a code or words, classified here. `status` is the HTTP status.
    pub fn reported(
        call: Call,
        region: &Region,
        status: u16,
        code: Option<&str>,
        message: &str,
    ) -> Self {
        let class = classify(code, message);
        Self {
            call,
            region: region.clone(),
            kind: class.kind,
            code: code.map(str::to_owned),
            message: message.to_owned(),
            // A refusal with a code of the 4xx range is a promise that nothing was changed; a 5xx is none. A call
            // still in progress under the same token may well apply.
            may_have_applied: call.is_mutation()
                && (status >= 500 || class.kind == FailureKind::IdempotentInProgress),
            class: Box::new(class),
        }
    }

    /// An error without an AWS reply, or with one that cannot be read.
    pub fn unreported(
        call: Call,
        region: &Region,
        kind: FailureKind,
        message: String,
        applied: bool,
    ) -> Self {
        Self {
            call,
            region: region.clone(),
            kind,
            code: None,
            message,
            may_have_applied: call.is_mutation() && applied,
            class: Box::new(Classified {
                kind,
                known: true,
                instance_type: None,
                zone: None,
                limit: None,
            }),
        }
    }

    /// A call that was not sent, because the budget had no token for it in time.
    pub(crate) fn held_back(call: Call, region: &Region, message: String) -> Self {
        let mut error = Self::unreported(call, region, FailureKind::Throttle, message, false);
        error.code = Some(NOT_SENT.to_owned());
        error
    }

    /// Whether the call was never sent, because the budget had no token for it in time.
    pub fn was_held_back(&self) -> bool {
        self.code.as_deref() == Some(NOT_SENT)
    }

    /// Whether the credentials themselves are the trouble, and not what they permit: they expired, are unknown, or none
    /// could be had. It is mended outside of AWS's policies, and passes as soon as fresh ones are there.
    pub fn is_credentials(&self) -> bool {
        self.code.as_deref().is_some_and(|code| {
            table::EXPIRED.contains(&code) || table::NO_CREDENTIALS.contains(&code)
        })
    }

    /// Whether it may as well be the region: one that AWS does not know, or that is not enabled, refuses good credentials.
    pub fn may_be_region(&self) -> bool {
        self.code
            .as_deref()
            .is_some_and(|code| table::REFUSED.contains(&code))
    }

    /// Whether AWS gave no answer at all.
    pub fn is_unanswered(&self) -> bool {
        self.code.is_none() && self.kind == FailureKind::Transient
    }

    /// What AWS's words leave a reader to guess; empty where they are clear.
    fn in_words(&self) -> &'static str {
        let Some(code) = self.code.as_deref() else {
            return "";
        };
        if table::EXPIRED.contains(&code) {
            "Drover's AWS credentials have expired, and it goes on when fresh ones are there: "
        } else if code == "NoCredentials" {
            "Drover has no usable AWS credentials: "
        } else if code == "RequestExpired" {
            "AWS finds the request or its credentials too old (is this machine's clock right?): "
        } else if table::NO_CREDENTIALS.contains(&code) {
            "AWS does not take Drover's credentials there (check the region's name, that the account has it enabled, and the \
             credentials): "
        } else {
            ""
        }
    }
}
