//! `cargo xtask demo`: the field's own story in about a minute, on loopback, with real processes.
//!
//! A coordinator; a cloud process with three regions; a rack of 15 hosts with 4 Titan X each, one of them this
//! machine. Every host and every instance is a real `drover-agent` with the stub NVML. The runner here plays the users
//! through the CLI, starts their jobs as real processes, and counts what it sees: exits of jobs, and the cloud's own
//! ledger. It believes nothing that the coordinator says of itself.

mod admin;
mod figures;
mod jobs;
mod scene;
mod screen;
mod stage;
mod story;

use crate::{command, workspace};
use anyhow::{Result, bail};
use std::path::PathBuf;

/// Plays the demo.
#[derive(clap::Args)]
pub struct Args {
    /// Print events instead of a live table.
    #[arg(long)]
    headless: bool,
    /// Fixes the script and the cloud (ids, boot delays), not the timing.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Keep every plan as NNNN.input.json and NNNN.plan.json in this folder.
    #[arg(long, value_name = "DIR")]
    save_plans: Option<PathBuf>,
    /// What stdout gets at the end.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Break something, to see that the figures can fail.
    #[arg(long, value_enum)]
    sabotage: Option<Sabotage>,
    /// Leave configs, logs and state in this folder (must be new or empty).
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Form of the result.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// For people.
    Table,
    /// One object.
    Json,
}

/// Ways to make the demo fail.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Sabotage {
    /// The runner kills one of the users' jobs.
    KillJob,
    /// A person cordons an instance, so that it never leaves.
    Leak,
}

/// Builds, plays, counts. False when something was not served, a job was killed or a node leaked.
pub fn run(args: &Args) -> Result<bool> {
    let programs = build()?;
    let mut stage = stage::Stage::set(
        &programs,
        args.seed,
        args.keep.as_deref(),
        args.save_plans.as_deref(),
    )?;
    let screen = screen::Screen::new(args.headless, args.output == Output::Json);
    let figures = story::play(&mut stage, &screen, args.sabotage)?;
    screen.end();
    match args.output {
        Output::Json => println!("{}", serde_json::to_string(&figures.to_json())?),
        Output::Table => print!("{figures}"),
    }
    let failures = figures.failures();
    for failure in &failures {
        eprintln!("demo: {failure}");
    }
    Ok(failures.is_empty())
}

/// What is played with.
pub struct Programs {
    /// The coordinator and CLI.
    pub drover: PathBuf,
    /// The agent.
    pub agent: PathBuf,
    /// The scripted NVML.
    pub nvml: PathBuf,
}

/// Optimised, without the `aws` feature, so that a fresh machine gets there in minutes.
fn build() -> Result<Programs> {
    let built = command::passes(
        command::cargo()
            .args(["build", "--profile", "demo", "--no-default-features"])
            .args([
                "-p",
                "drover",
                "-p",
                "drover-agent",
                "-p",
                "drover-nvml-stub",
            ]),
    )?;
    if !built {
        bail!("the build failed");
    }
    let built = |file| workspace::built("demo", file);
    Ok(Programs {
        drover: built("drover"),
        agent: built("drover-agent"),
        nvml: built("libdrover_nvml_stub.so"),
    })
}
