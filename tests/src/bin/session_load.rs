//! Many agents in one process: `session_load COORDINATOR TOKEN_FILE STATE_DIR AGENTS`.
//!
//! Started by `cargo xtask bench session`. Each agent enrols, holds a session of its own and reports eight GPUs,
//! with the agent's own identity, connection and backoff; it measures nothing and obeys no order. Every 100 ms a line
//! on stdout says how things stand. It runs until it is ended.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use drover_agent::config::Address;
use drover_agent::identity::enrol::CallError;
use drover_agent::identity::proof::Proof;
use drover_agent::identity::token::JoinToken;
use drover_agent::identity::{IdentityError, Keeper};
use drover_agent::session::backoff;
use drover_agent::session::link::{DialError, Dialler};
use drover_agent::state::StateDir;
use drover_proto::limits;
use drover_proto::v1::agent_message::Body;
use drover_proto::v1::coordinator_message::Body as Said;
use drover_proto::v1::{AgentMessage, CoordinatorMessage, OrderStatus, Welcome};
use drover_tests::played_agent::PlayedAgent;
use rand::Rng as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at};
use tokio_stream::wrappers::ReceiverStream;

/// How often the standing is told.
const TELL: Duration = Duration::from_millis(100);

/// What all agents count together.
#[derive(Default)]
struct Counts {
    open: AtomicU64,
    errors: AtomicU64,
    reports: AtomicU64,
}

/// One agent that is played.
struct Player {
    agent: PlayedAgent,
    keeper: Keeper,
    counts: Arc<Counts>,
}

/// Why a session or a try ended.
enum End {
    /// Nobody listened, or the connection broke: what a crash of the coordinator looks like.
    Lost,
    /// The coordinator answered, and it was not what an agent can use.
    Refused(String),
}

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [coordinator, token_file, state_dir, agents] = args.as_slice() else {
        bail!("usage: session_load https://HOST:PORT TOKEN_FILE STATE_DIR AGENTS");
    };
    let agents: u32 = agents.parse().context("AGENTS is no number")?;
    allow_sockets(u64::from(agents))?;
    let (host, port) = coordinator
        .strip_prefix("https://")
        .and_then(|rest| rest.rsplit_once(':'))
        .context("COORDINATOR is not https://HOST:PORT")?;
    let dialler = Dialler {
        address: Address {
            host: host.to_owned(),
            port: port.parse().context("PORT is no number")?,
        },
        server_name: limits::COORDINATOR_NAME.to_owned(),
    };
    let token: JoinToken = std::fs::read_to_string(token_file)
        .context("cannot read TOKEN_FILE")?
        .parse()?;

    let counts = Arc::new(Counts::default());
    for number in 0..agents {
        let state = StateDir::open(&PathBuf::from(state_dir).join(number.to_string()))?;
        let keeper = Keeper::load(
            state,
            dialler.clone(),
            Some(Proof::Token(token.clone())),
            rand::rng().random(),
        )?;
        let player = Player {
            agent: PlayedAgent { number },
            keeper,
            counts: Arc::clone(&counts),
        };
        tokio::spawn(player.play());
    }
    tell(&counts).await
}

/// A socket per agent and some more; the limit that a shell gives is often 1,024.
fn allow_sockets(agents: u64) -> Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let need = agents + 256;
    if soft < need {
        setrlimit(Resource::RLIMIT_NOFILE, need, hard.max(need))
            .with_context(|| format!("needs {need} open files at once, the limit is {hard}"))?;
    }
    Ok(())
}

async fn tell(counts: &Counts) -> Result<()> {
    let mut ticks = interval(TELL);
    loop {
        ticks.tick().await;
        let line = serde_json::json!({
            "open": counts.open.load(Ordering::Relaxed),
            "errors": counts.errors.load(Ordering::Relaxed),
            "reports": counts.reports.load(Ordering::Relaxed),
        });
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}")
            .and_then(|()| out.flush())
            .context("cannot tell how things stand")?;
    }
}

impl Player {
    /// Enrols, holds a session, comes back with full jitter: until the process ends.
    async fn play(mut self) {
        let mut attempt = 0;
        loop {
            let mut was_open = false;
            if let End::Refused(why) = self.session(&mut was_open).await {
                self.counts.errors.fetch_add(1, Ordering::Relaxed);
                eprintln!("agent {}: {why}", self.agent.number);
            }
            if was_open {
                self.counts.open.fetch_sub(1, Ordering::Relaxed);
                attempt = 0;
            }
            let rest = backoff::rest(attempt, backoff::CAP, rand::rng().random());
            // sleeps: this is the agents' own rest between two tries
            tokio::time::sleep(rest).await;
            attempt += 1;
        }
    }

    async fn session(&mut self, was_open: &mut bool) -> End {
        let facts = self.agent.facts();
        if let Err(error) = self.keeper.ensure(|| facts).await {
            return end_of(&error);
        }
        let mut client = match self.keeper.dial().await {
            Ok(client) => client,
            Err(error) => return end_of(&error),
        };
        let (outbox, messages) = mpsc::channel(16);
        let mut wire = Wire { outbox, seq: 0 };
        if wire.send(Body::Hello(self.agent.hello())).await.is_err() {
            return End::Lost;
        }
        let mut stream = match client.session(ReceiverStream::new(messages)).await {
            Ok(reply) => reply.into_inner(),
            Err(status) => return of_status(&status),
        };
        let welcome = match stream.message().await {
            Ok(Some(CoordinatorMessage {
                body: Some(Said::Welcome(welcome)),
            })) => welcome,
            Ok(Some(_)) => return End::Refused("something else came before Welcome".to_owned()),
            Ok(None) => return End::Lost,
            Err(status) => return of_status(&status),
        };
        *was_open = true;
        self.counts.open.fetch_add(1, Ordering::Relaxed);
        self.report_on(&welcome, &mut wire, &mut stream).await
    }

    /// A full report at once, then one each interval, spread over it; listens between them.
    async fn report_on(
        &self,
        welcome: &Welcome,
        wire: &mut Wire,
        stream: &mut tonic::Streaming<CoordinatorMessage>,
    ) -> End {
        let every = Duration::from_millis(welcome.report_interval_ms.max(100));
        let full_every = Duration::from_millis(welcome.full_interval_ms.max(100));
        let mut ticks = interval_at(Instant::now() + every.mul_f64(rand::rng().random()), every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next_full = Instant::now();
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    let full = Instant::now() >= next_full;
                    if full {
                        next_full = Instant::now() + full_every;
                    }
                    if wire.send(Body::Report(self.agent.report(full))).await.is_err() {
                        return End::Lost;
                    }
                    self.counts.reports.fetch_add(1, Ordering::Relaxed);
                }
                said = stream.message() => match said {
                    Ok(Some(CoordinatorMessage { body: Some(Said::Order(order)) })) => {
                        let status = OrderStatus {
                            epoch: order.epoch,
                            generation: order.generation,
                            ..OrderStatus::default()
                        };
                        if wire.send(Body::OrderStatus(status)).await.is_err() {
                            return End::Lost;
                        }
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => return End::Lost,
                    Err(status) => return of_status(&status),
                },
            }
        }
    }
}

/// The sending half of one session.
struct Wire {
    outbox: mpsc::Sender<AgentMessage>,
    seq: u64,
}

impl Wire {
    async fn send(&mut self, body: Body) -> Result<(), mpsc::error::SendError<AgentMessage>> {
        self.seq += 1;
        self.outbox
            .send(AgentMessage {
                seq: self.seq,
                body: Some(body),
            })
            .await
    }
}

/// Nobody listening is what a crash looks like; everything else that goes wrong is an error of ours.
fn end_of(error: &IdentityError) -> End {
    if let IdentityError::Call {
        source: CallError::Dial(DialError::Unreachable { source, .. }),
        ..
    } = error
        && source.kind() == std::io::ErrorKind::ConnectionRefused
    {
        return End::Lost;
    }
    let mut why = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        why = format!("{why}: {cause}");
        source = cause.source();
    }
    End::Refused(why)
}

/// A stream that ends with a transport error was cut; a status of the coordinator's own was meant.
fn of_status(status: &tonic::Status) -> End {
    if std::error::Error::source(status).is_some() {
        End::Lost
    } else {
        End::Refused(format!("{:?}: {}", status.code(), status.message()))
    }
}
