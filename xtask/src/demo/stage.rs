//! Sets the scene: ports, configs and the processes of coordinator, cloud and rack. Ends what it started.

use super::Programs;
use super::admin::{Admin, text, wait_for};
use super::scene::{CLOUD, INSTANCE_GPUS, RACK, Scene, agent_config, nvml_script, rack_name};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The scene. Dropping it ends every process.
pub struct Stage {
    /// The CLI.
    pub admin: Admin,
    dir: PathBuf,
    keep: bool,
    rack: Vec<Child>,
    others: Vec<Child>,
    stopped: AtomicBool,
}

impl Stage {
    /// Starts cloud, coordinator and rack, and waits until the rack is ready.
    pub fn set(
        programs: &Programs,
        seed: u64,
        keep: Option<&Path>,
        plans: Option<&Path>,
    ) -> Result<Self> {
        let dir = match keep {
            Some(dir) => empty(dir)?,
            None => {
                empty(&std::env::temp_dir().join(format!("drover-demo-{}", std::process::id())))?
            }
        };
        let ports = free_ports(3)?;
        let (coordinator, cloud, metadata) = (ports[0], ports[1], ports[2]);
        let admin = Admin {
            drover: programs.drover.clone(),
            contexts: dir.join("contexts"),
            cloud: format!("http://127.0.0.1:{cloud}"),
        };
        let plans = match plans {
            Some(plans) => {
                fs::create_dir_all(plans)
                    .with_context(|| format!("cannot make {}", plans.display()))?;
                fs::canonicalize(plans)?
            }
            None => dir.join("plans"),
        };
        let mut stage = Self {
            admin,
            dir,
            keep: keep.is_some(),
            rack: vec![],
            others: vec![],
            stopped: AtomicBool::new(false),
        };
        let scene = Scene {
            programs,
            dir: &stage.dir,
            contexts: &stage.admin.contexts,
            plans: &plans,
            seed,
            coordinator,
            cloud,
            metadata,
        };
        stage.write("cloud.toml", &scene.cloud_config())?;
        stage.write("drover.toml", &scene.coordinator_config())?;
        fs::create_dir_all(stage.dir.join("tokens"))?;

        let config = stage.dir.join("cloud.toml");
        let started = stage.start(
            &programs.drover,
            &["sim-cloud", "run", "--config"],
            &config,
            "cloud",
        )?;
        stage.others.push(started);
        let config = stage.dir.join("drover.toml");
        let started = stage.start(
            &programs.drover,
            &["serve", "--config"],
            &config,
            "coordinator",
        )?;
        stage.others.push(started);
        wait_for("the coordinator", Duration::from_secs(20), || {
            stage.check()?;
            stage.admin.ask(&["status"]).map(Some)
        })?;
        for (pool, _, _, _) in CLOUD {
            stage.token(pool, "200")?;
        }
        stage.token("c4-usw2", "20")?;
        stage.token("rack", &RACK.0.to_string())?;
        for host in 0..RACK.0 {
            let agent = stage.rack_agent(programs, host, coordinator)?;
            stage.rack.push(agent);
        }
        wait_for("the rack to be ready", Duration::from_secs(40), || {
            stage.check()?;
            let nodes = stage.admin.ask(&["nodes", "list"])?;
            let ready = nodes
                .as_array()
                .into_iter()
                .flatten()
                .filter(|n| text(n, "state") == "ready")
                .count();
            Ok((ready == RACK.0 as usize).then_some(()))
        })?;
        Ok(stage)
    }

    /// Folder in which a host's jobs name themselves, and its GPUs.
    pub fn jobs_of(&self, assignment: &serde_json::Value) -> Result<(PathBuf, u32)> {
        let (host, gpus) = match text(assignment, "pool") {
            "rack" => (
                self.dir.join("rack").join(text(assignment, "node_name")),
                RACK.1,
            ),
            _ => (
                self.dir.join("cloud").join(text(assignment, "instance_id")),
                INSTANCE_GPUS,
            ),
        };
        let folder = host.join("jobs");
        if !folder.is_dir() {
            bail!("the assignment names a host that does not exist: {assignment}");
        }
        Ok((folder, gpus))
    }

    /// Hosts of the rack whose agent is alive.
    pub fn rack_alive(&mut self) -> u32 {
        let alive = |child: &mut Child| child.try_wait().is_ok_and(|status| status.is_none());
        self.rack
            .iter_mut()
            .filter_map(|child| alive(child).then_some(1))
            .sum()
    }

    /// Approves what the breaker holds, as an operator would. Returns how many acts.
    pub fn approve(&self) -> Result<u32> {
        let pending = self.admin.ask(&["approve", "--list"])?;
        let mut given = 0;
        for approval in pending.as_array().into_iter().flatten() {
            self.admin.ask(&["approve", text(approval, "id")])?;
            given += 1;
        }
        Ok(given)
    }

    fn check(&self) -> Result<()> {
        // A coordinator or cloud that ended says why in its log.
        for name in ["cloud", "coordinator"] {
            let log = self.dir.join(format!("{name}.log"));
            let said = fs::read_to_string(&log).unwrap_or_default();
            if let Some(line) = said
                .lines()
                .find(|line| line.starts_with("Error") || line.contains("panicked"))
            {
                bail!("the {name} failed: {line} (see {})", log.display());
            }
        }
        Ok(())
    }

    fn token(&self, pool: &str, uses: &str) -> Result<()> {
        let made = self.admin.ask(&[
            "tokens", "create", "--pool", pool, "--uses", uses, "--ttl", "1h",
        ])?;
        let path = self.dir.join("tokens").join(pool);
        // Written aside: an agent that reads it must never see half of it.
        let aside = path.with_extension("new");
        fs::write(&aside, text(&made, "text"))?;
        fs::rename(&aside, &path)?;
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.dir.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn start(&self, program: &Path, args: &[&str], config: &Path, name: &str) -> Result<Child> {
        let log = self.dir.join(format!("{name}.log"));
        let output = fs::File::create(&log)?;
        Command::new(program)
            .args(args)
            .arg(config)
            .env("DROVER_CONFIG_DIR", &self.admin.contexts)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))
    }

    fn rack_agent(&self, programs: &Programs, host: u32, coordinator: u16) -> Result<Child> {
        let name = rack_name(host);
        let dir = self.dir.join("rack").join(&name);
        fs::create_dir_all(dir.join("jobs"))?;
        let nvml = nvml_script("titan-x", RACK.1, &dir);
        fs::write(dir.join("nvml.json"), nvml)?;
        let hostname = if host == 0 {
            String::new()
        } else {
            format!("hostname = \"{name}\"\n")
        };
        let token = self.dir.join("tokens/rack");
        let config = agent_config(
            coordinator,
            &token.display().to_string(),
            &dir.display().to_string(),
            "off",
            programs,
        );
        let path = dir.join("agent.toml");
        fs::write(&path, hostname + &config)?;
        let log = fs::File::create(dir.join("output.log"))?;
        Command::new(&programs.agent)
            .args(["run", "--config"])
            .arg(&path)
            .env("DROVER_NVML_STUB", dir.join("nvml.json"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", programs.agent.display()))
    }

    /// Ends every process: agents first, so that nothing waits for a coordinator that is gone.
    pub fn strike(&mut self) {
        if self.stopped.swap(true, Ordering::SeqCst) {
            return;
        }
        for child in self.rack.iter_mut().chain(self.others.iter_mut()) {
            terminate(child);
        }
        for child in self.rack.iter_mut().chain(self.others.iter_mut()) {
            let ended = wait_for("a process to end", Duration::from_secs(12), || {
                Ok(child.try_wait()?.map(|_| ()))
            });
            if ended.is_err() {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.strike();
        if !self.keep {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Asks a process to end, as systemd does.
fn terminate(child: &Child) {
    // std has no call for SIGTERM, and one dependency for it is more than a call of kill(1).
    let _ = Command::new("kill")
        .arg(child.id().to_string())
        .stderr(Stdio::null())
        .status();
}

fn free_ports(count: usize) -> Result<Vec<u16>> {
    // All are held until all are found, so that no two are the same.
    let held = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect::<std::io::Result<Vec<_>>>()?;
    Ok(held
        .iter()
        .map(TcpListener::local_addr)
        .collect::<std::io::Result<Vec<_>>>()?
        .iter()
        .map(|a| a.port())
        .collect())
}

fn empty(dir: &Path) -> Result<PathBuf> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    if fs::read_dir(dir)?.next().is_some() {
        bail!("{} is not empty: name a new folder", dir.display());
    }
    Ok(fs::canonicalize(dir)?)
}
