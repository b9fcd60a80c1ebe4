//! The agent's one stream to the coordinator: made, kept, made anew.
//!
//! `run` spawns [`Client::run`]. It joins identity, link, the pure machines and the outbox; what orders mean is
//! `drain`'s, which it only hands them to. Here are its life and its loop; what comes in is in `incoming`, what goes out
//! in `outgoing`.

pub mod backoff;
pub mod convert;
mod incoming;
pub mod link;
pub mod machine;
pub mod mail;
pub mod outbox;
mod outgoing;
pub mod repeat;

use std::sync::Arc;
use std::time::Duration;

use drover_proto::v1::{self, agent_message::Body as Outgoing};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use crate::clock::BootMs;
use crate::drain::{ToDrain, View};
use crate::identity::enrol::CallError;
use crate::identity::{IdentityError, Keeper};
use crate::observation::Observation;

use convert::Names;
use machine::{End, Retry, Session};
use mail::Mail;
use outgoing::{Reports, message, ready};
use repeat::{Loudness, Repeats};

/// Between looks at the clock.
const TICK: Duration = Duration::from_secs(1);
/// Between tries to renew a certificate within a session.
const RENEW_PAUSE_MS: u64 = 60_000;
/// How long the first connection waits for the host's facts.
const FIRST_LOOK: Duration = Duration::from_millis(1_500);
/// How long the coordinator may take to open the stream.
const OPENING: Duration = Duration::from_secs(15);

/// Everything the session needs of the rest of the agent.
#[derive(Debug)]
pub struct Client {
    /// Key, certificate and how to get them.
    pub identity: Keeper,
    /// What waits to be sent.
    pub mail: Mail,
    /// What the collector sees.
    pub observations: watch::Receiver<Arc<Observation>>,
    /// Orders and word of the coordinator go here.
    pub drain: mpsc::Sender<ToDrain>,
    /// What the drain side knows, for Hello and reports.
    pub view: watch::Receiver<View>,
    /// The rate that the coordinator wants goes here.
    pub interval: watch::Sender<Duration>,
    /// Names that the config sets.
    pub names: Names,
    /// True: send what waits and end.
    pub stop: watch::Receiver<bool>,
}

/// Why [`Client::one`] came back.
enum Over {
    Stopped,
    Ended(End),
    Trouble(IdentityError),
}

impl Client {
    /// Connects again and again until the agent stops.
    pub async fn run(mut self) {
        let mut retry = Retry::default();
        let mut repeats = Repeats::default();
        loop {
            let (over, good) = self.one().await;
            self.mail.session_lost();
            // The agent is ending: nobody listens.
            let _ended = self.drain.send(ToDrain::Closed).await.is_err();
            if good {
                retry.reset();
                repeats.over();
            }
            let (what, why, slowly) = match over {
                Over::Stopped => return,
                Over::Ended(end) => ("session ended", end.to_string(), end.needs_a_person()),
                Over::Trouble(error) => {
                    let slowly = error.needs_a_person();
                    let why = format!("{:#}", anyhow::Error::from(error));
                    ("no session with the coordinator", why, slowly)
                }
            };
            match repeats.came(&why) {
                Loudness::Warn => tracing::warn!(why, "{what}"),
                Loudness::Remind(times) => tracing::info!(why, times, "again: {what}"),
                Loudness::Quiet => tracing::debug!(why, "{what}"),
            }
            let rest = retry.rest(slowly, rand::random());
            tracing::debug!(rest_ms = rest.as_millis(), "resting before the next try");
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                _ = stopped(self.stop.clone()) => return,
            }
        }
    }

    fn facts(&self) -> v1::Facts {
        convert::facts(&self.observations.borrow().facts, &self.names)
    }

    async fn connect(&mut self) -> Result<link::Client, IdentityError> {
        // Facts of a host not looked at yet would be false ones; a host that cannot be read is not waited for.
        let mut observations = self.observations.clone();
        let seen = observations.wait_for(|seen| !seen.facts.boot_id.is_empty());
        let _seen_or_not = tokio::time::timeout(FIRST_LOOK, seen).await.is_ok();
        let facts = self.facts();
        self.identity.ensure(|| facts).await?;
        self.identity.dial().await
    }

    /// One try: identity, connection, session.
    async fn one(&mut self) -> (Over, bool) {
        let stop = stopped(self.stop.clone());
        let mut client = tokio::select! {
            _ = stop => return (Over::Stopped, false),
            client = self.connect() => match client {
                Ok(client) => client,
                Err(error) => return (Over::Trouble(error), false),
            },
        };
        let began = BootMs::now();
        let mut session = Session::begin(began);
        let end = self.converse(&mut client, &mut session).await;
        let good = session.was_good(BootMs::now());
        match end {
            None => (Over::Stopped, good),
            Some(End::Refused(message)) => {
                let facts = self.facts();
                match self.identity.refused(message, facts).await {
                    Ok(()) => (Over::Ended(End::Closed("identity made anew".into())), good),
                    Err(error) => (Over::Trouble(error), false),
                }
            }
            Some(end) => (Over::Ended(end), good),
        }
    }

    /// The stream from Hello to its end; `None` when the agent stops.
    async fn converse(&mut self, client: &mut link::Client, session: &mut Session) -> Option<End> {
        // One message may wait for the network; everything else coalesces in the outbox.
        let (out, stream) = mpsc::channel(1);
        let mut seq = 1;
        let hello = Outgoing::Hello(self.hello());
        if out.send(message(seq, hello)).await.is_err() {
            return Some(End::Closed("no stream".into()));
        }
        let opening = client.session(ReceiverStream::new(stream));
        let mut inbound = match tokio::time::timeout(OPENING, opening).await {
            Err(_) => return Some(End::Silent(OPENING.as_secs())),
            Ok(Err(status)) => return Some(ended(&status)),
            Ok(Ok(reply)) => reply.into_inner(),
        };
        let mut reports = Reports::default();
        let mut tick = tokio::time::interval(TICK);
        let mut renewed_at: Option<BootMs> = None;
        let mut stop = self.stop.clone();
        let mut observations = self.observations.clone();
        let mut view = self.view.clone();
        loop {
            tokio::select! {
                incoming = inbound.message() => match incoming {
                    Err(status) => return Some(ended(&status)),
                    Ok(None) => return Some(End::Closed("by the coordinator".into())),
                    Ok(Some(incoming)) => {
                        if let Err(end) = self.take(incoming, session, &mut reports).await {
                            return Some(end);
                        }
                    }
                },
                permit = ready(&out, &self.mail, session.is_open()) => {
                    let Ok(permit) = permit else {
                        return Some(End::Closed("stream given up".into()));
                    };
                    if let Some(parcel) = self.mail.next(seq + 1) {
                        seq += 1;
                        permit.send(message(seq, self.pack(parcel, &mut reports)));
                    }
                },
                changed = observations.changed() => match changed {
                    Ok(()) => self.mail.report(),
                    Err(_) => return None,
                },
                changed = view.changed() => match changed {
                    Ok(()) => self.mail.report(),
                    Err(_) => return None,
                },
                _ = tick.tick() => {
                    let now = BootMs::now();
                    if let Err(end) = session.tick(now) {
                        return Some(end);
                    }
                    let due = matches!(self.identity.renewal(), Some(renewal) if renewal.is_due());
                    let lately = renewed_at.is_some_and(|at| now.since(at) < RENEW_PAUSE_MS);
                    if due && !lately && session.is_open() {
                        renewed_at = Some(now);
                        self.renew(client).await;
                    }
                },
                _ = stopped(stop.clone()) => {
                    stop.mark_unchanged();
                    self.flush(&out, &mut inbound, seq, &mut reports).await;
                    return None;
                }
            }
        }
    }

    async fn renew(&mut self, client: &mut link::Client) {
        if let Err(error) = self.identity.renew(client).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "certificate not renewed");
        }
    }
}

fn ended(status: &tonic::Status) -> End {
    match status.code() {
        tonic::Code::Unauthenticated | tonic::Code::PermissionDenied => {
            End::Refused(status.message().to_owned())
        }
        _ => match CallError::of(status) {
            CallError::Refused(refusal) => End::Closed(refusal.message),
            CallError::Broken(why) => End::Closed(why),
            other => End::Closed(other.to_string()),
        },
    }
}

/// Returns once the agent stops.
async fn stopped(mut stop: watch::Receiver<bool>) {
    // A sender that is gone means the same.
    let _stopped_or_gone = stop.wait_for(|stop| *stop).await.is_ok();
}
