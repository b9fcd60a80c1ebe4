//! The agent as a process: killed, told to stop, watched by a service manager, released by root.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use drover_proto::v1::{Desired, DrainPolicy, DrainState};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::fake::Fake;
use crate::inside::{config_text, until};
use crate::orders::{drain, order};

const PROGRAM: &str = env!("CARGO_BIN_EXE_drover-agent");

struct Agent(Child);

impl Agent {
    fn start(config: &Path, notify: Option<&Path>) -> Self {
        let mut command = Command::new(PROGRAM);
        command.arg("run").arg("--config").arg(config);
        command.stdin(Stdio::null());
        if let Some(socket) = notify {
            command
                .env("NOTIFY_SOCKET", socket)
                .env("WATCHDOG_USEC", "1000000");
        }
        Self(command.spawn().unwrap())
    }

    /// SIGTERM; its exit code and how long it took.
    async fn terminate(&mut self) -> (Option<i32>, Duration) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap());
        kill(pid, Signal::SIGTERM).unwrap();
        let began = Instant::now();
        let mut code = None;
        until("its end", || {
            let status = self.0.try_wait().unwrap();
            code = status.and_then(|status| status.code());
            status.is_some()
        })
        .await;
        (code, began.elapsed())
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ended_already = self.0.kill().is_err();
        let _reaped = self.0.wait().is_ok();
    }
}

fn config(fake: &Fake, dir: &Path) -> PathBuf {
    let path = dir.join("agent.toml");
    std::fs::write(&path, config_text(fake, &dir.join("state"), "")).unwrap();
    path
}

async fn cli(arguments: &[&str], config: &Path) -> Output {
    let mut command = tokio::process::Command::new(PROGRAM);
    command.args(arguments).arg("--config").arg(config);
    command.output().await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn orders_survive_kill_9() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let config = config(&fake, dir.path());
    let mut agent = Agent::start(&config, None);
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    fake.order(order(4, 2, Desired::Cordoned)).await;
    fake.status("taken", |status| status.generation == 2).await;
    agent.kill();
    let mut agent = Agent::start(&config, None);
    let hello = fake
        .until("hello again", |script| script.hellos.get(1).cloned())
        .await;
    assert_eq!(hello.highest_epoch, 4);
    assert_eq!(hello.observed, Some(order(4, 2, Desired::Cordoned)));
    fake.order(order(4, 1, Desired::Active)).await;
    fake.status("refused", |status| status.refused == "stale")
        .await;
    assert_eq!(fake.script().enrolled_keys.len(), 1, "enrolled once");
    agent.kill();
}

#[tokio::test]
async fn sigterm_ends_it_in_time_and_the_service_manager_is_told() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let socket_path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&socket_path).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(90)))
        .unwrap();
    let heard = || {
        let mut buffer = [0; 256];
        let count = socket.recv(&mut buffer).unwrap();
        text(&buffer[..count])
    };
    let config = config(&fake, dir.path());
    let mut agent = Agent::start(&config, Some(&socket_path));
    assert!(heard().starts_with("READY=1"));
    assert_eq!(heard(), "WATCHDOG=1");
    assert_eq!(heard(), "WATCHDOG=1");
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    let (code, took) = agent.terminate().await;
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert!(
        std::iter::repeat_with(heard)
            .take(20)
            .any(|line| line.starts_with("STOPPING=1"))
    );
}

#[tokio::test]
async fn ready_comes_without_a_coordinator() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let socket_path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&socket_path).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(90)))
        .unwrap();
    let config = config(&fake, dir.path());
    let nobody = std::fs::read_to_string(&config)
        .unwrap()
        .replace(&fake.address.to_string(), "127.0.0.1:1");
    std::fs::write(&config, nobody).unwrap();
    let mut agent = Agent::start(&config, Some(&socket_path));
    let mut buffer = [0; 64];
    let count = socket.recv(&mut buffer).unwrap();
    assert!(text(&buffer[..count]).starts_with("READY=1"));
    let (code, _) = agent.terminate().await;
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn root_releases_a_running_and_a_stopped_agent() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("state/cordoned");
    let config = config(&fake, dir.path());
    let mut agent = Agent::start(&config, None);
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    fake.order(order(1, 1, Desired::Cordoned)).await;
    let reported = |script: &crate::fake::Script, cordoned: bool, released: bool| {
        let actual = script.reports.last()?.actual.clone()?;
        (actual.cordoned_by_us == cordoned && actual.released == released).then_some(())
    };
    fake.until("cordoned", |script| reported(script, true, false))
        .await;
    assert!(mark.exists());
    let output = cli(&["release"], &config).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!mark.exists());
    fake.until("released", |script| reported(script, false, true))
        .await;
    let began = Instant::now();
    let output = cli(&["release"], &config).await;
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.starts_with("already released"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(30));
    // Another time for the GPUs is another release, which the agent carries out.
    let output = cli(&["release", "--gpu-for", "1h"], &config).await;
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.starts_with("released: the agent"), "{said}");
    fake.order(drain(1, 2, DrainPolicy::Force, 0)).await;
    fake.status("the order waits", |status| status.generation == 2)
        .await;
    assert!(!mark.exists());
    let output = cli(&["resume"], &config).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = cli(&["resume"], &config).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).starts_with("not released"));
    fake.status("taken up", |status| {
        status.drain_state() != DrainState::Unspecified
    })
    .await;
    fake.until("cordoned again", |script| reported(script, true, false))
        .await;
    agent.kill();
    assert!(mark.exists());
    let output = cli(&["release"], &config).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!mark.exists(), "undone without an agent");
    let output = cli(&["release"], &config).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).starts_with("already released"));
    let _agent = Agent::start(&config, None);
    let hello = fake
        .until("hello", |script| script.hellos.get(1).cloned())
        .await;
    assert!(
        hello.actual.unwrap().released,
        "still released in this boot"
    );
}

#[tokio::test]
async fn a_second_agent_in_one_state_directory_is_refused() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let config = config(&fake, dir.path());
    let _agent = Agent::start(&config, None);
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    let output = cli(&["run"], &config).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("another drover-agent uses"),
        "{}",
        text(&output.stderr)
    );
}

#[tokio::test]
async fn exit_codes() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let good = config(&fake, dir.path());
    let output = cli(&["check-config"], &good).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let bad = dir.path().join("bad.toml");
    std::fs::write(
        &bad,
        "coordinator = \"https://x:1\"\nstate_dirr = 1\n[intervals]\nreport = 5\n",
    )
    .unwrap();
    for command in ["check-config", "run", "release", "resume"] {
        let output = cli(&[command], &bad).await;
        assert_eq!(output.status.code(), Some(64), "{command}");
        let said = text(&output.stderr);
        assert!(
            said.contains("bad.toml:2: state_dirr is an unknown key; did you mean state_dir?"),
            "{said}"
        );
        assert!(
            said.contains("bad.toml:4: intervals.report has no unit: 5; write \"5s\""),
            "{said}"
        );
    }
    assert_eq!(cli(&["nonsense"], &good).await.status.code(), Some(2));
    for command in ["check-config", "run", "release", "facts"] {
        let output = cli(&[command], &dir.path().join("none")).await;
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{command}: {said}");
        assert!(said.contains("No such file"), "{said}");
    }
    let help = Command::new(PROGRAM).arg("--help").output().unwrap();
    assert!(text(&help.stdout).contains("64 bad config"));
}
