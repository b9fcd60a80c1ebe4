//! The simulated cloud as a process: every instance is a real agent with the scripted NVML, and the cloud counts what
//! becomes of instances and of the jobs on them.

use crate::coordinator::{Coordinator, free_port};
use crate::{programs, wait};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longest start on a loaded machine.
const START: Duration = Duration::from_secs(30);

/// A group of the cloud, and the pool of the same name that drives it.
#[derive(Debug, Clone)]
pub struct CloudGroup {
    /// Name of group and pool.
    pub name: String,
    /// Region, the pool's site.
    pub region: String,
    /// Instances that exist before a shortage.
    pub capacity: u32,
    /// GPUs of an instance.
    pub gpus: u32,
    /// Price in millionths of a USD per hour.
    pub price: u64,
    /// Most instances, of group and pool.
    pub max: u32,
}

impl CloudGroup {
    /// One group of two-GPU instances.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            region: format!("{name}-1"),
            capacity: 20,
            gpus: 2,
            price: 1_000_000,
            max: 50,
        }
    }

    /// Its zone.
    pub fn zone(&self) -> String {
        format!("{}a", self.region)
    }
}

/// The type of all instances.
pub const INSTANCE_TYPE: &str = "p2.xlarge";

/// A cloud in a folder.
pub struct Cloud {
    dir: PathBuf,
    port: u16,
    groups: Vec<CloudGroup>,
    process: Option<Child>,
    with_processes: bool,
}

impl Cloud {
    /// A cloud that is not started: its instances need the coordinator's tokens.
    pub fn new(dir: &Path, groups: Vec<CloudGroup>) -> Self {
        let dir = dir.join("cloud");
        fs::create_dir_all(dir.join("tokens")).expect("the folder can be made");
        Self {
            dir,
            port: free_port(),
            groups,
            process: None,
            with_processes: true,
        }
    }

    /// Its instances are only records.
    pub const fn without_processes(&mut self) {
        self.with_processes = false;
    }

    /// Address of its service.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The coordinator's pools, with `[sim]`. `extra` are lines of every pool.
    pub fn pools(&self, extra: &str) -> String {
        let mut text = String::new();
        for group in &self.groups {
            let _ = write!(
                text,
                "[[pool]]\nname = \"{name}\"\nkind = \"sim\"\nsite = \"{site}\"\ngroup = \"{name}\"\nmax = {max}\n\
                 provision_deadline = \"60s\"\nremoval_quota = \"100%\"\n{extra}\n\n",
                name = group.name,
                site = group.region,
                max = group.max,
            );
        }
        text + &format!("[sim]\ncloud = \"{}\"\n", self.address())
    }

    /// Makes tokens and starts it.
    pub fn start(&mut self, coordinator: &Coordinator) {
        for group in &self.groups {
            let token = coordinator.token(&["--pool", &group.name, "--uses", "50", "--ttl", "8h"]);
            fs::write(self.token_file(&group.name), token).expect("a token can be written");
        }
        fs::write(self.dir.join("cloud.toml"), self.config(coordinator))
            .expect("the config can be written");
        let log = fs::File::create(self.dir.join("cloud.log")).expect("the log can be written");
        let process = Command::new(programs::drover())
            .args(["sim-cloud", "run", "--config"])
            .arg(self.dir.join("cloud.toml"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log can be shared"))
            .stderr(log)
            .spawn()
            .expect("the cloud starts");
        self.process = Some(process);
        wait::until("the cloud answers", START, || self.try_ledger().map(|_| ()));
    }

    /// What it has counted.
    pub fn ledger(&self) -> Value {
        self.try_ledger().expect("the cloud answers")
    }

    /// A count of its ledger.
    pub fn count(&self, what: &str) -> u64 {
        self.ledger()[what]
            .as_u64()
            .unwrap_or_else(|| panic!("the ledger has no {what}"))
    }

    /// Folder of an instance; its jobs go to `jobs/`.
    pub fn instance_dir(&self, id: &str) -> PathBuf {
        self.dir.join("instances").join(id)
    }

    fn try_ledger(&self) -> Option<Value> {
        let asked = Command::new(programs::drover())
            .args(["sim-cloud", "ledger", "-o", "json", "--cloud"])
            .arg(self.address())
            .stdin(Stdio::null())
            .output()
            .expect("drover runs");
        asked
            .status
            .success()
            .then(|| serde_json::from_slice(&asked.stdout).expect("the ledger is JSON"))
    }

    fn token_file(&self, group: &str) -> PathBuf {
        self.dir.join("tokens").join(group)
    }

    fn config(&self, coordinator: &Coordinator) -> String {
        let mut text = format!(
            r#"listen = "127.0.0.1:{port}"
metadata = "127.0.0.1:0"
seed = 7
work_dir = "{dir}/instances"
"#,
            port = self.port,
            dir = self.dir.display(),
        );
        if self.with_processes {
            text += &instance(coordinator);
        }
        for group in &self.groups {
            let _ = write!(
                text,
                "\n[[group]]\nname = \"{name}\"\nregion = \"{region}\"\nmax = {max}\nvars = {{ token_file = \"{token}\" }}\n\
                 [[group.offering]]\ninstance_type = \"{INSTANCE_TYPE}\"\nzone = \"{zone}\"\nboot_ms = 300\n\
                 price_micro_usd_per_hour = {price}\ngpus = {gpus}\ngpu_model = \"k80\"\ncpus = 8\nmemory_gib = 61\n\
                 capacity = {capacity}\n",
                name = group.name,
                region = group.region,
                zone = group.zone(),
                max = group.max,
                token = self.token_file(&group.name).display(),
                price = group.price,
                gpus = group.gpus,
                capacity = group.capacity,
            );
        }
        text
    }
}

/// What an instance is started as.
fn instance(coordinator: &Coordinator) -> String {
    format!(
        r#"
[instance]
command = ["{agent}", "run", "--config", "{{dir}}/agent.toml"]
env = {{ DROVER_NVML_STUB = "{{dir}}/nvml.json", RUST_LOG = "info,drover_agent=debug" }}

[instance.files]
"agent.toml" = '''
coordinator = "{address}"
join_token_file = "{{var.token_file}}"
hostname = "{{id}}"
state_dir = "{{dir}}/agent"
[gpu]
library = "{nvml}"
[metadata]
endpoint = "{{metadata}}"
[hooks]
dir = "{{dir}}/hooks.d"
'''
"nvml.json" = '''{{"gpus": [{{"profile": "k80", "count": {{gpus}}}}], "processes_dir": "{{dir}}/jobs"}}'''
"#,
        agent = programs::agent().display(),
        address = coordinator.address(),
        nvml = programs::nvml_stub().display(),
    )
}

impl Drop for Cloud {
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        // Asked, not killed: it ends its instances.
        let pid = i32::try_from(process.id()).map(nix::unistd::Pid::from_raw);
        let asked = pid.is_ok_and(|pid| {
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).is_ok()
        });
        if !asked {
            let _ = process.kill();
        }
        let _ = process.wait();
    }
}
