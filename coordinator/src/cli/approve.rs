//! `drover approve`: what the breaker holds back, and letting it happen. Called by `cli`; talks proto only.

use super::exit::CliError;
use super::output::{Column, Out, Tabled, number};
use super::{Globals, connect, duration};
use drover_proto::v1;
use serde::Serialize;

/// Let something happen that the breaker holds back.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id of what waits.
    #[arg(required_unless_present = "list")]
    id: Option<String>,
    /// What waits for approval.
    #[arg(long, conflicts_with = "id")]
    list: bool,
}

/// An act that waits for a person.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct ApprovalView {
    pub id: String,
    pub pool: String,
    pub message: String,
    pub nodes: Vec<String>,
    pub since_unix_ms: Option<u64>,
}

impl From<v1::PendingApproval> for ApprovalView {
    fn from(a: v1::PendingApproval) -> Self {
        Self {
            id: a.id,
            pool: a.pool,
            message: a.message,
            nodes: a.nodes,
            since_unix_ms: number(a.since_unix_ms),
        }
    }
}

impl Tabled for ApprovalView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("ID", |a, _| (&a.id).into()),
            Column::new("POOL", |a, _| (&a.pool).into()),
            Column::new("NODES", |a, _| a.nodes.len().to_string().into()),
            Column::new("AGE", |a, now| duration::age(now, a.since_unix_ms).into()),
            Column::wide("NAMES", |a, _| a.nodes.join(",").into()),
            Column::new("WOULD", |a, _| (&a.message).into()),
        ]
    }
}

/// Runs the verb.
///
/// # Errors
/// What the coordinator refused, or that none answers.
pub async fn run(globals: &Globals, out: Out, args: Args) -> Result<(), CliError> {
    let mut admin = connect::admin(globals).await?;
    let Some(id) = args.id else {
        let ask = admin.ask(v1::StatusRequest {});
        let waiting = admin.client.status(ask).await?.into_inner().approvals;
        let waiting: Vec<ApprovalView> = waiting.into_iter().map(Into::into).collect();
        return out.list(&waiting);
    };
    let ask = admin.ask(v1::ApproveRequest { id });
    let approved = admin.client.approve(ask).await?.into_inner().approved;
    out.changed(&ApprovalView::from(approved.unwrap_or_default()))
}
