//! `drover demand`: what waits for capacity, by class. Called by `cli`; talks proto only.

use super::exit::CliError;
use super::output::{Cell, Column, Out, Tabled, Tone, number};
use super::{Globals, connect, duration};
use clap::Subcommand;
use drover_proto::v1;
use serde::Serialize;

/// What can be asked of demand.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Classes of the last cycle, of every source.
    List,
}

/// One class.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct DemandView {
    pub source: String,
    pub members: Vec<String>,
    pub units: u32,
    pub placed: u32,
    pub unplaced: u32,
    pub gpus_per_unit: u32,
    pub milli_cpus_per_unit: u64,
    pub memory_bytes_per_unit: u64,
    pub gang: bool,
    pub priority: i32,
    pub oldest_unix_ms: Option<u64>,
    pub reasons: Vec<String>,
}

impl From<v1::Demand> for DemandView {
    fn from(d: v1::Demand) -> Self {
        Self {
            source: d.source,
            members: d.members,
            units: d.units,
            placed: d.placed,
            unplaced: d.unplaced,
            gpus_per_unit: d.gpus_per_unit,
            milli_cpus_per_unit: d.milli_cpus_per_unit,
            memory_bytes_per_unit: d.memory_bytes_per_unit,
            gang: d.gang,
            priority: d.priority,
            oldest_unix_ms: number(d.oldest_unix_ms),
            reasons: d.reasons,
        }
    }
}

impl Tabled for DemandView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("SOURCE", |d, _| (&d.source).into()),
            Column::new("UNITS", |d, _| d.units.into()),
            Column::new("PLACED", |d, _| d.placed.into()),
            Column::new("UNPLACED", |d, _| {
                let tone = if d.unplaced == 0 {
                    Tone::Plain
                } else {
                    Tone::Busy
                };
                Cell::toned(d.unplaced.to_string(), tone)
            }),
            Column::new("GPUS", |d, _| d.gpus_per_unit.into()),
            Column::new("CPUS", |d, _| {
                number(d.milli_cpus_per_unit).map(duration::cpus).into()
            }),
            Column::new("MEM", |d, _| {
                number(d.memory_bytes_per_unit).map(duration::bytes).into()
            }),
            Column::new("GANG", |d, _| if d.gang { "yes" } else { "no" }.into()),
            Column::new("PRIORITY", |d, _| d.priority.to_string().into()),
            Column::new("AGE", |d, now| duration::age(now, d.oldest_unix_ms).into()),
            Column::wide("MEMBERS", |d, _| d.members.join(",").into()),
            Column::new("REASON", |d, _| d.reasons.first().cloned().into()),
        ]
    }
}

/// Runs one verb.
///
/// # Errors
/// What the coordinator refused, or that none answers.
pub async fn run(globals: &Globals, out: Out, verb: Verb) -> Result<(), CliError> {
    let Verb::List = verb;
    let mut admin = connect::admin(globals).await?;
    let ask = admin.ask(v1::ListDemandRequest {});
    let demand = admin.client.list_demand(ask).await?.into_inner().demand;
    let demand: Vec<DemandView> = demand.into_iter().map(Into::into).collect();
    out.list(&demand)
}
