//! Wishes about pools: pause and resume, freeze and thaw, mode and limits. Used by `serve/admin`; whether one makes sense
//! is judged by `control::commands`.

use super::refusal::{named, refuse, text};
use super::shown::{noted, warned};
use super::{Admin, Answer, given};
use crate::control::commands::LimitsWish;
use crate::serve::convert::pools;
use drover_core::model::Mode;
use drover_proto::{limits, v1};

impl Admin {
    /// Lets nothing be asked of a pool.
    pub(super) async fn pause(&self, by: String, wish: v1::PausePoolRequest) -> Answer<v1::Pool> {
        text("reason", &wish.reason, limits::TEXT_BYTES)?;
        let done = self
            .commands
            .pause_pool(&by, &wish.pool, &wish.reason)
            .await;
        self.changed_pool(done.map_err(refuse)?).await
    }

    /// Takes a pause back.
    pub(super) async fn resume(&self, by: String, wish: v1::ResumePoolRequest) -> Answer<v1::Pool> {
        let done = self.commands.resume_pool(&by, &wish.pool).await;
        self.changed_pool(done.map_err(refuse)?).await
    }

    /// Freezes a pool, or the fleet.
    pub(super) async fn freeze_scope(
        &self,
        by: String,
        wish: v1::FreezeRequest,
    ) -> Answer<v1::FreezeReply> {
        text("reason", &wish.reason, limits::TEXT_BYTES)?;
        let done = self
            .commands
            .freeze(&by, given(&wish.pool), &wish.reason)
            .await;
        let done = done.map_err(refuse)?;
        Ok(noted(self.freezes().await?, done.unchanged))
    }

    /// Takes a freeze back.
    pub(super) async fn thaw_scope(
        &self,
        by: String,
        wish: v1::ThawRequest,
    ) -> Answer<v1::FreezeReply> {
        self.commands
            .thaw(&by, given(&wish.pool))
            .await
            .map_err(refuse)?;
        self.freezes().await
    }

    /// Changes the mode in force.
    pub(super) async fn set_mode(
        &self,
        by: String,
        wish: v1::SetPoolModeRequest,
    ) -> Answer<v1::Pool> {
        text("reason", &wish.reason, limits::TEXT_BYTES)?;
        let mode = pools::mode_from(&wish.mode).map_err(|why| named("mode", &why))?;
        let done = self
            .commands
            .change_pool_mode(&by, &wish.pool, mode, &wish.reason, wish.sooner)
            .await;
        let done = done.map_err(refuse)?;
        let acts = mode != Mode::Observe && done.unchanged.is_none();
        let pool = done.of.clone();
        let answer = self.changed_pool(done).await?;
        // From the reading of the cycle that has seen the change.
        let open = self.commands.open_of(&pool).filter(|_| acts);
        Ok(warned(answer, open))
    }

    /// Changes the limits in force.
    pub(super) async fn set_limits(
        &self,
        by: String,
        wish: v1::SetPoolLimitsRequest,
    ) -> Answer<v1::Pool> {
        let limits = LimitsWish {
            min: wish.min,
            max: wish.max,
            spare: wish.spare,
            reset: wish.reset,
        };
        let done = self
            .commands
            .set_pool_limits(&by, &wish.pool, &limits)
            .await;
        self.changed_pool(done.map_err(refuse)?).await
    }
}
