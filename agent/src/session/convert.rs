//! Wire types to plain ones and back: the only part of the session that knows both.
//!
//! Called by `session`. Keeps what is sent within the wire's limits; checks what comes in and names the bad field.
//! Orders and their states are in `orders`, what is observed in `observations`; here is what both need, and notices.

mod observations;
mod orders;

use drover_proto::{limits, v1};

use super::outbox::Notice;
pub use observations::{facts, report, telemetry};
pub use orders::{BadField, order, order_to_wire, status};

/// What the config says of the host instead of the host itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Instead of the kernel's host name.
    pub hostname: Option<String>,
    /// Instead of /etc/machine-id.
    pub machine_id: Option<String>,
}

/// What the node is now, beside its order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Actual {
    /// The executors hold the node cordoned for us.
    pub cordoned_by_us: bool,
    /// root ran `release`.
    pub released: bool,
}

impl From<Actual> for v1::NodeActual {
    fn from(actual: Actual) -> Self {
        Self {
            cordoned_by_us: actual.cordoned_by_us,
            foreign_cordon: String::new(),
            released: actual.released,
        }
    }
}

/// A notice.
#[must_use]
pub fn notice(notice: Notice) -> v1::Notice {
    v1::Notice {
        id: notice.id,
        kind: notice.kind,
        at_unix_ms: notice.at_unix_ms,
        deadline_unix_ms: notice.deadline_unix_ms.unwrap_or(0),
        subject: cut(&notice.subject, limits::NAME_BYTES),
        message: cut(&notice.message, limits::TEXT_BYTES),
        withdrawn: notice.withdrawn,
    }
}

/// At most so many bytes, cut between characters.
#[must_use]
pub fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}
