//! `drover freeze` and `drover thaw`: stop every change, of the fleet or of one pool. Called by `cli`; talks proto only.

use super::exit::CliError;
use super::output::{Column, Out, Tabled, number, text};
use super::{Globals, connect, duration};
use drover_proto::v1;
use serde::Serialize;

/// Stop every change.
#[derive(Debug, clap::Args)]
pub struct FreezeArgs {
    /// Only this pool; the whole fleet without it.
    #[arg(default_value = "")]
    pool: String,
    /// Why, for others.
    #[arg(long, default_value = "")]
    reason: String,
}

/// Allow changes again.
#[derive(Debug, clap::Args)]
pub struct ThawArgs {
    /// Only this pool's freeze; the fleet's without it.
    #[arg(default_value = "")]
    pool: String,
}

/// A freeze in force.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct FreezeView {
    pub pool: Option<String>,
    pub by: String,
    pub reason: Option<String>,
    pub since_unix_ms: Option<u64>,
}

impl From<v1::FreezeInfo> for FreezeView {
    fn from(f: v1::FreezeInfo) -> Self {
        Self {
            pool: text(f.pool),
            by: f.by,
            reason: text(f.reason),
            since_unix_ms: number(f.since_unix_ms),
        }
    }
}

impl FreezeView {
    /// "by admin/ann 3m ago: maintenance".
    #[must_use]
    pub fn sentence(&self, now_unix_ms: u64) -> String {
        let why = self
            .reason
            .as_ref()
            .map(|r| format!(": {r}"))
            .unwrap_or_default();
        format!(
            "by {} {} ago{why}",
            self.by,
            duration::age(now_unix_ms, self.since_unix_ms)
        )
    }
}

impl Tabled for FreezeView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("FROZEN", |f, _| {
                f.pool
                    .as_ref()
                    .map_or_else(|| "the whole fleet".to_owned(), |p| format!("pool {p}"))
                    .into()
            }),
            Column::new("BY", |f, _| (&f.by).into()),
            Column::new("AGE", |f, now| duration::age(now, f.since_unix_ms).into()),
            Column::new("REASON", |f, _| (&f.reason).into()),
        ]
    }
}

fn show(out: Out, reply: v1::FreezeReply) -> Result<(), CliError> {
    let freezes: Vec<FreezeView> = reply.freezes.into_iter().map(Into::into).collect();
    out.list(&freezes)
}

/// `drover freeze`: prints all freezes then in force.
///
/// # Errors
/// What the coordinator refused, or that none answers.
pub async fn freeze(globals: &Globals, out: Out, args: FreezeArgs) -> Result<(), CliError> {
    let mut admin = connect::admin(globals).await?;
    let ask = admin.ask(v1::FreezeRequest {
        pool: args.pool,
        reason: args.reason,
    });
    let answer = admin.client.freeze(ask).await?;
    connect::say_note(&answer);
    show(out, answer.into_inner())
}

/// `drover thaw`: prints all freezes still in force.
///
/// # Errors
/// What the coordinator refused, or that none answers.
pub async fn thaw(globals: &Globals, out: Out, args: ThawArgs) -> Result<(), CliError> {
    let mut admin = connect::admin(globals).await?;
    let ask = admin.ask(v1::ThawRequest { pool: args.pool });
    show(out, admin.client.thaw(ask).await?.into_inner())
}
