//! `drover check-config`: reads a config file as `serve` would and tells everything that is wrong with it; with
//! `--against-live` also what it would change in the fleet that runs. Called by `main`; changes nothing.

use super::restore::chain;
use super::serve::not_built;
use crate::adapters::cloud::load_world;
use crate::cli::exit::CliError;
use crate::cli::output::{Format, Out, json, say, write_out, yaml};
use crate::cli::{self, Globals, connect};
use crate::config::live::{Difference, Live, LiveNode, against_live};
use crate::config::{self, Config};
use drover_config::{FileError, Problem};
use drover_core::model::{NodeId, PoolId, PoolKind};
use drover_proto::v1;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Check a config file.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The config file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Also tell which pools, hosts and nodes the file would gain and lose beside the coordinator that runs.
    #[arg(long)]
    against_live: bool,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Findings {
    good: bool,
    pools: Option<usize>,
    problems: Vec<ProblemView>,
    /// What is right but hardly meant.
    warnings: Vec<String>,
    /// Absent when the file was not compared with the fleet.
    changes: Option<Changes>,
}

#[derive(Debug, Serialize)]
struct ProblemView {
    /// Absent when it is not about one line.
    line: Option<usize>,
    key: Option<String>,
    message: String,
    fix: Option<String>,
}

#[derive(Debug, Serialize)]
struct Changes {
    pools_gained: Vec<String>,
    pools_lost: Vec<String>,
    hosts_gained: Vec<HostView>,
    nodes_lost: Vec<NodeView>,
    above_max: Vec<AboveView>,
}

#[derive(Debug, Serialize)]
struct HostView {
    pool: String,
    host: String,
}

#[derive(Debug, Serialize)]
struct NodeView {
    pool: String,
    id: String,
    name: String,
}

#[derive(Debug, Serialize)]
struct AboveView {
    pool: String,
    nodes: u32,
    max: u32,
}

/// Checks. 64 when the file is bad.
#[must_use]
pub fn run(globals: &Globals, args: &Args) -> ExitCode {
    cli::block_on(check(globals, args))
}

async fn check(globals: &Globals, args: &Args) -> Result<(), CliError> {
    let out = Out::new(globals.output, globals.no_color);
    let config = match config::load(&args.config) {
        Ok(config) => config,
        Err(error) => return Err(bad(out, &error)?),
    };
    if let Some(why) = not_built(&config) {
        let problem = ProblemView {
            line: None,
            key: Some("pool".to_owned()),
            message: why.clone(),
            fix: None,
        };
        return Err(refuse(out, &args.config, vec![problem], &why)?);
    }
    if let Some(world) = config.sim.world.as_ref().filter(|_| has_sim(&config))
        && let Err(error) = load_world(world)
    {
        return Err(bad(out, &error)?);
    }
    let difference = if args.against_live {
        Some(against_live(&config, &live(globals).await?))
    } else {
        None
    };
    good(out, &args.config, &config, difference)
}

/// Says all that is wrong and gives the error to end with.
fn bad(out: Out, error: &FileError) -> Result<CliError, CliError> {
    match error {
        FileError::Read { .. } => Ok(CliError::Config(chain(error))),
        FileError::Wrong { path, problems } => {
            refuse(out, path, views(problems), &error.to_string())
        }
    }
}

fn views(problems: &[Problem]) -> Vec<ProblemView> {
    problems
        .iter()
        .map(|problem| ProblemView {
            line: Some(problem.line),
            key: Some(problem.key.clone()).filter(|key| !key.is_empty()),
            message: problem.message.clone(),
            fix: Some(problem.fix.clone()),
        })
        .collect()
}

/// The embedded world counts only when a pool is driven by it.
fn has_sim(config: &Config) -> bool {
    config.pools.iter().any(|pool| pool.kind() == PoolKind::Sim)
}

fn refuse(
    out: Out,
    path: &Path,
    problems: Vec<ProblemView>,
    lines: &str,
) -> Result<CliError, CliError> {
    let count = problems.len();
    let findings = Findings {
        good: false,
        pools: None,
        problems,
        warnings: Vec::new(),
        changes: None,
    };
    match out.format {
        Format::Json => write_out(json(&findings)?.as_bytes())?,
        Format::Yaml => write_out(yaml(&findings)?.as_bytes())?,
        Format::Table | Format::Wide => say(lines),
    }
    Ok(CliError::Config(format!(
        "{} has {count} problem{}",
        path.display(),
        if count == 1 { "" } else { "s" }
    )))
}

fn good(
    out: Out,
    path: &Path,
    config: &Config,
    difference: Option<Difference>,
) -> Result<(), CliError> {
    let lines = difference.as_ref().map(Difference::lines);
    for warning in config.warnings() {
        say(&format!("warning: {warning}"));
    }
    let findings = Findings {
        good: true,
        pools: Some(config.pools.len()),
        problems: Vec::new(),
        warnings: config.warnings(),
        changes: difference.map(changes),
    };
    match out.format {
        Format::Json => write_out(json(&findings)?.as_bytes()),
        Format::Yaml => write_out(yaml(&findings)?.as_bytes()),
        Format::Table | Format::Wide => {
            say(&format!("{} is good: {}", path.display(), pools(config)));
            match lines {
                Some(lines) if lines.is_empty() => say("it changes nothing in the fleet that runs"),
                Some(lines) => write_out((lines.join("\n") + "\n").as_bytes())?,
                None => {}
            }
            Ok(())
        }
    }
}

/// "1 pool and pools from discovery in 2 regions".
fn pools(config: &Config) -> String {
    let count = |n: usize, noun: &str| match n {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    };
    let all = config.aws.discover.iter();
    let regions = all.map(|found| found.regions.len()).sum();
    let found = format!("pools from discovery in {}", count(regions, "region"));
    match (config.pools.len(), regions) {
        (n, 0) => count(n, "pool"),
        (0, _) => found,
        (n, _) => format!("{} and {found}", count(n, "pool")),
    }
}

fn changes(difference: Difference) -> Changes {
    let names = |ids: Vec<PoolId>| ids.into_iter().map(|id| id.0).collect();
    Changes {
        pools_gained: names(difference.pools_gained),
        pools_lost: names(difference.pools_lost),
        hosts_gained: difference
            .hosts_gained
            .into_iter()
            .map(|(pool, host)| HostView {
                pool: pool.0,
                host: host.0,
            })
            .collect(),
        nodes_lost: difference
            .nodes_lost
            .into_iter()
            .map(|(pool, id, name)| NodeView {
                pool: pool.0,
                id: id.0,
                name,
            })
            .collect(),
        above_max: difference
            .above_max
            .into_iter()
            .map(|(pool, nodes, max)| AboveView {
                pool: pool.0,
                nodes,
                max,
            })
            .collect(),
    }
}

/// The fleet as the running coordinator tells it.
async fn live(globals: &Globals) -> Result<Live, CliError> {
    let mut admin = connect::admin(globals).await?;
    let ask = admin.ask(v1::ListPoolsRequest {});
    let pools = admin.client.list_pools(ask).await?.into_inner().pools;
    let ask = admin.ask(v1::ListNodesRequest::default());
    let nodes = admin.client.list_nodes(ask).await?.into_inner().nodes;
    let region = |origin: &str| {
        let place = origin.strip_prefix("discovered in ")?;
        place.split(' ').next().map(str::to_owned)
    };
    Ok(Live {
        discovered: pools
            .iter()
            .filter_map(|pool| Some((PoolId(pool.name.clone()), region(&pool.origin)?)))
            .collect(),
        pools: pools.into_iter().map(|pool| PoolId(pool.name)).collect(),
        nodes: nodes
            .into_iter()
            .map(|node| LiveNode {
                id: NodeId(node.id),
                name: node.name,
                pool: Some(node.pool).filter(|pool| !pool.is_empty()).map(PoolId),
            })
            .collect(),
    })
}
