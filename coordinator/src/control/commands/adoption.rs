//! Adoptions: begin one, see them, and what leaving `observe` before their time needs.

use super::{CommandError, Commands, Outcome, guarded, invalid};
use crate::config::{Config, PoolConfig, PoolSource};
use crate::control::events::Happening;
use crate::control::journal::Change;
use crate::control::ledger::{Held, Ledger, one};
use crate::ports::survey::GroupRef;
use crate::records::{AdoptionRecord, PoolRecord, keys};
use drover_core::model::{Millis, Mode, PoolId, UnixMs};
use std::collections::BTreeMap;

/// The shortest and the longest time that a group is watched.
const SHORTEST: Millis = Millis::minutes(1);
const LONGEST: Millis = Millis::minutes(30 * 24 * 60);

/// An adoption that a person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptWish {
    /// The group.
    pub group: GroupRef,
    /// Name of its pool; absent: the pool that has the group, else the group's name.
    pub name: Option<String>,
    /// How long it is to be watched.
    pub span: Millis,
}

/// The group of a pool.
pub(in crate::control) fn group_of(pool: &PoolConfig) -> Option<GroupRef> {
    match &pool.source {
        PoolSource::Asg(asg) => Some(GroupRef {
            region: asg.region.clone(),
            role: asg.role_arn.clone(),
            group: asg.group.clone(),
        }),
        PoolSource::Static(_) | PoolSource::Sim(_) => None,
    }
}

/// The pool that has a group.
fn pool_with<'a>(config: &'a Config, group: &GroupRef) -> Option<&'a PoolConfig> {
    let has = |pool: &&PoolConfig| group_of(pool).as_ref() == Some(group);
    config.pools.iter().find(has)
}

/// A name that a pool can have, from a group's.
fn plain(group: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = group
        .chars()
        .map(|c| if fits(c) { c } else { '-' })
        .skip_while(|c| !c.is_ascii_alphanumeric())
        .take(63)
        .collect();
    if name.is_empty() {
        "adopted".to_owned()
    } else {
        name
    }
}

impl Commands {
    /// The group of a pool.
    ///
    /// # Errors
    /// No such pool, or it is no group of AWS.
    pub fn group_of(&self, pool: &str) -> Result<GroupRef, CommandError> {
        let id = PoolId::from(pool);
        let config = self.config();
        let Some(found) = config.pool(&id) else {
            return Err(CommandError::NotFound {
                kind: "pool",
                name: pool.to_owned(),
            });
        };
        group_of(found)
            .ok_or_else(|| CommandError::Refused(format!("pool {pool} is no Auto Scaling group")))
    }

    /// The pool that has a group, and what its config says.
    #[must_use]
    pub fn pool_with(&self, group: &GroupRef) -> Option<PoolConfig> {
        pool_with(&self.config(), group).cloned()
    }

    /// How often discovery looks where a group is; absent: it does not.
    #[must_use]
    pub fn found_every(&self, group: &GroupRef) -> Option<Millis> {
        let config = self.config();
        let looks = config
            .aws
            .discover
            .iter()
            .any(|place| place.role_arn == group.role && place.regions.contains(&group.region));
        looks.then_some(config.aws.discover_every)
    }

    /// Puts a group into `observe` and begins to watch it. The pool may come into the config later: it is watched from
    /// then on.
    ///
    /// # Errors
    /// The name is another pool's, or the span makes no sense.
    pub async fn adopt(&self, by: &str, wish: &AdoptWish) -> Result<Outcome<PoolId>, CommandError> {
        if wish.span < SHORTEST || wish.span > LONGEST {
            return Err(invalid("for", "give between 1m and 30d"));
        }
        let id = self.name_for(wish)?;
        guarded!({
            let store = self.journal.store().as_ref();
            let key = keys::named(keys::ADOPTION, id.as_str());
            let held = one::<AdoptionRecord>(store, &key).await?;
            let open = held.as_ref().map(|held| &held.value).filter(|record| {
                record.left.is_none()
                    && record.group == wish.group.group
                    && record.region == wish.group.region
            });
            if open.is_some_and(|record| record.span == wish.span) {
                let told = format!("pool {id} is being adopted already");
                return Ok(Some(Outcome::unchanged(id.clone(), told)));
            }
            let record = match open {
                // Another span goes on with what was seen.
                Some(record) => AdoptionRecord {
                    span: wish.span,
                    watched: record.watched.min(wish.span),
                    ..record.clone()
                },
                None => begun(by, wish, self.clock.wall()),
            };
            let pool_key = keys::named(keys::POOL, id.as_str());
            let settings = one::<PoolRecord>(store, &pool_key).await?;
            let mut pool = settings
                .as_ref()
                .map(|held| held.value.clone())
                .unwrap_or_default();
            pool.mode = Some(Mode::Observe);
            let detail = format!(
                "{}/{} for {} min",
                wish.group.region,
                wish.group.group,
                wish.span.0 / 60_000
            );
            let mut change = Change::new();
            change
                .put(key, &record, held.map(|held| held.revision))
                .put(pool_key, &pool, settings.map(|held| held.revision))
                .event(Happening::PoolAdopted {
                    pool: id.clone(),
                    by: by.to_owned(),
                    detail: detail.clone(),
                })
                .audit(by, "pool.adopt", id.as_str(), detail);
            Ok(self
                .commit(change)
                .await?
                .map(|_| Outcome::changed(id.clone())))
        })
    }

    fn name_for(&self, wish: &AdoptWish) -> Result<PoolId, CommandError> {
        let config = self.config();
        if let Some(pool) = pool_with(&config, &wish.group) {
            return match &wish.name {
                Some(name) if *name != pool.name.0 => Err(invalid(
                    "name",
                    format!("the group is pool {} already", pool.name),
                )),
                _ => Ok(pool.name.clone()),
            };
        }
        let name = wish
            .name
            .clone()
            .unwrap_or_else(|| plain(&wish.group.group));
        if plain(&name) != name {
            return Err(invalid(
                "name",
                "write letters, digits, dots and dashes, at most 63",
            ));
        }
        let id = PoolId::from(name.as_str());
        if config.pool(&id).is_some() {
            return Err(invalid(
                "name",
                format!("pool {name} is something else: give this group another name with --name"),
            ));
        }
        Ok(id)
    }

    /// All adoptions, by pool.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn adoptions(&self) -> Result<BTreeMap<PoolId, AdoptionRecord>, CommandError> {
        let ledger = Ledger::adoptions_of(self.journal.store().as_ref()).await?;
        Ok(ledger
            .into_iter()
            .map(|(id, held)| (id, held.value))
            .collect())
    }

    /// An adoption that is not over, for a pool that is to leave `observe`; refused before its time, unless `sooner`.
    pub(super) async fn adoption_left(
        &self,
        pool: &PoolId,
        mode: Mode,
        sooner: bool,
    ) -> Result<Option<Held<AdoptionRecord>>, CommandError> {
        let key = keys::named(keys::ADOPTION, pool.as_str());
        let held = one::<AdoptionRecord>(self.journal.store().as_ref(), &key).await?;
        let Some(mut held) = held.filter(|held| held.value.left.is_none() && mode != Mode::Observe)
        else {
            return Ok(None);
        };
        let record = &mut held.value;
        if !record.is_complete() && !sooner {
            let minutes = |span: Millis| span.0 / 60_000;
            return Err(CommandError::Refused(format!(
                "pool {pool} is being adopted and was watched for {} of {} min: `drover pools adopted {pool}` shows what would \
                 have been done; --yes goes on before the time is over",
                minutes(record.watched),
                minutes(record.span)
            )));
        }
        record.left = Some(self.clock.wall());
        Ok(Some(held))
    }
}

fn begun(by: &str, wish: &AdoptWish, now: UnixMs) -> AdoptionRecord {
    AdoptionRecord {
        region: wish.group.region.clone(),
        role: wish.group.role.clone(),
        group: wish.group.group.clone(),
        by: by.to_owned(),
        since: now,
        span: wish.span,
        watched: Millis::ZERO,
        last: None,
        left: None,
        tally: Default::default(),
        samples: Vec::new(),
        decisions: Vec::new(),
        dropped: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_groups_name_becomes_a_pools() {
        for (group, pool) in [
            ("p5-east", "p5-east"),
            ("team a/p5", "team-a-p5"),
            ("_x", "x"),
            ("éé", "adopted"),
        ] {
            assert_eq!(plain(group), pool);
        }
        assert_eq!(plain(&"x".repeat(200)).len(), 63);
    }
}
