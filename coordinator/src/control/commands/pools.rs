//! Pause and resume, mode, limits, freeze and thaw, approve.

use super::{CommandError, Commands, Outcome, guarded, invalid};
use crate::config::Config;
use crate::control::events::{Happening, mode_word};
use crate::control::journal::Change;
use crate::control::ledger::one;
use crate::ports::store::Revision;
use crate::records::{ApprovalRecord, FreezeRecord, PoolRecord, keys};
use drover_core::model::{Mode, PoolId};

/// Limits that a person sets; absent: unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitsWish {
    /// Fewest nodes.
    pub min: Option<u32>,
    /// Most nodes.
    pub max: Option<u32>,
    /// Idle nodes as a standing target.
    pub spare: Option<u32>,
    /// Back to what the config file says; the rest must be absent.
    pub reset: bool,
}

/// Key of a freeze: a pool's, or the fleet's.
fn freeze_key(pool: Option<&PoolId>) -> String {
    keys::named(keys::FREEZE, pool.map_or("*", PoolId::as_str))
}

/// "admin/ada: price", or without a reason the name alone.
fn because(who: &str, why: &str) -> String {
    if why.is_empty() {
        who.to_owned()
    } else {
        format!("{who}: {why}")
    }
}

/// Limits in force.
fn limits(config: &Config, pool: &PoolId, record: &PoolRecord) -> Option<(u32, u32, u32)> {
    let config = config.pool(pool)?;
    Some((
        record.min.unwrap_or(config.min),
        record.max.unwrap_or(config.max),
        record.spare.unwrap_or(config.spare),
    ))
}

impl Commands {
    fn pool_id(&self, name: &str) -> Result<PoolId, CommandError> {
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

    async fn settings(
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
            if record.paused.is_none() && record.misses == 0 && record.failed.is_none() {
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

    /// Changes the limits of a pool. A lowered maximum never drains at once.
    ///
    /// # Errors
    /// No such pool, or limits that contradict each other.
    pub async fn set_pool_limits(
        &self,
        by: &str,
        pool: &str,
        wish: &LimitsWish,
    ) -> Result<Outcome<PoolId>, CommandError> {
        let some = wish.min.or(wish.max).or(wish.spare).is_some();
        if wish.reset == some {
            return Err(invalid("reset", "give either limits or reset"));
        }
        guarded!({
            let id = self.pool_id(pool)?;
            let (mut record, held) = self.settings(&id).await?;
            let before = limits(&self.config(), &id, &record);
            let overridden = record.min.or(record.max).or(record.spare).is_some();
            if wish.reset {
                (record.min, record.max, record.spare) = (None, None, None);
            } else {
                record.min = wish.min.or(record.min);
                record.max = wish.max.or(record.max);
                record.spare = wish.spare.or(record.spare);
            }
            if let Some(config) = self.config().pool(&id) {
                let min = record.min.unwrap_or(config.min);
                let max = record.max.unwrap_or(config.max);
                if min > max {
                    return Err(invalid("min", format!("would be {min}, above max {max}")));
                }
                if let crate::config::PoolSource::Static(fixed) = &config.source
                    && max as usize > fixed.hosts.len()
                {
                    let hosts = fixed.hosts.len();
                    return Err(invalid("max", format!("the pool lists {hosts} hosts")));
                }
            }
            if limits(&self.config(), &id, &record) == before && !(wish.reset && overridden) {
                let told = match before {
                    Some((min, max, spare)) => {
                        format!("pool {pool} has min {min}, max {max}, spare {spare} already")
                    }
                    None => format!("pool {pool} has these limits already"),
                };
                return Ok(Some(Outcome::unchanged(id, told)));
            }
            let detail = if wish.reset {
                "back to the config file".to_owned()
            } else {
                [("min", wish.min), ("max", wish.max), ("spare", wish.spare)]
                    .into_iter()
                    .filter_map(|(name, value)| value.map(|value| format!("{name} {value}")))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let mut change = Change::new();
            change
                .put(keys::named(keys::POOL, pool), &record, held)
                .event(Happening::PoolLimits {
                    pool: id.clone(),
                    by: by.to_owned(),
                    detail: detail.clone(),
                })
                .audit(by, "pool.limits", pool, detail);
            Ok(self.commit(change).await?.map(|_| Outcome::changed(id)))
        })
    }

    /// Freezes a pool, or the fleet: neither growth nor removal until thawed.
    ///
    /// # Errors
    /// No such pool.
    pub async fn freeze(
        &self,
        by: &str,
        pool: Option<&str>,
        why: &str,
    ) -> Result<Outcome<()>, CommandError> {
        guarded!({
            let id = pool.map(|pool| self.pool_id(pool)).transpose()?;
            let key = freeze_key(id.as_ref());
            let store = self.journal.store().as_ref();
            let held = one::<FreezeRecord>(store, &key).await?;
            if let Some(frozen) = held.as_ref().map(|held| &held.value)
                && (why.is_empty() || why == frozen.reason)
            {
                let what =
                    pool.map_or_else(|| "the fleet".to_owned(), |pool| format!("pool {pool}"));
                let who = because(&frozen.by, &frozen.reason);
                let told = format!("{what} is frozen already by {who}");
                return Ok(Some(Outcome::unchanged((), told)));
            }
            let record = FreezeRecord {
                pool: id.clone(),
                by: by.to_owned(),
                reason: why.to_owned(),
                since: self.clock.wall(),
            };
            let mut change = Change::new();
            change
                .put(key, &record, held.map(|held| held.revision))
                .event(Happening::Frozen {
                    pool: id,
                    by: by.to_owned(),
                    reason: why.to_owned(),
                })
                .audit(by, "freeze", pool.unwrap_or("*"), why);
            Ok(self.commit(change).await?.map(|_| Outcome::changed(())))
        })
    }

    /// Takes a freeze back. Thawing the fleet leaves freezes of pools.
    ///
    /// # Errors
    /// No such pool, or it is not frozen.
    pub async fn thaw(&self, by: &str, pool: Option<&str>) -> Result<(), CommandError> {
        guarded!({
            // An orphaned pool may still be thawed: the name need not be in the config.
            let id = pool.map(PoolId::from);
            let key = freeze_key(id.as_ref());
            let store = self.journal.store().as_ref();
            let Some(held) = one::<FreezeRecord>(store, &key).await? else {
                return Err(CommandError::Refused(match pool {
                    Some(pool) => format!("pool {pool} is not frozen"),
                    None => "the fleet is not frozen".to_owned(),
                }));
            };
            let mut change = Change::new();
            change
                .delete(key, held.revision)
                .event(Happening::Thawed {
                    pool: id,
                    by: by.to_owned(),
                })
                .audit(by, "thaw", pool.unwrap_or("*"), "");
            Ok(self.commit(change).await?.map(|_| ()))
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
