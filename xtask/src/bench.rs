//! `cargo xtask bench NAME`: figures against budgets, one JSON object a line.
//!
//! Called by people. A bench measures and reports on the machine it runs on; it
//! fails when it cannot measure, never because of a figure. One module per bench.

mod agent;
mod aws;
mod exporter;
mod figure;
mod optimised;
mod plan;
mod process;
mod rig;
mod session;
mod traces;

use anyhow::{Result, bail};

use figure::{Output, Sink};

/// Arguments of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to measure; without it the benches are listed.
    name: Option<String>,
    /// How to print the figures.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
    /// Length of one measurement.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(5..=3600))]
    seconds: u64,
    /// How many agents `session` plays; its budgets are named for 10,000.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    agents: u32,
    /// How often `plan` times each plan; the median is judged.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repeats: u32,
    /// Folder of the public traces for `traces` (default: DROVER_TRACES, or ../shared/traces beside the clone).
    #[arg(long)]
    traces: Option<std::path::PathBuf>,
    /// How many orders of arrival `traces` packs; the mean is judged.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    seeds: u32,
    /// How many days with mishaps `traces` plays; its target is named for 10,000.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    days: u32,
}

/// One bench: its name, what it measures, its work.
struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn(&Args, &mut Sink) -> Result<()>,
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "agent",
        about: "CPU and memory of agent and probe beside node_exporter, size of the binary",
        run: agent::run,
    },
    Bench {
        name: "session",
        about: "what many agents cost the coordinator, and how soon all are back after a crash",
        run: session::run,
    },
    Bench {
        name: "plan",
        about: "how long one decision takes, on published workloads and on a large fleet",
        run: plan::run,
    },
    Bench {
        name: "aws",
        about: "fail-over after a shortage, a thousand from zero, two hours of shortage, describes of 200 groups",
        run: aws::run,
    },
    Bench {
        name: "traces",
        about: "what simulations of public traces cost, beside what they must reach",
        run: traces::run,
    },
];

/// Runs one bench, or lists them; true when it could measure.
///
/// # Errors
/// When there is no such bench, or it cannot measure.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let Some(name) = &args.name else {
        for bench in BENCHES {
            println!("{:<10} {}", bench.name, bench.about);
        }
        return Ok(true);
    };
    let Some(bench) = BENCHES.iter().find(|bench| bench.name == name) else {
        let known: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
        bail!("no bench `{name}`; the benches are {}", known.join(", "));
    };
    let mut sink = Sink::new(bench.name, args.output);
    (bench.run)(args, &mut sink)?;
    sink.finish();
    Ok(true)
}
