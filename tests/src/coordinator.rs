//! A coordinator as a process, and the CLI that talks to it. Its folder outlives a kill, so that it can be started again.

use crate::clock::Clock;
use crate::{programs, wait};
use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// From start to the first answer, on a loaded machine.
const START: Duration = Duration::from_secs(60);

/// A coordinator with a folder of its own.
pub struct Coordinator {
    dir: PathBuf,
    port: u16,
    child: Option<Child>,
    env: Vec<(String, String)>,
    clock: Option<Clock>,
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
            clock: None,
        };
        coordinator.configure(control, rest);
        coordinator
    }

    /// From its next start on, it and its CLI have this clock.
    pub fn set_clock(&mut self, clock: &Clock) {
        self.clock = Some(clock.clone());
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

    /// From its next start on, until it is configured anew, it serves metrics there.
    pub fn monitored(&self) -> SocketAddr {
        let at = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let text = fs::read_to_string(self.config()).expect("it is configured");
        let text = text.replacen("[server]\n", &format!("[server]\nhttp = \"{at}\"\n"), 1);
        fs::write(self.config(), text).expect("the config can be written");
        at
    }

    /// Starts it with these variables added (fail points) and waits for its first answer.
    pub fn run(&mut self, env: &[(&str, &str)]) {
        self.spawn(env);
        wait::until("the coordinator answers", START, || {
            self.assert_alive();
            self.cli(&["status"]).status.success().then_some(())
        });
    }

    /// Starts it again and again, whenever a fail point ends it, until `done` says so.
    ///
    /// Returns how often it died.
    pub fn run_mortal(
        &mut self,
        failpoints: &str,
        within: Duration,
        what: &str,
        mut done: impl FnMut(&Self) -> bool,
    ) -> u32 {
        let mut deaths = 0;
        self.spawn(&[("FAILPOINTS", failpoints)]);
        let begun = Instant::now();
        wait::until(what, within + within, || {
            assert!(
                begun.elapsed() < wait::patient(within),
                "{what}: not within {within:?} and {deaths} deaths\n{}",
                self.story()
            );
            let child = self.child.as_mut().expect("it was started");
            if child.try_wait().expect("it can be watched").is_some() {
                self.child = None;
                deaths += 1;
                self.spawn(&[("FAILPOINTS", failpoints)]);
            }
            done(self).then_some(())
        });
        deaths
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
        let child = self
            .drover()
            .args(["serve", "--config"])
            .arg(self.config())
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

    /// A second one with the same config, beside it: runs to its end.
    pub fn serve_again(&self) -> Output {
        self.drover()
            .args(["serve", "--config"])
            .arg(self.config())
            .stdin(Stdio::null())
            .output()
            .expect("drover runs")
    }

    /// kill -9, if a fail point was not faster.
    pub fn kill_if_alive(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
    }

    /// True once it has ended by itself; it may be started again then.
    pub fn has_ended(&mut self) -> bool {
        let Some(child) = &mut self.child else {
            return true;
        };
        let ended = child.try_wait().expect("it can be watched").is_some();
        if ended {
            self.child = None;
        }
        ended
    }

    /// Waits until it has ended by itself (a fail point, or what it cannot start with), and gives its exit code.
    pub fn ended(&mut self, within: Duration) -> Option<i32> {
        let child = self.child.as_mut().expect("it ran");
        let status = wait::until("the coordinator ends by itself", within, || {
            child.try_wait().expect("it can be watched")
        });
        self.child = None;
        status.code()
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
        self.drover()
            .args(args)
            .stdin(Stdio::null())
            .output()
            .expect("drover runs")
    }

    /// Starts the CLI and does not wait for its end.
    pub fn spawn_cli(&self, args: &[&str]) -> Child {
        self.drover()
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("drover runs")
    }

    fn drover(&self) -> Command {
        let mut command = Command::new(programs::drover());
        command.env("DROVER_CONFIG_DIR", self.contexts());
        if let Some(clock) = &self.clock {
            clock.give_to(&mut command);
        }
        command
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

    /// Runs the CLI and gives its JSON; nothing when it fails, as while the coordinator is dead.
    pub fn try_ask(&self, args: &[&str]) -> Option<Value> {
        let output = self.cli(&[args, &["-o", "json", "--timeout", "5s"]].concat());
        output
            .status
            .success()
            .then(|| serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
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

    /// Events that it recorded: what happened, oldest first.
    pub fn events(&self, what: &str) -> Vec<Value> {
        let events = self.ask(&["events", "--limit", "1000"]);
        let events = events.as_array().cloned().unwrap_or_default();
        events.into_iter().filter(|e| e["what"] == what).collect()
    }

    /// Explains a subject until the text holds `text`.
    pub fn explained(&self, subject: &str, text: &str, within: Duration) {
        let what = format!("explain {subject} says {text:?}\n{}", self.tail());
        wait::until(&what, within, || {
            self.ask(&["explain", subject])
                .to_string()
                .contains(text)
                .then_some(())
        });
    }

    /// Its port.
    pub const fn port(&self) -> u16 {
        self.port
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

    /// Looks until `ready` gives something; what failed is told with how the fleet is then.
    #[track_caller]
    pub fn until<T>(&self, what: &str, limit: Duration, mut ready: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        wait::until(what, limit + limit, || {
            let found = ready();
            assert!(
                found.is_some() || begun.elapsed() < wait::patient(limit),
                "{what}: not within {limit:?}\n{}",
                self.story()
            );
            found
        })
    }

    /// How the fleet is and what happened, for messages of failed tests.
    fn story(&self) -> String {
        let mut story = self.tail();
        for question in [
            &["status"][..],
            &["nodes", "list", "-o", "wide"],
            &["pools", "list", "-o", "wide"],
            &["requests", "list", "-o", "wide"],
        ] {
            story += &String::from_utf8_lossy(&self.cli(question).stdout);
        }
        story
    }

    /// The end of its log, for messages of failed tests.
    pub fn tail(&self) -> String {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(80)..].join("\n")
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
