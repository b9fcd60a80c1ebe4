//! What the coordinator says in a session, handed to whom it concerns.
//!
//! A part of the client, called by its loop. What orders mean is `drain`'s, whether a message may come now the machine's.

use std::time::Duration;

use drover_proto::v1::{self, coordinator_message::Body as Incoming};

use crate::clock::BootMs;
use crate::drain::ToDrain;
use crate::order::OrderId;

use super::machine::{End, Heard, Session};
use super::outgoing::Reports;
use super::{Client, convert};

/// Rates that the coordinator may ask for.
const INTERVAL_MIN: Duration = Duration::from_millis(200);
/// See [`INTERVAL_MIN`].
const INTERVAL_MAX: Duration = Duration::from_secs(3_600);

impl Client {
    pub(super) async fn take(
        &mut self,
        incoming: v1::CoordinatorMessage,
        session: &mut Session,
        reports: &mut Reports,
    ) -> Result<(), End> {
        let now = BootMs::now();
        match incoming.body {
            Some(Incoming::Welcome(welcome)) => {
                session.heard(
                    Heard::Welcome {
                        protocol: welcome.protocol,
                        heartbeat_ms: welcome.heartbeat_interval_ms,
                        now_unix_ms: welcome.now_unix_ms,
                    },
                    now,
                )?;
                tracing::info!(
                    node = self.identity.node_id(),
                    epoch = welcome.epoch,
                    store = welcome.store_id,
                    "session open"
                );
                self.identity.heard_clock(welcome.now_unix_ms);
                reports.full_ms = welcome.full_interval_ms.max(1_000);
                if welcome.report_interval_ms != 0 {
                    let wanted = Duration::from_millis(welcome.report_interval_ms);
                    self.interval
                        .send_replace(wanted.clamp(INTERVAL_MIN, INTERVAL_MAX));
                }
                self.mail.report();
                self.tell(ToDrain::Epoch(welcome.epoch)).await
            }
            Some(Incoming::Order(order)) => {
                let heard = Heard::Word {
                    now_unix_ms: order.now_unix_ms,
                };
                let sent = session.heard(heard, now)?;
                let id = OrderId {
                    epoch: order.epoch,
                    generation: order.generation,
                };
                let drain_id = order.drain.as_ref().map(|drain| drain.id.clone());
                match convert::order(order) {
                    Ok((order, coordinator_unix_ms)) => {
                        let order = ToDrain::Order {
                            order,
                            coordinator_unix_ms,
                            sent,
                        };
                        self.tell(order).await
                    }
                    Err(bad) => {
                        let drain_id = drain_id.unwrap_or_default();
                        let reason = bad.to_string();
                        self.tell(ToDrain::Invalid {
                            id,
                            drain_id,
                            reason,
                        })
                        .await
                    }
                }
            }
            Some(Incoming::Heartbeat(beat)) => {
                let heard = Heard::Word {
                    now_unix_ms: beat.now_unix_ms,
                };
                let sent = session.heard(heard, now)?;
                let id = OrderId {
                    epoch: beat.epoch,
                    generation: beat.generation,
                };
                self.tell(ToDrain::Word { id, sent }).await
            }
            Some(Incoming::Ack(ack)) => {
                session.heard(Heard::Other, now)?;
                self.mail.acknowledged(ack.seq);
                Ok(())
            }
            // A message of a later release.
            None => session.heard(Heard::Other, now).map(|_| ()),
        }
    }

    async fn tell(&self, message: ToDrain) -> Result<(), End> {
        self.drain
            .send(message)
            .await
            .map_err(|_| End::Closed("the agent is ending".into()))
    }
}
