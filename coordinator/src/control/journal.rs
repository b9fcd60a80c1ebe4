//! The one way to change the store: a change with its guards, its events and its audit lines in one commit.
//!
//! Used by the cycle, by commands and by `serve` (tokens, enrolment, revocation). Numbers events and audit lines, keeps
//! the bounded tail of events, and tells followers what was committed. Must not decide anything.

use super::events::Happening;
use super::tally::{Counts, Tally};
use crate::ports::clock::Clock;
use crate::ports::store::{
    COMMIT_OPS, CommitError, Guard, Op, ReadError, Revision, Store, VALUE_BYTES,
};
use crate::records::{AuditRecord, EventRecord, Severity, keys};
use drover_core::model::UnixMs;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::{Mutex, broadcast};

/// Events kept.
pub const EVENT_TAIL: usize = 10_000;
/// Events that a follower may lag behind before it has to read again.
const FOLLOW: usize = 4_096;

/// One line for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// admin/NAME, node/ID or drover.
    pub actor: String,
    /// What (node.drain).
    pub verb: &'static str,
    /// To what.
    pub subject: String,
    /// Details.
    pub detail: String,
}

/// What is to be committed at once.
#[derive(Debug, Default)]
pub struct Change {
    guards: Vec<Guard>,
    ops: Vec<Op>,
    events: Vec<Happening>,
    audits: Vec<Audit>,
    broken: Option<String>,
}

impl Change {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a record that was read at `held`, or that does not exist (`None`).
    pub fn put<T: Serialize>(
        &mut self,
        key: String,
        value: &T,
        held: Option<Revision>,
    ) -> &mut Self {
        match serde_json::to_vec(value) {
            Ok(bytes) => self.ops.push(Op::Put(key.clone(), bytes)),
            Err(error) => self.broken = Some(format!("{key} cannot be written: {error}")),
        }
        self.guards.push(match held {
            Some(revision) => Guard::Unchanged(key, revision),
            None => Guard::Absent(key),
        });
        self
    }

    /// Removes a record that was read at `held`.
    pub fn delete(&mut self, key: String, held: Revision) -> &mut Self {
        self.ops.push(Op::Delete(key.clone()));
        self.guards.push(Guard::Unchanged(key, held));
        self
    }

    /// A record that is only read must not have changed.
    pub fn expect(&mut self, key: String, held: Revision) -> &mut Self {
        self.guards.push(Guard::Unchanged(key, held));
        self
    }

    /// Something happened with it.
    pub fn event(&mut self, happening: Happening) -> &mut Self {
        self.events.push(happening);
        self
    }

    /// Who did it.
    pub fn audit(
        &mut self,
        actor: &str,
        verb: &'static str,
        subject: &str,
        detail: impl Into<String>,
    ) -> &mut Self {
        self.audits.push(Audit {
            actor: actor.to_owned(),
            verb,
            subject: subject.to_owned(),
            detail: detail.into(),
        });
        self
    }

    /// Nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty() && self.events.is_empty() && self.audits.is_empty()
    }

    /// Operations so far, events and audit lines included: at most [`COMMIT_OPS`] fit.
    #[must_use]
    pub fn size(&self) -> usize {
        self.ops.len() + 2 * self.events.len() + self.audits.len()
    }
}

struct Tail {
    next_event: u64,
    next_audit: u64,
    events: VecDeque<Arc<EventRecord>>,
}

/// The one writer of the store.
pub struct Journal {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    tail: Mutex<Tail>,
    followers: broadcast::Sender<Arc<EventRecord>>,
    tally: Tally,
}

impl Journal {
    /// Reads where the numbers stand.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn open(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Result<Self, ReadError> {
        let mut events = VecDeque::new();
        for entry in store.list(keys::EVENT).await? {
            if let Ok(event) = serde_json::from_slice::<EventRecord>(&entry.value) {
                events.push_back(Arc::new(event));
            }
        }
        let audit = store.list(keys::AUDIT).await?;
        let last = audit
            .last()
            .and_then(|entry| entry.key.strip_prefix(keys::AUDIT)?.parse::<u64>().ok());
        Ok(Self {
            store,
            clock,
            tail: Mutex::new(Tail {
                next_event: events.back().map_or(1, |event| event.seq + 1),
                next_audit: last.map_or(1, |last| last + 1),
                events,
            }),
            followers: broadcast::channel(FOLLOW).0,
            tally: Tally::default(),
        })
    }

    /// What was committed since the start, in numbers.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.tally.counts()
    }

    /// The store behind it, for reading.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Commits everything of a change or nothing, then tells followers.
    ///
    /// # Errors
    /// A guard does not hold, somebody else leads, it is too large, or the store failed.
    pub async fn commit(&self, change: Change) -> Result<Revision, CommitError> {
        if let Some(broken) = change.broken {
            return Err(CommitError::TooLarge(broken));
        }
        let now = self.clock.wall();
        let mut tail = self.tail.lock().await;
        let mut ops = change.ops;
        let mut fresh = Vec::with_capacity(change.events.len());
        let full = tail.events.len() + change.events.len();
        for dropped in tail.events.iter().take(full.saturating_sub(EVENT_TAIL)) {
            ops.push(Op::Delete(keys::numbered(keys::EVENT, dropped.seq)));
        }
        for (seq, happening) in (tail.next_event..).zip(&change.events) {
            let record = written(seq, now, happening);
            ops.push(put(keys::numbered(keys::EVENT, seq), &record)?);
            fresh.push(Arc::new(record));
        }
        let audits = u64::try_from(change.audits.len()).unwrap_or(u64::MAX);
        for (seq, audit) in (tail.next_audit..).zip(change.audits) {
            let record = AuditRecord {
                seq,
                at: now,
                actor: audit.actor,
                verb: audit.verb.to_owned(),
                subject: audit.subject,
                detail: audit.detail,
            };
            ops.push(put(keys::numbered(keys::AUDIT, seq), &record)?);
        }
        if ops.len() > COMMIT_OPS {
            let text = format!(
                "{} operations in one commit, at most {COMMIT_OPS}",
                ops.len()
            );
            return Err(CommitError::TooLarge(text));
        }
        let ended = self
            .store
            .commit(self.store.fence(), &change.guards, &ops)
            .await;
        self.tally.ended(&ended);
        let revision = ended?;
        self.tally.happened(&change.events);
        tail.next_event += u64::try_from(fresh.len()).unwrap_or(0);
        tail.next_audit += audits;
        for event in fresh {
            log(&event);
            tail.events.push_back(event.clone());
            // Nobody follows: fine.
            let _ = self.followers.send(event);
        }
        while tail.events.len() > EVENT_TAIL {
            tail.events.pop_front();
        }
        Ok(revision)
    }

    /// Commits events alone, in as many commits as it takes.
    ///
    /// # Errors
    /// Somebody else leads, or the store failed.
    pub async fn tell(&self, happenings: Vec<Happening>) -> Result<(), CommitError> {
        for part in happenings.chunks(COMMIT_OPS / 2 - 1) {
            let change = Change {
                events: part.to_vec(),
                ..Change::default()
            };
            self.commit(change).await?;
        }
        Ok(())
    }

    /// Past events later than `after`, the newest `limit` of them, oldest first; only of `subject` unless empty.
    pub async fn events(&self, after: u64, subject: &str, limit: usize) -> Vec<Arc<EventRecord>> {
        let tail = self.tail.lock().await;
        let mut found: Vec<_> = tail
            .events
            .iter()
            .rev()
            .take_while(|event| event.seq > after)
            .filter(|event| subject.is_empty() || event.subject == subject)
            .take(limit)
            .cloned()
            .collect();
        found.reverse();
        found
    }

    /// Events to come. A follower that lags reads the past again by sequence number.
    #[must_use]
    pub fn follow(&self) -> broadcast::Receiver<Arc<EventRecord>> {
        self.followers.subscribe()
    }

    /// Audit lines later than `after`, the newest `limit` of them, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRecord>, ReadError> {
        let entries = self.store.list(keys::AUDIT).await?;
        let mut found: Vec<AuditRecord> = entries
            .iter()
            .rev()
            .filter_map(|entry| serde_json::from_slice(&entry.value).ok())
            .take_while(|record: &AuditRecord| record.seq > after)
            .take(limit)
            .collect();
        found.reverse();
        Ok(found)
    }
}

/// Into the log of the process, as serious as it is.
fn log(event: &EventRecord) {
    macro_rules! line {
        ($level:ident, $severity:literal) => {
            tracing::$level!(
                severity = $severity,
                seq = event.seq,
                kind = event.kind,
                subject = event.subject,
                what = event.what,
                "{}",
                event.message
            )
        };
    }
    match event.severity {
        Severity::Alarm => line!(error, "alarm"),
        Severity::Warning => line!(warn, "warning"),
        Severity::Info => line!(info, "info"),
    }
}

fn put<T: Serialize>(key: String, value: &T) -> Result<Op, CommitError> {
    let bytes = serde_json::to_vec(value).map_err(|error| CommitError::Backend(Box::new(error)))?;
    if bytes.len() > VALUE_BYTES {
        return Err(CommitError::TooLarge(format!(
            "{key} is larger than {VALUE_BYTES} bytes"
        )));
    }
    Ok(Op::Put(key, bytes))
}

/// What is kept of something that happened.
fn written(seq: u64, at: UnixMs, happening: &Happening) -> EventRecord {
    let told = happening.tell();
    EventRecord {
        seq,
        at,
        kind: told.kind.to_owned(),
        subject: told.subject,
        what: told.what.to_owned(),
        message: told.message,
        severity: told.severity,
        launch: told.launch,
        requests: told.requests,
        names: told.names,
    }
}

#[cfg(test)]
mod tests;
