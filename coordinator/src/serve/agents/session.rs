//! One session: Hello, Welcome, then reports in and orders, acknowledgements and heartbeats out. A task per session;
//! everything it knows goes to the hub.

use super::Agents;
use super::enrol::node_key;
use crate::adapters::link::{Ending, LinkError, Opening, SessionLink};
use crate::records::NodeRecord;
use crate::serve::auth::Caller;
use crate::serve::convert::{agents as convert, limits as check};
use drover_core::model::{NodeId, UnixMs};
use drover_proto::v1::agent_message::Body;
use drover_proto::v1::coordinator_message::Body as Out;
use drover_proto::{limits, v1};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tonic::{Status, Streaming};

/// How long Hello may take.
const HELLO: Duration = Duration::from_secs(15);
/// A peer that does not read for this long is cut.
const SEND: Duration = Duration::from_secs(20);

type Sender = mpsc::Sender<Result<v1::CoordinatorMessage, Status>>;

/// Runs one session to its end, and tells the agent why it ended.
pub(super) async fn run(
    agents: Arc<Agents>,
    caller: Caller,
    mut stream: Streaming<v1::AgentMessage>,
    out: Sender,
) {
    let Some(node) = caller.node().cloned() else {
        return;
    };
    let end = async {
        let (mut link, seq) = agents.greet(&caller, &node, &mut stream, &out).await?;
        agents.talk(&mut link, seq, &mut stream, &out).await
    }
    .await;
    match end {
        Ok(()) => tracing::debug!(node = %node, "the agent closed its session"),
        Err(status) => {
            tracing::info!(
                node = %node, peer = %caller.address, code = ?status.code(),
                reason = status.message(), "session ended"
            );
            // The peer may be gone: then nobody needs the reason.
            let _ = timeout(SEND, out.send(Err(status))).await;
        }
    }
}

fn ended(why: Ending) -> Status {
    let text = why.to_string();
    match why {
        Ending::Replaced => Status::aborted(text),
        Ending::Forgotten | Ending::Quarantined => Status::permission_denied(text),
        Ending::Stopping | Ending::Fenced => Status::unavailable(text),
    }
}

fn not_taken(error: LinkError) -> Status {
    match error {
        LinkError::Ended(why) => ended(why),
        LinkError::Notices => Status::unavailable(error.to_string()),
    }
}

async fn send(out: &Sender, body: Out) -> Result<(), Status> {
    let message = v1::CoordinatorMessage { body: Some(body) };
    match timeout(SEND, out.send(Ok(message))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Status::cancelled("the agent is gone")),
        Err(_) => Err(Status::unavailable("the agent does not read")),
    }
}

impl Agents {
    /// Hello and Welcome. Gives the session and the sequence number of Hello.
    async fn greet(
        &self,
        caller: &Caller,
        node: &NodeId,
        stream: &mut Streaming<v1::AgentMessage>,
        out: &Sender,
    ) -> Result<(SessionLink, u64), Status> {
        let first = timeout(HELLO, stream.message())
            .await
            .map_err(|_| Status::deadline_exceeded("no Hello came"))??
            .ok_or_else(|| Status::cancelled("no Hello came"))?;
        let Some(Body::Hello(hello)) = first.body else {
            return Err(Status::invalid_argument("body: the first message is Hello"));
        };
        check::hello(&hello)?;
        let facts = hello.facts.unwrap_or_default();
        self.known_or_adopted(&caller.certificate, node, &facts)
            .await?;
        let obeyed = hello.observed.as_ref().and_then(convert::obeyed);
        let record = self.meet(node, hello.highest_epoch, obeyed).await?;
        let epoch = record
            .as_ref()
            .map_or(hello.highest_epoch + 1, |record| record.epoch);
        let opening = Opening {
            facts,
            highest_epoch: hello.highest_epoch,
            observed: hello.observed,
            actual: hello.actual,
            now: UnixMs(hello.now_unix_ms),
        };
        let link = self.hub().open(node, opening, record).map_err(ended)?;
        let intervals = self.parts.intervals;
        let welcome = v1::Welcome {
            protocol: limits::PROTOCOL,
            epoch,
            report_interval_ms: intervals.report.0,
            full_interval_ms: intervals.full.0,
            now_unix_ms: self.parts.clock.wall().0,
            store_id: self.store().store_id().to_owned(),
            heartbeat_interval_ms: intervals.heartbeat.0,
        };
        send(out, Out::Welcome(welcome)).await?;
        // Revoked or quarantined between the first look and the opening: no session was found to end, so look again.
        match self.read::<NodeRecord>(&node_key(node)).await? {
            Some(held) if held.value.quarantined.is_some() => Err(ended(Ending::Quarantined)),
            Some(held) if !held.value.revoked => Ok((link, first.seq)),
            _ => Err(ended(Ending::Forgotten)),
        }
    }

    /// Until either side ends it.
    async fn talk(
        &self,
        link: &mut SessionLink,
        mut seq: u64,
        stream: &mut Streaming<v1::AgentMessage>,
        out: &Sender,
    ) -> Result<(), Status> {
        let every = Duration::from_millis(self.parts.intervals.heartbeat.0.max(100));
        let mut heartbeat = interval_at(Instant::now() + every, every);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.send_work(link, out).await?;
            tokio::select! {
                message = stream.message() => {
                    let Some(message) = message? else {
                        return Ok(());
                    };
                    if message.seq <= seq {
                        let text = format!("seq: {} after {seq}; it grows by one", message.seq);
                        return Err(Status::invalid_argument(text));
                    }
                    seq = message.seq;
                    take(link, message)?;
                }
                () = link.kicked() => {}
                _ = heartbeat.tick() => {
                    let (epoch, generation) = link.meant().unwrap_or_default();
                    let word = v1::Heartbeat {
                        now_unix_ms: self.parts.clock.wall().0,
                        epoch,
                        generation,
                    };
                    send(out, Out::Heartbeat(word)).await?;
                }
            }
        }
    }

    async fn send_work(&self, link: &mut SessionLink, out: &Sender) -> Result<(), Status> {
        let work = link.work();
        if let Some(why) = work.end {
            return Err(ended(why));
        }
        if let Some(order) = work.order {
            let order = convert::order(&order, self.parts.clock.wall());
            tracing::debug!(
                node = %link.node(), epoch = order.epoch, generation = order.generation,
                "order sent"
            );
            send(out, Out::Order(order)).await?;
        }
        if let Some(seq) = work.ack {
            send(out, Out::Ack(v1::Ack { seq })).await?;
        }
        Ok(())
    }
}

/// One message into the hub.
fn take(link: &mut SessionLink, message: v1::AgentMessage) -> Result<(), Status> {
    match message.body {
        Some(Body::Report(report)) => {
            check::report(&report)?;
            link.report(report).map_err(not_taken)
        }
        Some(Body::Notice(notice)) => {
            check::notice(&notice)?;
            link.notice(message.seq, notice).map_err(not_taken)
        }
        Some(Body::OrderStatus(status)) => {
            check::order_status(&status)?;
            let stale = status.refused.starts_with("stale")
                && link.meant() == Some((status.epoch, status.generation));
            link.order_status(message.seq, status).map_err(not_taken)?;
            if stale {
                return Err(Status::aborted(
                    "the order in force is of an older epoch than this node has seen: say Hello again, it is raised then",
                ));
            }
            Ok(())
        }
        Some(Body::Hello(_)) => Err(Status::invalid_argument("body: a second Hello")),
        // From a newer agent: nothing we know, nothing that hurts.
        None => Ok(()),
    }
}
