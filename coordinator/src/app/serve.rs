//! `drover serve`: opens everything in the order in which it can fail without harm, joins it, and ends in good order.

mod actuators;
mod admission;
mod aws;
mod discovery;
mod foundation;
mod home;
mod lead;
mod monitoring;
mod reload;
mod surveyor;

use super::restore::chain;
use crate::adapters::ca::Ca;
use crate::adapters::clock::SystemClock;
use crate::adapters::link::Hub;
use crate::adapters::store::sqlite::{FILE_NAME, SqliteStore};
use crate::config::{self, Config};
use crate::control::cycle::CycleError;
use crate::control::events::Happening;
use crate::control::journal::Journal;
use crate::control::run;
use crate::files::private;
use crate::ports::clock::Clock;
use crate::ports::store::Store;
use crate::serve;
use crate::serve::admin::Admin;
use crate::serve::auth::Gate;
use crate::serve::http::Sources;
use crate::serve::tokens::TokenDesk;
use anyhow::{Context as _, Result};
use discovery::Discovered;
use drover_core::model::PoolKind;
use foundation::Foundation;
use monitoring::Monitoring;
use reload::Reload;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

/// Exit code of a config that cannot be used.
const BAD_CONFIG: u8 = 64;

/// Flags of `drover serve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its config file (TOML).
    #[arg(long, value_name = "FILE", default_value = "/etc/drover/drover.toml")]
    config: PathBuf,
}

/// Runs the coordinator until SIGTERM or SIGINT (0), a failure (1), or a config that cannot be used (64).
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    // One provider in the whole process, whatever a dependency might bring along.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Crash points from FAILPOINTS; in test builds only.
    #[cfg(feature = "failpoints")]
    let _scenario = crash_points();
    let config = match config::load(&args.config) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("error: {}", chain(&error));
            return ExitCode::from(BAD_CONFIG);
        }
    };
    if let Some(why) = not_built(&config) {
        eprintln!("error: {why}");
        return ExitCode::from(BAD_CONFIG);
    }
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    allow_sockets();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let done = runtime
        .context("cannot start the runtime")
        .and_then(|runtime| runtime.block_on(coordinate(config, &args.config)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// `NAME=panic` in FAILPOINTS ends the whole process there and then, as kill -9 would: nothing is unwound or closed.
#[cfg(feature = "failpoints")]
fn crash_points() -> fail::FailScenario<'static> {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        told(panic);
        if panic
            .payload_as_str()
            .is_some_and(|text| text.starts_with("failpoint "))
        {
            std::process::abort();
        }
    }));
    fail::FailScenario::setup()
}

/// A pool that this build cannot drive, and the fix.
pub(super) fn not_built(config: &Config) -> Option<String> {
    if !config.aws.discover.is_empty() && !cfg!(feature = "aws") {
        let fix = "use a build with it";
        return Some(format!(
            "groups are to be discovered, and this drover was built without the feature aws: {fix}"
        ));
    }
    let asg = config
        .pools
        .iter()
        .find(|pool| pool.kind() == PoolKind::Asg);
    asg.filter(|_| !cfg!(feature = "aws")).map(|pool| {
        format!(
            "pool {} is of kind asg, and this drover was built without the feature aws: use a build with it",
            pool.name
        )
    })
}

/// A socket per agent: the limit that a shell gives (often 1,024) is raised to the most that is allowed.
fn allow_sockets() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

async fn coordinate(config: Config, path: &Path) -> Result<()> {
    // The port first: a second coordinator on this machine must fail before it takes the leadership of the store.
    let listen = config.server.listen;
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}"))?;
    let address = listener.local_addr()?;
    let monitoring = Monitoring::open(&config).await?;
    let state_dir = config.server.state_dir.clone();
    private::directory(&state_dir)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let started = clock.wall();
    let file = state_dir.join(FILE_NAME);
    let opened = file.clone();
    let store = tokio::task::spawn_blocking(move || SqliteStore::open(&opened)).await??;
    let store: Arc<dyn Store> = Arc::new(store);
    if let Some(ago) = lead::predecessor(&*store, &*clock).await {
        tracing::warn!(
            seconds_ago = ago.0 / 1_000,
            store = %state_dir.display(),
            "another coordinator led this store moments ago: if it still runs, it is fenced now"
        );
    }
    let ca = Arc::new(Ca::open(&state_dir, &*store, &*clock).await?);
    let journal = Arc::new(Journal::open(store.clone(), clock.clone()).await?);
    let hub = Hub::new(clock.clone());
    let mut kept = actuators::Kept::default();
    let cloud = kept.cloud(&config).await;
    let mut discovered = Discovered::open(store.clone(), cloud.as_ref()).await?;
    let base = Foundation {
        config: Arc::new(discovered.merge(&config).0),
        store,
        clock,
        journal,
        ca,
        hub,
    };

    // Before anything is done that a copy would have to answer for.
    let copied = home::is_copied(&*base.store, &file).await;
    actuators::refuse_to_share(&base.config, &*base.store, &base.clock, &mut kept, copied).await?;
    home::settle(&*base.store, &file).await?;
    let identities = base.identities();
    base.first_admin(&identities, address).await?;
    let (control, commands, asks) = base.control(&state_dir, &mut kept).await?;
    let tls = serve::tls::config(&base.ca, &base.config.server.names, &base.clock)?;
    let gate = Gate::new(base.store.clone(), base.clock.clone());
    let tokens = TokenDesk::new(base.journal.clone(), base.ca.clone(), base.clock.clone());
    let agents = base.agents(control.settings(), control.views());
    let calls = kept.calls();
    monitoring.show(Sources {
        views: control.views(),
        journal: base.journal.clone(),
        pace: control.pace(),
        calls: calls.clone(),
        clock: base.clock.clone(),
        started,
    });
    let survey = surveyor::surveyor(&base.config, &*base.store, &kept)?;
    let reload = Reload {
        path: path.to_owned(),
        file: config,
        discovered,
        running: base.config.clone(),
        store: base.store.clone(),
        clock: base.clock.clone(),
        kept,
        commands: commands.clone(),
    };
    let admin = Admin::new(
        commands,
        tokens,
        identities,
        state_dir.clone(),
        base.clock.clone(),
    )
    .with_calls(calls)
    .with_survey(survey);

    let (stop, stopped) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let hangup = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    let reloading = tokio::spawn(reload.run(hangup));
    let serving = serve::run(
        listener,
        tls,
        gate,
        agents,
        Some(admin.routes()),
        ended(stopped.clone()),
    );
    let cycling = run::run(control, asks, ended(stopped));
    tracing::info!(
        listen = %address,
        store = base.store.store_id(),
        fence = base.store.fence().0,
        ca = base.ca.sha256(),
        pools = base.config.pools.len(),
        "the coordinator runs"
    );
    let fence = base.store.fence().0;
    base.journal
        .tell(vec![Happening::Started { fence }])
        .await?;
    tokio::pin!(serving, cycling);
    let mut served = None;
    let mut asked = false;
    let cycled: Result<(), CycleError> = loop {
        tokio::select! {
            done = &mut serving, if served.is_none() => {
                // A port that closed by itself ends the whole: without agents nothing may be decided.
                let _ = stop.send(true);
                served = Some(done);
            }
            done = &mut cycling => {
                let _ = stop.send(true);
                break done;
            }
            _ = terminate.recv() => { asked = true; let _ = stop.send(true); }
            _ = interrupt.recv() => { asked = true; let _ = stop.send(true); }
        }
    };
    let served = match served {
        Some(done) => done,
        None => serving.await,
    };
    reloading.abort();
    match cycled {
        Err(error @ CycleError::Fenced(_)) => return Err(lead::fenced(error, &state_dir)),
        done => done?,
    }
    served.context("the gRPC port failed")?;
    if !asked {
        return Err(lead::ended_by_itself(&*base.store, &state_dir).await);
    }
    tracing::info!("the coordinator stopped");
    Ok(())
}

/// Resolves when the end was asked for.
async fn ended(mut stopped: watch::Receiver<bool>) {
    // A sender that is gone means the end as well.
    let _ = stopped.wait_for(|stop| *stop).await;
}
