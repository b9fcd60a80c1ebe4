//! `drover sim-cloud run`: the simulated cloud as a daemon.

use super::restore::chain;
use crate::adapters::cloud::{CloudConfig, rpc};
use crate::cli;
use crate::cli::exit::CliError;
use std::path::Path;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// Runs until SIGTERM or SIGINT. 64 when the file is bad.
#[must_use]
pub fn run(config: &Path) -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    cli::block_on(async {
        let config = CloudConfig::load(config).map_err(|e| CliError::Config(chain(&e)))?;
        let mut terminate = signal(SignalKind::terminate())
            .map_err(|e| CliError::Failed(format!("cannot listen for SIGTERM: {e}")))?;
        let shutdown = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        };
        rpc::serve(config, shutdown)
            .await
            .map_err(|e| CliError::Failed(format!("{e:#}")))
    })
}
