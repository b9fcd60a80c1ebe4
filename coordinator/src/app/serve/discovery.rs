//! Pools from AWS: looks for groups with the ownership tag, merges them into the config, and remembers them in the store.
//!
//! Called by a start, which goes on with what was found before, and by `reload`, which looks again at the config's age.

use super::aws::Cloud;
use crate::adapters::actuate::asg::{Discovery, Owner};
use crate::config::{Config, PoolConfig};
use crate::ports::store::{CommitError, Op, ReadError, Store};
use crate::records::{DiscoveredRecord, keys};
use anyhow::Result;
use drover_aws::Region;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// After a look at which something could not be read.
const AGAIN: Duration = Duration::from_secs(60);

/// The pools that were found, and how to find more.
pub(super) struct Discovered {
    store: Arc<dyn Store>,
    discovery: Option<Discovery>,
    pools: Vec<PoolConfig>,
    written: BTreeMap<String, DiscoveredRecord>,
}

/// What a look gave.
pub(super) struct Look {
    /// What could not be read or had to be left out.
    pub(super) troubles: Vec<String>,
    /// When to look again.
    pub(super) next: Duration,
}

impl Discovered {
    /// Goes on with what the store remembers. Without AWS nothing is ever found.
    ///
    /// # Errors
    /// The store cannot be read, or its id cannot be an owner.
    pub(super) async fn open(store: Arc<dyn Store>, cloud: Option<&Cloud>) -> Result<Self> {
        let owner = Owner::new(store.store_id(), store.fence().0)?;
        let mut found = Self {
            discovery: cloud.map(|cloud| Discovery::new(cloud.survey.clone(), owner)),
            store,
            pools: Vec::new(),
            written: BTreeMap::new(),
        };
        found.recall().await?;
        Ok(found)
    }

    async fn recall(&mut self) -> Result<(), ReadError> {
        for entry in self.store.list(keys::DISCOVERED).await? {
            let record: DiscoveredRecord = match serde_json::from_slice(&entry.value) {
                Ok(record) => record,
                Err(error) => {
                    tracing::warn!(key = entry.key, %error, "groups that were found cannot be understood: looked for anew");
                    continue;
                }
            };
            if let Some(discovery) = &mut self.discovery {
                let region = Region::new(record.region.as_str());
                let region = match &record.role_arn {
                    Some(role) => region.with_role(role.as_str()),
                    None => region,
                };
                discovery.recall(region, record.groups.clone());
            }
            self.written.insert(entry.key, record);
        }
        Ok(())
    }

    /// Whoever is asked from now on. What was found stays.
    ///
    /// # Errors
    /// The store's id cannot be an owner.
    pub(super) fn ask(&mut self, cloud: Option<&Cloud>) -> Result<()> {
        match (&mut self.discovery, cloud) {
            (Some(discovery), Some(cloud)) => discovery.ask(cloud.survey.clone()),
            (None, Some(cloud)) => {
                let owner = Owner::new(self.store.store_id(), self.store.fence().0)?;
                self.discovery = Some(Discovery::new(cloud.survey.clone(), owner));
            }
            (_, None) => {}
        }
        Ok(())
    }

    /// There is something to look at.
    pub(super) fn is_on(&self) -> bool {
        self.discovery.is_some()
    }

    /// The file's config with the pools that were found; and what had to be left out.
    pub(super) fn merge(&mut self, file: &Config) -> (Config, Vec<String>) {
        let Some(discovery) = &self.discovery else {
            return (file.clone(), Vec::new());
        };
        let found = discovery.pools(file, &self.pools);
        self.pools = found.pools;
        (file.with_discovered(self.pools.clone()), found.skipped)
    }

    /// Looks in all regions, and remembers what is there.
    ///
    /// # Errors
    /// Somebody else leads.
    pub(super) async fn look(&mut self, file: &Config) -> Result<Look, CommitError> {
        let every = Duration::from_millis(file.aws.discover_every.0);
        let Some(discovery) = &mut self.discovery else {
            return Ok(Look {
                troubles: Vec::new(),
                next: every,
            });
        };
        let troubles = discovery.look(file).await;
        let next = if troubles.is_empty() {
            every
        } else {
            every.min(AGAIN)
        };
        self.remember().await?;
        Ok(Look { troubles, next })
    }

    async fn remember(&mut self) -> Result<(), CommitError> {
        let Some(discovery) = &self.discovery else {
            return Ok(());
        };
        for (region, groups) in discovery.found() {
            let record = DiscoveredRecord {
                region: region.as_str().to_owned(),
                role_arn: region.role().map(str::to_owned),
                groups: groups.clone(),
            };
            let name = match region.role() {
                Some(role) => format!("{} {role}", region.as_str()),
                None => region.as_str().to_owned(),
            };
            let key = keys::named(keys::DISCOVERED, &name);
            if self.written.get(&key) == Some(&record) {
                continue;
            }
            let Ok(value) = serde_json::to_vec(&record) else {
                continue;
            };
            let op = Op::Put(key.clone(), value);
            match self.store.commit(self.store.fence(), &[], &[op]).await {
                Ok(_) => {
                    self.written.insert(key, record);
                }
                Err(error @ CommitError::Fenced { .. }) => return Err(error),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "groups that were found were not remembered");
                }
            }
        }
        Ok(())
    }
}
