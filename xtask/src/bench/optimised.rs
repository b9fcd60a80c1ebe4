//! Builds what a bench measures, optimised, and says where it lies.
//!
//! Called by the benches. The agent is measured as released; what only stands
//! beside it is built with the quicker `demo` profile.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::{command, workspace};

/// The released agent.
///
/// # Errors
/// When it does not build.
pub(crate) fn agent() -> Result<PathBuf> {
    build(&["--profile", "release", "--package", "drover-agent"])?;
    Ok(workspace::built("release", "drover-agent"))
}

/// The coordinator without its `aws` feature.
///
/// # Errors
/// When it does not build.
pub(crate) fn coordinator() -> Result<PathBuf> {
    build(&[
        "--profile",
        "demo",
        "--package",
        "drover",
        "--no-default-features",
    ])?;
    Ok(workspace::built("demo", "drover"))
}

/// The stub of NVIDIA's library.
///
/// # Errors
/// When it does not build.
pub(crate) fn nvml_stub() -> Result<PathBuf> {
    build(&["--profile", "demo", "--package", "drover-nvml-stub"])?;
    Ok(workspace::built("demo", "libdrover_nvml_stub.so"))
}

/// The client that holds many sessions.
///
/// # Errors
/// When it does not build.
pub(crate) fn session_load() -> Result<PathBuf> {
    build(&[
        "--profile",
        "demo",
        "--package",
        "drover-tests",
        "--bin",
        "session_load",
    ])?;
    Ok(workspace::built("demo", "session_load"))
}

/// The planner's workloads.
///
/// # Errors
/// When it does not build.
pub(crate) fn plan_bench() -> Result<PathBuf> {
    build(&[
        "--profile",
        "demo",
        "--package",
        "drover-core",
        "--example",
        "plan_bench",
    ])?;
    Ok(workspace::built("demo", "examples/plan_bench"))
}

/// The driver of Auto Scaling groups under the real cycle, without the AWS SDK.
///
/// # Errors
/// When it does not build.
pub(crate) fn aws_bench() -> Result<PathBuf> {
    build(&[
        "--profile",
        "demo",
        "--package",
        "drover",
        "--no-default-features",
        "--example",
        "aws_bench",
    ])?;
    Ok(workspace::built("demo", "examples/aws_bench"))
}

/// The planner packing a cluster until it is full.
///
/// # Errors
/// When it does not build.
pub(crate) fn static_packing() -> Result<PathBuf> {
    build(&[
        "--profile",
        "demo",
        "--package",
        "drover-core",
        "--example",
        "static_packing",
    ])?;
    Ok(workspace::built("demo", "examples/static_packing"))
}

fn build(args: &[&str]) -> Result<()> {
    eprintln!("bench: cargo build {}", args.join(" "));
    if command::passes(command::cargo().arg("build").args(args))? {
        Ok(())
    } else {
        bail!("cargo build {} failed", args.join(" "))
    }
}
