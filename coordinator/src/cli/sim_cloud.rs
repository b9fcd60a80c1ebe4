//! `drover sim-cloud`: the simulated cloud as a process of its own. `run` is done by `app`; `ledger` asks a running one.

use super::exit::CliError;
use super::output::{Out, Page, Sheet};
use super::{Globals, duration};
use clap::Subcommand;
use drover_proto::sim;
use drover_proto::sim::cloud_service_client::CloudServiceClient;
use serde::Serialize;
use std::path::PathBuf;

/// What can be done with the simulated cloud.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run the cloud that a file describes, until SIGTERM.
    Run {
        /// Its config file (TOML): listen, metadata, seed, work_dir, [instance], [[group]].
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// What the cloud itself has counted: instances, ends, shortages, cost.
    Ledger {
        /// Address of the running cloud.
        #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7900")]
        cloud: String,
    },
}

/// What the cloud has counted.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct LedgerView {
    pub launched: u32,
    pub terminated: u32,
    pub running: u32,
    pub peak_running: u32,
    pub regions_used: Vec<String>,
    pub shortages: u32,
    pub failovers: u32,
    pub died: u32,
    pub killed_jobs: u32,
    pub cost_micro_usd: u64,
}

impl From<sim::LedgerReply> for LedgerView {
    fn from(l: sim::LedgerReply) -> Self {
        Self {
            launched: l.launched,
            terminated: l.terminated,
            running: l.running,
            peak_running: l.peak_running,
            regions_used: l.regions_used,
            shortages: l.shortages,
            failovers: l.failovers,
            died: l.died,
            killed_jobs: l.killed_jobs,
            cost_micro_usd: l.cost_micro_usd,
        }
    }
}

impl Sheet for LedgerView {
    fn sheet(&self, page: &mut Page, _now: u64) {
        page.line("Launched", Some(self.launched));
        page.line("Terminated", Some(self.terminated));
        page.line("Running", Some(self.running));
        page.line("Most at once", Some(self.peak_running));
        page.line("Regions used", Some(self.regions_used.join(", ")));
        page.line("Shortages", Some(self.shortages));
        page.line("Failovers", Some(self.failovers));
        page.line("Died by themselves", Some(self.died));
        page.line("Jobs killed", Some(self.killed_jobs));
        page.line("Cost", Some(duration::usd(self.cost_micro_usd)));
    }
}

/// Asks a running cloud for its ledger.
///
/// # Errors
/// No cloud answers there, or the address is none.
pub async fn ledger(globals: &Globals, cloud: String) -> Result<(), CliError> {
    let out = Out::new(globals.output, globals.no_color);
    let endpoint = tonic::transport::Endpoint::from_shared(cloud.clone()).map_err(|_| {
        CliError::Usage(format!(
            "--cloud: {cloud} is not an address like http://127.0.0.1:7900"
        ))
    })?;
    let channel = endpoint.connect().await.map_err(|_| {
        CliError::Unreachable(format!(
            "no simulated cloud answers at {cloud}; start one with `drover sim-cloud run`"
        ))
    })?;
    let reply = CloudServiceClient::new(channel)
        .ledger(sim::LedgerRequest {})
        .await?
        .into_inner();
    out.one(&LedgerView::from(reply))
}
