//! What waits to be sent, and until when it is kept. Pure.
//!
//! Called by `session/mail`, which keeps notices and results on disk. Telemetry coalesces: one report is due or
//! not. Progress of an order coalesces to the latest. Notices and results stay until the coordinator has them.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::drain::status::Status;

/// Notices kept at most. Beyond it only ones about something new are kept, up to twice as many.
pub const NOTICES: usize = 512;
/// Results kept at most: of that many drains.
pub const RESULTS: usize = 128;

/// Something that cannot wait and is never dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Unique on this node, for ever.
    pub id: String,
    /// spot_interruption, rebalance, lifecycle_terminating, scheduled_event, xid, shutdown.
    pub kind: String,
    /// When it was first seen, milliseconds since 1970. Never changes.
    pub at_unix_ms: u64,
    /// Until when; `None` when open.
    pub deadline_unix_ms: Option<u64>,
    /// What it is about.
    pub subject: String,
    /// For people.
    pub message: String,
    /// What was told of the subject before does not hold any more.
    #[serde(default)]
    pub withdrawn: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept<T> {
    item: T,
    /// Number in this session's stream, once sent in it.
    #[serde(skip)]
    seq: Option<u64>,
}

/// One thing to send now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parcel {
    /// A notice.
    Notice(Notice),
    /// State of an order.
    Status(Status),
    /// Read the latest observation and report it.
    Report,
}

/// What became of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raised {
    /// Kept.
    New,
    /// Its id is there already: the first one stays as it was.
    Known,
    /// Too many: its message and deadline went into an older one of the same kind and subject.
    Merged,
    /// Far too many: the oldest of its kind made place.
    Displaced,
}

/// See the head of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outbox {
    notices: VecDeque<Kept<Notice>>,
    results: VecDeque<Kept<Status>>,
    #[serde(skip)]
    progress: Option<Status>,
    #[serde(skip)]
    report_due: bool,
}

impl Outbox {
    /// Keeps a notice.
    pub fn raise(&mut self, notice: Notice) -> Raised {
        if self.notices.iter().any(|kept| kept.item.id == notice.id) {
            return Raised::Known;
        }
        let mut raised = Raised::New;
        if self.notices.len() >= NOTICES {
            let alike = self
                .notices
                .iter_mut()
                .find(|kept| kept.item.kind == notice.kind && kept.item.subject == notice.subject);
            if let Some(alike) = alike {
                alike.item.message = notice.message;
                alike.item.deadline_unix_ms = notice.deadline_unix_ms;
                alike.seq = None;
                return Raised::Merged;
            }
            if self.notices.len() >= 2 * NOTICES {
                let same_kind = self
                    .notices
                    .iter()
                    .position(|kept| kept.item.kind == notice.kind);
                self.notices.remove(same_kind.unwrap_or(0));
                raised = Raised::Displaced;
            }
        }
        self.notices.push_back(Kept {
            item: notice,
            seq: None,
        });
        raised
    }

    /// Takes the latest state of an order. True when it is a result, which must be written to disk.
    pub fn status(&mut self, status: Status) -> bool {
        if !status.is_result() {
            // A result that it takes back (work landed after all) must not be heard as the last word.
            self.results
                .retain(|kept| kept.item.drain_id != status.drain_id || kept.item.is_refusal());
            self.progress = Some(status);
            return false;
        }
        if !status.is_refusal() {
            self.progress = None;
            self.results
                .retain(|kept| kept.item.drain_id != status.drain_id || kept.item.is_refusal());
        }
        if self.results.len() >= RESULTS {
            self.results.pop_front();
        }
        self.results.push_back(Kept {
            item: status,
            seq: None,
        });
        true
    }

    /// There is something newer to report.
    pub fn report(&mut self) {
        self.report_due = true;
    }

    /// Something waits that was not sent in this session.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.report_due
            || self.progress.is_some()
            || self.notices.iter().any(|kept| kept.seq.is_none())
            || self.results.iter().any(|kept| kept.seq.is_none())
    }

    /// Nothing is kept that the coordinator has not taken.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.notices.is_empty() && self.results.is_empty() && self.progress.is_none()
    }

    /// The next thing to send, as message `seq` of this session: notices first, telemetry last.
    pub fn next(&mut self, seq: u64) -> Option<Parcel> {
        if let Some(kept) = self.notices.iter_mut().find(|kept| kept.seq.is_none()) {
            kept.seq = Some(seq);
            return Some(Parcel::Notice(kept.item.clone()));
        }
        if let Some(kept) = self.results.iter_mut().find(|kept| kept.seq.is_none()) {
            kept.seq = Some(seq);
            return Some(Parcel::Status(kept.item.clone()));
        }
        if let Some(status) = self.progress.take() {
            return Some(Parcel::Status(status));
        }
        std::mem::take(&mut self.report_due).then_some(Parcel::Report)
    }

    /// The coordinator has everything up to `seq`. True when something on disk may go.
    pub fn acknowledged(&mut self, seq: u64) -> bool {
        let before = self.notices.len() + self.results.len();
        let open = |sent: Option<u64>| sent.is_none_or(|sent| sent > seq);
        self.notices.retain(|kept| open(kept.seq));
        self.results.retain(|kept| open(kept.seq));
        before != self.notices.len() + self.results.len()
    }

    /// The session is over: what it sent without an answer is sent again in the next one.
    pub fn session_lost(&mut self) {
        self.notices.iter_mut().for_each(|kept| kept.seq = None);
        self.results.iter_mut().for_each(|kept| kept.seq = None);
    }
}

#[cfg(test)]
mod tests;
