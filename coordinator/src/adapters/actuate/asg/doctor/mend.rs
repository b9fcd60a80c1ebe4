//! Mends what harms nothing: protection on, AZRebalance and ReplaceUnhealthy suspended, capacity rebalancing off.
//!
//! Called by `doctor` when a person has asked for it. It ends nothing, sizes nothing, and claims nothing: the owner tag is
//! written by the first change of Drover's own.

use drover_aws::{AwsApi, AwsMend, AwsSurvey, Group, GroupName, InstanceId, MemberState, Region};

use super::super::owner::{FREEZE_TAG, frozen};
use super::Doctor;
use crate::ports::survey::MendError;

impl<A: AwsApi + AwsSurvey + AwsMend> Doctor<A> {
    pub(super) async fn put_right(
        &self,
        place: &Region,
        name: &GroupName,
    ) -> Result<Vec<String>, MendError> {
        let group = self.ours(place, name).await?;
        let mut done: Vec<String> = Vec::new();
        macro_rules! step {
            ($call:expr, $told:expr) => {
                match $call.await {
                    Ok(()) => done.push($told),
                    Err(error) => {
                        let why = error.to_string();
                        return Err(MendError::Failed { done, why });
                    }
                }
            };
        }
        // The processes first: each minute that they run may end a member.
        let running: Vec<&str> = ["AZRebalance", "ReplaceUnhealthy"]
            .into_iter()
            .filter(|process| !group.suspended.contains_key(*process))
            .collect();
        if !running.is_empty() {
            let told = format!("suspended {}", running.join(" and "));
            step!(self.api.suspend_own_removals(place, name), told);
        }
        if !group.protects_new {
            let told = "new members start with scale-in protection".to_owned();
            step!(self.api.protect_new(place, name), told);
        }
        let bare = bare(&group);
        if !bare.is_empty() {
            let told = format!("protected {} members from scale-in", bare.len());
            step!(self.api.protect_from_scale_in(place, name, &bare), told);
        }
        if group.capacity_rebalance == Some(true) {
            let told = "switched capacity rebalancing off".to_owned();
            step!(self.api.capacity_rebalance_off(place, name), told);
        }
        Ok(done)
    }

    /// The group, if it is ours to change.
    async fn ours(&self, place: &Region, name: &GroupName) -> Result<Group, MendError> {
        let refused = MendError::Refused;
        let found = self
            .api
            .describe_groups(place, std::slice::from_ref(name))
            .await;
        let group = found
            .map_err(|error| refused(error.to_string()))?
            .remove(name)
            .ok_or_else(|| refused(format!("there is no group {name} in {place}")))?;
        if let Some(why) = frozen(&group.tags) {
            let text = format!(
                "group {name} is frozen by its tag {FREEZE_TAG} ({why}): nothing was changed"
            );
            return Err(refused(text));
        }
        self.owner
            .judge(&group.tags)
            .map_err(|why| refused(format!("nothing was changed: {why}")))?;
        Ok(group)
    }
}

/// Members that lack protection and can take it: AWS takes it from InService on.
fn bare(group: &Group) -> Vec<InstanceId> {
    let bare = group.members.iter().filter(|m| {
        !m.protected && matches!(m.state, MemberState::InService | MemberState::Standby)
    });
    bare.map(|m| m.id.clone()).collect()
}
