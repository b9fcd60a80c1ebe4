//! `bench session`: what many agents cost the coordinator, and how soon all are back after a crash.
//!
//! Called by `bench`. The agents are one process of the tests package
//! (`session_load`) that holds a real session each, with certificates of their own,
//! and reports as agents do; only what stands behind a session is left out.

use std::{
    fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::{
    Args,
    figure::{Sink, mb},
    optimised,
    process::{self, Running, wait_for},
    rig::{Coordinator, Scratch, tail},
};

/// The budgets are named for this many agents.
const BUDGET_AGENTS: u32 = 10_000;
const BUDGET_CPU_PERCENT: f64 = 50.0;
const BUDGET_RSS_MB: f64 = 400.0;
const BUDGET_RECONNECT_S: f64 = 30.0;
/// Reports per agent, as the budget has it.
const REPORT: &str = "5s";

/// One line of `session_load`: the last one says how things stand.
#[derive(Debug, Deserialize)]
struct Standing {
    /// Sessions that have had their Welcome and live.
    open: u32,
    /// Answers that refused, over all attempts; a connection that failed while nobody listened is none.
    errors: u64,
    /// Reports sent.
    reports: u64,
}

/// Opens the sessions, measures the coordinator, ends it and measures the return.
///
/// # Errors
/// When something does not build, start, or come back within its time.
pub(super) fn run(args: &Args, sink: &mut Sink) -> Result<()> {
    let agents = args.agents;
    let program = optimised::coordinator()?;
    let client = optimised::session_load()?;
    let scratch = Scratch::new()?;
    let dir = scratch.path();
    let mut coordinator = Coordinator::start(&program, dir, REPORT)?;
    let patience = Duration::from_secs(60 + u64::from(agents) / 20);

    let begin = Instant::now();
    let mut load = start_load(&client, &coordinator, dir, agents)?;
    let log = dir.join("load.log");
    all_open(&mut load, &log, agents, patience).context("the first opening")?;
    sink.add("enrol and open all", begin.elapsed().as_secs_f64(), "s");

    // Joining is over when control has seen every agent ready: what is measured then is a fleet at work.
    wait_for("all nodes ready", patience, || {
        Ok((coordinator.status()?.nodes_ready == agents).then_some(()))
    })?;
    eprintln!("bench: measuring {agents} sessions for {} s", args.seconds);
    let pid = coordinator.process.pid();
    let cycles = coordinator.status()?.cycles;
    let before = (process::cpu(pid)?, standing(&log)?, Instant::now());
    thread::sleep(Duration::from_secs(args.seconds));
    load.alive()?;
    let seconds = before.2.elapsed().as_secs_f64();
    let after = (process::cpu(pid)?, standing(&log)?);
    let status = coordinator.status()?;
    ensure!(
        status.nodes_ready == agents,
        "nodes were lost while they were measured: {status:?}"
    );

    let budget = |target: f64| (agents == BUDGET_AGENTS).then_some(target);
    let cpu = (after.0 - before.0).as_secs_f64() / seconds * 100.0;
    sink.put(
        "coordinator cpu",
        cpu,
        "% of a core",
        budget(BUDGET_CPU_PERCENT),
    );
    sink.put(
        "coordinator peak rss",
        mb(process::peak_rss(pid)?),
        "MB",
        budget(BUDGET_RSS_MB),
    );
    sink.add(
        "reports",
        f64::from(u32::try_from(after.1.reports - before.1.reports)?) / seconds,
        "1/s",
    );
    sink.add(
        "control cycles",
        f64::from(u32::try_from(status.cycles - cycles)?) / seconds,
        "1/s",
    );
    sink.add(
        "last control cycle",
        f64::from(u32::try_from(status.last_cycle_us)?) / 1_000.0,
        "ms",
    );
    let asked = Instant::now();
    ensure!(
        coordinator.nodes()? == usize::try_from(agents)?,
        "nodes list lacks nodes"
    );
    sink.add("nodes list", asked.elapsed().as_secs_f64() * 1_000.0, "ms");
    sink.add(
        "sessions lost in the window",
        f64::from(agents - after.1.open),
        "sessions",
    );

    coordinator.process.kill()?;
    wait_for(
        "the agents to see the crash",
        Duration::from_secs(60),
        || Ok((standing(&log)?.open == 0).then_some(())),
    )?;
    let errors = standing(&log)?.errors;
    coordinator.start_again()?;
    let back = Instant::now();
    all_open(&mut load, &log, agents, patience).context("the return after a crash")?;
    sink.put(
        "all reconnect after a crash",
        back.elapsed().as_secs_f64(),
        "s",
        budget(BUDGET_RECONNECT_S),
    );
    let refused = standing(&log)?.errors - errors;
    sink.put(
        "refusals while reconnecting",
        f64::from(u32::try_from(refused)?),
        "answers",
        Some(0.0),
    );
    Ok(())
}

fn start_load(
    client: &Path,
    coordinator: &Coordinator,
    dir: &Path,
    agents: u32,
) -> Result<Running> {
    let token = dir.join("token");
    fs::write(&token, coordinator.token(agents)?)
        .with_context(|| format!("cannot write {}", token.display()))?;
    Running::start(
        "session_load",
        Command::new(client)
            .arg(format!("https://{}", coordinator.address))
            .arg(&token)
            .arg(dir.join("agents"))
            .arg(agents.to_string()),
        &dir.join("load.log"),
    )
}

fn all_open(load: &mut Running, log: &Path, agents: u32, limit: Duration) -> Result<()> {
    wait_for("all sessions open", limit, || {
        load.alive().with_context(|| tail(log))?;
        Ok(standing(log)
            .is_ok_and(|now| now.open == agents)
            .then_some(()))
    })
    .with_context(|| tail(log))
}

/// The last whole line that is a standing.
fn standing(log: &Path) -> Result<Standing> {
    let text = fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
    last_standing(&text).context("session_load has not said how things stand")
}

fn last_standing(text: &str) -> Option<Standing> {
    let whole = &text[..text.rfind('\n')?];
    whole
        .lines()
        .rev()
        .find_map(|line| serde_json::from_str(line).ok())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_last_whole_line_counts() {
        let text = "warn: x\n{\"open\":1,\"errors\":0,\"reports\":2}\n{\"open\":3,\"errors\":1,\"reports\":9}\ntalk\n{\"open\":4,";
        let standing = super::last_standing(text).unwrap();
        assert_eq!(
            (standing.open, standing.errors, standing.reports),
            (3, 1, 9)
        );
        assert!(super::last_standing("{\"open\":1,\"errors\":0,\"reports\":2}").is_none());
    }
}
