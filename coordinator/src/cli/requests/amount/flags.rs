//! The flags of `requests create`. Read by clap; what they make together is told by `amount`.

use crate::cli::duration;
use crate::cli::requests::place::Place;
use clap::{Args, ValueEnum};

/// Ask for capacity.
///
/// Totals (--gpus, --cpus, --memory) are cut into equal units, each of which fits on one node: --units many, or as
/// many as --gpus-per-unit, --cpus-per-unit or --memory-per-unit make; without these one GPU is one unit, and CPUs and
/// memory alone are one unit. --nodes asks for whole nodes.
#[derive(Debug, Clone, Default, Args)]
#[command(group(clap::ArgGroup::new("amount").required(true).multiple(true).args(["gpus", "nodes", "cpus_milli", "memory_bytes", "units", "gpu_milli"])))]
pub struct Create {
    /// GPUs in all.
    #[arg(long, conflicts_with = "nodes")]
    pub gpus: Option<u32>,
    /// Whole nodes.
    #[arg(long, conflicts_with_all = ["cpus_milli", "memory_bytes", "units"])]
    pub nodes: Option<u32>,
    /// CPUs in all.
    #[arg(long = "cpus", value_name = "CPUS", value_parser = duration::parse_milli_cpus)]
    pub cpus_milli: Option<u64>,
    /// Memory in all, like 64GiB.
    #[arg(long = "memory", value_name = "SIZE", value_parser = duration::parse_bytes)]
    pub memory_bytes: Option<u64>,
    /// Units.
    #[arg(long)]
    pub units: Option<u32>,
    /// GPUs of one unit (of one node at least, with --nodes).
    #[arg(long)]
    pub gpus_per_unit: Option<u32>,
    /// Thousandths of one GPU that a unit shares with others, 1 to 999. Sharing is counted, not enforced.
    #[arg(long, value_name = "THOUSANDTHS", conflicts_with_all = ["gpus", "nodes", "gpus_per_unit"], value_parser = clap::value_parser!(u32).range(1..=999))]
    pub gpu_milli: Option<u32>,
    /// CPUs of one unit.
    #[arg(long = "cpus-per-unit", value_name = "CPUS", value_parser = duration::parse_milli_cpus)]
    pub cpus_milli_per_unit: Option<u64>,
    /// Memory of one unit.
    #[arg(long = "memory-per-unit", value_name = "SIZE", value_parser = duration::parse_bytes)]
    pub memory_bytes_per_unit: Option<u64>,
    /// GPU model, like titan-x; any without it.
    #[arg(long, value_name = "MODEL", value_parser = said)]
    pub gpu_model: Option<String>,
    /// How long it is held once served; until cancelled without it. It is also the run time that plans count on: capacity
    /// that is given back soon is waited for, where `--max-wait` allows it.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration::parse_ms_positive)]
    pub for_ms: Option<u64>,
    /// May wait so long for capacity that others give back before new nodes are asked for.
    #[arg(long = "max-wait", value_name = "DURATION", value_parser = duration::parse_ms_positive)]
    pub max_wait_ms: Option<u64>,
    /// Useless when it has not started by then: a span from now on, like 2h, or a moment, like 2026-05-01T18:00:00Z.
    #[arg(long, value_name = "DURATION|MOMENT", value_parser = deadline)]
    pub deadline: Option<Deadline>,
    /// Whose budget pays.
    #[arg(long, value_name = "TEAM", value_parser = said)]
    pub team: Option<String>,
    /// All at once, or nothing.
    #[arg(long)]
    pub gang: bool,
    /// Least useful amount, counted as it was asked (GPUs, nodes or units): a gang that is elastic above it; all of a gang
    /// without it.
    #[arg(long)]
    pub min: Option<u32>,
    /// How near the units must be.
    #[arg(long, value_enum, default_value_t)]
    pub locality: Locality,
    /// Its name; one is made without it.
    #[arg(long, value_name = "NAME", value_parser = said)]
    pub name: Option<String>,
    /// Higher goes first.
    #[arg(long, default_value_t, allow_negative_numbers = true)]
    pub priority: i32,
    /// Only this pool (may be repeated).
    #[arg(long = "pool", value_name = "POOL", value_parser = said)]
    pub pools: Vec<String>,
    /// Where units may go.
    #[command(flatten)]
    pub place: Place,
    /// How long a gang may hold part of what it needs (the config's).
    #[arg(long = "hold", value_name = "DURATION", value_parser = duration::parse_ms_positive)]
    pub hold_ms: Option<u64>,
    /// Wait until its nodes are ready, as `requests wait` does.
    #[arg(long)]
    pub wait: bool,
}

/// How near the units of a request must be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Locality {
    /// Anywhere.
    #[default]
    Any,
    /// On one node.
    Node,
    /// In one pool.
    Pool,
    /// In one zone.
    Zone,
    /// In one site.
    Site,
}

impl Locality {
    pub(super) const fn wire(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Node => "node",
            Self::Pool => "pool",
            Self::Zone => "zone",
            Self::Site => "site",
        }
    }
}

/// A moment, or a span from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// Milliseconds since 1970.
    At(u64),
    /// Milliseconds from now on, by the coordinator's clock.
    In(u64),
}

/// A text that is there: an empty one (of an empty variable of a script) is a mistake, and not "any".
fn said(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("is empty: say something, or leave the option out".to_owned());
    }
    Ok(text.to_owned())
}

fn deadline(text: &str) -> Result<Deadline, String> {
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        return u64::try_from(moment.as_millisecond())
            .map(Deadline::At)
            .map_err(|_| format!("{text:?} is before 1970"));
    }
    duration::parse_ms_positive(text)
        .map(Deadline::In)
        .map_err(|why| format!("{why}, or a moment like 2026-05-01T18:00:00Z"))
}
