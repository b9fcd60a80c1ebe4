//! `cargo xtask bench NAME`: figures against budgets, one JSON object a line.
//!
//! Called by people. A bench measures and reports; it never fails a build by a figure.

use anyhow::Result;

/// Arguments of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args) -> Result<bool> {
    anyhow::bail!("no bench yet")
}
