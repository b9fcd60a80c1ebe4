//! Limits of a pool, over those of the config file.

use super::{CommandError, Commands, Outcome, guarded, invalid};
use crate::config::Config;
use crate::control::events::Happening;
use crate::control::journal::Change;
use crate::records::{PoolRecord, keys};
use drover_core::model::PoolId;

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
}
