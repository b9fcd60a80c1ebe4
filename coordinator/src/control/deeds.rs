//! Calls that end, protect or give back, in the background: a region that dies just then costs the cycle a moment and not
//! a call's whole deadline, and the others nothing. What they gave is taken in the same cycle or in a later one.
//!
//! Begun by `drains::leave`, `execute::reap`, `dead` and `upkeep`, after their intent was committed; taken by the cycle.

use super::cycle::{Control, CycleError, Round};
use super::drains::Leaving;
use super::events::Happening;
use super::hooks::HookDone;
use crate::ports::actuate::{ActuateError, Withdrawal};
use crate::ports::hooks::Hook;
use drover_core::model::{InstanceId, NodeId, PoolId};

/// One call, by what it is about: never twice at a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deed {
    /// A drained node leaves.
    Leave(NodeId),
    /// An instance that never joined is ended.
    Reap(InstanceId),
    /// Members of a pool are protected.
    Guard(PoolId),
    /// A pool's unfilled wish is given back.
    Withdraw(PoolId),
    /// A dead member is taken off its provider's books.
    Bury(InstanceId),
    /// A hook is held or completed, by the key of its record.
    Hook(String),
    /// A group's hooks are read.
    Hooks(PoolId),
}

/// What a call gave.
pub(super) enum Done {
    Left(Leaving, Result<(), ActuateError>),
    Reaped(NodeId, PoolId, Result<(), ActuateError>),
    Guarded(PoolId, Result<(), ActuateError>),
    Withdrawn(PoolId, Result<Withdrawal, ActuateError>),
    Buried(PoolId, InstanceId, Result<(), ActuateError>),
    Hook(HookDone),
    Hooks(PoolId, Result<Vec<Hook>, ActuateError>),
}

impl Control {
    /// It is under way.
    pub(super) fn is_at_work(&self, deed: &Deed) -> bool {
        self.deeds.flying().any(|at_work| at_work == deed)
    }

    /// Takes what has ended; what was begun just now is waited for a moment.
    pub(super) async fn take_deeds(&mut self, round: &mut Round) -> Result<(), CycleError> {
        for (_, done) in self.deeds.ended().await {
            match done {
                Done::Left(leaving, result) => self.left(round, &leaving, result).await?,
                Done::Reaped(node, pool, result) => {
                    if let Err(error) = result {
                        round.events.push(Happening::LeaveFailed {
                            node,
                            kind: error.kind,
                            message: error.message,
                        });
                    }
                    self.pools.stale(&pool);
                }
                Done::Guarded(pool, result) => {
                    if let Err(error) = result {
                        tracing::warn!(pool = %pool, error = %error, "members without protection could not be protected");
                    }
                    self.pools.stale(&pool);
                }
                Done::Withdrawn(pool, result) => self.withdrawn(round, &pool, result).await?,
                Done::Buried(pool, instance, result) => {
                    self.buried(round, &pool, instance, result).await?;
                }
                Done::Hook(done) => self.hook_called(round, done).await?,
                Done::Hooks(pool, result) => self.hooks_read(round, pool, result),
            }
        }
        Ok(())
    }
}
