//! What an instance identity document says. Called by `instance_identity`, which has verified it.

use drover_core::model::{InstanceId, UnixMs};
use serde::Deserialize;

/// An EC2 instance in AWS's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Instance.
    pub instance: InstanceId,
    /// Account that launched it, 12 digits.
    pub account: String,
    /// Region.
    pub region: String,
    /// Availability zone.
    pub zone: String,
    /// Instance type.
    pub instance_type: String,
    /// Image.
    pub image: String,
    /// When it was launched, or started again.
    pub pending: UnixMs,
}

/// Why a text is no document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Not JSON, or a field is missing.
    #[error("it cannot be read: {0}")]
    Json(String),
    /// A field is not what it should be.
    #[error("{0} is not what it should be")]
    Field(&'static str),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    instance_id: String,
    account_id: String,
    region: String,
    availability_zone: String,
    instance_type: String,
    image_id: String,
    pending_time: String,
}

/// Longest name within a document.
const NAME: usize = 64;

impl Document {
    /// Reads the JSON of `dynamic/instance-identity/document`. What AWS adds later is passed over.
    ///
    /// # Errors
    /// See [`DocumentError`].
    pub fn parse(json: &[u8]) -> Result<Self, DocumentError> {
        let wire: Wire =
            serde_json::from_slice(json).map_err(|error| DocumentError::Json(error.to_string()))?;
        Self::try_from(wire)
    }
}

impl TryFrom<Wire> for Document {
    type Error = DocumentError;

    fn try_from(wire: Wire) -> Result<Self, DocumentError> {
        let hex = |text: &str| {
            text.bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        let id = wire.instance_id.strip_prefix("i-");
        let ok = id.is_some_and(|id| (8..=NAME).contains(&id.len()) && hex(id));
        check("instanceId", ok)?;
        check("accountId", is_account(&wire.account_id))?;
        check("region", is_name(&wire.region))?;
        check("availabilityZone", is_name(&wire.availability_zone))?;
        check("instanceType", is_name(&wire.instance_type))?;
        check("imageId", is_name(&wire.image_id))?;
        let pending = wire
            .pending_time
            .parse::<jiff::Timestamp>()
            .ok()
            .and_then(|at| u64::try_from(at.as_millisecond()).ok())
            .ok_or(DocumentError::Field("pendingTime"))?;
        Ok(Self {
            instance: InstanceId::from(wire.instance_id.as_str()),
            account: wire.account_id,
            region: wire.region,
            zone: wire.availability_zone,
            instance_type: wire.instance_type,
            image: wire.image_id,
            pending: UnixMs(pending),
        })
    }
}

fn check(field: &'static str, ok: bool) -> Result<(), DocumentError> {
    if ok {
        Ok(())
    } else {
        Err(DocumentError::Field(field))
    }
}

/// Twelve digits.
fn is_account(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// What regions, zones, types and images are named by.
fn is_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    (1..=NAME).contains(&text.len()) && text.bytes().all(plain)
}
