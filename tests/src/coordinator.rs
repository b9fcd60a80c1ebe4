//! A coordinator as a process, and the CLI that talks to it. Its folder outlives a kill, so that it can be started again.

use crate::{programs, wait};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// From start to the first answer, on a loaded machine.
const START: Duration = Duration::from_secs(60);

/// A coordinator with a folder of its own.
pub struct Coordinator {
    dir: PathBuf,
    port: u16,
    child: Option<Child>,
    env: Vec<(String, String)>,
}

impl Coordinator {
    /// Writes the config (what `[server]` and `[control]` lack is filled in) and starts it.
    ///
    /// `control` are lines of `[control]`, `rest` the pools and all else.
    pub fn start(dir: &Path, control: &str, rest: &str) -> Self {
        let mut coordinator = Self::prepare(dir, control, rest);
        coordinator.run(&[]);
        coordinator
    }

    /// The same without starting it.
    pub fn prepare(dir: &Path, control: &str, rest: &str) -> Self {
        fs::create_dir_all(dir).expect("the folder can be made");
        let coordinator = Self {
            dir: dir.to_owned(),
            port: free_port(),
            child: None,
            env: Vec::new(),
        };
        coordinator.configure(control, rest);
        coordinator
    }

    /// Writes the config anew; it counts from the next start on.
    pub fn configure(&self, control: &str, rest: &str) {
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:{}\"\nstate_dir = \"{dir}/state\"\ncontext_dir = \"{dir}/contexts\"\n\n\
             [control]\n{control}\n\n{rest}\n",
            self.port,
            dir = self.dir.display(),
        );
        fs::write(self.config(), text).expect("the config can be written");
    }

    /// Starts it with these variables added (fail points) and waits for its first answer.
    pub fn run(&mut self, env: &[(&str, &str)]) {
        self.spawn(env);
        wait::until("the coordinator answers", START, || {
            self.assert_alive();
            self.cli(&["status"]).status.success().then_some(())
        });
    }

    /// Starts it and waits for nothing.
    pub fn spawn(&mut self, env: &[(&str, &str)]) {
        assert!(self.child.is_none(), "it runs already");
        self.env = env
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log())
            .expect("the log can be written");
        let child = Command::new(programs::drover())
            .args(["serve", "--config"])
            .arg(self.config())
            .env("DROVER_CONFIG_DIR", self.contexts())
            .env("RUST_LOG", "info,drover=debug")
            .envs(self.env.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log can be shared"))
            .stderr(log)
            .spawn()
            .expect("drover starts");
        self.child = Some(child);
    }

    /// kill -9.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }

    /// Waits until it has ended by itself (a fail point).
    pub fn ended(&mut self, within: Duration) {
        let child = self.child.as_mut().expect("it ran");
        wait::until("the coordinator dies at its fail point", within, || {
            child.try_wait().expect("it can be watched")
        });
        self.child = None;
    }

    /// SIGHUP: it takes its config anew.
    pub fn hang_up(&self) {
        let child = self.child.as_ref().expect("it runs");
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGHUP).expect("it can be told");
    }

    /// SIGTERM, and its exit code.
    pub fn stop(&mut self, within: Duration) -> Option<i32> {
        let mut child = self.child.take().expect("it runs");
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("it can be told");
        wait::until("the coordinator stops", within, || {
            child.try_wait().expect("it can be watched")
        })
        .code()
    }

    /// Runs the CLI against it.
    pub fn cli(&self, args: &[&str]) -> Output {
        Command::new(programs::drover())
            .args(args)
            .env("DROVER_CONFIG_DIR", self.contexts())
            .stdin(Stdio::null())
            .output()
            .expect("drover runs")
    }

    /// Starts the CLI and does not wait for its end.
    pub fn spawn_cli(&self, args: &[&str]) -> Child {
        Command::new(programs::drover())
            .args(args)
            .env("DROVER_CONFIG_DIR", self.contexts())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("drover runs")
    }

    /// Runs the CLI and gives its JSON.
    ///
    /// # Panics
    /// When it fails.
    #[track_caller]
    pub fn ask(&self, args: &[&str]) -> Value {
        let output = self.cli(&[args, &["-o", "json"]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "drover {} failed: {said}\n{}",
            args.join(" "),
            self.tail()
        );
        if output.stdout.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&output.stdout).expect("drover -o json prints JSON")
    }

    /// Runs the CLI, which must fail, and gives what it said.
    #[track_caller]
    pub fn refuses(&self, args: &[&str]) -> String {
        let output = self.cli(args);
        assert!(
            !output.status.success(),
            "drover {} should have been refused",
            args.join(" ")
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// A join token's text.
    pub fn token(&self, args: &[&str]) -> String {
        let made = self.ask(&[&["tokens", "create"], args].concat());
        made["text"]
            .as_str()
            .expect("a token has a text")
            .to_owned()
    }

    /// The node with this host name, once it is in this state.
    #[track_caller]
    pub fn node_in(&self, name: &str, state: &str, within: Duration) -> Value {
        wait::until(
            &format!("{name} is {state}\n{}", self.tail()),
            within,
            || {
                let node = self.node(name)?;
                (node["state"] == state && node["unreachable"] != true).then_some(node)
            },
        )
    }

    /// The node with this host name, if there is one.
    pub fn node(&self, name: &str) -> Option<Value> {
        let nodes = self.ask(&["nodes", "list"]);
        nodes
            .as_array()?
            .iter()
            .find(|n| n["name"] == name)
            .cloned()
    }

    /// `https://127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Its config file.
    pub fn config(&self) -> PathBuf {
        self.dir.join("drover.toml")
    }

    /// Its state folder.
    pub fn state_dir(&self) -> PathBuf {
        self.dir.join("state")
    }

    /// The CLI's config folder.
    pub fn contexts(&self) -> PathBuf {
        self.dir.join("contexts")
    }

    /// The end of its log, for messages of failed tests.
    pub fn tail(&self) -> String {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    fn log(&self) -> PathBuf {
        self.dir.join("coordinator.log")
    }

    fn assert_alive(&mut self) {
        let ended = self
            .child
            .as_mut()
            .and_then(|c| c.try_wait().expect("it can be watched"));
        assert!(
            ended.is_none(),
            "the coordinator ended: {ended:?}\n{}",
            self.tail()
        );
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let held = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    held.local_addr().expect("it is bound").port()
}
