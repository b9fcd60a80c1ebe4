//! `drover-agent run`: joins collector, drain and session, feeds the watchdog, ends in time.
//!
//! Called by the CLI. The one place that names the tasks together; each of them knows only its own channels.

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::collector::{self, Collector, CollectorConfig, ImdsConfig, ProbeConfig, ProcessMatcher};
use crate::config::{Config, Join, Metadata, host};
use crate::drain::{self, View};
use crate::identity::Keeper;
use crate::identity::keystore::KeystoreError;
use crate::identity::proof::{InstanceProof, Proof};
use crate::notices::{Notices, shutdown};
use crate::notify::Notify;
use crate::release;
use crate::session::Client;
use crate::session::convert::Names;
use crate::session::link::Dialler;
use crate::session::mail::Mail;
use crate::state::{StateDir, StateError};

/// Without a watchdog the main loop turns this often.
const IDLE_TURN: Duration = Duration::from_secs(5);
/// What the session gets to send its last words, then what the collector gets to let go.
const SESSION_STOP: Duration = Duration::from_secs(4);
/// See [`SESSION_STOP`].
const COLLECTOR_STOP: Duration = Duration::from_secs(3);

/// Why the agent did not come up, or went down by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// State directory.
    #[error("the state directory cannot be used")]
    State(#[from] StateError),
    /// Key or certificate.
    #[error("the identity cannot be used")]
    Keystore(#[from] KeystoreError),
    /// Signals.
    #[error("signals cannot be caught")]
    Signals(#[source] std::io::Error),
    /// A part of the agent ended; the service manager starts all of it anew.
    #[error("{0} ended by itself")]
    Ended(&'static str),
}

/// What the collector is told by the agent's config.
#[must_use]
pub fn collector_config(config: &Config) -> CollectorConfig {
    let defaults = CollectorConfig::default();
    // Every observation reads the workloads anew: a drain counts on two looks being two readings.
    let each = config.report_interval.min(Duration::from_millis(200));
    CollectorConfig {
        interval: config.report_interval,
        process_interval: each,
        matcher_interval: each,
        probe: ProbeConfig {
            library: config.gpu.library.clone(),
            op_deadline: config.gpu.deadline,
            ..defaults.probe
        },
        matchers: config
            .drain
            .processes
            .iter()
            .map(|matcher| ProcessMatcher {
                executable: matcher.name.clone(),
                command: matcher.command.clone(),
                user: matcher.user.clone(),
            })
            .collect(),
        imds: ImdsConfig {
            disabled: config.metadata == Metadata::Off,
            endpoint: match &config.metadata {
                Metadata::Endpoint(url) => Some(url.clone()),
                Metadata::Auto | Metadata::Off => None,
            },
            poll: Some(config.notices.poll),
        },
        state_dir: Some(config.state_dir.clone()),
        ..defaults
    }
}

/// What the node proves itself with, by the agent's config.
#[must_use]
pub fn proof(config: &Config) -> Option<Proof> {
    match &config.join {
        Join::Nothing => None,
        Join::Token(token) => Some(Proof::Token(token.clone())),
        Join::InstanceIdentity { ca } => {
            let collector = collector_config(config);
            Some(Proof::Instance(InstanceProof {
                ca: *ca,
                imds: collector.imds,
                sys: collector.paths.sys,
            }))
        }
    }
}

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// It could not come up, or a part of it ended.
pub async fn run(config: Config) -> Result<(), RunError> {
    let notify = Notify::from_env();
    let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Signals)?;
    let state = StateDir::open(&config.state_dir)?;
    state.close_to_others()?;
    let _lock = state.lock()?;
    if let Err(why) = host::hooks(&config) {
        tracing::warn!(why, "hooks will not be run and drains be blocked");
    }
    let mail = Mail::load(state.clone())?;
    let dialler = Dialler {
        address: config.coordinator.clone(),
        server_name: config.server_name.clone(),
    };
    let proof = proof(&config);
    let identity = Keeper::load(state.clone(), dialler, proof, rand::random())?;
    let executors = drain::executors(&config, &state);
    let (keeper, view) = drain::Keeper::load(
        state.clone(),
        executors,
        config.drain.word_limit,
        mail.clone(),
    )?;
    let collector = collector::spawn(collector_config(&config));
    let (to_drain, inbox) = mpsc::channel(64);
    let (interval, wanted) = watch::channel(config.report_interval);
    let (stop, stopping) = watch::channel(false);
    let mut keeper = tokio::spawn(keeper.run(inbox, collector.observations()));
    if let Some(known) = collector.metadata() {
        let drain = to_drain.clone();
        let notices = Notices::load(config.notices, state.clone(), mail.clone(), drain)?;
        tokio::spawn(notices.run(known));
    }
    let last_words = mail.clone();
    let client = Client {
        identity,
        mail,
        observations: collector.observations(),
        drain: to_drain,
        view: view.clone(),
        interval,
        names: Names {
            hostname: config.hostname.clone(),
            machine_id: config.machine_id.clone(),
        },
        stop: stopping,
    };
    let mut session = tokio::spawn(client.run());
    notify.ready();
    tracing::info!(
        coordinator = %config.coordinator,
        state_dir = %config.state_dir.display(),
        version = env!("CARGO_PKG_VERSION"),
        "agent runs"
    );
    let mut host = Host {
        collector,
        state,
        view,
        wanted,
        notify: &notify,
    };
    let ended = tokio::select! {
        _ = terminate.recv() => None,
        () = received(&mut interrupt) => None,
        _ = &mut keeper => Some("drain"),
        _ = &mut session => Some("session"),
        part = host.turn() => Some(part),
    };
    notify.stopping();
    tracing::info!("agent stops");
    if ended.is_none()
        && let Some(notice) = shutdown::notice().await
    {
        last_words.raise(notice);
    }
    stop.send_replace(true);
    if timeout(SESSION_STOP, session).await.is_err() {
        tracing::warn!("the session did not end in time");
    }
    keeper.abort();
    if timeout(COLLECTOR_STOP, host.collector.stop())
        .await
        .is_err()
    {
        tracing::warn!("the collector did not end in time");
    }
    ended.map_or(Ok(()), |part| Err(RunError::Ended(part)))
}

async fn received(signal: &mut Signal) {
    let _received = signal.recv().await;
}

/// The main loop: the watchdog, the collector's rate and root's release.
struct Host<'a> {
    collector: Collector,
    state: StateDir,
    view: watch::Receiver<View>,
    wanted: watch::Receiver<Duration>,
    notify: &'a Notify,
}

impl Host<'_> {
    /// Turns for ever; returns the name of a part that ended.
    async fn turn(&mut self) -> &'static str {
        let pause = self.notify.watchdog_interval().unwrap_or(IDLE_TURN);
        let mut alive = tokio::time::interval(pause);
        let mut observations = self.collector.observations();
        let mut released = None;
        self.follow_release(&mut released).await;
        loop {
            tokio::select! {
                _ = alive.tick() => self.notify.alive(),
                changed = self.wanted.changed() => {
                    if changed.is_err() {
                        return "session";
                    }
                    let wanted = *self.wanted.borrow_and_update();
                    self.collector.set_interval(wanted).await;
                }
                changed = self.view.changed() => {
                    if changed.is_err() {
                        return "drain";
                    }
                    self.follow_release(&mut released).await;
                }
                changed = observations.changed() => {
                    if changed.is_err() {
                        return "collector";
                    }
                }
            }
        }
    }

    /// Lets the GPUs go, or takes them back, when the release mark says so; a new mark lets them go anew.
    async fn follow_release(&mut self, released: &mut Option<u64>) {
        let now = self.view.borrow_and_update().released_at_unix_ms;
        if now == *released {
            return;
        }
        *released = now;
        let outcome = match release::gpu_ttl(&self.state) {
            Ok(Some(ttl)) => self.collector.release(ttl).await,
            Ok(None) => self.collector.resume().await,
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "release mark unreadable"
                );
                return;
            }
        };
        let refused = outcome.err().map(|error| error.to_string());
        if let Some(why) = &refused {
            tracing::warn!(why, "GPUs not released or taken back");
        }
        if let Err(error) = release::answer(&self.state, refused) {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "release not answered"
            );
        }
    }
}

/// What `drover-agent facts` prints: the host as the collector sees it, without a coordinator.
///
/// # Errors
/// The collector ended or saw nothing in time.
pub async fn observe(
    config: CollectorConfig,
    limit: Duration,
) -> Result<Arc<crate::observation::Observation>, RunError> {
    let collector = collector::spawn(config);
    let mut observations = collector.observations();
    let seen = timeout(limit, async {
        loop {
            if observations.changed().await.is_err() {
                return Err(RunError::Ended("collector"));
            }
            let seen = Arc::clone(&observations.borrow_and_update());
            // The GPUs come with the probe's first round, a moment after the host.
            let settled = seen
                .unreadable
                .get(collector::GPU_PROCESSES)
                .is_none_or(|why| why != collector::NOT_YET);
            // Use of the CPU is a difference: a counter that went back makes it take another round.
            let measured = seen
                .telemetry
                .as_ref()
                .is_some_and(|values| values.cpu_permille.is_some());
            if measured && settled {
                return Ok(seen);
            }
        }
    })
    .await;
    let last = Arc::clone(&collector.observations().borrow());
    collector.stop().await;
    match seen {
        Ok(seen) => seen,
        Err(_) if last.facts.boot_id.is_empty() => Err(RunError::Ended("collector")),
        Err(_) => Ok(last),
    }
}
