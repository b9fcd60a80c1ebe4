//! The two threads of the SQLite store and what they do with their connection. Called by `sqlite` only.

use crate::ports::store::{CommitError, Entry, Fence, Guard, Op, Revision};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use std::io;
use std::sync::mpsc;
use tokio::sync::oneshot;

/// Most commits that are synced together.
const TOGETHER: usize = 64;

/// One commit that waits.
pub(super) struct Job {
    pub(super) fence: Fence,
    pub(super) guards: Vec<Guard>,
    pub(super) ops: Vec<Op>,
    pub(super) reply: oneshot::Sender<Result<Revision, CommitError>>,
}

/// The committing thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Writer(mpsc::Sender<Job>);

impl Writer {
    pub(super) fn start(mut connection: Connection) -> io::Result<Self> {
        let (sender, jobs) = mpsc::channel::<Job>();
        std::thread::Builder::new()
            .name("store-commit".into())
            .spawn(move || {
                while let Ok(first) = jobs.recv() {
                    let mut batch = vec![first];
                    while batch.len() < TOGETHER
                        && let Ok(next) = jobs.try_recv()
                    {
                        batch.push(next);
                    }
                    commit_together(&mut connection, batch);
                }
            })?;
        Ok(Self(sender))
    }

    /// Hands a commit over. When the thread is gone the reply is dropped, which the waiting side sees.
    pub(super) fn send(&self, job: Job) {
        let _ = self.0.send(job);
    }
}

type Read = Box<dyn FnOnce(&Connection) + Send>;

/// The reading thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Reader(mpsc::Sender<Read>);

impl Reader {
    pub(super) fn start(connection: Connection) -> io::Result<Self> {
        let (sender, reads) = mpsc::channel::<Read>();
        std::thread::Builder::new()
            .name("store-read".into())
            .spawn(move || {
                while let Ok(read) = reads.recv() {
                    read(&connection);
                }
            })?;
        Ok(Self(sender))
    }

    pub(super) fn send(&self, read: Read) {
        let _ = self.0.send(read);
    }
}

/// One entry.
pub(super) fn get(connection: &Connection, key: &str) -> rusqlite::Result<Option<Entry>> {
    connection
        .prepare_cached("SELECT key, value, revision FROM kv WHERE key = ?1")?
        .query_row([key], entry)
        .optional()
}

/// Entries by prefix, in key order.
pub(super) fn list(connection: &Connection, prefix: &str) -> rusqlite::Result<Vec<Entry>> {
    // No key holds the last code point, so it ends the range of the prefix.
    let end = format!("{prefix}\u{10FFFF}");
    connection
        .prepare_cached(
            "SELECT key, value, revision FROM kv WHERE key >= ?1 AND key < ?2 ORDER BY key",
        )?
        .query_map([prefix, &end], entry)?
        .collect()
}

fn entry(row: &rusqlite::Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        key: row.get(0)?,
        value: row.get(1)?,
        revision: Revision(row.get::<_, i64>(2)?.cast_unsigned()),
    })
}

/// Reads a number of the `meta` table.
pub(super) fn meta_number(connection: &Connection, name: &str) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT number FROM meta WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .map(i64::cast_unsigned)
}

/// Writes a number of the `meta` table.
pub(super) fn set_meta_number(
    connection: &Connection,
    name: &str,
    number: u64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE meta SET number = ?2 WHERE name = ?1")?
        .execute(params![name, number.cast_signed()])
        .map(|_| ())
}

/// Each job succeeds or fails by itself, in a savepoint; what succeeded is synced once for all.
fn commit_together(connection: &mut Connection, batch: Vec<Job>) {
    fail::fail_point!("store.before_commit");
    let (replies, jobs): (Vec<_>, Vec<_>) = batch
        .into_iter()
        .map(|job| (job.reply, (job.fence, job.guards, job.ops)))
        .unzip();
    let outcome = (|| {
        let mut transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut results = Vec::with_capacity(jobs.len());
        for (fence, guards, ops) in &jobs {
            let savepoint = transaction.savepoint()?;
            let result = apply(&savepoint, *fence, guards, ops);
            // A savepoint that is dropped without a commit is rolled back.
            if result.is_ok() {
                savepoint.commit()?;
            }
            results.push(result);
        }
        transaction.commit()?;
        Ok::<_, rusqlite::Error>(results)
    })();
    fail::fail_point!("store.after_commit");
    match outcome {
        Ok(results) => {
            for (reply, result) in replies.into_iter().zip(results) {
                // Nobody waits any more: the commit stands all the same.
                let _ = reply.send(result);
            }
        }
        Err(error) => {
            let text = error.to_string();
            for reply in replies {
                let _ = reply.send(Err(CommitError::Backend(text.clone().into())));
            }
        }
    }
}

fn apply(
    connection: &Connection,
    fence: Fence,
    guards: &[Guard],
    ops: &[Op],
) -> Result<Revision, CommitError> {
    let backend = |error: rusqlite::Error| CommitError::Backend(Box::new(error));
    let current = meta_number(connection, "fence").map_err(backend)?;
    if fence.0 != current {
        return Err(CommitError::Fenced {
            mine: fence.0,
            current,
        });
    }
    for guard in guards {
        let (key, expected) = match guard {
            Guard::Absent(key) => (key, None),
            Guard::Unchanged(key, revision) => (key, Some(revision.0)),
        };
        let found = connection
            .prepare_cached("SELECT revision FROM kv WHERE key = ?1")
            .and_then(|mut query| query.query_row([key], |row| row.get(0)).optional())
            .map_err(backend)?
            .map(i64::cast_unsigned);
        if found != expected {
            return Err(CommitError::Conflict { key: key.clone() });
        }
    }
    let revision = meta_number(connection, "revision").map_err(backend)?;
    if ops.is_empty() {
        return Ok(Revision(revision));
    }
    let revision = revision + 1;
    set_meta_number(connection, "revision", revision).map_err(backend)?;
    for op in ops {
        match op {
            Op::Put(key, value) => connection
                .prepare_cached(
                    "INSERT INTO kv (key, value, revision) VALUES (?1, ?2, ?3) \
                     ON CONFLICT (key) DO UPDATE SET value = ?2, revision = ?3",
                )
                .and_then(|mut put| put.execute(params![key, value, revision.cast_signed()])),
            Op::Delete(key) => connection
                .prepare_cached("DELETE FROM kv WHERE key = ?1")
                .and_then(|mut delete| delete.execute([key])),
        }
        .map_err(backend)?;
    }
    Ok(Revision(revision))
}
