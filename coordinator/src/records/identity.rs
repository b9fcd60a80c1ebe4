//! Who is who: the CA, tokens, nodes, people. Written by `adapters/ca`, `serve` and `control::commands`.

use drover_core::model::{InstanceId, LaunchId, NodeId, PoolId, TokenId, UnixMs};
use drover_core::rules::access::Role;
use serde::{Deserialize, Serialize};

/// The CA whose key lies beside the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaRecord {
    /// SHA-256 of the CA certificate (DER), hex. A missing or different key refuses to start.
    pub sha256: String,
    /// Certificate, PEM.
    pub certificate_pem: String,
}

/// A join token. Its secret is kept as a hash only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRecord {
    /// Public part.
    pub id: TokenId,
    /// SHA-256 of the secret, hex.
    pub secret_sha256: String,
    /// Pool of the nodes it admits.
    pub pool: Option<PoolId>,
    /// Only this host name.
    pub host: Option<String>,
    /// Most different keys that may use it.
    pub max_uses: u32,
    /// Uses: SHA-256 of the key in the request (hex) and the node minted for it, so that a lost reply can be repeated.
    #[serde(default)]
    pub uses: Vec<(String, NodeId)>,
    /// When made.
    pub created: UnixMs,
    /// When it ends.
    pub expires: UnixMs,
    /// Who made it.
    pub by: String,
    /// Taken back.
    #[serde(default)]
    pub revoked: bool,
}

/// An enrolled node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Minted id.
    pub id: NodeId,
    /// Host name at enrolment (facts follow the agent's reports).
    pub name: String,
    /// Pool, by token or by launch; absent: supply in no pool.
    #[serde(default)]
    pub pool: Option<PoolId>,
    /// Provider's id: the instance, or the host name in a static pool.
    #[serde(default)]
    pub instance: Option<InstanceId>,
    /// Launch it came from.
    #[serde(default)]
    pub launch: Option<LaunchId>,
    /// Token it joined with.
    #[serde(default)]
    pub token: Option<TokenId>,
    /// When it joined.
    pub joined: UnixMs,
    /// Serial of its current certificate, hex.
    #[serde(default)]
    pub serial: String,
    /// Until when that is valid.
    #[serde(default)]
    pub not_after: UnixMs,
    /// What it proved of its instance when it enrolled without a token.
    #[serde(default)]
    pub proven: Option<ProvenInstance>,
    /// Why its sessions are refused until a person readmits it.
    #[serde(default)]
    pub quarantined: Option<QuarantineRecord>,
    /// Certificates that end before this count no more: they were given before a person readmitted the node.
    #[serde(default)]
    pub void_before: Option<UnixMs>,
    /// Machine id at enrolment: a fact, not identity.
    #[serde(default)]
    pub machine_id: String,
    /// Revoked: must enrol again.
    #[serde(default)]
    pub revoked: bool,
    /// First time it was ready; absent before.
    #[serde(default)]
    pub ready_at: Option<UnixMs>,
    /// When its time to become ready was over and it was faulty; absent: that never happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unready_at: Option<UnixMs>,
    /// A physical host that Drover powered off; cleared when its agent is heard again.
    #[serde(default)]
    pub off: bool,
}

impl NodeRecord {
    /// A node that has just joined: in no pool, without a certificate, nothing known against it.
    #[must_use]
    pub fn joined(id: NodeId, name: String, joined: UnixMs) -> Self {
        Self {
            id,
            name,
            pool: None,
            instance: None,
            launch: None,
            token: None,
            joined,
            serial: String::new(),
            not_after: UnixMs(0),
            proven: None,
            quarantined: None,
            void_before: None,
            machine_id: String::new(),
            revoked: false,
            ready_at: None,
            unready_at: None,
            off: false,
        }
    }
}

/// Facts of an EC2 instance that its identity document proved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenInstance {
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
    /// When it was launched, or started again, by the document.
    pub pending: UnixMs,
}

/// Since when and why a node is in quarantine: nothing of it is believed, and nothing is done to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineRecord {
    /// Since when.
    pub at: UnixMs,
    /// Why, for people.
    pub why: String,
}

/// The first use of an instance's identity document: another key cannot use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimRecord {
    /// Instance.
    pub instance: InstanceId,
    /// Node minted for it.
    pub node: NodeId,
    /// SHA-256 of the key that used it, hex.
    pub key_sha256: String,
    /// When.
    pub at: UnixMs,
    /// When another key claimed the instance; absent: never, or a person has readmitted it since.
    #[serde(default)]
    pub disputed: Option<UnixMs>,
    /// A person lets it enrol once more before this, with a key that is not barred.
    #[serde(default)]
    pub reopened_until: Option<UnixMs>,
    /// Keys taken back, the newest last (SHA-256, hex).
    #[serde(default)]
    pub barred: Vec<String>,
}

/// A certificate that counts no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedRecord {
    /// Serial, hex.
    pub serial: String,
    /// Whose.
    pub subject: String,
    /// When.
    pub at: UnixMs,
    /// By whom.
    pub by: String,
    /// Why.
    pub reason: String,
}

/// A person or script with an admin certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminRecord {
    /// Name.
    pub name: String,
    /// Role.
    pub role: Role,
    /// Serial of the current certificate, hex.
    pub serial: String,
    /// Until when.
    pub not_after: UnixMs,
    /// Who issued it.
    pub by: String,
}
