//! The table from AWS's codes and words to [`FailureKind`], and the few facts that its words carry.
//!
//! Called by everything that meets an error text. Pure: no I/O, no state. Codes win over words; a code inside
//! the words of an activity (`... Instances. CODE - text`, `Client.CODE: text`) counts as a code.
//!
//! Sources: EC2 API error codes, Auto Scaling's troubleshooting pages for launch failures, and the texts that
//! other autoscalers report in public.

use super::{Classified, FailureKind, QuotaLimit};
use FailureKind::{
    Config, Contention, Gone, GroupLimit, IdempotentInProgress, Permission, Price, Quota, Shortage,
    Suspended, Throttle, TokenMismatch, Transient, Unsupported,
};

/// Codes that say that credentials were good once.
pub(super) const EXPIRED: &[&str] = &["ExpiredToken", "ExpiredTokenException"];

/// Codes that say that there are no credentials, or that AWS does not know them.
pub(super) const NO_CREDENTIALS: &[&str] = &[
    "NoCredentials",
    "AuthFailure",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "IncompleteSignature",
    "SignatureDoesNotMatch",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "RequestExpired",
];

/// Those of them that a region gives as well that is not enabled, or that is none.
pub(super) const REFUSED: &[&str] = &[
    "AuthFailure",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "SignatureDoesNotMatch",
];

/// Codes, without a leading `Client.`, `Server.` or `AWS.SimpleQueueService.`.
const CODES: &[(&str, FailureKind)] = &[
    ("InsufficientInstanceCapacity", Shortage),
    ("InsufficientCapacity", Shortage),
    ("InsufficientCapacityOnOutpost", Shortage),
    ("InsufficientHostCapacity", Shortage),
    ("InsufficientReservedInstanceCapacity", Shortage),
    ("ReservationCapacityExceeded", Shortage),
    ("UnfulfillableCapacity", Shortage),
    ("SpotMaxPriceTooLow", Price),
    ("Unsupported", Unsupported),
    ("UnsupportedOperation", Unsupported),
    ("VcpuLimitExceeded", Quota),
    ("InstanceLimitExceeded", Quota),
    ("MaxSpotInstanceCountExceeded", Quota),
    ("SpotInstanceCountExceeded", Quota),
    ("SpotFleetRequestConfigurationLimitExceeded", Quota),
    ("VolumeLimitExceeded", Quota),
    ("VolumeIOPSLimit", Quota),
    ("AddressLimitExceeded", Quota),
    ("NetworkInterfaceLimitExceeded", Quota),
    ("PrivateIpAddressLimitExceeded", Quota),
    ("HostLimitExceeded", Quota),
    ("InsufficientFreeAddressesInSubnet", Quota),
    ("InsufficientAddressCapacity", Quota),
    ("LimitExceeded", Quota),
    ("UnauthorizedOperation", Permission),
    ("UnauthorizedAccess", Permission),
    ("AccessDenied", Permission),
    ("AccessDeniedException", Permission),
    ("AuthFailure", Permission),
    ("NotAuthorized", Permission),
    ("OptInRequired", Permission),
    ("Blocked", Permission),
    ("PendingVerification", Permission),
    ("AccountDisabled", Permission),
    ("ExpiredToken", Permission),
    ("ExpiredTokenException", Permission),
    ("RequestExpired", Permission),
    ("InvalidClientTokenId", Permission),
    ("UnrecognizedClientException", Permission),
    ("IncompleteSignature", Permission),
    ("SignatureDoesNotMatch", Permission),
    ("MissingAuthenticationToken", Permission),
    ("MissingAuthenticationTokenException", Permission),
    ("NoCredentials", Permission),
    ("KmsAccessDenied", Permission),
    ("InvalidSecurity", Permission),
    ("InvalidIdentityToken", Permission),
    ("RegionDisabledException", Permission),
    ("ServiceLinkedRoleFailure", Permission),
    ("DependencyAccessDeniedException", Permission),
    ("AWSServiceAccessNotEnabledException", Permission),
    ("RequestLimitExceeded", Throttle),
    ("Throttling", Throttle),
    ("ThrottlingException", Throttle),
    ("ThrottledException", Throttle),
    ("RequestThrottled", Throttle),
    ("RequestThrottledException", Throttle),
    ("EC2ThrottledException", Throttle),
    ("TooManyRequestsException", Throttle),
    ("SlowDown", Throttle),
    ("IdempotentCallInProgress", IdempotentInProgress),
    ("IdempotentParameterMismatch", TokenMismatch),
    ("ResourceContention", Contention),
    ("ScalingActivityInProgress", Contention),
    ("ResourceInUse", Contention),
    ("InstanceRefreshInProgress", Contention),
    ("ActiveInstanceRefreshNotFound", Gone),
    ("ReceiptHandleIsInvalid", Gone),
    ("InvalidInstanceID.NotFound", Gone),
    ("InvalidInstanceID", Gone),
    ("InternalFailure", Transient),
    ("InternalServerError", Transient),
    ("ServiceUnavailable", Transient),
    ("Unavailable", Transient),
    ("RequestTimeout", Transient),
    ("RequestTimeoutException", Transient),
    ("KmsThrottled", Throttle),
    ("OverLimit", Quota),
    ("InvalidNextToken", Transient),
    ("InvalidPaginationTokenException", Transient),
    ("ServiceException", Transient),
    ("ServiceFailure", Transient),
    ("IDPCommunicationError", Transient),
    ("NonExistentQueue", Config),
    ("QueueDoesNotExist", Config),
    ("InvalidAddress", Config),
    ("KmsDisabled", Config),
    ("KmsNotFound", Config),
    ("KmsInvalidState", Config),
    ("KmsInvalidKeyUsage", Config),
    ("NoSuchEntity", Config),
    ("NoSuchResourceException", Config),
    ("IllegalArgumentException", Config),
    ("IrreversibleInstanceRefresh", Config),
    ("AlreadyExists", Config),
    ("InvalidLaunchTemplateId", Config),
    ("InvalidInstanceType", Config),
    ("MissingParameter", Config),
    ("UnknownParameter", Config),
    ("InvalidAction", Config),
    ("InvalidQueryParameter", Config),
    ("InvalidKMSKey", Config),
];

/// Words, in lower case, looked for in order: the first row of which all parts occur wins.
const WORDS: &[(&[&str], FailureKind)] = &[
    (&["vcpu capacity", "vcpu limit"], Quota),
    (&["requested more instances", "instance limit"], Quota),
    (&["max spot instance count exceeded"], Quota),
    (&["volume limit exceeded"], Quota),
    (&["exceeded your maximum", "limit"], Quota),
    (&["not enough free addresses"], Quota),
    (&["not have sufficient", "capacity"], Shortage),
    (&["no spot capacity available"], Shortage),
    (&["insufficient capacity"], Shortage),
    (&["unable to fulfill capacity"], Shortage),
    (&["lower than the minimum required spot"], Price),
    (&["spot", "price", "too low"], Price),
    (
        &["is not supported in your requested availability zone"],
        Unsupported,
    ),
    (
        &["requested availability zone is no longer supported"],
        Unsupported,
    ),
    (&["above max value"], GroupLimit),
    (&["below min value"], GroupLimit),
    (&["min size constraint"], GroupLimit),
    (&["max size"], GroupLimit),
    (&["request limit exceeded"], Throttle),
    (&["rate exceeded"], Throttle),
    (&["not authorized"], Permission),
    (&["access denied"], Permission),
    (&["launch", "suspended"], Suspended),
    (&["terminate", "suspended"], Suspended),
    (&["instance id not found"], Gone),
    (&["group name not found"], Gone),
    (&["no active lifecycle action found"], Gone),
    (&["invalid instance id"], Gone),
    (&["launch template", "does not exist"], Config),
    (&["launch template", "invalid"], Config),
    (&["launch template", "not valid"], Config),
    (&["valid fully-formed launch template"], Config),
    (&["image id", "does not exist"], Config),
    (&["security group", "does not exist"], Config),
    (&["key pair", "does not exist"], Config),
    (&["placement group", "unknown"], Config),
    (&["instance profile", "invalid"], Config),
    (&["kms key"], Config),
    (&["client error on launch"], Config),
    (&["invalid device name"], Config),
    (&["internal error on launch"], Transient),
];

/// Says what AWS's `code` and `text` mean. Never seen before means transient, with `known` false.
pub fn classify(code: Option<&str>, text: &str) -> Classified {
    let lower = text.to_lowercase();
    let found = code
        .and_then(by_code)
        .or_else(|| codes_in(text).find_map(by_code))
        .or_else(|| {
            WORDS
                .iter()
                .find(|(parts, _)| parts.iter().all(|p| lower.contains(p)))
                .map(|(_, kind)| *kind)
        })
        .or_else(|| {
            code.filter(|c| c.ends_with("ValidationError"))
                .map(|_| Config)
        });
    let kind = found.unwrap_or(Transient);
    let (instance_type, zone) = match kind {
        Shortage | Unsupported => (type_in(text), zone_in(text)),
        _ => (None, None),
    };
    Classified {
        kind,
        known: found.is_some(),
        instance_type,
        zone,
        limit: if kind == Quota {
            limit_in(&lower)
        } else {
            None
        },
    }
}

/// A code's kind. `InternalError` is the one whose prefix matters: the client's is mostly a KMS key.
fn by_code(code: &str) -> Option<FailureKind> {
    let bare = code
        .strip_prefix("Client.")
        .or_else(|| code.strip_prefix("Server."))
        .or_else(|| code.strip_prefix("AWS.SimpleQueueService."))
        .unwrap_or(code);
    if bare == "InternalError" {
        return Some(if code.starts_with("Client.") {
            Config
        } else {
            Transient
        });
    }
    CODES
        .iter()
        .find(|(name, _)| *name == bare)
        .map(|(_, kind)| *kind)
        .or_else(|| {
            let config = bare.starts_with("InvalidParameter")
                || bare.starts_with("InvalidLaunchTemplate")
                || bare.starts_with("InvalidKMSKey")
                || (bare.starts_with("Invalid")
                    && (bare.ends_with(".NotFound") || bare.ends_with(".Malformed")));
            config.then_some(Config)
        })
}

/// Words of a text that look like a code: before ` - ` or `: `.
fn codes_in(text: &str) -> impl Iterator<Item = &str> {
    let mut words = text.split_whitespace().peekable();
    std::iter::from_fn(move || {
        loop {
            let word = words.next()?;
            let code = word
                .strip_suffix(':')
                .or_else(|| (words.peek() == Some(&"-")).then_some(word));
            if let Some(code) = code
                .filter(|c| c.len() > 6 && c.chars().all(|c| c.is_ascii_alphanumeric() || c == '.'))
            {
                return Some(code);
            }
        }
    })
}

/// `p4d.24xlarge` in `sufficient p4d.24xlarge capacity` or `instance type (p4d.24xlarge)`.
fn type_in(text: &str) -> Option<String> {
    text.split(|c: char| c.is_whitespace() || "(),'\"".contains(c))
        .map(|w| w.trim_end_matches('.'))
        .find_map(|word| {
            let (family, size) = word.split_once('.')?;
            let family_ok = family.starts_with(|c: char| c.is_ascii_lowercase())
                && family.chars().any(|c| c.is_ascii_digit())
                && family
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            let sized = ["large", "medium", "small", "micro", "nano"]
                .iter()
                .any(|s| size.ends_with(s))
                || size.starts_with("metal");
            (family_ok && sized).then(|| word.to_owned())
        })
}

/// The first zone in parentheses: that is the one that was asked. Those after it are AWS's advice.
fn zone_in(text: &str) -> Option<String> {
    text.split('(')
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(inner, _)| inner.trim())
        .find_map(|inner| {
            let mut chars = inner.chars().rev();
            let letter = chars.next().is_some_and(|c| c.is_ascii_lowercase());
            let digit = chars.next().is_some_and(|c| c.is_ascii_digit());
            let shaped = inner.matches('-').count() >= 2
                && inner
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            (letter && digit && shaped).then(|| inner.to_owned())
        })
}

/// The number after `limit of`.
fn limit_in(lower: &str) -> Option<QuotaLimit> {
    let (before, after) = lower.split_once("limit of ")?;
    let digits: String = after
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .filter(|c| *c != ',')
        .collect();
    let number = digits.parse().ok()?;
    Some(if before.ends_with("vcpu ") {
        QuotaLimit::Vcpus(number)
    } else {
        QuotaLimit::Instances(number)
    })
}

#[cfg(test)]
mod tests;
