//! A host: a folder, a real `drover-agent` process with the scripted NVML, and jobs that hold its GPUs.

use crate::clock::Clock;
use crate::coordinator::Coordinator;
use crate::{programs, wait};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A host with an agent.
pub struct Host {
    dir: PathBuf,
    name: String,
    agent: Option<Child>,
    clock: Option<Clock>,
}

impl Host {
    /// A host with `gpus` GPUs of this stub profile, not yet started.
    pub fn new(dir: &Path, name: &str, profile: &str, gpus: u32) -> Self {
        let dir = dir.join(name);
        fs::create_dir_all(dir.join("jobs")).expect("the folder can be made");
        let host = Self {
            dir,
            name: name.to_owned(),
            agent: None,
            clock: None,
        };
        host.script(&json!({ "gpus": [{ "profile": profile, "count": gpus }] }));
        host
    }

    /// Replaces the script of its NVML; the jobs folder is added.
    pub fn script(&self, script: &Value) {
        let mut script = script.clone();
        script["processes_dir"] = json!(self.dir.join("jobs"));
        // By rename: the library reads it at any moment.
        fs::write(self.dir.join("nvml.new"), script.to_string())
            .expect("the script can be written");
        fs::rename(self.dir.join("nvml.new"), self.dir.join("nvml.json"))
            .expect("the script can be replaced");
    }

    /// Writes its config. `extra` are whole TOML tables. An empty token is none.
    pub fn configure(&self, coordinator: &str, token: &str, extra: &str) {
        let join = match token {
            "" => String::new(),
            token => format!("join_token = \"{token}\"\n"),
        };
        let text = format!(
            "coordinator = \"{coordinator}\"\n{join}state_dir = \"{dir}/agent\"\n\
             hostname = \"{name}\"\n[gpu]\nlibrary = \"{nvml}\"\n{extra}\n",
            dir = self.dir.display(),
            name = self.name,
            nvml = programs::nvml_stub().display(),
        );
        let extra_metadata = if text.contains("[metadata]") {
            ""
        } else {
            "[metadata]\nendpoint = \"off\"\n"
        };
        let hooks = if text.contains("[hooks]") {
            String::new()
        } else {
            format!("[hooks]\ndir = \"{}/hooks.d\"\n", self.dir.display())
        };
        fs::write(self.dir.join("agent.toml"), text + extra_metadata + &hooks)
            .expect("the config can be written");
    }

    /// Writes the config for this coordinator and starts the agent.
    pub fn join(&mut self, coordinator: &Coordinator, token: &str) {
        self.configure(&coordinator.address(), token, "");
        self.start();
    }

    /// From its next start on, its agent has this clock.
    pub fn set_clock(&mut self, clock: &Clock) {
        self.clock = Some(clock.clone());
    }

    /// Starts the agent.
    pub fn start(&mut self) {
        assert!(self.agent.is_none(), "its agent runs already");
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.dir.join("agent.log"));
        let log = log.expect("the log can be written");
        let mut command = Command::new(programs::agent());
        if let Some(clock) = &self.clock {
            clock.give_to(&mut command);
        }
        let agent = command
            .args(["run", "--config"])
            .arg(self.dir.join("agent.toml"))
            .env("DROVER_NVML_STUB", self.dir.join("nvml.json"))
            .env("RUST_LOG", "info,drover_agent=debug")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log can be shared"))
            .stderr(log)
            .spawn()
            .expect("drover-agent starts");
        self.agent = Some(agent);
    }

    /// What `drover-agent check-config` says of its config: exit code and stderr.
    pub fn check_config(&self) -> (Option<i32>, String) {
        let checked = Command::new(programs::agent())
            .args(["check-config", "--config"])
            .arg(self.dir.join("agent.toml"))
            .stdin(Stdio::null())
            .output()
            .expect("drover-agent runs");
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        (checked.status.code(), said)
    }

    /// kill -9 of the agent.
    pub fn kill(&mut self) {
        let mut agent = self.agent.take().expect("its agent runs");
        agent.kill().expect("it can be killed");
        agent.wait().expect("it ends");
    }

    /// A real process that holds these GPUs until it is killed or `seconds` are over.
    pub fn job(&self, gpus: &[u32], seconds: u32) -> Job {
        Job::start(&self.dir.join("jobs"), gpus, seconds)
    }

    /// Its folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its agent logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("agent.log")).unwrap_or_default()
    }

    /// Waits until its agent has logged a line with `text`.
    pub fn logged(&self, text: &str, within: Duration) {
        wait::until(
            &format!("the agent of {} logs {text:?}", self.name),
            within,
            || self.log().contains(text).then_some(()),
        );
    }

    /// Process id of the running agent.
    pub fn pid(&self) -> u32 {
        self.agent.as_ref().expect("its agent runs").id()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
    }
}

/// A job on a host.
pub struct Job {
    child: Child,
    named: PathBuf,
}

impl Job {
    /// A real process that holds these GPUs of the host or instance with this folder of jobs.
    pub fn start(jobs: &Path, gpus: &[u32], seconds: u32) -> Self {
        let lines: String = gpus.iter().map(|g| format!("{g} 1073741824\\n")).collect();
        let script = format!(
            "printf '{lines}' > \"$0/.$$\" && mv \"$0/.$$\" \"$0/$$\" && exec sleep {seconds}"
        );
        let child = Command::new("sh")
            .args(["-c", &script])
            .arg(jobs)
            .stdin(Stdio::null())
            .spawn()
            .expect("a shell starts");
        let named = jobs.join(child.id().to_string());
        wait::until("the job holds its GPUs", Duration::from_secs(10), || {
            named.exists().then_some(())
        });
        Self { child, named }
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// True while it runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().expect("it can be watched").is_none()
    }

    /// Lets it end, as if its work were done.
    pub fn end(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.named);
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.finish();
    }
}
