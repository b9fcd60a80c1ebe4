//! Lets one instance leave: by its id, with decrement, and in no other way.
//!
//! Called through the port, for a drained node of an owned pool.

use drover_aws::{AwsApi, AwsError, FailureKind as AwsKind, InstanceState, MemberState};
use drover_core::model::{FailureKind, InstanceId};
use fail::fail_point;

use super::{AsgActuator, AsgPool, convert};
use crate::ports::actuate::ActuateError;

impl<A: AwsApi> AsgActuator<A> {
    pub(super) async fn let_go(
        &self,
        pool: &AsgPool,
        instance: &InstanceId,
    ) -> Result<(), ActuateError> {
        let memory = self.memory(pool);
        let mut flight = memory.flight.lock().await;
        if let Some(token) = &flight.unsettled {
            let text = format!(
                "the ask {token} of group {} is not settled yet: nothing leaves before it is",
                pool.group
            );
            return Err(convert::refused(FailureKind::Transient, "", text));
        }
        let group = self.prepare(pool, &mut flight).await?;
        let id = drover_aws::InstanceId::new(instance.as_str());
        match group.members.iter().find(|m| m.id == id).map(|m| &m.state) {
            None => return self.already_gone(pool, &id).await,
            Some(MemberState::Terminating) => return Ok(()),
            Some(MemberState::Warmed(_)) => {
                let text = format!("{instance} is in the warm pool of {}", pool.group);
                return Err(convert::refused(FailureKind::Config, "", text));
            }
            Some(_) => {}
        }
        fail_point!("asg-leave-before");
        let answer = self.api.terminate_with_decrement(&pool.region, &id).await;
        fail_point!("asg-leave-asked", |_| Err(convert::refused(
            FailureKind::Transient,
            "",
            "a fail point".into()
        )));
        match answer {
            Ok(()) => {
                flight.lowered();
                Ok(())
            }
            Err(error) if error.kind == AwsKind::Gone => Ok(()),
            Err(error) if error.may_have_applied => self
                .look_again(pool, &id, &error)
                .await
                .inspect(|()| flight.lowered()),
            Err(error) => Err(convert::failed(&error)),
        }
    }

    /// After a lost reply: it has left if the group says so, and it is not asked again here.
    async fn look_again(
        &self,
        pool: &AsgPool,
        id: &drover_aws::InstanceId,
        error: &AwsError,
    ) -> Result<(), ActuateError> {
        let group = self.describe(pool).await?;
        let still = group
            .members
            .iter()
            .any(|m| m.id == *id && m.state != MemberState::Terminating);
        if still {
            Err(convert::failed(error))
        } else {
            Ok(())
        }
    }

    /// An instance that the group does not name: gone, or running outside of the group.
    async fn already_gone(
        &self,
        pool: &AsgPool,
        id: &drover_aws::InstanceId,
    ) -> Result<(), ActuateError> {
        let found = self
            .api
            .describe_instances(&pool.region, std::slice::from_ref(id))
            .await;
        match found
            .map_err(|e| convert::failed(&e))?
            .get(id)
            .map(|i| &i.state)
        {
            None | Some(InstanceState::Terminated | InstanceState::ShuttingDown) => Ok(()),
            Some(state) => {
                let text = format!(
                    "{id} is {state:?} and no member of group {}: it was detached",
                    pool.group
                );
                Err(convert::refused(FailureKind::Config, "Detached", text))
            }
        }
    }
}
