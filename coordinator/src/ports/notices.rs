//! What clouds tell by themselves, beside what agents see: messages of queues.

use crate::records::HookOn;
use drover_core::model::{InstanceId, UnixMs};

/// What one message says of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudNotice {
    /// Settled by this; unique among those not settled.
    pub id: String,
    /// Name of the queue, for people.
    pub by: String,
    /// Region that it is about: the same group name may be elsewhere as well.
    pub region: String,
    /// About which instance.
    pub instance: InstanceId,
    /// What it says.
    pub word: CloudWord,
    /// In words.
    pub message: String,
    /// When the cloud said it, where it says so.
    pub at: Option<UnixMs>,
}

/// What a cloud says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloudWord {
    /// The spot market takes it back.
    Spot {
        /// When; absent when not told.
        ends: Option<UnixMs>,
    },
    /// The spot market may take it back soon.
    Rebalance,
    /// Its state has changed: its pool is worth a look.
    State {
        /// The cloud's word.
        state: String,
    },
    /// Maintenance of its host.
    Maintenance {
        /// The cloud's id of it.
        event: String,
        /// When it begins.
        begins: Option<UnixMs>,
        /// It is over or was taken back.
        withdrawn: bool,
    },
    /// It waits in a lifecycle hook.
    Hook {
        /// Group.
        group: String,
        /// Hook.
        hook: String,
        /// Which way it goes.
        on: HookOn,
    },
}

/// The port.
pub trait NoticeSource: Send + Sync {
    /// What was not settled yet, oldest first.
    fn take(&self) -> Vec<CloudNotice>;
    /// Control has taken these durably, or has no use for them: they are not told again.
    fn settle(&self, ids: &[String]);
    /// Queues that cannot be read now, each with why.
    fn troubles(&self) -> Vec<(String, String)>;
}
