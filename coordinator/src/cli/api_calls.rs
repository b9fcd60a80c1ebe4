//! `drover api-calls`: what the coordinator asked of AWS. Called by `cli`; talks proto only.

use super::exit::CliError;
use super::output::{Cell, Column, Out, Tabled, text};
use super::{Globals, connect};
use drover_proto::v1;
use serde::Serialize;
use std::collections::BTreeMap;

/// One call in one region.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct ApiCallView {
    pub region: String,
    pub role: Option<String>,
    pub api: String,
    pub call: String,
    pub sent: u64,
    pub failed: u64,
    pub failed_by_kind: BTreeMap<String, u64>,
    pub throttled: u64,
    pub not_sent: u64,
    pub waited_ms: u64,
    pub repetitions: u64,
    pub last_minute: u64,
    pub bucket: Option<BucketView>,
}

/// Its token bucket.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct BucketView {
    pub name: String,
    pub burst: u32,
    pub per_minute: u64,
    pub per_minute_now: u64,
    pub left: u32,
    pub assumed: bool,
}

impl From<v1::ApiCalls> for ApiCallView {
    fn from(c: v1::ApiCalls) -> Self {
        let failed_by_kind: BTreeMap<String, u64> =
            c.failed.into_iter().map(|f| (f.kind, f.count)).collect();
        Self {
            region: c.region,
            role: text(c.role),
            api: c.api,
            call: c.call,
            sent: c.sent,
            failed: failed_by_kind.values().sum(),
            failed_by_kind,
            throttled: c.throttled,
            not_sent: c.not_sent,
            waited_ms: c.waited_ms,
            repetitions: c.repetitions,
            last_minute: c.last_minute,
            bucket: c.bucket.map(|b| BucketView {
                name: b.name,
                burst: b.burst,
                per_minute: b.per_minute,
                per_minute_now: b.per_minute_now,
                left: b.left,
                assumed: b.assumed,
            }),
        }
    }
}

impl ApiCallView {
    /// The account, where it is not the coordinator's own.
    fn account(&self) -> Option<String> {
        let role = self.role.as_deref()?;
        let account = role.split(':').nth(4).filter(|id| !id.is_empty());
        Some(account.unwrap_or(role).to_owned())
    }

    fn limit(&self) -> Option<String> {
        let bucket = self.bucket.as_ref()?;
        let assumed = if bucket.assumed { ", assumed" } else { "" };
        Some(format!("{}/min{assumed}", bucket.per_minute))
    }

    fn reasons(&self) -> Option<String> {
        let told: Vec<String> = self
            .failed_by_kind
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        Some(told.join(", ")).filter(|told| !told.is_empty())
    }
}

/// Seconds with one decimal.
fn seconds(ms: u64) -> String {
    format!("{}.{}s", ms / 1_000, ms % 1_000 / 100)
}

impl Tabled for ApiCallView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("REGION", |c, _| (&c.region).into()),
            Column::new("ACCOUNT", |c, _| c.account().into()),
            Column::new("API", |c, _| (&c.api).into()),
            Column::new("CALL", |c, _| (&c.call).into()),
            Column::new("SENT", |c, _| c.sent.into()),
            Column::new("FAILED", |c, _| c.failed.into()),
            Column::new("THROTTLED", |c, _| c.throttled.into()),
            Column::new("HELD", |c, _| c.not_sent.into()),
            Column::new("WAITED", |c, _| seconds(c.waited_ms).into()),
            Column::new("PER-MIN", |c, _| c.last_minute.into()),
            Column::new("LIMIT", |c, _| c.limit().into()),
            Column::wide("REPEATED", |c, _| c.repetitions.into()),
            Column::wide("BUCKET", |c, _| of(c, |b| b.name.clone().into())),
            Column::wide("NOW", |c, _| {
                of(c, |b| format!("{}/min", b.per_minute_now).into())
            }),
            Column::wide("BURST", |c, _| of(c, |b| b.burst.into())),
            Column::wide("LEFT", |c, _| of(c, |b| b.left.into())),
            Column::wide("REASONS", |c, _| c.reasons().into()),
        ]
    }
}

fn of(call: &ApiCallView, cell: fn(&BucketView) -> Cell) -> Cell {
    call.bucket.as_ref().map_or_else(Cell::default, cell)
}

/// Shows all calls since the coordinator's start.
///
/// # Errors
/// What the coordinator refused, or that none answers.
pub async fn run(globals: &Globals, out: Out) -> Result<(), CliError> {
    let mut admin = connect::admin(globals).await?;
    let ask = admin.ask(v1::ListApiCallsRequest {});
    let calls = admin.client.list_api_calls(ask).await?.into_inner().calls;
    let calls: Vec<ApiCallView> = calls.into_iter().map(Into::into).collect();
    out.list(&calls)
}
