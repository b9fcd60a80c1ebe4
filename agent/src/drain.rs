//! Makes the node what its order asks: keeps the order on disk, runs the executors, tells how far it is.
//!
//! `run` spawns [`Keeper::run`]; the session hands it orders and word. Decides nothing itself: `order` judges,
//! `drain/machine` says what is next. **Invariant:** what an order changes is on disk before it is acted on.

pub mod deadline;
pub mod executor;
pub mod hooks;
mod keeper;
pub mod machine;
pub mod processes;
pub mod status;

use std::sync::Arc;

use crate::clock::BootMs;
use crate::config::{Config, ExecutorKind};
use crate::order::{DrainSpec, Order, OrderId};
use crate::session::convert::Actual;
use crate::state::StateDir;

use executor::{Executor, Job};
pub use keeper::Keeper;
use machine::Action;
use status::Blocker;

/// What the session and the watchers of notices tell.
#[derive(Debug)]
pub enum ToDrain {
    /// A session of this epoch is open.
    Epoch(u64),
    /// An order.
    Order {
        /// What it asks.
        order: Order,
        /// Coordinator's clock when it sent it.
        coordinator_unix_ms: u64,
        /// The same moment on our clock.
        sent: BootMs,
    },
    /// An order that makes no sense.
    Invalid {
        /// Which one.
        id: OrderId,
        /// Its drain, empty when none.
        drain_id: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The coordinator still means this order.
    Word {
        /// Which one.
        id: OrderId,
        /// When it said so, on our clock.
        sent: BootMs,
    },
    /// The session is over.
    Closed,
    /// The cloud or the hardware takes the node.
    Emergency {
        /// When, if that is known.
        by: Option<BootMs>,
        /// What to begin without an order.
        local: Option<LocalDrain>,
    },
}

/// A drain that nobody ordered: the cloud takes the node, and there is little time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalDrain {
    /// What it is.
    pub spec: DrainSpec,
    /// Its deadline on our clock.
    pub deadline: BootMs,
    /// Also while the coordinator is heard, which may have ordered otherwise.
    pub at_once: bool,
}

pub use hooks::check_dir as check_hooks;

/// What others may know of the drain side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// Highest epoch ever seen.
    pub highest_epoch: u64,
    /// The order in force.
    pub in_force: Option<Order>,
    /// What the node is now.
    pub actual: Actual,
    /// When root released this host, if it is released.
    pub released_at_unix_ms: Option<u64>,
}

/// The executors that a config names.
#[must_use]
pub fn executors(config: &Config, state: &StateDir) -> Vec<Arc<dyn Executor>> {
    config
        .drain
        .executors
        .iter()
        .map(|kind| match kind {
            ExecutorKind::Processes => {
                Arc::new(processes::Processes::new(state.clone())) as Arc<dyn Executor>
            }
            ExecutorKind::Hooks => Arc::new(hooks::Hooks::new(config.hooks.clone())),
        })
        .collect()
}

/// One action over all executors: in order, undone in reverse. The first failure is the answer; undoing goes on
/// past it.
///
/// # Errors
/// What is in the way.
pub async fn carry_out(
    executors: Vec<Arc<dyn Executor>>,
    action: Action,
    job: Job,
) -> Result<(), Blocker> {
    match action {
        Action::Cordon => {
            for executor in &executors {
                executor.cordon(&job).await?;
            }
        }
        Action::Checkpoint { by } => {
            for executor in &executors {
                executor.checkpoint(&job, by).await?;
            }
        }
        Action::Evict { ids, how } => {
            for executor in &executors {
                executor.evict(&ids, how).await?;
            }
        }
        Action::Announce => {
            for executor in &executors {
                executor.announce(&job).await?;
            }
        }
        Action::Undo { keep_cordon } => {
            let mut result = Ok(());
            for executor in executors.iter().rev() {
                result = result.and(executor.undo(&job, keep_cordon).await);
            }
            return result;
        }
    }
    Ok(())
}
