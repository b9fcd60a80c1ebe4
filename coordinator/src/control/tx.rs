//! A change of records that also keeps the cycle's own copy of them in step.
//!
//! Used by every part of the cycle that writes. Knows records, decides nothing.

use super::events::Happening;
use super::journal::Change;
use super::ledger::{Held, Ledger, breaker_key};
use crate::ports::store::{COMMIT_OPS, Revision};
use crate::records::{
    AdoptionRecord, ApprovalRecord, BreakerRecord, DrainRecord, HookRecord, IdleRecord,
    LaunchRecord, MemoryRecord, NodeRecord, NoticeRecord, OrderRecord, PoolRecord, RequestRecord,
    keys,
};
use drover_core::model::{LaunchId, NodeId, OfferingId, PoolId, RequestName};

type Apply = Box<dyn FnOnce(&mut Ledger, Revision) + Send>;

/// What is to be committed at once, and what the ledger is afterwards.
#[derive(Default)]
pub struct Tx {
    change: Change,
    apply: Vec<Apply>,
}

macro_rules! records {
    ($($put:ident, $delete:ident, $map:ident, $prefix:ident, $key:ty, $value:ty;)*) => {
        impl Tx {
            $(
                /// Sets the record, guarded by what the ledger holds.
                pub fn $put(&mut self, ledger: &Ledger, key: &$key, value: $value) {
                    let held = ledger.$map.get(key).map(|held| held.revision);
                    self.change.put(keys::named(keys::$prefix, &key.to_string()), &value, held);
                    let key = key.clone();
                    self.apply.push(Box::new(move |ledger, revision| {
                        ledger.$map.insert(key, Held { value, revision });
                    }));
                }

                /// Removes the record, when there is one.
                pub fn $delete(&mut self, ledger: &Ledger, key: &$key) {
                    let Some(held) = ledger.$map.get(key) else { return };
                    self.change.delete(keys::named(keys::$prefix, &key.to_string()), held.revision);
                    let key = key.clone();
                    self.apply.push(Box::new(move |ledger, _| {
                        ledger.$map.remove(&key);
                    }));
                }
            )*
        }
    };
}

records! {
    put_node, delete_node, nodes, NODE, NodeId, NodeRecord;
    put_order, delete_order, orders, ORDER, NodeId, OrderRecord;
    put_drain, delete_drain, drains, DRAIN, NodeId, DrainRecord;
    put_idle, delete_idle, idle, IDLE, NodeId, IdleRecord;
    put_request, delete_request, requests, REQUEST, RequestName, RequestRecord;
    put_launch, delete_launch, launches, LAUNCH, LaunchId, LaunchRecord;
    put_memory, delete_memory, memory, MEMORY, OfferingId, MemoryRecord;
    put_pool, delete_pool, pools, POOL, PoolId, PoolRecord;
    put_notice, delete_notice, notices, NOTICE, String, NoticeRecord;
    put_hook, delete_hook, hooks, HOOK, String, HookRecord;
    put_adoption, delete_adoption, adoptions, ADOPTION, PoolId, AdoptionRecord;
    put_approval, delete_approval, approvals, APPROVAL, String, ApprovalRecord;
}

impl Tx {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the breaker's counts.
    pub fn put_breaker(&mut self, ledger: &Ledger, value: BreakerRecord) {
        let held = ledger.breaker.as_ref().map(|held| held.revision);
        self.change.put(breaker_key(), &value, held);
        self.apply.push(Box::new(move |ledger, revision| {
            ledger.breaker = Some(Held { value, revision });
        }));
    }

    /// Something happened with it.
    pub fn event(&mut self, happening: Happening) {
        self.change.event(happening);
    }

    /// Who did it.
    pub fn audit(&mut self, verb: &'static str, subject: &str, detail: impl Into<String>) {
        self.change
            .audit(super::orders::DROVER, verb, subject, detail);
    }

    /// Nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.change.is_empty()
    }

    /// So many operations would still fit.
    #[must_use]
    pub fn room(&self) -> usize {
        COMMIT_OPS.saturating_sub(self.change.size())
    }

    pub(super) fn take(self) -> (Change, Vec<Apply>) {
        (self.change, self.apply)
    }
}
