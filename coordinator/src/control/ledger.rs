//! The store's records as typed maps, each with the revision at which it was read.
//!
//! Read once per cycle and by commands for what they change. Knows keys and records, decides nothing.

use crate::ports::store::{Entry, ReadError, Revision, Store};
use crate::records::{
    AdoptionRecord, ApprovalRecord, BreakerRecord, DrainRecord, FreezeRecord, HookRecord,
    IdleRecord, LaunchRecord, MemoryRecord, NodeRecord, NoticeRecord, OrderRecord, PoolRecord,
    RequestRecord, keys,
};
use drover_core::model::{LaunchId, NodeId, OfferingId, PoolId, RequestName};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// A record with the revision of its last change: the guard of the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held<T> {
    /// The record.
    pub value: T,
    /// Its last change.
    pub revision: Revision,
}

/// What the store says, as of one moment.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// Enrolled nodes.
    pub nodes: BTreeMap<NodeId, Held<NodeRecord>>,
    /// Orders.
    pub orders: BTreeMap<NodeId, Held<OrderRecord>>,
    /// Drains under way.
    pub drains: BTreeMap<NodeId, Held<DrainRecord>>,
    /// Requests.
    pub requests: BTreeMap<RequestName, Held<RequestRecord>>,
    /// Launches in flight.
    pub launches: BTreeMap<LaunchId, Held<LaunchRecord>>,
    /// Capacity memory.
    pub memory: BTreeMap<OfferingId, Held<MemoryRecord>>,
    /// Idle since.
    pub idle: BTreeMap<NodeId, Held<IdleRecord>>,
    /// Run-time settings of pools.
    pub pools: BTreeMap<PoolId, Held<PoolRecord>>,
    /// Adoptions of groups.
    pub adoptions: BTreeMap<PoolId, Held<AdoptionRecord>>,
    /// Freezes, by pool; `*` is the fleet.
    pub freezes: BTreeMap<String, Held<FreezeRecord>>,
    /// What clouds told, by instance (or node) and kind.
    pub notices: BTreeMap<String, Held<NoticeRecord>>,
    /// Hooks in which instances wait, by instance and hook.
    pub hooks: BTreeMap<String, Held<HookRecord>>,
    /// Acts that wait for a person, by id.
    pub approvals: BTreeMap<String, Held<ApprovalRecord>>,
    /// Destructive acts of the last hour.
    pub breaker: Option<Held<BreakerRecord>>,
    /// Keys whose value could not be understood: reported, never touched.
    pub unreadable: Vec<String>,
}

/// Key of the breaker's one record.
#[must_use]
pub fn breaker_key() -> String {
    keys::named(keys::BREAKER, "acts")
}

impl Ledger {
    /// Reads everything that control decides on.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn read(store: &dyn Store) -> Result<Self, ReadError> {
        let mut bad = Vec::new();
        let breaker: BTreeMap<String, Held<BreakerRecord>> =
            space(store, keys::BREAKER, &mut bad, str::to_owned).await?;
        let mut ledger = Self {
            nodes: space(store, keys::NODE, &mut bad, |name| NodeId::new(name)).await?,
            orders: space(store, keys::ORDER, &mut bad, |name| NodeId::new(name)).await?,
            drains: space(store, keys::DRAIN, &mut bad, |name| NodeId::new(name)).await?,
            requests: space(store, keys::REQUEST, &mut bad, |name| {
                RequestName::new(name)
            })
            .await?,
            launches: space(store, keys::LAUNCH, &mut bad, |name| LaunchId::new(name)).await?,
            memory: space(store, keys::MEMORY, &mut bad, |name| OfferingId::new(name)).await?,
            idle: space(store, keys::IDLE, &mut bad, |name| NodeId::new(name)).await?,
            pools: space(store, keys::POOL, &mut bad, |name| PoolId::new(name)).await?,
            adoptions: space(store, keys::ADOPTION, &mut bad, |name| PoolId::new(name)).await?,
            freezes: space(store, keys::FREEZE, &mut bad, str::to_owned).await?,
            notices: space(store, keys::NOTICE, &mut bad, str::to_owned).await?,
            hooks: space(store, keys::HOOK, &mut bad, str::to_owned).await?,
            approvals: space(store, keys::APPROVAL, &mut bad, str::to_owned).await?,
            breaker: breaker.into_values().next(),
            unreadable: Vec::new(),
        };
        ledger.unreadable = bad;
        Ok(ledger)
    }

    /// The adoptions alone.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn adoptions_of(
        store: &dyn Store,
    ) -> Result<BTreeMap<PoolId, Held<AdoptionRecord>>, ReadError> {
        space(store, keys::ADOPTION, &mut Vec::new(), |name| {
            PoolId::new(name)
        })
        .await
    }

    /// The settings of a pool, defaults when there are none yet.
    #[must_use]
    pub fn pool(&self, pool: &PoolId) -> (PoolRecord, Option<Revision>) {
        self.pools.get(pool).map_or_else(
            || (PoolRecord::default(), None),
            |held| (held.value.clone(), Some(held.revision)),
        )
    }
}

async fn space<K: Ord, T: DeserializeOwned>(
    store: &dyn Store,
    prefix: &str,
    bad: &mut Vec<String>,
    id: fn(&str) -> K,
) -> Result<BTreeMap<K, Held<T>>, ReadError> {
    let mut found = BTreeMap::new();
    for entry in store.list(prefix).await? {
        match held(&entry) {
            Ok(record) => {
                found.insert(
                    id(entry.key.strip_prefix(prefix).unwrap_or(&entry.key)),
                    record,
                );
            }
            Err(error) => {
                tracing::error!(key = entry.key, %error, "a record cannot be understood");
                bad.push(entry.key);
            }
        }
    }
    Ok(found)
}

fn held<T: DeserializeOwned>(entry: &Entry) -> Result<Held<T>, serde_json::Error> {
    Ok(Held {
        value: serde_json::from_slice(&entry.value)?,
        revision: entry.revision,
    })
}

/// One record.
///
/// # Errors
/// The store cannot be read, or what is there cannot be understood.
pub async fn one<T: DeserializeOwned>(
    store: &dyn Store,
    key: &str,
) -> Result<Option<Held<T>>, ReadError> {
    let Some(entry) = store.get(key).await? else {
        return Ok(None);
    };
    held(&entry).map(Some).map_err(|error| ReadError {
        key: key.to_owned(),
        source: Box::new(error),
    })
}
