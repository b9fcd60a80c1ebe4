//! `drover serve`: opens everything in the order in which it can fail without harm, joins it, and ends in good order.

mod actuators;
mod admission;
mod aws;
mod discovery;
mod home;
mod lead;
mod monitoring;
mod reload;
mod surveyor;

use super::restore::chain;
use crate::adapters::ca::Ca;
use crate::adapters::clock::SystemClock;
use crate::adapters::demand::requests::Requests;
use crate::adapters::link::Hub;
use crate::adapters::store::sqlite::{FILE_NAME, SqliteStore};
use crate::config::{self, Config};
use crate::control::commands::Commands;
use crate::control::cycle::{Control, CycleError, Ports};
use crate::control::events::Happening;
use crate::control::journal::Journal;
use crate::control::plans::PlanFiles;
use crate::control::run;
use crate::control::settings::Asks;
use crate::control::view::FleetView;
use crate::files::{contexts, private};
use crate::ports::clock::Clock;
use crate::ports::store::Store;
use crate::serve;
use crate::serve::admin::Admin;
use crate::serve::agents::{Agents, Intervals, Parts};
use crate::serve::auth::Gate;
use crate::serve::first_admin::{self, FirstAdmin};
use crate::serve::http::Sources;
use crate::serve::identities::IdentityDesk;
use crate::serve::tokens::TokenDesk;
use admission::PoolAdmission;
use anyhow::{Context as _, Result};
use discovery::Discovered;
use drover_core::model::{Millis, PoolKind};
use monitoring::Monitoring;
use reload::Reload;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

/// Plans that are kept when the config names no folder for them.
const PLANS: u64 = 1_000;
/// Agents are spoken to at least this often: well within the 60 s that destructive steps allow.
const HEARTBEAT: Millis = Millis::seconds(10);
/// Name of the admin context that a start writes.
const LOCAL: &str = "local";
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

/// What the parts are made from.
struct Foundation {
    config: Arc<Config>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    journal: Arc<Journal>,
    ca: Arc<Ca>,
    hub: Arc<Hub>,
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

impl Foundation {
    fn identities(&self) -> IdentityDesk {
        IdentityDesk::new(
            self.journal.clone(),
            self.ca.clone(),
            self.hub.clone(),
            self.clock.clone(),
        )
    }

    /// The context of the user who runs this.
    async fn first_admin(&self, identities: &IdentityDesk, listen: SocketAddr) -> Result<()> {
        let dir = match &self.config.server.context_dir {
            Some(dir) => dir.clone(),
            None => contexts::directory()?,
        };
        let address = reachable(listen).to_string();
        match first_admin::ensure(&dir, LOCAL, &address, identities, &self.ca, &*self.clock).await?
        {
            FirstAdmin::Kept(name) if name == LOCAL => {}
            FirstAdmin::Written(name) => {
                tracing::info!(dir = %dir.display(), name, "wrote the admin context")
            }
            FirstAdmin::Moved { name, from } => tracing::warn!(
                dir = %dir.display(),
                name,
                from,
                to = address,
                "the admin context pointed to another address of this coordinator: it points here now"
            ),
            FirstAdmin::Kept(name) | FirstAdmin::WrittenBeside(name) => tracing::warn!(
                dir = %dir.display(),
                name,
                "the context \"local\" belongs to another coordinator: this one's stands beside it, choose it with `drover \
                 context use {name}`"
            ),
        }
        Ok(())
    }

    async fn control(
        &self,
        state_dir: &Path,
        kept: &mut actuators::Kept,
    ) -> Result<(Control, Commands, Asks)> {
        let ports = Ports {
            journal: self.journal.clone(),
            link: self.hub.clone(),
            actuators: actuators::all(&self.config, &*self.store, &self.clock, kept).await?,
            sources: vec![Arc::new(Requests::new(
                self.store.clone(),
                self.config.control.gang_hold,
            ))],
            clock: self.clock.clone(),
        };
        let mut control = Control::new(self.config.clone(), ports);
        let (queues, wake) = (kept.queues(), control.wake());
        queues.ring(move || {
            wake.call();
        });
        control.hear_from(Arc::new(queues));
        let (dir, keep) = match &self.config.control.plans_dir {
            Some(dir) => (dir.clone(), None),
            None => (state_dir.join("plans"), Some(PLANS)),
        };
        let files = PlanFiles::open(&dir, keep)
            .with_context(|| format!("cannot keep plans in {}", dir.display()))?;
        control.keep_plans(files);
        let (commands, asks) = control.commands();
        Ok((control, commands, asks))
    }

    fn agents(
        &self,
        settings: watch::Receiver<Arc<Config>>,
        views: watch::Receiver<Arc<FleetView>>,
    ) -> Arc<Agents> {
        Agents::new(Parts {
            journal: self.journal.clone(),
            ca: self.ca.clone(),
            hub: self.hub.clone(),
            clock: self.clock.clone(),
            admission: Arc::new(PoolAdmission::new(settings, views)),
            intervals: Intervals {
                report: self.config.control.report_interval,
                full: self.config.control.full_interval,
                heartbeat: HEARTBEAT,
            },
        })
    }
}

/// An address at which the coordinator's own host reaches it.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from(std::net::Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}
