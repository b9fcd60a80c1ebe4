//! The one file of a simulation: `[simulate]`, the coordinator's ordinary tables, and the groups of the simulated cloud.
//!
//! Read by the CLI and the benchmarks. The coordinator's tables are read by the very reader of `drover serve`, so that a
//! policy that was tried here is the one that runs. `docs/simulate.md` describes `[simulate]`; a test holds the two
//! together.

use super::fault::{self, Fault};
use super::job_table;
use super::trace::Job;
use super::trace::read::{Format, Options};
use crate::adapters::cloud::groups;
use crate::config::reader::{self, Section};
use crate::config::{self, Config, PoolSource, Problem, render};
use crate::world::WorldSpec;
use drover_core::model::Millis;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Everything of a simulation but its trace.
#[derive(Debug, Clone, PartialEq)]
pub struct SimConfig {
    /// `[simulate]`.
    pub simulate: Simulate,
    /// The coordinator's.
    pub config: Arc<Config>,
    /// The simulated cloud's.
    pub world: WorldSpec,
}

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

/// Why there is no config.
#[derive(Debug, thiserror::Error)]
pub enum SimConfigError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What it says is wrong.
    #[error("{}", render(path, problems))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// All of it, by line.
        problems: Vec<Problem>,
    },
}

/// Reads and checks the file.
///
/// # Errors
/// It cannot be read, or all that is wrong with it.
pub fn load(path: &Path) -> Result<SimConfig, SimConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| SimConfigError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse(&text).map_err(|problems| SimConfigError::Wrong {
        path: path.to_owned(),
        problems,
    })
}

/// Checks the file's text.
///
/// # Errors
/// All that is wrong with it, by line.
pub fn parse(text: &str) -> Result<SimConfig, Vec<Problem>> {
    reader::read(text, |root| {
        let config = config::tables(root);
        let simulate = simulate(&root.section("simulate"), &config);
        let world = groups(root);
        check(root, &config, &world);
        SimConfig {
            simulate,
            config: Arc::new(config),
            world,
        }
    })
}

/// What must hold between the coordinator's pools and the cloud's groups.
fn check(root: &Section<'_>, config: &Config, world: &WorldSpec) {
    let at = root.offset();
    if world.groups.is_empty() && !root.blames("group") {
        let fix = "write a [[group]] with its [[group.offering]] tables";
        root.report(at, "group", "is missing: there is nothing to grow", fix);
    }
    let tables = if config.pools.is_empty() {
        Vec::new()
    } else {
        root.sections("pool")
    };
    for (n, pool) in config.pools.iter().enumerate() {
        // A table that is no pool is told of by itself, and then positions say nothing.
        let table = tables.get(n).filter(|_| tables.len() == config.pools.len());
        let at = table.map_or(at, Section::offset);
        let key = format!("pool {}", pool.name);
        let PoolSource::Sim(sim) = &pool.source else {
            let fix = "write kind = \"sim\" and the name of a [[group]]";
            root.report(
                at,
                &key,
                "is not of kind sim: a simulation drives no other",
                fix,
            );
            continue;
        };
        if !world.groups.iter().any(|group| group.name == sim.group) && !root.blames("group") {
            let names: Vec<&str> = world
                .groups
                .iter()
                .map(|group| group.name.as_str())
                .collect();
            let message = format!("drives group {:?}, which is not in this file", sim.group);
            let fix = format!("write one of its groups: {}", names.join(", "));
            root.report(at, &key, &message, &fix);
        }
    }
    if config.pools.is_empty() && !root.blames("pool") {
        let fix = "write a [[pool]] of kind sim for each [[group]] that is to be driven";
        root.report(at, "pool", "is missing: nothing would ever grow", fix);
    }
}

const YEARS: Duration = Duration::from_secs(10 * 365 * 86_400);

fn simulate(section: &Section<'_>, config: &Config) -> Simulate {
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

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &str = "[[group]]\nname = \"g\"\nregion = \"r\"\nmax = 9\n[[group.offering]]\ninstance_type = \"t\"\nzone = \"a\"\n\
                         price_micro_usd_per_hour = 1\ncpus = 1\nmemory_gib = 1\nboot_ms = 0\n";

    fn pool(group: &str) -> String {
        format!(
            "[[pool]]\nname = \"p\"\nkind = \"sim\"\nsite = \"s\"\ngroup = \"{group}\"\nmax = 9\nidle_after = \"0s\"\n"
        )
    }

    #[test]
    fn the_coordinators_tables_stand_beside_ours() {
        let text = format!(
            "[simulate]\nplacer = \"kube-default\"\ngpu_bin_packing = true\ndurations = \"stated\"\n[control]\nbreaker_pool = 7\n{}{GROUP}",
            pool("g")
        );
        let found = parse(&text).expect("sound");
        assert_eq!(
            found.simulate.placer,
            Placer::KubeDefault {
                gpu_bin_packing: true
            }
        );
        assert_eq!(found.config.control.breaker_pool, 7);
        assert_eq!(found.config.pools[0].idle_after, Millis::ZERO);
        assert_eq!(found.world.groups.len(), 1);
    }

    #[test]
    fn the_document_names_every_key() {
        let doc = include_str!("../../../docs/simulate.md");
        let text = format!("[simulate]\nzzzzzzzzzz = 1\n{}{GROUP}", pool("g"));
        let problems = parse(&text).expect_err("an unknown key");
        let known = problems[0].fix.strip_prefix("known keys: ");
        let known: Vec<&str> = known.expect("all keys").split(", ").collect();
        assert!(known.len() > 20, "{known:?}");
        for key in known {
            assert!(
                doc.contains(&format!("| `{key}` |")),
                "{key} is not described"
            );
        }
    }

    #[test]
    fn the_examples_are_read() {
        for text in [
            include_str!("../../../examples/simulate/openb.toml"),
            include_str!("../../../examples/simulate/openb-boot.toml"),
            include_str!("../../../examples/simulate/philly.toml"),
            include_str!("../../../examples/simulate/philly-boot.toml"),
        ] {
            let found = parse(text).expect("an example is right");
            assert_eq!(found.config.pools.len(), 1);
        }
    }

    #[test]
    fn all_problems_come_in_one_run() {
        let text = format!(
            "[simulate]\nplacr = \"x\"\nplacer = \"y\"\ninterval = 3\n[control]\nmax_gpu = 1\n{}{GROUP}",
            pool("h")
        );
        let problems = parse(&text).expect_err("wrong");
        let found: Vec<(usize, &str)> = problems.iter().map(|p| (p.line, p.key.as_str())).collect();
        assert_eq!(
            found,
            [
                (2, "simulate.placr"),
                (3, "simulate.placer"),
                (4, "simulate.interval"),
                (6, "control.max_gpu"),
                (7, "pool p"),
            ],
            "{problems:#?}"
        );
        let none = parse("").expect_err("nothing there");
        assert_eq!(none.len(), 2, "{none:#?}");
    }
}
