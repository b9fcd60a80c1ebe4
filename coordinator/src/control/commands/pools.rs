//! Pause and resume, mode, approve.

use super::{CommandError, Commands, Outcome, guarded, invalid};
use crate::control::events::{Happening, mode_word};
use crate::control::journal::Change;
use crate::control::ledger::one;
use crate::ports::store::Revision;
use crate::records::{ApprovalRecord, PoolRecord, keys};
use drover_core::model::{Mode, PoolId};

/// "admin/ada: price", or without a reason the name alone.
pub(super) fn because(who: &str, why: &str) -> String {
    if why.is_empty() {
        who.to_owned()
    } else {
        format!("{who}: {why}")
    }
}

impl Commands {
    /// The pool of that name, which the config knows.
    pub(super) fn pool_id(&self, name: &str) -> Result<PoolId, CommandError> {
        if name.is_empty() {
            return Err(invalid("pool", "is empty"));
        }
        let id = PoolId::from(name);
        if self.config().pool(&id).is_none() {
            return Err(CommandError::NotFound {
                kind: "pool",
                name: name.to_owned(),
            });
        }
        Ok(id)
    }

    /// What people have set of a pool, and its revision.
    pub(super) async fn settings(
        &self,
        pool: &PoolId,
    ) -> Result<(PoolRecord, Option<Revision>), CommandError> {
        let key = keys::named(keys::POOL, pool.as_str());
        let held = one::<PoolRecord>(self.journal.store().as_ref(), &key).await?;
        Ok(held.map_or_else(
            || (PoolRecord::default(), None),
            |held| (held.value, Some(held.revision)),
        ))
    }

    /// Stops a pool from growing.
    ///
    /// # Errors
    /// No such pool.
    pub async fn pause_pool(
        &self,
        by: &str,
        pool: &str,
        why: &str,
    ) -> Result<Outcome<PoolId>, CommandError> {
        guarded!({
            let id = self.pool_id(pool)?;
            let (mut record, held) = self.settings(&id).await?;
            if let Some((who, said, _)) = &record.paused
                && (why.is_empty() || why == said)
            {
                let told = format!("pool {pool} is paused already by {}", because(who, said));
                return Ok(Some(Outcome::unchanged(id, told)));
            }
            record.paused = Some((by.to_owned(), why.to_owned(), self.clock.wall()));
            let mut change = Change::new();
            change
                .put(keys::named(keys::POOL, pool), &record, held)
                .event(Happening::PoolPaused {
                    pool: id.clone(),
                    by: by.to_owned(),
                    why: why.to_owned(),
                })
                .audit(by, "pool.pause", pool, why);
            Ok(self.commit(change).await?.map(|_| Outcome::changed(id)))
        })
    }

    /// Lets a pool grow again: ends a pause, and clears misses and failures that had stopped it.
    ///
    /// # Errors
    /// No such pool.
    pub async fn resume_pool(&self, by: &str, pool: &str) -> Result<Outcome<PoolId>, CommandError> {
        guarded!({
            let id = self.pool_id(pool)?;
            let (mut record, held) = self.settings(&id).await?;
            let unlike = !record.unlike.is_empty();
            let stopped = record.misses > 0 || record.failed.is_some();
            if record.paused.is_none() && !stopped && !unlike {
                let view = self.view();
                let stopped = view.pool(pool).and_then(|found| found.stopped.first());
                let told = stopped.map_or_else(
                    || format!("pool {pool} is neither paused nor stopped"),
                    |stop| {
                        format!(
                            "nothing that Drover has stopped holds pool {pool}, only this: {stop}"
                        )
                    },
                );
                return Ok(Some(Outcome::unchanged(id, told)));
            }
            record.paused = None;
            record.misses = 0;
            record.failed = None;
            record.unlike.clear();
            (record.missed_with, record.failed_with) = (None, None);
            let mut change = Change::new();
            change
                .put(keys::named(keys::POOL, pool), &record, held)
                .event(Happening::PoolResumed {
                    pool: id.clone(),
                    by: by.to_owned(),
                })
                .audit(by, "pool.resume", pool, "");
            Ok(self.commit(change).await?.map(|_| Outcome::changed(id)))
        })
    }

    /// Changes what Drover may do to a pool, until the next change; survives restarts. One that is being adopted leaves
    /// `observe` only when it was watched for its time.
    ///
    /// # Errors
    /// No such pool, or its adoption is not over.
    pub async fn set_pool_mode(
        &self,
        by: &str,
        pool: &str,
        mode: Mode,
        reason: &str,
    ) -> Result<Outcome<PoolId>, CommandError> {
        self.change_pool_mode(by, pool, mode, reason, false).await
    }

    /// The same; `sooner` goes on before an adoption is over.
    ///
    /// # Errors
    /// No such pool, or its adoption is not over.
    pub async fn change_pool_mode(
        &self,
        by: &str,
        pool: &str,
        mode: Mode,
        reason: &str,
        sooner: bool,
    ) -> Result<Outcome<PoolId>, CommandError> {
        guarded!({
            let id = self.pool_id(pool)?;
            let (mut record, held) = self.settings(&id).await?;
            let config = self.config().pool(&id).map(|pool| pool.mode);
            if record.mode.or(config) == Some(mode) {
                let told = format!("pool {pool} is in mode {} already", mode_word(mode));
                return Ok(Some(Outcome::unchanged(id, told)));
            }
            record.mode = Some(mode);
            let mut change = Change::new();
            if let Some(left) = self.adoption_left(&id, mode, sooner).await? {
                let key = keys::named(keys::ADOPTION, pool);
                change.put(key, &left.value, Some(left.revision));
            }
            change
                .put(keys::named(keys::POOL, pool), &record, held)
                .event(Happening::PoolMode {
                    pool: id.clone(),
                    by: by.to_owned(),
                    mode,
                    reason: reason.to_owned(),
                })
                .audit(
                    by,
                    "pool.mode",
                    pool,
                    format!("{} {reason}", mode_word(mode)),
                );
            Ok(self.commit(change).await?.map(|_| Outcome::changed(id)))
        })
    }

    /// What the newest reading knows to be mended in a pool that leaves `observe`, as a warning; nothing where nothing is
    /// known. A reading sees less than `drover pools doctor`.
    pub fn open_of(&self, pool: &PoolId) -> Option<String> {
        let view = self.view();
        let open = &view.readings.get(pool)?.warnings;
        (!open.is_empty()).then(|| {
            format!(
                "pool {pool} left observe with what should be mended first: {}; `drover pools doctor {pool}` gives the commands",
                open.join("; ")
            )
        })
    }

    /// Allows an act that waits for a person; valid for an hour.
    ///
    /// # Errors
    /// No such act waits.
    pub async fn approve(&self, by: &str, id: &str) -> Result<ApprovalRecord, CommandError> {
        if id.is_empty() {
            return Err(invalid("id", "is empty: `drover status` lists what waits"));
        }
        guarded!({
            let key = keys::named(keys::APPROVAL, id);
            let store = self.journal.store().as_ref();
            let Some(held) = one::<ApprovalRecord>(store, &key).await? else {
                return Err(CommandError::NotFound {
                    kind: "approval",
                    name: id.to_owned(),
                });
            };
            let mut record = held.value;
            record.approved = Some((by.to_owned(), self.clock.wall()));
            let mut change = Change::new();
            change
                .put(key, &record, Some(held.revision))
                .event(Happening::Approved {
                    pool: record.pool.clone(),
                    id: id.to_owned(),
                    by: by.to_owned(),
                })
                .audit(by, "approve", id, record.message.clone());
            Ok(self.commit(change).await?.map(|_| record))
        })
    }
}
