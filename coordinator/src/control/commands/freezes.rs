//! Freeze and thaw, of a pool or the fleet.

use super::pools::because;
use super::{CommandError, Commands, Outcome, guarded};
use crate::control::events::Happening;
use crate::control::journal::Change;
use crate::control::ledger::one;
use crate::records::{FreezeRecord, keys};
use drover_core::model::PoolId;

/// Key of a freeze: a pool's, or the fleet's.
fn freeze_key(pool: Option<&PoolId>) -> String {
    keys::named(keys::FREEZE, pool.map_or("*", PoolId::as_str))
}

impl Commands {
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
}
