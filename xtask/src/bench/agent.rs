//! `bench agent`: what the agent costs its host, beside node_exporter in the same run.
//!
//! Called by `bench`. A released agent reports to a real coordinator; eight stub
//! GPUs are held by eight processes and 300 processes live on the host. The agent
//! and node_exporter are measured over the same window, at 5 s and at 1 s.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

use super::{
    Args,
    exporter::{self, Exporter},
    figure::{Sink, mb},
    optimised,
    process::{self, Running, wait_for},
    rig::{Coordinator, Scratch, tail},
};

/// Processes on the host besides what runs there anyway.
const PROCESSES: usize = 300;
const GPUS: usize = 8;
const AGENT_RSS_MB: f64 = 16.0;
const PROBE_RSS_MB: f64 = 12.0;
const BINARY_MB: f64 = 10.0;

/// What is measured, and with what.
struct Subject {
    agent: PathBuf,
    coordinator: PathBuf,
    stub: PathBuf,
    script: PathBuf,
}

/// Measures size, then CPU and memory at both intervals.
///
/// # Errors
/// When something does not build, start or live through the window.
pub(super) fn run(args: &Args, sink: &mut Sink) -> Result<()> {
    let scratch = Scratch::new()?;
    let agent = optimised::agent()?;
    let size = fs::metadata(&agent)
        .with_context(|| format!("cannot look at {}", agent.display()))?
        .len();
    sink.add_below("binary, stripped", mb(size), "MB", BINARY_MB);

    let window = Duration::from_secs(args.seconds);
    let crowd = crowd(scratch.path(), window)?;
    let script = scratch.path().join("gpus.json");
    fs::write(&script, stub_script(&crowd))
        .with_context(|| format!("cannot write {}", script.display()))?;
    let subject = Subject {
        agent,
        coordinator: optimised::coordinator()?,
        stub: optimised::nvml_stub()?,
        script,
    };

    for (interval, text) in [
        (Duration::from_secs(5), "5s"),
        (Duration::from_secs(1), "1s"),
    ] {
        measure(&subject, scratch.path(), interval, text, window, sink)?;
    }
    Ok(())
}

fn measure(
    subject: &Subject,
    scratch: &Path,
    interval: Duration,
    text: &str,
    window: Duration,
    sink: &mut Sink,
) -> Result<()> {
    let dir = scratch.join(format!("every-{text}"));
    let coordinator = Coordinator::start(&subject.coordinator, &dir, text)?;
    let mut agent = start_agent(subject, &dir, &coordinator, text)?;
    let log = dir.join("agent.log");
    wait_for("the agent's first report", Duration::from_secs(30), || {
        agent.alive().with_context(|| tail(&log))?;
        Ok((coordinator.nodes()? > 0).then_some(()))
    })?;
    let probe = wait_for("the GPU probe", Duration::from_secs(30), || {
        Ok(process::children(agent.pid(), "gpu-probe")?
            .first()
            .copied())
    })?;
    // The figures are those of an agent that sees what it is there to see.
    let all = u32::try_from(GPUS)?;
    wait_for("the GPUs and their work", Duration::from_secs(30), || {
        let status = coordinator.status()?;
        Ok((status.gpus == all && status.gpus_busy == all).then_some(()))
    })?;
    let mut exporter = exporter::start(&dir)?;

    eprintln!(
        "bench: measuring for {} s at an interval of {text}",
        window.as_secs()
    );
    let yardstick = exporter.as_ref().map(|exporter| exporter.process.pid());
    let before = (
        process::cpu(agent.pid())?,
        process::cpu(probe)?,
        cpu_of(yardstick)?,
    );
    let begin = Instant::now();
    live_through(&mut agent, exporter.as_mut(), interval, begin + window)
        .with_context(|| tail(&log))?;
    let seconds = begin.elapsed().as_secs_f64();
    let after = (
        process::cpu(agent.pid())?,
        process::cpu(probe)?,
        cpu_of(yardstick)?,
    );

    let status = coordinator.status()?;
    ensure!(
        status.nodes_ready == 1 && status.gpus_busy == all,
        "the agent was lost while it was measured: {status:?}"
    );
    let percent =
        |before: Duration, after: Duration| (after - before).as_secs_f64() / seconds * 100.0;
    let unit = "% of a core";
    let agent_cpu = percent(before.0, after.0);
    let probe_cpu = percent(before.1, after.1);
    sink.add(format!("agent cpu, every {text}"), agent_cpu, unit);
    sink.add(format!("probe cpu, every {text}"), probe_cpu, unit);
    let both = format!("agent and probe cpu, every {text}");
    match (before.2, after.2, yardstick) {
        (Some(before), Some(after), Some(pid)) => {
            let theirs = percent(before, after);
            sink.add_below(both, agent_cpu + probe_cpu, unit, theirs);
            sink.add(format!("node_exporter cpu, every {text}"), theirs, unit);
            sink.add(
                format!("node_exporter peak rss, every {text}"),
                mb(process::peak_rss(pid)?),
                "MB",
            );
        }
        _ => sink.add(both, agent_cpu + probe_cpu, unit),
    }
    sink.add_below(
        format!("agent peak rss, every {text}"),
        mb(process::peak_rss(agent.pid())?),
        "MB",
        AGENT_RSS_MB,
    );
    let library = process::library_rss(probe, "nvml_stub")?;
    let probe_rss = process::peak_rss(probe)?.saturating_sub(library);
    sink.add_below(
        format!("probe peak rss beside the library, every {text}"),
        mb(probe_rss),
        "MB",
        PROBE_RSS_MB,
    );
    Ok(())
}

/// Scrapes the yardstick at the interval until the end, and sees that both live.
fn live_through(
    agent: &mut Running,
    mut exporter: Option<&mut Exporter>,
    interval: Duration,
    end: Instant,
) -> Result<()> {
    let mut next = Instant::now();
    while next < end {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        agent.alive()?;
        if let Some(exporter) = exporter.as_deref_mut() {
            exporter.process.alive()?;
            exporter::scrape(exporter.address)?;
        }
        next += interval;
    }
    thread::sleep(end.saturating_duration_since(Instant::now()));
    agent.alive()
}

fn start_agent(
    subject: &Subject,
    dir: &Path,
    coordinator: &Coordinator,
    report: &str,
) -> Result<Running> {
    let config = dir.join("agent.toml");
    let text = format!(
        "coordinator = \"https://{}\"\njoin_token = \"{}\"\nstate_dir = \"{}/agent\"\n[intervals]\nreport = \"{report}\"\n\
         [gpu]\nlibrary = \"{}\"\n[metadata]\nendpoint = \"off\"\n",
        coordinator.address,
        coordinator.token(1)?,
        dir.display(),
        subject.stub.display(),
    );
    fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
    Running::start(
        "drover-agent run",
        Command::new(&subject.agent)
            .args(["run", "--config"])
            .arg(&config)
            .env("DROVER_NVML_STUB", &subject.script),
        &dir.join("agent.log"),
    )
}

/// Idle processes. They end by themselves should the bench be killed.
fn crowd(scratch: &Path, window: Duration) -> Result<Vec<Running>> {
    let life = (window.as_secs() * 2 + 300).to_string();
    let log = scratch.join("crowd.log");
    (0..PROCESSES)
        .map(|_| Running::start("sleep", Command::new("sleep").arg(&life), &log))
        .collect()
}

/// Eight H100, each held by one of the crowd.
fn stub_script(crowd: &[Running]) -> String {
    let processes: Vec<_> = crowd
        .iter()
        .take(GPUS)
        .enumerate()
        .map(|(gpu, holder)| serde_json::json!({"gpu": gpu, "pid": holder.pid(), "memory": 40_000_000_000_u64}))
        .collect();
    serde_json::json!({"gpus": [{"profile": "h100", "count": GPUS}], "processes": processes})
        .to_string()
}

fn cpu_of(pid: Option<i32>) -> Result<Option<Duration>> {
    pid.map(process::cpu).transpose()
}
