//! [`AwsEvents`] over the SDK: messages of a queue, and answers to lifecycle hooks.
//!
//! Called through the trait. It parses no message. Hooks are answered in one attempt.

use std::time::Duration;

use async_trait::async_trait;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_sqs::types::DeleteMessageBatchRequestEntry;

use super::SdkAws;
use crate::{
    AwsError, AwsEvents, Call, FailureKind, GroupName, HookAnswer, InstanceId, QueueMessage, Region,
};

/// The most messages of one call, and the longest wait, seconds (AWS's limits).
const MESSAGES_AT_ONCE: usize = 10;
const LONGEST_WAIT: u32 = 20;

#[async_trait]
impl AwsEvents for SdkAws {
    async fn receive(
        &self,
        region: &Region,
        queue_url: &str,
        wait_seconds: u32,
    ) -> Result<Vec<QueueMessage>, AwsError> {
        let clients = self.clients(region).await;
        let wait = wait_seconds.min(LONGEST_WAIT);
        // AWS answers when a message comes or the wait is over: only then does the time-out begin.
        let patient = TimeoutConfig::builder()
            .connect_timeout(clients.attempt)
            .operation_timeout(clients.attempt + Duration::from_secs(u64::from(wait)))
            .build();
        let request = clients
            .sqs
            .receive_message()
            .queue_url(queue_url)
            .max_number_of_messages(10)
            .wait_time_seconds(i32::try_from(wait).unwrap_or(0));
        let mut turn = self.turn(region, Call::ReceiveMessage);
        let reply = turn
            .read(|| {
                let config = aws_sdk_sqs::config::Config::builder().timeout_config(patient.clone());
                request.clone().customize().config_override(config).send()
            })
            .await?;
        reply
            .messages
            .unwrap_or_default()
            .into_iter()
            .map(|raw| {
                let lacks = |field| turn.lacks(format!("a message without {field}"));
                Ok(QueueMessage {
                    id: raw.message_id.unwrap_or_default(),
                    receipt: raw.receipt_handle.ok_or_else(|| lacks("ReceiptHandle"))?,
                    body: raw.body.unwrap_or_default(),
                })
            })
            .collect()
    }

    async fn delete(
        &self,
        region: &Region,
        queue_url: &str,
        receipts: &[String],
    ) -> Result<(), AwsError> {
        let call = Call::DeleteMessageBatch;
        if receipts.is_empty() {
            return Ok(());
        }
        let wrong = |text| AwsError::unreported(call, region, FailureKind::Config, text, false);
        if receipts.len() > MESSAGES_AT_ONCE {
            return Err(wrong(format!(
                "{} messages are more than the {MESSAGES_AT_ONCE} of one call",
                receipts.len()
            )));
        }
        let entries = receipts
            .iter()
            .enumerate()
            .map(|(n, receipt)| {
                DeleteMessageBatchRequestEntry::builder()
                    .id(n.to_string())
                    .receipt_handle(receipt)
                    .build()
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| wrong(e.to_string()))?;
        let clients = self.clients(region).await;
        let request = clients
            .sqs
            .delete_message_batch()
            .queue_url(queue_url)
            .set_entries(Some(entries));
        // To delete twice does no harm.
        let mut turn = self.turn(region, call);
        let reply = turn.read(|| request.clone().send()).await?;
        match reply.failed.first() {
            None => Ok(()),
            Some(first) => Err(AwsError::reported(
                call,
                region,
                if first.sender_fault { 400 } else { 500 },
                Some(&first.code),
                &format!(
                    "{} of {} messages were not deleted: {}",
                    reply.failed.len(),
                    receipts.len(),
                    first.message.as_deref().unwrap_or_default()
                ),
            )),
        }
    }

    async fn heartbeat(
        &self,
        region: &Region,
        group: &GroupName,
        hook: &str,
        instance: &InstanceId,
    ) -> Result<(), AwsError> {
        let clients = self.clients(region).await;
        let request = clients
            .autoscaling
            .record_lifecycle_action_heartbeat()
            .auto_scaling_group_name(group.as_str())
            .lifecycle_hook_name(hook)
            .instance_id(instance.as_str());
        self.turn(region, Call::RecordLifecycleActionHeartbeat)
            .once(request.send())
            .await?;
        Ok(())
    }

    async fn complete(
        &self,
        region: &Region,
        group: &GroupName,
        hook: &str,
        instance: &InstanceId,
        answer: HookAnswer,
    ) -> Result<(), AwsError> {
        let clients = self.clients(region).await;
        let request = clients
            .autoscaling
            .complete_lifecycle_action()
            .auto_scaling_group_name(group.as_str())
            .lifecycle_hook_name(hook)
            .instance_id(instance.as_str())
            .lifecycle_action_result(match answer {
                HookAnswer::Continue => "CONTINUE",
                HookAnswer::Abandon => "ABANDON",
            });
        self.turn(region, Call::CompleteLifecycleAction)
            .once(request.send())
            .await?;
        Ok(())
    }
}
