//! What comes before every mutation: the group is read again, and it must be ours, thawed and protected.
//!
//! Called by `grow`, `settle` and `leave` with the group's lock held. It writes the owner tag where it is open,
//! protects members, and raises a desired capacity that is below what runs. It never lowers anything.

use drover_aws::{AwsApi, AwsError, Group, InstanceId, MemberState};
use drover_core::model::FailureKind;

use super::memory::Flight;
use super::observe::missing;
use super::owner::{Claim, FREEZE_TAG, OWNER_TAG, frozen};
use super::{AsgActuator, AsgPool, convert};
use crate::ports::actuate::ActuateError;

impl<A: AwsApi> AsgActuator<A> {
    /// The group as it is now.
    pub(super) async fn describe(&self, pool: &AsgPool) -> Result<Group, ActuateError> {
        let mut found = self
            .api
            .describe_groups(&pool.region, std::slice::from_ref(&pool.group))
            .await
            .map_err(|e| convert::failed(&e))?;
        found.remove(&pool.group).ok_or_else(|| missing(pool))
    }

    /// The group, ours and ready for a change.
    pub(super) async fn prepare(
        &self,
        pool: &AsgPool,
        flight: &mut Flight,
    ) -> Result<Group, ActuateError> {
        let mut group = self.describe(pool).await?;
        self.check(pool, &group)?;
        if self.judge(pool, &group)? == Claim::Open {
            tracing::info!(pool = %pool.pool, group = %pool.group, owner = self.owner.tag(), "claims the group");
            let claimed = self
                .api
                .tag_group(&pool.region, &pool.group, OWNER_TAG, &self.owner.tag())
                .await;
            claimed.map_err(|e| convert::failed(&e))?;
            // Another coordinator may have claimed it at the same time: the last word counts, and it must be ours.
            group = self.describe(pool).await?;
            self.check(pool, &group)?;
            if self.judge(pool, &group)? == Claim::Open {
                let text = format!(
                    "the owner tag of group {} was written and does not show yet",
                    pool.group
                );
                return Err(convert::refused(FailureKind::Transient, "", text));
            }
        }
        self.protect(pool, &group)
            .await
            .map_err(|e| convert::failed(&e))?;
        let live = group.live_count();
        // Beside launches at work a describe may show their members and not yet their desired capacity.
        if live > group.desired && live <= group.max && !flight.is_shared() {
            // Left so, AWS would look for members to end.
            let raised = self
                .api
                .set_desired_capacity(&pool.region, &pool.group, live)
                .await;
            raised.map_err(|e| convert::failed(&e))?;
            flight.raised(live, self.clock.mono());
            group.desired = live;
        }
        Ok(group)
    }

    /// Puts scale-in protection on every member that lacks it. AWS takes it from InService on.
    pub(super) async fn protect(&self, pool: &AsgPool, group: &Group) -> Result<usize, AwsError> {
        let bare: Vec<InstanceId> = group
            .members
            .iter()
            .filter(|m| {
                !m.protected && matches!(m.state, MemberState::InService | MemberState::Standby)
            })
            .map(|m| m.id.clone())
            .collect();
        if !bare.is_empty() {
            tracing::warn!(pool = %pool.pool, group = %pool.group, members = bare.len(), "protects members from scale-in");
            self.api
                .protect_from_scale_in(&pool.region, &pool.group, &bare)
                .await?;
        }
        Ok(bare.len())
    }

    fn judge(&self, pool: &AsgPool, group: &Group) -> Result<Claim, ActuateError> {
        let judged = self.owner.judge(&group.tags);
        judged.map_err(|why| {
            convert::refused(
                FailureKind::Permission,
                convert::NOT_OURS,
                format!("{}: {why}", pool.group),
            )
        })
    }

    fn check(&self, pool: &AsgPool, group: &Group) -> Result<(), ActuateError> {
        if let Some(why) = frozen(&group.tags) {
            let text = format!(
                "group {} is frozen by its tag {FREEZE_TAG}: {why}",
                pool.group
            );
            return Err(convert::refused(FailureKind::Suspended, "Frozen", text));
        }
        if group.is_weighted() {
            let text = format!(
                "group {} weighs its instances, so its capacity is no number of nodes",
                pool.group
            );
            return Err(convert::refused(FailureKind::Config, "Weighted", text));
        }
        if let Some(status) = &group.status {
            let text = format!("group {} is going: {status}", pool.group);
            return Err(convert::refused(FailureKind::Config, "", text));
        }
        Ok(())
    }
}
