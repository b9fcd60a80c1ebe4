//! Lets one instance leave: by its id, with decrement, and in no other way.
//!
//! Called through the port, for a drained node of an owned pool.

use drover_aws::{AwsApi, AwsError, FailureKind as AwsKind, InstanceState, MemberState};
use drover_core::model::{FailureKind, InstanceId};
use fail::fail_point;

use super::memory::Flight;
use super::{AsgActuator, AsgPool, convert};
use crate::ports::actuate::ActuateError;

impl<A: AwsApi> AsgActuator<A> {
    pub(super) async fn let_go(
        &self,
        pool: &AsgPool,
        instance: &InstanceId,
    ) -> Result<(), ActuateError> {
        let memory = self.memory(pool);
        let mut flight = memory.alone().await;
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
        self.terminate(pool, &id, &mut flight).await
    }

    /// A member that EC2 does not run any more: out of the group with decrement, so that AWS does not replace it. What
    /// EC2 says counts at the time of the call.
    pub(super) async fn take_off_the_books(
        &self,
        pool: &AsgPool,
        instance: &InstanceId,
    ) -> Result<(), ActuateError> {
        let memory = self.memory(pool);
        let mut flight = memory.alone().await;
        if let Some(token) = &flight.unsettled {
            let text = format!("the ask {token} of group {} is not settled yet", pool.group);
            return Err(convert::refused(FailureKind::Transient, "", text));
        }
        let group = self.prepare(pool, &mut flight).await?;
        let id = drover_aws::InstanceId::new(instance.as_str());
        let state = group.members.iter().find(|m| m.id == id).map(|m| &m.state);
        match state {
            Some(MemberState::InService | MemberState::Pending | MemberState::Standby) => {}
            // Gone from the books, or on its way; and what a person or AWS keeps aside is not ours to end.
            _ => return Ok(()),
        }
        let found = self
            .api
            .describe_instances(&pool.region, std::slice::from_ref(&id))
            .await
            .map_err(|e| convert::failed(&e))?;
        let hibernates = |why: &Option<String>| {
            let why = why.as_deref().unwrap_or_default();
            why.contains("Hibernate")
        };
        match found.get(&id) {
            None => {}
            Some(i) if i.state == InstanceState::Terminated => {}
            Some(i) if i.state == InstanceState::Stopped && !hibernates(&i.state_reason) => {}
            Some(i) => {
                let text = format!("{id} is {:?}: it is not taken out of its group", i.state);
                return Err(convert::refused(FailureKind::Transient, "Runs", text));
            }
        }
        self.terminate(pool, &id, &mut flight).await
    }

    async fn terminate(
        &self,
        pool: &AsgPool,
        id: &drover_aws::InstanceId,
        flight: &mut Flight,
    ) -> Result<(), ActuateError> {
        fail_point!("asg-leave-before");
        let answer = self.api.terminate_with_decrement(&pool.region, id).await;
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
                .look_again(pool, id, &error)
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
