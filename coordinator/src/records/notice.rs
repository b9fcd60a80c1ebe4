//! What a cloud told of a node, kept for as long as it holds, and lifecycle hooks in which instances wait for us. Written
//! by `control`.

use super::DrainPolicy;
use drover_core::model::{DrainId, InstanceId, LaunchId, Millis, NodeId, PoolId, UnixMs};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a cloud tells of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// The spot market takes it back, in minutes.
    SpotInterruption,
    /// Its group ends it.
    LifecycleTerminating,
    /// The spot market may take it back soon.
    Rebalance,
    /// Maintenance of its host.
    ScheduledEvent,
    /// The capacity block that it runs in ends; its time is when AWS begins to end what runs there.
    BlockEnd,
}

impl NoticeKind {
    /// As on the wire and in keys.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::SpotInterruption => "spot_interruption",
            Self::LifecycleTerminating => "lifecycle_terminating",
            Self::Rebalance => "rebalance",
            Self::ScheduledEvent => "scheduled_event",
            Self::BlockEnd => "capacity_block_end",
        }
    }

    /// Reads the word; `None` for what is no word of a cloud (xid, shutdown) or of a later release.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::SpotInterruption,
            Self::LifecycleTerminating,
            Self::Rebalance,
            Self::ScheduledEvent,
            Self::BlockEnd,
        ]
        .into_iter()
        .find(|kind| kind.word() == word)
    }
}

/// One notice that holds. At most one of a kind per instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeRecord {
    /// Kind.
    pub kind: NoticeKind,
    /// Pool of the node.
    pub pool: PoolId,
    /// The node, or `instance/ID` while no agent spoke for it.
    pub node: NodeId,
    /// Its instance.
    #[serde(default)]
    pub instance: Option<InstanceId>,
    /// The cloud's id of the event, where it has one.
    #[serde(default)]
    pub event: String,
    /// When it was first taken.
    pub at: UnixMs,
    /// When the cloud acts, where it says so.
    #[serde(default)]
    pub ends: Option<UnixMs>,
    /// Who told: agent, or the queue's name.
    pub by: String,
    /// In words.
    pub message: String,
    /// A drain that it began, so that none is begun twice.
    #[serde(default)]
    pub drain: Option<DrainId>,
    /// Room elsewhere for the work of the node.
    #[serde(default)]
    pub room: Room,
}

/// How far the room is that is made elsewhere for the work of a node that its cloud takes: it is asked for once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Room {
    /// Nothing was asked for.
    #[default]
    None,
    /// Asked for with these launches. What fails of them is asked for again.
    Asked(BTreeSet<LaunchId>),
    /// This node of them has joined: nothing more is asked for.
    Joined(NodeId),
    /// It has joined and takes work, and that did not do: no demand any more.
    Over,
}

/// Key of a notice's record, below its prefix: of the instance, or of the node without one.
#[must_use]
pub fn notice_key(subject: &str, kind: NoticeKind) -> String {
    format!("{subject}/{}", kind.word())
}

/// What a hook holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookOn {
    /// An instance on its way in.
    Launching,
    /// An instance on its way out.
    Terminating,
}

/// How far we are with a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookState {
    /// The instance waits, for us.
    Waits,
    /// It will be completed: committed before the call, which is made until it is answered. No heartbeat any more.
    Completing,
    /// Completed, or nobody waits any more.
    Over,
}

/// An instance that waits in a lifecycle hook of its group until somebody completes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRecord {
    /// Pool.
    pub pool: PoolId,
    /// Instance.
    pub instance: InstanceId,
    /// Hook.
    pub hook: String,
    /// What it holds.
    pub on: HookOn,
    /// Since when, as far as is known.
    pub since: UnixMs,
    /// Who told: agent, the queue's name, or the group.
    pub by: String,
    /// Time that one heartbeat gives; absent while the hook was not read.
    #[serde(default)]
    pub timeout: Option<Millis>,
    /// From then on no heartbeat helps.
    #[serde(default)]
    pub limit: Option<UnixMs>,
    /// Then the drain is given up and the hook completed, by `policy`.
    #[serde(default)]
    pub deadline: Option<UnixMs>,
    /// How its work is treated until then.
    #[serde(default)]
    pub policy: DrainPolicy,
    /// The last heartbeat that was answered.
    #[serde(default)]
    pub beat: Option<UnixMs>,
    /// Heartbeats so far.
    #[serde(default)]
    pub beats: u32,
    /// It was told that the time is running out.
    #[serde(default)]
    pub warned: bool,
    /// How far.
    pub state: HookState,
    /// Why it is completed; empty while it waits.
    #[serde(default)]
    pub why: String,
}

/// Key of a hook's record, below its prefix.
#[must_use]
pub fn hook_key(instance: &InstanceId, hook: &str) -> String {
    format!("{instance}/{hook}")
}
