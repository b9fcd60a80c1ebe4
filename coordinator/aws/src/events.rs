//! What AWS tells by itself: messages in a queue, and lifecycle hooks that wait for an answer.
//!
//! Implemented by `SdkAws` and by the fakes of tests; called by the coordinator's notice source and by the `asg` adapter.

use async_trait::async_trait;

use crate::{AwsError, GroupName, HookAnswer, InstanceId, QueueMessage, Region};

/// Messages and hooks.
#[async_trait]
pub trait AwsEvents: Send + Sync {
    /// SQS ReceiveMessage: at most 10, waiting at most `wait_seconds` (0 to 20) for the first.
    async fn receive(
        &self,
        region: &Region,
        queue_url: &str,
        wait_seconds: u32,
    ) -> Result<Vec<QueueMessage>, AwsError>;

    /// SQS DeleteMessageBatch of messages that were dealt with (their receipt handles, at most 10).
    async fn delete(
        &self,
        region: &Region,
        queue_url: &str,
        receipts: &[String],
    ) -> Result<(), AwsError>;

    /// RecordLifecycleActionHeartbeat for an instance that waits in this hook. Sent once.
    async fn heartbeat(
        &self,
        region: &Region,
        group: &GroupName,
        hook: &str,
        instance: &InstanceId,
    ) -> Result<(), AwsError>;

    /// CompleteLifecycleAction for an instance that waits in this hook. Sent once.
    async fn complete(
        &self,
        region: &Region,
        group: &GroupName,
        hook: &str,
        instance: &InstanceId,
        answer: HookAnswer,
    ) -> Result<(), AwsError>;
}
