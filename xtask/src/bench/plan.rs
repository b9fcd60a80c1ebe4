//! `bench plan`: how long the planner takes on workloads that others have published, and on a large fleet.
//!
//! Called by `bench`. The work is done by the example `plan_bench` of drover-core, which asserts every plan before it
//! prints a figure; this builds it, runs it and passes its figures on.

use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{Args, figure::Sink, optimised};
use crate::command;

/// One line of `plan_bench`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    case: String,
    value: f64,
    unit: String,
    /// Only where the case is the whole workload that the budget names.
    target: Option<f64>,
}

/// Runs every case.
///
/// # Errors
/// When the example does not build, a plan is wrong, or a line is not a figure.
pub(super) fn run(args: &Args, sink: &mut Sink) -> Result<()> {
    let program = optimised::plan_bench()?;
    pass_on(Command::new(program).arg(args.repeats.to_string()), sink)
}

/// Passes on the figures that an example printed.
///
/// # Errors
/// When it fails, or a line is not a figure.
pub(super) fn pass_on(program: &mut Command, sink: &mut Sink) -> Result<()> {
    command::lines(program, |line| {
        let figure = read(line)?;
        let unit = unit(&figure.unit)?;
        sink.put(figure.case, figure.value, unit, figure.target);
        Ok(())
    })
}

fn read(line: &str) -> Result<Line> {
    serde_json::from_str(line).with_context(|| format!("not a figure: {line}"))
}

/// The units that the example knows.
fn unit(name: &str) -> Result<&'static str> {
    [
        "ms",
        "MB",
        "nodes",
        "classes",
        "gangs",
        "units",
        "GPUs",
        "%",
        "calls",
        "instances",
    ]
    .into_iter()
    .find(|known| *known == name)
    .with_context(|| format!("unknown unit {name}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_whole_figures_are_taken() {
        let line = super::read(r#"{"case":"a","value":1.5,"unit":"ms","target":10.0}"#).unwrap();
        assert_eq!((line.value, line.target), (1.5, Some(10.0)));
        assert!(super::read(r#"{"case":"a","value":1.5}"#).is_err());
        assert!(super::unit("ms").is_ok());
        assert!(super::unit("parsecs").is_err());
    }
}
