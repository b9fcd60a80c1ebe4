//! `cargo xtask lint`: everything that CI checks besides the tests.
//!
//! Called by people and by `.ci/run`. Every step runs, also after one failed,
//! so that one run shows all there is to mend. It changes no file of the clone.

mod deny;
mod trees;

use anyhow::Result;

use crate::{
    command, tidy,
    workspace::{self, FEATURES},
};

/// Arguments of `cargo xtask lint`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only these steps.
    step: Vec<String>,
}

/// A step's outcome: what to print under its name when it failed.
type Outcome = Result<Verdict>;

/// One step's work.
type Step = fn() -> Outcome;

/// How a step ended.
pub(crate) enum Verdict {
    /// Nothing to mend.
    Passed,
    /// The step's own program has printed what is wrong.
    Failed,
    /// What is wrong, one finding a line.
    Findings(Vec<String>),
}

impl Verdict {
    fn of_status(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }

    fn of_findings(findings: Vec<String>) -> Self {
        if findings.is_empty() {
            Self::Passed
        } else {
            Self::Findings(findings)
        }
    }
}

/// The steps in order, cheap ones first.
const STEPS: &[(&str, Step)] = &[
    ("fmt", fmt),
    ("tidy", tidy_tests),
    ("lockfile", lockfile),
    ("trees", trees),
    ("deny", deny::run),
    ("clippy", clippy),
    ("clippy-without-aws", clippy_without_aws),
];

/// Runs the steps; true when all passed.
///
/// # Errors
/// When a step is named that does not exist.
pub(crate) fn run(args: &Args) -> Result<bool> {
    for name in &args.step {
        if !STEPS.iter().any(|(step, _)| step == name) {
            let known: Vec<&str> = STEPS.iter().map(|(step, _)| *step).collect();
            anyhow::bail!("no lint step `{name}`; the steps are {}", known.join(", "));
        }
    }
    let mut failed = Vec::new();
    let mut ran = 0;
    for (name, step) in STEPS {
        if !args.step.is_empty() && !args.step.iter().any(|wanted| wanted == name) {
            continue;
        }
        ran += 1;
        println!("lint: {name}");
        match step() {
            Ok(Verdict::Passed) => println!("lint: {name}: ok"),
            Ok(Verdict::Failed) => failed.push(*name),
            Ok(Verdict::Findings(findings)) => {
                for finding in findings {
                    println!("{finding}");
                }
                failed.push(name);
            }
            Err(error) => {
                println!("{error:#}");
                failed.push(name);
            }
        }
    }
    if failed.is_empty() {
        println!("lint: all {ran} steps passed");
    } else {
        println!(
            "lint: {} of {ran} steps failed: {}",
            failed.len(),
            failed.join(", ")
        );
    }
    Ok(failed.is_empty())
}

fn fmt() -> Outcome {
    let passed = command::passes(command::cargo().args(["fmt", "--all", "--check"]))?;
    if !passed {
        println!("mend it with `cargo fmt --all`");
    }
    Ok(Verdict::of_status(passed))
}

fn tidy_tests() -> Outcome {
    let report = tidy::check(&workspace::root())?;
    for note in &report.notes {
        println!("note: {note}");
    }
    Ok(Verdict::of_findings(
        report.findings.iter().map(ToString::to_string).collect(),
    ))
}

/// Cargo.lock says what is built: it must need no change.
fn lockfile() -> Outcome {
    command::stdout(command::cargo().args(["metadata", "--locked", "--format-version", "1"]))?;
    Ok(Verdict::Passed)
}

fn trees() -> Outcome {
    let mut findings = trees::one_tls_provider()?;
    findings.extend(trees::pure_core()?);
    Ok(Verdict::of_findings(findings))
}

fn clippy() -> Outcome {
    let passed = command::passes(command::cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--features",
        FEATURES,
        "--",
        "-D",
        "warnings",
    ]))?;
    Ok(Verdict::of_status(passed))
}

/// The demo builds the coordinator without its `aws` feature: that must be clean as well.
fn clippy_without_aws() -> Outcome {
    let passed = command::passes(command::cargo().args([
        "clippy",
        "--package",
        "drover",
        "--no-default-features",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    Ok(Verdict::of_status(passed))
}
