//! `drover plan`: the last plan, a fresh one, or (offline) the plan of a saved input. Called by `cli`. The one verb
//! that asks the planner itself: `--from` gives on any machine the bytes that the coordinator made.

use super::exit::CliError;
use super::output::{
    Cell, Column, Format, Out, Page, Sheet, Tabled, Tone, page, say, write_out, yaml,
};
use super::{Globals, connect, duration};
use crate::files::private;
use drover_core::model::{ClassOutcome, PlanInput, Planned, Source, UnixMs};
use drover_core::planner;
use drover_proto::v1;
use std::path::PathBuf;

/// The last plan, a fresh one, or the plan of a saved input.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Read everything and plan now; nothing is changed.
    #[arg(long)]
    fresh: bool,
    /// Also save the plan's input, for `--from` and for bug reports.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Plan from a saved input, without a coordinator: the same bytes on every machine and day.
    #[arg(long, value_name = "FILE", conflicts_with = "fresh")]
    from: Option<PathBuf>,
    /// Replace the names that people chose (nodes, pools, teams, labels, messages) by pseudonyms in what is saved and
    /// shown; the plan is the same but for them. Names of instance types and GPU models stay: plans depend on them, also
    /// those that only your config knows.
    #[arg(long)]
    redact: bool,
}

/// Runs the verb.
///
/// # Errors
/// Files that cannot be read or written, what the coordinator refused, or that none answers.
pub async fn run(globals: &Globals, out: Out, args: Args) -> Result<(), CliError> {
    if let Some(path) = &args.from {
        let bytes = std::fs::read(path).map_err(|error| CliError::file("read", path, &error))?;
        let input = planner::from_input_bytes(&bytes)
            .map_err(|error| CliError::Failed(format!("{}: {error}", path.display())))?;
        return replay(out, &args, input);
    }
    let mut admin = connect::admin(globals).await?;
    let ask = admin.ask(v1::PlanRequest { fresh: args.fresh });
    let reply = admin.client.plan(ask).await?.into_inner();
    let strange = |what: &str, error: &dyn std::fmt::Display| {
        CliError::Failed(format!(
            "the coordinator's {what} is not one that this CLI reads: {error}; `drover version --coordinator` tells both versions"
        ))
    };
    let input =
        planner::from_input_bytes(&reply.input_json).map_err(|e| strange("plan input", &e))?;
    if args.redact {
        return replay(out, &args, input);
    }
    let planned = serde_json::from_slice(&reply.plan_json).map_err(|e| strange("plan", &e))?;
    save(&args, &reply.input_json)?;
    show(out, &reply.plan_json, planned, input)
}

/// Plans an input here: one from a file, or one whose names are to be hidden.
fn replay(out: Out, args: &Args, input: PlanInput) -> Result<(), CliError> {
    let input = if args.redact {
        planner::redact(&input)
    } else {
        input
    };
    save(args, &planner::to_bytes(&input))?;
    let planned = planner::plan(&input);
    show(out, &planner::to_bytes(&planned), planned, input)
}

fn save(args: &Args, bytes: &[u8]) -> Result<(), CliError> {
    let Some(path) = &args.save else {
        return Ok(());
    };
    private::replace(path, bytes)?;
    say(&format!(
        "input saved{}; `drover plan --from {}` plans it again",
        if args.redact { " without names" } else { "" },
        path.display()
    ));
    Ok(())
}

fn show(out: Out, bytes: &[u8], planned: Planned, input: PlanInput) -> Result<(), CliError> {
    match out.format {
        Format::Json => write_out(bytes),
        Format::Yaml => write_out(yaml(&planned)?.as_bytes()),
        format => {
            let shown = Shown {
                planned,
                input,
                wide: format == Format::Wide,
            };
            write_out(page(&shown, out.colour, duration::now_unix_ms()).as_bytes())
        }
    }
}

/// A plan with its input, for people.
struct Shown {
    planned: Planned,
    input: PlanInput,
    wide: bool,
}

impl Sheet for Shown {
    fn sheet(&self, page: &mut Page, _now: u64) {
        let now = self.input.now;
        let report = &self.planned.report;
        page.line("Planned at", Some(duration::moment(now.0)));
        page.line("USD/h then", Some(duration::usd(report.cost.0)));
        let lines = |actions: &[_]| -> Vec<String> {
            actions
                .iter()
                .map(|a| planner::render_action(a, now))
                .collect()
        };
        page.line(
            "Actions",
            Some("none").filter(|_| self.planned.plan.actions.is_empty()),
        );
        page.lines("Actions", &lines(&self.planned.plan.actions));
        page.lines(
            "Would, but for the pool's mode",
            &lines(&self.planned.plan.would),
        );
        let dropped: Vec<_> = report
            .dropped
            .iter()
            .map(|d| {
                let action = planner::render_action(&d.action, now);
                format!("{action}: {} ({})", d.why, d.invariant)
            })
            .collect();
        page.lines("Dropped by the check", &dropped);
        let demand: Vec<_> = report.classes.iter().map(|c| Demand(c, now)).collect();
        page.table("Demand", &demand, now.0);
        let pools: Vec<_> = report
            .pools
            .iter()
            .map(|p| format!("{}: {}", p.pool, planner::pool_summary(p, now)))
            .collect();
        page.lines("Pools", &pools);
        if self.wide {
            let nodes: Vec<_> = report
                .nodes
                .iter()
                .map(|n| format!("{}: {}", n.node, planner::render(&n.reason, now)))
                .collect();
            page.lines("Nodes", &nodes);
        }
    }
}

/// One class of demand and what became of it.
struct Demand<'a>(&'a ClassOutcome, UnixMs);

impl Tabled for Demand<'_> {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("SOURCE", |d, _| match &d.0.source {
                Source::Request(name) => format!("request/{name}").into(),
                Source::Scheduler(name) => name.into(),
            }),
            Column::new("FITTED", |d, _| d.0.fitted.into()),
            Column::new("COMING", |d, _| d.0.coming.into()),
            Column::new("GROWN", |d, _| d.0.grown.into()),
            Column::new("UNPLACED", |d, _| {
                let tone = match (d.0.unplaced, d.0.impossible) {
                    (0, _) => Tone::Plain,
                    (_, true) => Tone::Bad,
                    (_, false) => Tone::Busy,
                };
                Cell::toned(d.0.unplaced.to_string(), tone)
            }),
            Column::new("REASON", |d, _| {
                let all: Vec<_> =
                    d.0.reasons
                        .iter()
                        .map(|r| planner::render(r, d.1))
                        .collect();
                all.join("; ").into()
            }),
        ]
    }
}
