//! `bench aws`: how soon another pool is asked after a shortage, a thousand from zero, two hours of shortage, and how many
//! calls describe 200 groups.
//!
//! Called by `bench`. The work is done by the example `aws_bench` of drover: the real cycle and the real driver over an AWS
//! of plain values. It asserts every case before it prints a figure; this builds it, runs it and passes its figures on.

use std::process::Command;

use anyhow::Result;

use super::{Args, figure::Sink, optimised, plan};
/// Runs every case.
///
/// # Errors
/// When the example does not build, a case does not hold, or a line is not a figure.
pub(super) fn run(_: &Args, sink: &mut Sink) -> Result<()> {
    let program = optimised::aws_bench()?;
    plan::pass_on(&mut Command::new(program), sink)
}
