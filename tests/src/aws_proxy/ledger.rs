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
