//! `[simulate]`: how a trace becomes jobs, who places them, what people do, what goes wrong.
//!
//! Called by `sim::config`. `docs/simulate.md` describes its keys.

use crate::config::{self, Config};
use crate::sim::fault::{self, Fault};
use crate::sim::job_table;
use crate::sim::trace::Job;
use crate::sim::trace::read::{Format, Options};
use drover_config::Section;
use drover_core::model::Millis;
use std::time::Duration;

/// `[simulate]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulate {
    /// How rows become jobs.
    pub trace: Options,
    /// Jobs that fit no offering are left out of the trace; else they wait for ever.
    pub skip_unfit: bool,
    /// Who places.
    pub placer: Placer,
    /// What the planner is told of run times.
    pub durations: Durations,
    /// Longest virtual time between two cycles.
    pub interval: Millis,
    /// Seed, unless the command line gives one.
    pub seed: u64,
    /// The run ends then at the latest; absent: when all is done.
    pub end: Option<Millis>,
    /// What people do about acts that the breaker holds back.
    pub approvals: Approvals,
    /// What the result counts.
    pub cost: Cost,
    /// From running to joined: the agent's start.
    pub join_delay: Millis,
    /// From an order to its effect.
    pub order_delay: Millis,
    /// Jobs that stand in the file itself.
    pub jobs: Vec<Job>,
    /// What goes wrong beside the cloud's own trouble.
    pub faults: Vec<Fault>,
}

/// Who places jobs on nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placer {
    /// The plan's hypothesis is followed.
    Planner,
    /// A model of the default scheduler of Kubernetes.
    KubeDefault {
        /// Nodes with the fewest free GPUs first (the bin-packing strategy), instead of the emptiest.
        gpu_bin_packing: bool,
    },
}

impl Placer {
    /// For people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::KubeDefault {
                gpu_bin_packing: false,
            } => "kube-default",
            Self::KubeDefault {
                gpu_bin_packing: true,
            } => "kube-default with GPU bin-packing",
        }
    }
}

/// What the planner is told of run times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durations {
    /// Nothing.
    Unknown,
    /// The true ones.
    Stated,
}

/// What people do about acts that the breaker holds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approvals {
    /// Somebody approves each at once.
    AtOnce,
    /// Nobody ever does.
    Never,
}

/// What the result counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// USD, by the offerings' prices.
    Usd,
    /// Node-hours, whatever a node costs.
    NodeHours,
}

const YEARS: Duration = Duration::from_secs(10 * 365 * 86_400);

pub(super) fn simulate(section: &Section<'_>, config: &Config) -> Simulate {
    let pools: Vec<&str> = config.pools.iter().map(|pool| pool.name.as_str()).collect();
    let span = |key: &'static str, least: Duration, example: &str| {
        section
            .duration(key, least..=YEARS, example)
            .map(config::millis)
    };
    let formats = Format::ALL;
    let packing = section.flag("gpu_bin_packing").unwrap_or(false);
    let placers = [
        ("planner", Placer::Planner),
        (
            "kube-default",
            Placer::KubeDefault {
                gpu_bin_packing: packing,
            },
        ),
    ];
    let durations = [
        ("unknown", Durations::Unknown),
        ("stated", Durations::Stated),
    ];
    let approvals = [("at-once", Approvals::AtOnce), ("never", Approvals::Never)];
    let costs = [("usd", Cost::Usd), ("node-hours", Cost::NodeHours)];
    let plain = Options::default();
    let flag = |key, or| section.flag(key).unwrap_or(or);
    let found = Simulate {
        trace: Options {
            format: section.choice("format", &formats).map(|at| at.value),
            whole_gpus: flag("whole_gpus", plain.whole_gpus),
            whole_cores: flag("whole_cores", plain.whole_cores),
            whole_gib: flag("whole_gib", plain.whole_gib),
            gpu_models: flag("gpu_models", plain.gpu_models),
            failed: flag("failed_pods", plain.failed),
            gpus_per_node: section
                .count("gpus_per_node", 1..=1_024)
                .map_or(plain.gpus_per_node, |at| at.value),
            from: span("from", Duration::ZERO, "30d").unwrap_or_default(),
            until: span("until", Duration::ZERO, "60d"),
            most: section.count("jobs", 1..=u32::MAX).map(|at| at.value),
            checkpoint: span("checkpoint", Duration::from_secs(1), "30m"),
        },
        skip_unfit: flag("skip_unfit", true),
        placer: section
            .choice("placer", &placers)
            .map_or(Placer::Planner, |at| at.value),
        durations: section
            .choice("durations", &durations)
            .map_or(Durations::Unknown, |at| at.value),
        interval: span("interval", Duration::from_secs(1), "1h").unwrap_or(Millis::minutes(60)),
        seed: section
            .number("seed", 0..=u64::MAX >> 1)
            .map_or(0, |at| at.value),
        end: span("end", Duration::from_secs(1), "30d"),
        approvals: section
            .choice("approvals", &approvals)
            .map_or(Approvals::AtOnce, |at| at.value),
        cost: section
            .choice("cost", &costs)
            .map_or(Cost::Usd, |at| at.value),
        join_delay: span("join_delay", Duration::ZERO, "5s").unwrap_or_default(),
        order_delay: span("order_delay", Duration::ZERO, "1s").unwrap_or_default(),
        jobs: (section.sections("job").iter())
            .filter_map(job_table::read)
            .collect(),
        faults: (section.sections("fault").iter())
            .filter_map(|fault| fault::read(fault, &pools))
            .collect(),
    };
    section.finish();
    found
}
