//! The one file of a simulation: `[simulate]`, the coordinator's ordinary tables, and the groups of the simulated cloud.
//!
//! Read by the CLI and the benchmarks. The coordinator's tables are read by the very reader of `drover serve`, so that a
//! policy that was tried here is the one that runs. `docs/simulate.md` describes `[simulate]`; a test holds the two
//! together.

mod simulate;

use crate::adapters::cloud::groups;
use crate::config::{self, Config, PoolSource};
use crate::world::WorldSpec;
use drover_config::{FileError, Problem, Section};
use simulate::simulate;
pub use simulate::{Approvals, Cost, Durations, Placer, Simulate};
use std::path::Path;
use std::sync::Arc;

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

/// Reads and checks the file.
///
/// # Errors
/// It cannot be read, or all that is wrong with it.
pub fn load(path: &Path) -> Result<SimConfig, FileError> {
    drover_config::load(path, parse)
}

/// Checks the file's text.
///
/// # Errors
/// All that is wrong with it, by line.
pub fn parse(text: &str) -> Result<SimConfig, Vec<Problem>> {
    drover_config::read(text, |root| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use drover_core::model::Millis;

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
