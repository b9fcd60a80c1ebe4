//! Limits of the wire, in one place: the sender keeps within them, the receiver enforces them.

/// Largest message either way, in bytes. A larger one is refused before it is decoded.
pub const MESSAGE_BYTES: usize = 4 * 1024 * 1024;
/// Largest answer of the admin service, in bytes: a list of the whole fleet or the input of a plan.
pub const ADMIN_REPLY_BYTES: usize = 64 * 1024 * 1024;
/// GPUs of one node.
pub const GPUS: usize = 64;
/// Workloads in one report; an agent with more sends the first and a condition.
pub const WORKLOADS: usize = 2_000;
/// Conditions in one report.
pub const CONDITIONS: usize = 256;
/// Disks and network interfaces, each.
pub const DEVICES: usize = 256;
/// Blockers in one order status.
pub const BLOCKERS: usize = 256;
/// Bytes of any short text (names, kinds, users, ids).
pub const NAME_BYTES: usize = 256;
/// Bytes of any text for people (reasons, messages, commands).
pub const TEXT_BYTES: usize = 2_048;
/// Bytes of a certificate request or certificate.
pub const CERTIFICATE_BYTES: usize = 16 * 1024;
/// Bytes of an instance identity document.
pub const IDENTITY_DOCUMENT_BYTES: usize = 4 * 1024;
/// Bytes of its signature, in base64.
pub const IDENTITY_SIGNATURE_BYTES: usize = 8 * 1024;
/// Units of one request.
pub const REQUEST_UNITS: u32 = 100_000;
/// Version of the session protocol.
pub const PROTOCOL: u32 = 1;
/// The name in the coordinator's certificate that agents and the CLI check, whatever address they dial.
pub const COORDINATOR_NAME: &str = "coordinator.drover.internal";
/// What a node signs when it renews an expired certificate: this, the nonce, SHA-256 of the request.
pub const RENEW_CONTEXT: &[u8] = b"drover-renew-v1";
/// Metadata of an answer: a word for the person who asked, UTF-8 (why there was nothing to change).
pub const NOTE: &str = "drover-note-bin";
/// Metadata of an answer: what is open although the change was made. UTF-8, sent as binary.
pub const WARNING: &str = "drover-warning-bin";
/// Prefix of join token texts: `drover-join-v1.<token id>.<secret>.<CA SHA-256, hex>`.
pub const TOKEN_PREFIX: &str = "drover-join-v1";
/// SAN URI of a node: this and its id.
pub const NODE_URI: &str = "drover://node/";
/// SAN URI of a person: this, the role, a slash and the name.
pub const ADMIN_URI: &str = "drover://admin/";
