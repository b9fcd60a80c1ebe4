//! What really happened, counted by the proxy and by nobody else.
//!
//! Written by the parts that launch and terminate, read by tests over the admin path. It must not depend on
//! what the caller believes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The account of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Calls by action, refused and lost ones included.
    pub calls: BTreeMap<String, u64>,
    /// Mutations in order, as they came in.
    pub mutations: Vec<Mutation>,
    /// Launches in order.
    pub launches: Vec<Launch>,
    /// Ends in order.
    pub ends: Vec<End>,
    /// Instances for which scale-in protection was asked to be taken off.
    pub unprotected: Vec<String>,
    /// What lifecycle hooks did, in order.
    #[serde(default)]
    pub lifecycle: Vec<Lifecycle>,
    /// What happened by itself, in order.
    #[serde(default)]
    pub acts: Vec<Happened>,
    /// Troubles of the proxy itself, with moto. A test that finds any has no result.
    #[serde(default)]
    pub troubles: Vec<String>,
    /// How many rows of these lists were left out, because a list was full.
    #[serde(default)]
    pub left_out: u64,
}

/// Most rows of a list.
const MAX: usize = 50_000;
/// Most troubles.
const MAX_TROUBLES: usize = 100;

/// What a lifecycle hook did to an instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lifecycle {
    /// Milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Region.
    pub region: String,
    /// Group.
    pub group: String,
    /// The instance.
    pub instance: String,
    /// The hook.
    pub hook: String,
    /// `began`, `heartbeat`, `completed`, `timed_out`, or `refused` (an answer to a hook that holds nothing).
    pub what: String,
    /// `CONTINUE` or `ABANDON`, where it is over.
    pub result: Option<String>,
}

/// Something that happened by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Happened {
    /// Milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Region.
    pub region: String,
    /// Group.
    pub group: String,
    /// What it was to be, for instance `az_rebalance`.
    pub act: String,
    /// The instances that it concerned.
    pub instances: Vec<String>,
    /// Why nothing happened, for instance a suspended process; absent: it happened.
    pub refused: Option<String>,
}

/// A mutation that came in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mutation {
    /// Milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Region.
    pub region: String,
    /// Action.
    pub action: String,
    /// Group, where the call names one.
    pub group: String,
    /// Count, desired capacity or instance id.
    pub what: String,
    /// Zone, where one was asked.
    pub zone: String,
    /// ClientToken, where there is one.
    pub token: String,
}

/// Instances that came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Region.
    pub region: String,
    /// Group.
    pub group: String,
    /// Zone.
    pub zone: String,
    /// Type.
    pub instance_type: String,
    /// `LaunchInstances` or `SetDesiredCapacity`.
    pub way: String,
    /// ClientToken, where there was one.
    pub token: String,
    /// The instances.
    pub instances: Vec<String>,
}

/// How an instance went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// By id, with decrement.
    Decrement,
    /// By id, without decrement: AWS would replace it.
    WithoutDecrement,
    /// AWS chose it, because the desired capacity was lowered.
    ScaleIn,
    /// A health check failed it.
    Unhealthy,
    /// AZRebalance or capacity rebalancing moved it.
    Rebalance,
    /// It ended in EC2 behind the group's back: a spot interruption, or somebody.
    Outside,
    /// A launching hook gave it up.
    Abandoned,
    /// Its group was deleted.
    GroupDeleted,
    /// Its warm pool became too large or went.
    WarmPool,
}

/// An instance that went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Region.
    pub region: String,
    /// Group.
    pub group: String,
    /// The instance.
    pub instance: String,
    /// How.
    pub cause: Cause,
}

impl Ledger {
    pub(super) fn mutation(&mut self, row: Mutation) {
        push(&mut self.mutations, row, &mut self.left_out);
    }

    pub(super) fn launch(&mut self, row: Launch) {
        push(&mut self.launches, row, &mut self.left_out);
    }

    pub(super) fn end(&mut self, row: End) {
        push(&mut self.ends, row, &mut self.left_out);
    }

    pub(super) fn unprotect(&mut self, id: String) {
        push(&mut self.unprotected, id, &mut self.left_out);
    }

    pub(super) fn lifecycle(&mut self, row: Lifecycle) {
        push(&mut self.lifecycle, row, &mut self.left_out);
    }

    pub(super) fn act(&mut self, row: Happened) {
        push(&mut self.acts, row, &mut self.left_out);
    }

    pub(super) fn trouble(&mut self, text: String) {
        if self.troubles.len() < MAX_TROUBLES && self.troubles.last() != Some(&text) {
            self.troubles.push(text);
        }
    }

    /// What hook `hook` did to `instance`, in order: `began`, `heartbeat`, `completed`, `timed_out`.
    pub fn hook_story(&self, instance: &str, hook: &str) -> Vec<&str> {
        let rows = self.lifecycle.iter();
        rows.filter(|l| l.instance == instance && l.hook == hook)
            .map(|l| l.what.as_str())
            .collect()
    }

    /// How many instances were launched in `group` of `region`.
    pub fn launched(&self, region: &str, group: &str) -> usize {
        self.launches
            .iter()
            .filter(|l| l.region == region && l.group == group)
            .map(|l| l.instances.len())
            .sum()
    }

    /// How often `action` was called.
    pub fn calls_of(&self, action: &str) -> u64 {
        self.calls.get(action).copied().unwrap_or_default()
    }

    /// Instances that went in a way that Drover never uses.
    pub fn victims(&self) -> Vec<&End> {
        self.ends
            .iter()
            .filter(|e| e.cause != Cause::Decrement)
            .collect()
    }
}

fn push<T>(list: &mut Vec<T>, row: T, left_out: &mut u64) {
    if list.len() < MAX {
        list.push(row);
    } else {
        *left_out += 1;
    }
}
