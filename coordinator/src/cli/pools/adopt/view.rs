//! An adoption as the CLI shows it: JSON, page, rows. Used by `pools::adopt`; missing is not zero.

use crate::cli::duration;
use crate::cli::output::{Cell, Column, Page, Sheet, Tabled, number, text};
use drover_proto::v1;
use serde::Serialize;

const HOUR_MS: u64 = 3_600_000;
/// Stretches of the course that a page shows.
const STRETCHES: usize = 24;

/// An adoption.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct AdoptionView {
    pub pool: String,
    pub group: String,
    pub region: String,
    pub by: String,
    pub since_unix_ms: Option<u64>,
    pub for_ms: u64,
    pub watched_ms: u64,
    pub complete: bool,
    pub last_look_unix_ms: Option<u64>,
    pub left_unix_ms: Option<u64>,
    pub mode: Option<String>,
    pub came: u64,
    pub went: u64,
    pub would_ask: u64,
    pub missing_node_ms: u64,
    pub would_remove: u64,
    pub removable_gpu_ms: u64,
    pub removable_micro_usd: u64,
    pub idle_gpu_ms: u64,
    pub idle_micro_usd: u64,
    pub blind_node_ms: u64,
    pub samples: Vec<SampleView>,
    pub decisions: Vec<DecisionView>,
    pub dropped: u64,
}

/// A stretch of the course.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct SampleView {
    pub at_unix_ms: u64,
    pub size: u32,
    pub idle: u32,
    pub would_ask: u32,
    pub would_remove: u32,
}

/// Something that would have been done.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct DecisionView {
    pub at_unix_ms: u64,
    pub what: String,
}

impl From<v1::Adoption> for AdoptionView {
    fn from(a: v1::Adoption) -> Self {
        let tally = a.tally.unwrap_or_default();
        Self {
            pool: a.pool,
            group: a.group,
            region: a.region,
            by: a.by,
            since_unix_ms: number(a.since_unix_ms),
            for_ms: a.for_ms,
            watched_ms: a.watched_ms,
            complete: a.watched_ms >= a.for_ms,
            last_look_unix_ms: number(a.last_look_unix_ms),
            left_unix_ms: number(a.left_unix_ms),
            mode: text(a.mode),
            came: tally.came,
            went: tally.went,
            would_ask: tally.would_ask,
            missing_node_ms: tally.missing_node_ms,
            would_remove: tally.would_remove,
            removable_gpu_ms: tally.removable_gpu_ms,
            removable_micro_usd: tally.removable_micro_usd,
            idle_gpu_ms: tally.idle_gpu_ms,
            idle_micro_usd: tally.idle_micro_usd,
            blind_node_ms: tally.blind_node_ms,
            samples: a
                .samples
                .into_iter()
                .map(|s| SampleView {
                    at_unix_ms: s.at_unix_ms,
                    size: s.size,
                    idle: s.idle,
                    would_ask: s.would_ask,
                    would_remove: s.would_remove,
                })
                .collect(),
            decisions: a
                .decisions
                .into_iter()
                .map(|d| DecisionView {
                    at_unix_ms: d.at_unix_ms,
                    what: d.what,
                })
                .collect(),
            dropped: a.dropped,
        }
    }
}

fn nodes(count: u64) -> String {
    let noun = if count == 1 { "node" } else { "nodes" };
    format!("{count} {noun}")
}

/// Hours with one decimal.
fn hours(ms: u64) -> String {
    let tenths = ms / (HOUR_MS / 10);
    format!("{}.{}", tenths / 10, tenths % 10)
}

impl AdoptionView {
    /// What comes next, for a person.
    fn next(&self) -> String {
        let pool = &self.pool;
        if self.left_unix_ms.is_some() {
            return "it left observe; `drover pools adopt` begins another".to_owned();
        }
        if self.mode.is_none() {
            return "it is watched from when the pool is in the config".to_owned();
        }
        if self.complete {
            return format!(
                "`drover pools doctor {pool}` once more, then `drover pools mode {pool} grow` lets Drover add to it"
            );
        }
        let left = duration::span(self.for_ms.saturating_sub(self.watched_ms));
        format!(
            "watched for {left} more; `drover pools mode {pool} grow --yes` goes on before that"
        )
    }
}

impl Sheet for AdoptionView {
    fn sheet(&self, page: &mut Page, now: u64) {
        page.line("Pool", Some(&self.pool));
        page.line("Group", Some(format!("{} in {}", self.group, self.region)));
        page.line("Mode", self.mode.as_ref());
        page.line(
            "Adopted",
            Some(format!(
                "by {} {} ago",
                self.by,
                duration::age(now, self.since_unix_ms)
            )),
        );
        page.line(
            "Watched",
            Some(format!(
                "{} of {}",
                duration::span(self.watched_ms),
                duration::span(self.for_ms)
            )),
        );
        let last = self.samples.last();
        page.line(
            "Happened",
            last.map(|s| {
                format!(
                    "{} members now; {} came, {} went",
                    s.size, self.came, self.went
                )
            }),
        );
        page.line(
            "Would ask",
            Some(format!(
                "{}; wanted and not there for {} node-hours",
                nodes(self.would_ask),
                hours(self.missing_node_ms)
            )),
        );
        page.line(
            "Would remove",
            Some(format!(
                "{}; at least {} GPU-hours and {} USD saved",
                nodes(self.would_remove),
                hours(self.removable_gpu_ms),
                duration::usd(self.removable_micro_usd)
            )),
        );
        page.line(
            "Idle",
            Some(format!(
                "{} GPU-hours in all, {} USD",
                hours(self.idle_gpu_ms),
                duration::usd(self.idle_micro_usd)
            )),
        );
        let blind = Some(self.blind_node_ms).filter(|ms| *ms > 0);
        page.line(
            "Not known",
            blind.map(|ms| {
                format!(
                    "{} node-hours of members without an agent: never idle, never removed",
                    hours(ms)
                )
            }),
        );
        page.line("Next", Some(self.next()));
        let newest = self.samples.len().saturating_sub(STRETCHES);
        page.table("Course", &self.samples[newest..], now);
        page.table("Would have", &self.decisions, now);
        if self.dropped > 0 {
            page.text(&format!("  and {} earlier ones", self.dropped));
        }
    }
}

impl Tabled for AdoptionView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("POOL", |a, _| (&a.pool).into()),
            Column::new("GROUP", |a, _| (&a.group).into()),
            Column::new("REGION", |a, _| (&a.region).into()),
            Column::new("MODE", |a, _| (&a.mode).into()),
            Column::new("WATCHED", |a, _| {
                format!(
                    "{}/{}",
                    duration::span(a.watched_ms),
                    duration::span(a.for_ms)
                )
                .into()
            }),
            Column::new("SIZE", |a, _| a.samples.last().map(|s| s.size).into()),
            Column::new("WOULD-ASK", |a, _| a.would_ask.to_string().into()),
            Column::new("WOULD-REMOVE", |a, _| a.would_remove.to_string().into()),
            Column::new("IDLE-GPU-H", |a, _| hours(a.idle_gpu_ms).into()),
            Column::new("IDLE-USD", |a, _| duration::usd(a.idle_micro_usd).into()),
            Column::new("NEXT", |a, _| a.next().into()),
        ]
    }
}

impl Tabled for SampleView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("SINCE", |s, _| duration::moment(s.at_unix_ms).into()),
            Column::new("SIZE", |s, _| s.size.into()),
            Column::new("IDLE", |s, _| s.idle.into()),
            Column::new("WOULD-ASK", |s, _| s.would_ask.into()),
            Column::new("WOULD-REMOVE", |s, _| s.would_remove.into()),
        ]
    }
}

impl Tabled for DecisionView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("AT", |d, _| duration::moment(d.at_unix_ms).into()),
            Column::new("WHAT", |d, _| Cell::from(d.what.as_str())),
        ]
    }
}
