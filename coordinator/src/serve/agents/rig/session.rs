//! An agent's end of a session: what a test says and hears. A part of `rig`.

use super::{facts, soon};
use drover_proto::v1::agent_message::Body;
use drover_proto::v1::coordinator_message::Body as Out;
use drover_proto::{limits, v1};
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

/// An agent's end of a session.
pub(crate) struct Session {
    pub(super) out: mpsc::Sender<v1::AgentMessage>,
    pub(crate) seq: u64,
    pub(super) stream: Result<Streaming<v1::CoordinatorMessage>, Status>,
}

pub(crate) fn hello(highest_epoch: u64) -> v1::Hello {
    v1::Hello {
        protocol: limits::PROTOCOL,
        facts: Some(facts("titan-01")),
        highest_epoch,
        ..v1::Hello::default()
    }
}

impl Session {
    pub(crate) async fn say(&mut self, body: Body) -> u64 {
        self.seq += 1;
        let message = v1::AgentMessage {
            seq: self.seq,
            body: Some(body),
        };
        // The other side may have ended it: what it says then is what the test looks at.
        let _ = self.out.send(message).await;
        self.seq
    }

    /// The next message that is no heartbeat, or why the session ended.
    pub(crate) async fn hear(&mut self) -> Result<Out, Status> {
        loop {
            match self.hear_any().await? {
                Out::Heartbeat(_) => {}
                other => return Ok(other),
            }
        }
    }

    pub(crate) async fn hear_any(&mut self) -> Result<Out, Status> {
        let stream = self.stream.as_mut().map_err(|status| status.clone())?;
        match soon(stream.message()).await? {
            Some(message) => Ok(message.body.expect("an empty message")),
            None => Err(Status::cancelled("closed without a reason")),
        }
    }

    pub(crate) async fn welcome(&mut self) -> v1::Welcome {
        match self.hear().await {
            Ok(Out::Welcome(welcome)) => welcome,
            other => panic!("{other:?}"),
        }
    }

    /// Why it ended; whatever else comes is passed over.
    pub(crate) async fn end(&mut self) -> Status {
        loop {
            if let Err(status) = self.hear().await {
                return status;
            }
        }
    }
}
