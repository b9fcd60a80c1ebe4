//! The acting half of an agent inside the test's process: session and drain, with what it sees set by the test.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use drover_agent::config::{Config, parse};
use drover_agent::drain::{self, ToDrain};
use drover_agent::identity::Keeper;
use drover_agent::observation::{Facts, Observation, Telemetry, Workload, WorkloadKind};
use drover_agent::run::proof;
use drover_agent::session::Client;
use drover_agent::session::convert::Names;
use drover_agent::session::link::Dialler;
use drover_agent::session::mail::Mail;
use drover_agent::state::StateDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::fake::Fake;

/// A config for this coordinator and state directory.
pub fn config_text(fake: &Fake, state_dir: &Path, more: &str) -> String {
    let hooks = state_dir.join("hooks.d");
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&hooks).unwrap();
    std::fs::set_permissions(&hooks, PermissionsExt::from_mode(0o755)).unwrap();
    format!(
        r#"
coordinator = "https://{address}"
join_token = "{token}"
state_dir = "{state}"
hostname = "rack-1"
[metadata]
endpoint = "off"
[intervals]
report = "200ms"
[hooks]
dir = "{hooks}"
deadline = "20s"
grace = "1s"
{more}
"#,
        address = fake.address,
        token = fake.token,
        state = state_dir.display(),
        hooks = hooks.display(),
    )
}

/// A running agent; dropped, it is gone at once.
pub struct Inside {
    pub mail: Mail,
    pub drain: mpsc::Sender<ToDrain>,
    observations: watch::Sender<Arc<Observation>>,
    interval: watch::Receiver<Duration>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Inside {
    pub fn start(fake: &Fake, state_dir: &Path, more: &str) -> Self {
        let config = parse(&config_text(fake, state_dir, more)).unwrap();
        Self::with(&config)
    }

    pub fn with(config: &Config) -> Self {
        let state = StateDir::open(&config.state_dir).unwrap();
        let mail = Mail::load(state.clone()).unwrap();
        let dialler = Dialler {
            address: config.coordinator.clone(),
            server_name: config.server_name.clone(),
        };
        let identity = Keeper::load(state.clone(), dialler, proof(config), 0.5).unwrap();
        let executors = drain::executors(config, &state);
        let limit = config.drain.word_limit;
        let (keeper, view) = drain::Keeper::load(state, executors, limit, mail.clone()).unwrap();
        let (observations, seen) = watch::channel(Arc::new(idle()));
        let (to_drain, inbox) = mpsc::channel(64);
        let (set_interval, interval) = watch::channel(Duration::ZERO);
        let (stop, stopping) = watch::channel(false);
        let client = Client {
            identity,
            mail: mail.clone(),
            observations: seen.clone(),
            drain: to_drain.clone(),
            view,
            interval: set_interval,
            names: Names {
                hostname: config.hostname.clone(),
                machine_id: None,
            },
            stop: stopping,
        };
        let tasks = vec![
            tokio::spawn(keeper.run(inbox, seen)),
            tokio::spawn(observe(observations.clone())),
            tokio::spawn(client.run()),
        ];
        Self {
            mail,
            drain: to_drain,
            observations,
            interval,
            stop,
            tasks,
        }
    }

    /// What the collector sees from now on.
    pub fn see(&self, seen: Observation) {
        self.observations.send_replace(Arc::new(seen));
    }

    /// The rate that the coordinator asked for.
    pub fn interval(&self) -> Duration {
        *self.interval.borrow()
    }

    /// Ends as on SIGTERM.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let session = self.tasks.pop().unwrap();
        tokio::time::timeout(Duration::from_secs(60), session)
            .await
            .unwrap()
            .unwrap();
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// As the collector: the same again and again until something else is seen.
async fn observe(observations: watch::Sender<Arc<Observation>>) {
    let mut tick = tokio::time::interval(Duration::from_millis(50));
    loop {
        tick.tick().await;
        observations.send_modify(|_| {});
    }
}

/// A host on which nothing runs, every witness of which answers.
pub fn idle() -> Observation {
    Observation {
        facts: Facts {
            boot_id: "boot-1".into(),
            hostname: "kernel-name".into(),
            cpus: Some(2),
            ..Facts::default()
        },
        telemetry: Some(Telemetry {
            cpu_permille: Some(123),
            ..Telemetry::default()
        }),
        witnesses: ["gpu-processes".to_owned()].into(),
        ..Observation::default()
    }
}

/// The same with this child holding a GPU.
pub fn busy(child: &Child) -> Observation {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let start_ticks = stat
        .rsplit(") ")
        .next()
        .unwrap()
        .split(' ')
        .nth(19)
        .unwrap();
    let mut seen = idle();
    seen.workloads.push(Workload {
        kind: WorkloadKind::GpuProcess,
        pid: child.id(),
        start_ticks: start_ticks.parse().unwrap(),
        user: "alice".into(),
        command: "sleep 600".into(),
        gpus: ["GPU-1".to_owned()].into(),
        gpu_memory_bytes: None,
        request: None,
        movable: false,
    });
    seen
}

/// Looks until it is so; panics when that takes too long.
pub async fn until(what: &str, mut ready: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(90);
    while !ready() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "not in time: {what}"
        );
        // sleeps: the one place that polls what has no event.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A child that would run for long; ended with the test.
pub struct Work(pub Child);

impl Work {
    pub fn start() -> Self {
        Self(Command::new("sleep").arg("600").spawn().unwrap())
    }

    pub fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// The signal that ended it.
    pub async fn ended_by(&mut self) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt;
        let mut signal = None;
        until("the work's end", || {
            let status = self.0.try_wait().unwrap();
            signal = status.and_then(|status| status.signal());
            status.is_some()
        })
        .await;
        signal
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ended_already = self.0.kill().is_err();
        let _reaped = self.0.wait().is_ok();
    }
}
