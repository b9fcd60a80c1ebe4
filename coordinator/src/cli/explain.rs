//! `drover explain`: why a node, pool or request is as it is. Called by `cli`; talks proto only.

use super::exit::CliError;
use super::output::{Out, Page, Sheet};
use super::{Globals, connect};
use drover_proto::v1;
use serde::Serialize;

/// Why something is as it is.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of a node, pool or request; the kind is found.
    subject: String,
}

/// The answer.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct ExplainView {
    pub kind: String,
    pub name: String,
    pub summary: String,
    pub lines: Vec<String>,
}

impl Sheet for ExplainView {
    fn sheet(&self, page: &mut Page, _now: u64) {
        page.text(&format!("{} {}: {}", self.kind, self.name, self.summary));
        for line in &self.lines {
            page.text(&format!("  {line}"));
        }
    }
}

/// Runs the verb.
///
/// # Errors
/// What the coordinator refused, or that none answers.
pub async fn run(globals: &Globals, out: Out, args: Args) -> Result<(), CliError> {
    let mut admin = connect::admin(globals).await?;
    let ask = admin.ask(v1::ExplainRequest {
        subject: args.subject,
    });
    let e = admin.client.explain(ask).await?.into_inner();
    out.one(&ExplainView {
        kind: e.kind,
        name: e.name,
        summary: e.summary,
        lines: e.lines,
    })
}
