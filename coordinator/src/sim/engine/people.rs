//! What simulated people ask of the coordinator, which may die at it like at anything else that it does.
//!
//! Called by the engine and its mishaps. A person whose answer never came asks again once the coordinator is back.

use super::{Engine, SimError};
use crate::control::commands::{CommandError, Commands};

/// Who asks.
pub(super) const PERSON: &str = "admin/simulated";

impl Engine {
    /// A person asks for something; `awaited` names it.
    pub(super) async fn person<T>(
        &mut self,
        awaited: &'static str,
        ask: impl AsyncFn(&Commands) -> Result<T, CommandError>,
    ) -> Result<Result<T, CommandError>, SimError> {
        loop {
            self.awaited = awaited;
            if let Some(answer) = self.death.or(ask(&self.commands)).await {
                return Ok(answer);
            }
            self.died().await?;
        }
    }

    /// Approves everything that waits for it. True: something did.
    pub(super) async fn approve_all(&mut self) -> Result<bool, SimError> {
        let waiting = self.commands.view().approvals.clone();
        for approval in &waiting {
            self.person("an approval", async |commands| {
                commands.approve(PERSON, &approval.id).await
            })
            .await??;
        }
        Ok(!waiting.is_empty())
    }
}
