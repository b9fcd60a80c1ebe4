//! `drover audit`: who changed what. Called by `cli`; talks proto only.

use super::exit::CliError;
use super::output::{Column, Out, Tabled, text};
use super::{Globals, connect, duration};
use clap::Subcommand;
use drover_proto::v1;
use serde::Serialize;

/// What can be asked of the audit log.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// The last changes, oldest first.
    List {
        /// At most this many.
        #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
        /// Only later than this number.
        #[arg(long, default_value_t = 0)]
        after_seq: u64,
    },
}

/// One change.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct AuditView {
    pub seq: u64,
    pub at_unix_ms: u64,
    pub actor: String,
    pub verb: String,
    pub subject: Option<String>,
    pub detail: Option<String>,
}

impl From<v1::AuditEntry> for AuditView {
    fn from(a: v1::AuditEntry) -> Self {
        Self {
            seq: a.seq,
            at_unix_ms: a.at_unix_ms,
            actor: a.actor,
            verb: a.verb,
            subject: text(a.subject),
            detail: text(a.detail),
        }
    }
}

impl Tabled for AuditView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("SEQ", |a, _| a.seq.into()),
            Column::new("TIME", |a, _| duration::moment(a.at_unix_ms).into()),
            Column::new("ACTOR", |a, _| (&a.actor).into()),
            Column::new("VERB", |a, _| (&a.verb).into()),
            Column::new("SUBJECT", |a, _| (&a.subject).into()),
            Column::new("DETAIL", |a, _| (&a.detail).into()),
        ]
    }
}

/// Runs one verb.
///
/// # Errors
/// What the coordinator refused, or that none answers.
pub async fn run(globals: &Globals, out: Out, verb: Verb) -> Result<(), CliError> {
    let Verb::List { limit, after_seq } = verb;
    let mut admin = connect::admin(globals).await?;
    let ask = admin.ask(v1::ListAuditRequest { limit, after_seq });
    let entries = admin.client.list_audit(ask).await?.into_inner().entries;
    let entries: Vec<AuditView> = entries.into_iter().map(Into::into).collect();
    out.list(&entries)
}
