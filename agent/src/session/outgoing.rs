//! What the agent says in a session: Hello, what waits in the mail, and reports of what changed since the last.
//!
//! A part of the client, called by its loop. What waits and in which order is the outbox's.

use std::sync::Arc;
use std::time::Duration;

use drover_proto::v1::coordinator_message::Body as Incoming;
use drover_proto::v1::{self, agent_message::Body as Outgoing};
use tokio::sync::mpsc;
use tonic::Streaming;

use crate::clock::{self, BootMs};
use crate::observation::Observation;

use super::Client;
use super::convert::{self, Names};
use super::mail::Mail;
use super::outbox::Parcel;

/// How long the last words may take when the agent stops.
const FLUSH: Duration = Duration::from_secs(2);

impl Client {
    pub(super) fn hello(&self) -> v1::Hello {
        let view = self.view.borrow();
        v1::Hello {
            protocol: drover_proto::limits::PROTOCOL,
            facts: Some(self.facts()),
            highest_epoch: view.highest_epoch,
            observed: view.in_force.as_ref().map(convert::order_to_wire),
            now_unix_ms: clock::unix_ms(),
            actual: Some(view.actual.into()),
        }
    }

    pub(super) fn pack(&self, parcel: Parcel, reports: &mut Reports) -> Outgoing {
        match parcel {
            Parcel::Notice(notice) => Outgoing::Notice(convert::notice(notice)),
            Parcel::Status(status) => Outgoing::OrderStatus(convert::status(status)),
            Parcel::Report => {
                let seen = Arc::clone(&self.observations.borrow());
                let actual = self.view.borrow().actual;
                Outgoing::Report(reports.make(seen, &self.names, actual))
            }
        }
    }

    /// Sends what waits and gives the coordinator a moment to take it.
    pub(super) async fn flush(
        &self,
        out: &mpsc::Sender<v1::AgentMessage>,
        inbound: &mut Streaming<v1::CoordinatorMessage>,
        mut seq: u64,
        reports: &mut Reports,
    ) {
        let sending = async {
            while let Some(parcel) = self.mail.next(seq + 1) {
                seq += 1;
                let parcel = message(seq, self.pack(parcel, reports));
                if out.send(parcel).await.is_err() {
                    return;
                }
            }
            while !self.mail.is_settled() {
                match inbound.message().await {
                    Ok(Some(v1::CoordinatorMessage {
                        body: Some(Incoming::Ack(ack)),
                    })) => self.mail.acknowledged(ack.seq),
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return,
                }
            }
        };
        if tokio::time::timeout(FLUSH, sending).await.is_err() {
            tracing::warn!(
                "not everything was taken by the coordinator; it is kept for the next start"
            );
        }
    }
}

/// What the coordinator was told last in this session.
#[derive(Debug, Default)]
pub(super) struct Reports {
    last: Option<Arc<Observation>>,
    full_at: Option<BootMs>,
    /// A report as a whole every so often.
    pub(super) full_ms: u64,
}

impl Reports {
    fn make(
        &mut self,
        seen: Arc<Observation>,
        names: &Names,
        actual: convert::Actual,
    ) -> v1::Report {
        let now = BootMs::now();
        let full = self.full_at.is_none_or(|at| now.since(at) >= self.full_ms);
        if full {
            self.full_at = Some(now);
            self.last = None;
        }
        let report = convert::report(&seen, self.last.as_deref(), names, actual);
        self.last = Some(seen);
        report
    }
}

pub(super) fn message(seq: u64, body: Outgoing) -> v1::AgentMessage {
    v1::AgentMessage {
        seq,
        body: Some(body),
    }
}

/// Room in the stream and something to put there, once the session is open.
pub(super) async fn ready<'a>(
    out: &'a mpsc::Sender<v1::AgentMessage>,
    mail: &Mail,
    open: bool,
) -> Result<mpsc::Permit<'a, v1::AgentMessage>, mpsc::error::SendError<()>> {
    if !open {
        std::future::pending::<()>().await;
    }
    let permit = out.reserve().await?;
    mail.waiting().await;
    Ok(permit)
}
