//! What makes nodes come and go: an Auto Scaling group, a rack with power control, a simulated cloud.

use super::hooks::Hook;
use async_trait::async_trait;
use drover_core::model::{
    FailureKind, InstanceId, LaunchId, Offering, OfferingId, PoolId, PoolKind, Steering, Stop,
    UnixMs,
};
use std::collections::BTreeMap;

/// How an instance is, in the words all providers share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceState {
    /// Boots.
    Pending,
    /// Runs.
    Running,
    /// A termination or power-off has begun.
    Leaving,
    /// No more (terminated, or a physical host without power).
    Gone,
    /// Kept aside by its provider, stopped or running (a warm pool): no capacity, and nobody's fault.
    Warm,
}

/// One instance or host as its provider sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Provider's id; the host name for a physical host.
    pub id: InstanceId,
    /// State.
    pub state: InstanceState,
    /// Offering it belongs to, when that can be told.
    pub offering: Option<OfferingId>,
    /// Zone; empty when unknown.
    pub zone: String,
    /// Instance type; empty when unknown.
    pub instance_type: String,
    /// Protected from scale-in by the provider; `None` where there is no such thing.
    pub protected: Option<bool>,
    /// When it was launched, when known.
    pub launched: Option<UnixMs>,
    /// When its provider begins to end it whatever it does, where that is known ahead (a capacity block).
    pub ends: Option<UnixMs>,
}

/// A capacity failure that the provider reports on its own (scaling activities).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderFailure {
    /// Provider's id of the record: each is taken once.
    pub id: String,
    /// Offering, when the text or zone tells; else the whole pool.
    pub offering: Option<OfferingId>,
    /// Kind.
    pub kind: FailureKind,
    /// Full text.
    pub message: String,
    /// When.
    pub at: UnixMs,
    /// What its words tell of the ask that it may belong to.
    pub trace: Trace,
}

/// What a failure tells of the ask that it may belong to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trace {
    /// Nothing.
    #[default]
    Absent,
    /// It is about this instance.
    Instance(InstanceId),
    /// It was to bring the provider nearer to the size that is wanted of it.
    Size {
        /// Nodes that were there.
        there: u32,
        /// Nodes that were wanted in all.
        wanted: u32,
        /// Changes of what is wanted that it says it follows from; empty where it names none.
        changes: Vec<Raise>,
    },
}

/// A size that a provider is told to have, instead of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Raise {
    /// Nodes that were wanted in all.
    pub from: u32,
    /// Nodes that are wanted in all.
    pub to: u32,
}

/// A member that the provider counts although it does not run any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dead {
    /// Its id.
    pub id: InstanceId,
    /// It is stopped, and somebody might start it again; else it was ended for good.
    pub stopped: bool,
    /// What its end says about launches of its kind, when it says something.
    pub kind: Option<FailureKind>,
    /// Why it does not run, in the provider's words; empty when it says nothing.
    pub why: String,
    /// When it was first seen so.
    pub since: UnixMs,
}

/// What a provider makes nodes from, in words that are only compared and shown. Empty where it is not known, or where
/// there is no such thing.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Recipe {
    /// The launch template that is in force, with its version and its image.
    pub template: String,
    /// What else of a group's setup a launch depends on: subnets, the types and the markets that it may choose.
    pub group: String,
}

/// One pool as its provider sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolReading {
    /// Instances, gone ones included while the provider still names them.
    pub instances: Vec<Instance>,
    /// What can be asked, prices from config or catalogue.
    pub offerings: Vec<Offering>,
    /// Which offerings are only one zone's part of another one, by the same type and market: part to whole. A group offers
    /// either, by the way it is asked at the time; what is known of one says something of the other.
    pub parts: BTreeMap<OfferingId, OfferingId>,
    /// What an ask can choose.
    pub steering: Steering,
    /// Provider's own bounds, when it has some.
    pub provider_min: Option<u32>,
    /// Provider's own bounds, when it has some.
    pub provider_max: Option<u32>,
    /// What the provider itself forbids or a tag says (frozen, not ours, suspended, ...).
    pub stops: Vec<Stop>,
    /// Removal is possible.
    pub removable: bool,
    /// Labels that the provider says its nodes get (tags of a group). The config's win.
    pub labels: BTreeMap<String, String>,
    /// Taints that the provider says its nodes get, key to value. The config's win.
    pub taints: BTreeMap<String, String>,
    /// Things a person should know (processes not suspended, unprotected instances).
    pub warnings: Vec<String>,
    /// Things worth knowing that are no trouble: which template it launches from, whose prices are taken. Never an event.
    pub remarks: Vec<String>,
    /// New failures since the last reading.
    pub failures: Vec<ProviderFailure>,
    /// Nodes that the provider is still wanted to bring beyond those it shows, where it keeps such a wish (a desired
    /// capacity above the members); else 0.
    pub unfilled: u32,
    /// A withdrawal of such a wish has begun and is not over.
    pub withdrawing: bool,
    /// Members that do not run any more and are still counted.
    pub dead: Vec<Dead>,
    /// What its nodes are made from.
    pub recipe: Recipe,
    /// When it was read.
    pub read_at: UnixMs,
}

impl PoolReading {
    /// Nothing there, and nothing that can be asked.
    #[must_use]
    pub fn empty(read_at: UnixMs) -> Self {
        Self {
            instances: Vec::new(),
            offerings: Vec::new(),
            parts: BTreeMap::new(),
            steering: Steering::Group,
            provider_min: None,
            provider_max: None,
            stops: Vec::new(),
            removable: false,
            labels: BTreeMap::new(),
            taints: BTreeMap::new(),
            dead: Vec::new(),
            recipe: Recipe::default(),
            warnings: Vec::new(),
            remarks: Vec::new(),
            failures: Vec::new(),
            unfilled: 0,
            withdrawing: false,
            read_at,
        }
    }
}

/// [`ActuateError::code`] of an ask that may have been taken although its answer is missing. Its launch stays intended
/// and is settled with [`Actuator::settle`]; to drop it or to ask with another token would ask twice (I4).
pub const OUTCOME_UNKNOWN: &str = "OutcomeUnknown";

/// [`ActuateError::code`] of passing trouble with an ask of which certainly nothing was taken: another pool may be asked
/// instead at once.
pub const NOT_ASKED: &str = "NotAsked";

/// [`ActuateError::code`] of a call that the provider answered, and in whose answer there certainly is no such group: what
/// was to come from it cannot come. Never for a call that failed (I6).
pub const NO_SUCH_GROUP: &str = "NoSuchGroup";

/// [`ActuateError::code`] of a call that was refused since credentials have expired or are not there. It says nothing
/// about the pool, and passes when there are fresh ones.
pub const NO_CREDENTIALS: &str = "NoCredentials";

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ActuateError {
    /// Kind: decides the response (DESIGN 5).
    pub kind: FailureKind,
    /// Provider's code; empty when there is none.
    pub code: String,
    /// Full text, with what was called.
    pub message: String,
}

/// An ask, committed to the store before it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchOrder {
    /// Id of the launch record.
    pub id: LaunchId,
    /// Idempotency token: the same for every repetition of this ask.
    pub token: String,
    /// Pool.
    pub pool: PoolId,
    /// Offering: gives type, zone and market.
    pub offering: OfferingId,
    /// How many; control never asks for more than 100 at a time.
    pub count: u32,
    /// When the intent was committed.
    pub asked: UnixMs,
    /// Hosts to power on (static pools), else empty.
    pub hosts: Vec<InstanceId>,
}

/// How an ask was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// autoscaling:LaunchInstances.
    LaunchInstances,
    /// autoscaling:SetDesiredCapacity.
    SetDesiredCapacity,
    /// A power-on command.
    PowerOn,
    /// The simulated cloud.
    Sim,
}

/// What an ask gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchOutcome {
    /// Way used.
    pub way: Way,
    /// Ids granted, when the way tells them.
    pub instances: Vec<InstanceId>,
    /// Nodes that are to come in all (with SetDesiredCapacity there are no ids yet).
    pub granted: u32,
    /// What was refused, per offering.
    pub failures: Vec<ProviderFailure>,
    /// The size that it was asked for, where it is asked so.
    pub raised: Option<Raise>,
}

/// How far giving back an unfilled wish is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Withdrawal {
    /// There is nothing to give back.
    Nothing,
    /// It goes on at the next call.
    Waits {
        /// What it waits for, in words.
        why: String,
    },
    /// It is given back.
    Done {
        /// Nodes that were wanted in all.
        from: u32,
        /// Nodes that are wanted now.
        to: u32,
    },
}

/// One kind of pool. Every call has a deadline of its own; trouble with one pool stays with that pool.
#[async_trait]
pub trait Actuator: Send + Sync {
    /// Kind it drives.
    fn kind(&self) -> PoolKind;
    /// Reads these pools, batched as the provider allows; one result per pool asked, in order.
    async fn read(&self, pools: &[PoolId]) -> Vec<(PoolId, Result<PoolReading, ActuateError>)>;
    /// Asks. Repeating it with the same token never asks twice.
    async fn launch(&self, order: &LaunchOrder) -> Result<LaunchOutcome, ActuateError>;
    /// Finds out what became of an ask whose answer was lost, without asking again when it is too old for that.
    /// `known` are the instances that belong to other launches or were there before.
    async fn settle(
        &self,
        order: &LaunchOrder,
        known: &[InstanceId],
        now: UnixMs,
    ) -> Result<LaunchOutcome, ActuateError>;
    /// Ends exactly this instance and lowers the wanted size with it (or powers the host off). Only ever called for a
    /// drained node of an owned pool.
    async fn leave(&self, pool: &PoolId, instance: &InstanceId) -> Result<(), ActuateError>;
    /// Takes a member off the provider's books that does not run any more, so that it is not replaced there; the provider
    /// is asked again first, and one that runs is left alone.
    async fn bury(&self, _pool: &PoolId, _instance: &InstanceId) -> Result<(), ActuateError> {
        Ok(())
    }
    /// Brings the provider's guards up to date: scale-in protection on every member, the owner tag. Called for owned
    /// pools that are not in `observe`; `launch`, `settle` and `leave` do the same first.
    async fn guard(&self, _pool: &PoolId) -> Result<(), ActuateError> {
        Ok(())
    }
    /// Lifecycle hooks of the pool's group.
    async fn hooks(&self, _pool: &PoolId) -> Result<Vec<Hook>, ActuateError> {
        Ok(Vec::new())
    }
    /// Gives an instance that waits in a hook more time. False: it does not wait there (any more).
    async fn beat(
        &self,
        _pool: &PoolId,
        _hook: &str,
        _instance: &InstanceId,
    ) -> Result<bool, ActuateError> {
        Ok(false)
    }
    /// Lets an instance that waits in a hook go on. False: it does not wait there (any more).
    async fn complete(
        &self,
        _pool: &PoolId,
        _hook: &str,
        _instance: &InstanceId,
    ) -> Result<bool, ActuateError> {
        Ok(false)
    }
    /// One step of giving back what an ask wanted and the provider did not bring; called cycle after cycle until it says
    /// `Done` or `Nothing`. Never ends or loses an instance that is there.
    async fn withdraw(&self, _pool: &PoolId) -> Result<Withdrawal, ActuateError> {
        Ok(Withdrawal::Nothing)
    }
}
