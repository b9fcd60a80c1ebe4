//! Reads the simulated cloud's files key by key, so that one run tells all that is wrong, with line and fix.
//!
//! Called by `config` beside it. `docs/sim-cloud.md` describes every key; a test holds the two together.

use super::config::{CloudConfig, InstanceCommand};
use crate::world::{
    ApiSpec, GroupSpec, MarketSpec, OfferingSpec, TroubleSpec, WindowSpec, WorldSpec,
};
use drover_config::{Problem, Section, any_text};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The file of `drover sim-cloud run`.
pub(super) fn cloud(text: &str) -> Result<CloudConfig, Vec<Problem>> {
    drover_config::read(text, |root| {
        let work_dir = required(
            root,
            "work_dir",
            "write work_dir = \"/var/tmp/drover-cloud\"",
        );
        CloudConfig {
            listen: loopback(root, "listen", 7900),
            metadata: loopback(root, "metadata", 7901),
            seed: root.number("seed", 0..=MOST).map_or(0, |at| at.value),
            work_dir: PathBuf::from(work_dir),
            instance: instance(root),
            world: groups(root),
        }
    })
}

/// The file of an embedded world.
pub(super) fn world(text: &str) -> Result<WorldSpec, Vec<Problem>> {
    drover_config::read(text, groups)
}

/// The largest whole number in TOML.
const MOST: u64 = i64::MAX as u64;
const COUNT: u32 = 10_000_000;

/// A text that must be there; empty when it is not, which is reported.
fn required(section: &Section<'_>, key: &'static str, fix: &str) -> String {
    section
        .required(key, fix)
        .map_or_else(String::new, |at| at.value)
}

/// A number that must be there; the least when it is not, which is reported.
fn needed(section: &Section<'_>, key: &'static str, least: u64, most: u64, example: &str) -> u64 {
    section.require(key, &format!("write {key} = {example}"));
    section
        .number(key, least..=most)
        .map_or(least, |at| at.value)
}

fn needed_count(section: &Section<'_>, key: &'static str, least: u32, example: &str) -> u32 {
    let found = needed(section, key, least.into(), COUNT.into(), example);
    // Within the range, so it fits.
    u32::try_from(found).unwrap_or(least)
}

fn loopback(root: &Section<'_>, key: &'static str, port: u16) -> SocketAddr {
    let default = SocketAddr::from(([127, 0, 0, 1], port));
    let found = root.parsed(key, &default.to_string(), |text| {
        let address: SocketAddr = text
            .parse()
            .map_err(|_| format!("{text:?} is no address with a port"))?;
        if address.ip().is_loopback() {
            Ok(address)
        } else {
            Err(format!(
                "{text:?} is no loopback address: the simulated cloud speaks without TLS"
            ))
        }
    });
    found.unwrap_or(default)
}

fn texts(section: &Section<'_>, key: &'static str) -> BTreeMap<String, String> {
    section.map(key, "write { name = \"text\" }", any_text)
}

fn instance(root: &Section<'_>) -> Option<InstanceCommand> {
    let there = root.has("instance");
    let section = root.section("instance");
    let fix = "write command = [\"/path/of/program\", \"argument\"]";
    let command = section.texts("command", fix);
    if there && command.as_ref().is_none_or(Vec::is_empty) && !section.blames("instance.command") {
        section.report(section.offset(), "command", "names no program", fix);
    }
    let jobs = section.text("jobs_dir", "write jobs_dir = \"jobs\"");
    let found = InstanceCommand {
        command: command.into_iter().flatten().map(|at| at.value).collect(),
        env: texts(&section, "env"),
        files: texts(&section, "files"),
        jobs_dir: jobs.map_or_else(|| "jobs".to_owned(), |at| at.value),
    };
    section.finish();
    there.then_some(found)
}

/// `[[group]]`, and what must hold among them.
pub(crate) fn groups(root: &Section<'_>) -> WorldSpec {
    let mut lines = BTreeMap::new();
    let world = WorldSpec {
        groups: root
            .sections("group")
            .iter()
            .map(|section| group(section, &mut lines))
            .collect(),
    };
    for error in world.errors() {
        // A placeholder stands for what was reported already.
        if root.blames(&error.field) {
            continue;
        }
        let (what, fix) = error
            .problem
            .split_once(": ")
            .unwrap_or((&error.problem, "mend it"));
        let nearest = lines
            .range(..=error.field.clone())
            .rev()
            .find(|(path, _)| error.field.starts_with(path.as_str()));
        let offset = nearest.map_or(0, |(_, offset)| *offset);
        root.report(offset, &error.field, what, fix);
    }
    world
}

fn group(section: &Section<'_>, lines: &mut BTreeMap<String, usize>) -> GroupSpec {
    note(section, lines);
    let owner = section.loose_text("owner", "write owner = \"drover\", or \"\" for nobody");
    let found = GroupSpec {
        name: required(section, "name", "write name = \"NAME OF THE GROUP\""),
        region: required(section, "region", "write region = \"us-west-2\""),
        max: needed_count(section, "max", 0, "20"),
        owner: owner.unwrap_or_else(|| "drover".to_owned()),
        vars: texts(section, "vars"),
        api: api(section, lines),
        offerings: section
            .sections("offering")
            .iter()
            .map(|section| offering(section, lines))
            .collect(),
    };
    section.finish();
    found
}

fn offering(section: &Section<'_>, lines: &mut BTreeMap<String, usize>) -> OfferingSpec {
    note(section, lines);
    let markets = [
        ("on-demand", MarketSpec::OnDemand),
        ("spot", MarketSpec::Spot),
    ];
    let count = |key| section.count(key, 0..=COUNT).map(|at| at.value);
    let model = section.loose_text("gpu_model", "write gpu_model = \"k80\"");
    let found = OfferingSpec {
        instance_type: required(
            section,
            "instance_type",
            "write instance_type = \"p2.16xlarge\"",
        ),
        zone: required(section, "zone", "write zone = \"us-west-2a\""),
        market: section
            .choice("market", &markets)
            .map_or(MarketSpec::OnDemand, |at| at.value),
        price_micro_usd_per_hour: needed(section, "price_micro_usd_per_hour", 0, MOST, "14400000"),
        gpus: count("gpus").unwrap_or(0),
        gpu_model: model.unwrap_or_default(),
        cpus: needed_count(section, "cpus", 1, "64"),
        memory_gib: needed_count(section, "memory_gib", 0, "732"),
        boot_ms: needed(section, "boot_ms", 0, MOST, "120000"),
        boot_jitter_ms: section
            .number("boot_jitter_ms", 0..=MOST)
            .map_or(0, |at| at.value),
        capacity: count("capacity"),
        shortages: section
            .sections("shortage")
            .iter()
            .map(|section| window(section, lines))
            .collect(),
        trouble: trouble(section, lines),
    };
    section.finish();
    found
}

fn windows(
    section: &Section<'_>,
    key: &'static str,
    lines: &mut BTreeMap<String, usize>,
) -> Vec<WindowSpec> {
    let all = section.sections(key);
    all.iter().map(|section| window(section, lines)).collect()
}

fn api(group: &Section<'_>, lines: &mut BTreeMap<String, usize>) -> ApiSpec {
    let section = group.section("api");
    let found = ApiSpec {
        away: windows(&section, "away", lines),
        throttled: windows(&section, "throttled", lines),
    };
    section.finish();
    found
}

fn trouble(offering: &Section<'_>, lines: &mut BTreeMap<String, usize>) -> TroubleSpec {
    let section = offering.section("trouble");
    let percent = |key| section.count(key, 0..=100).map_or(0, |at| at.value);
    let number = |key| section.number(key, 0..=MOST).map(|at| at.value);
    let found = TroubleSpec {
        late_percent: percent("late_percent"),
        late_ms: number("late_ms").unwrap_or(0),
        never_joins_percent: percent("never_joins_percent"),
        bad_image: windows(&section, "bad_image", lines),
        shortage_percent: percent("shortage_percent"),
        partial_percent: percent("partial_percent"),
        interruption_ms: number("interruption_ms"),
        notice_ms: number("notice_ms").unwrap_or(120_000),
    };
    section.finish();
    found
}

fn window(section: &Section<'_>, lines: &mut BTreeMap<String, usize>) -> WindowSpec {
    note(section, lines);
    let found = WindowSpec {
        from_ms: needed(section, "from_ms", 0, MOST, "60000"),
        until_ms: needed(section, "until_ms", 0, MOST, "120000"),
    };
    section.finish();
    found
}

/// Remembers where a table stands, for what is found in it later.
fn note(section: &Section<'_>, lines: &mut BTreeMap<String, usize>) {
    lines.insert(section.path().to_owned(), section.offset());
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOC: &str = include_str!("../../../../docs/sim-cloud.md");

    fn examples() -> Vec<&'static str> {
        let blocks = DOC.split("```toml\n").skip(1);
        blocks.filter_map(|rest| rest.split("```").next()).collect()
    }

    #[test]
    fn the_documents_examples_are_read() {
        let examples = examples();
        assert_eq!(examples.len(), 2);
        let config = cloud(examples[0]).expect("the cloud's example is right");
        assert_eq!(config.world.groups.len(), 2);
        assert_eq!(config.world.groups[0].offerings[0].shortages.len(), 1);
        assert!(config.instance.is_some());
        let spec = world(examples[1]).expect("the world's example is right");
        let plain: WorldSpec = toml::from_str(examples[1]).expect("the type reads it as well");
        assert_eq!(spec, plain);
    }

    #[test]
    fn the_document_names_every_key() {
        let text = "zzzzzzzzzz = 1\n[instance]\nzzzzzzzzzz = 1\n[[group]]\nzzzzzzzzzz = 1\n[[group.offering]]\n\
                    zzzzzzzzzz = 1\n[[group.offering.shortage]]\nzzzzzzzzzz = 1\n[group.offering.trouble]\nzzzzzzzzzz = 1\n\
                    [group.api]\nzzzzzzzzzz = 1\n";
        let problems = cloud(text).expect_err("unknown keys");
        let known: Vec<&str> = problems
            .iter()
            .filter_map(|problem| problem.fix.strip_prefix("known keys: "))
            .flat_map(|keys| keys.split(", "))
            .collect();
        assert!(known.len() > 25, "{known:?}");
        for key in known {
            assert!(
                DOC.contains(&format!("| `{key}` |")),
                "{key} is not described"
            );
        }
    }

    #[test]
    fn all_problems_come_in_one_run_with_line_and_fix() {
        let text = "listen = \"10.0.0.1:7900\"\nseed = \"x\"\n\n[instance]\ncommand = []\n\n[[group]]\nname = \"g\"\n\
                    regoin = \"west\"\nmax = 3\n\n[[group]]\nname = \"g\"\nregion = \"west\"\nmax = 3\n\
                    [[group.offering]]\ninstance_type = \"p2\"\nzone = \"a\"\nmarket = \"free\"\n\
                    price_micro_usd_per_hour = 5\ngpus = 1\ncpus = 0\nmemory_gib = 1\nboot_ms = 0\n\
                    shortage = [{ from_ms = 2, until_ms = 1 }]\n";
        let problems = cloud(text).expect_err("many");
        let found: Vec<(usize, &str)> = problems
            .iter()
            .map(|problem| (problem.line, problem.key.as_str()))
            .collect();
        for expected in [
            (1, "work_dir"),
            (1, "listen"),
            (2, "seed"),
            (4, "instance.command"),
            (7, "group[0].region"),
            (7, "group[0].offering"),
            (9, "group[0].regoin"),
            (12, "group[1].name"),
            (16, "group[1].offering[0].gpu_model"),
            (19, "group[1].offering[0].market"),
            (22, "group[1].offering[0].cpus"),
            (25, "group[1].offering[0].shortage[0].until_ms"),
        ] {
            assert!(found.contains(&expected), "{expected:?} in {problems:#?}");
        }
        assert_eq!(found.len(), 12, "{problems:#?}");
        assert!(problems.iter().all(|problem| !problem.fix.is_empty()));
    }

    #[test]
    fn a_group_of_nobody_has_an_empty_owner() {
        let text = "[[group]]\nname = \"g\"\nregion = \"w\"\nmax = 1\nowner = \"\"\n[[group.offering]]\n\
                    instance_type = \"c\"\nzone = \"a\"\nprice_micro_usd_per_hour = 0\ncpus = 1\nmemory_gib = 1\nboot_ms = 0\n";
        assert_eq!(world(text).expect("right").groups[0].owner, "");
    }
}
