//! Habits and limits of the fleet in units of demand: `[[control.headroom]]` and `[control.team.NAME]`.
//!
//! Read by `config::parse`; the planner takes them as they are.

use super::pools::plain;
use super::values::{self, Amounts as _};
use drover_config::{At, Section, any_text};
use drover_core::model::{
    Budget, Bytes, Constraints, Headroom, MicroUsd, MilliCpu, PoolId, Requirement, Resources,
};
use std::collections::{BTreeMap, BTreeSet};

const NAME: &str = "write letters, digits, dots and dashes, at most 63";

/// `known`: names of the file's pools.
pub(super) fn headroom(sections: Vec<Section<'_>>, known: &BTreeSet<PoolId>) -> Vec<Headroom> {
    let mut names = BTreeSet::new();
    sections
        .into_iter()
        .filter_map(|section| {
            let found = one(&section, &mut names, known);
            section.finish();
            found
        })
        .collect()
}

fn one(
    section: &Section<'_>,
    names: &mut BTreeSet<String>,
    known: &BTreeSet<PoolId>,
) -> Option<Headroom> {
    let name = section.text("name", NAME);
    section.require("name", "write name = \"interactive\": reasons name it");
    if let Some(at) = &name {
        if !plain(&at.value) {
            let message = format!("{:?} is no plain name", at.value);
            section.report(at.offset, "name", &message, NAME);
        }
        if !names.insert(at.value.clone()) {
            let message = format!("{:?} is the name of an earlier headroom", at.value);
            let fix = "give each headroom its own name";
            section.report(at.offset, "name", &message, fix);
        }
    }
    let count = section.count("count", 1..=100_000);
    let fix = "write the units that must always find room, as in count = 4";
    section.require("count", fix);
    let unit = unit(section);
    let model = section.text("gpu_model", "write gpu_model = \"titan-x\" or leave it out");
    let pools = section.texts("pools", "write pools = [\"rack\"] or leave it out");
    let pools: Vec<At<String>> = pools.into_iter().flatten().collect();
    // A pool that was refused for something else is there all the same.
    for at in pools.iter().filter(|_| !section.blames("pool[")) {
        if !known.contains(&PoolId(at.value.clone())) {
            let message = format!("names {:?}, which is no pool", at.value);
            section.report(at.offset, "pools", &message, "name pools of this file");
        }
    }
    let labels = section.map("labels", "write { key = \"value\" }", any_text);
    Some(Headroom {
        name: name?.value,
        unit,
        constraints: Constraints {
            gpu_model: model.map(|at| at.value).unwrap_or_default(),
            pools: pools.into_iter().map(|at| PoolId(at.value)).collect(),
            requirements: labels
                .into_iter()
                .map(|(key, value)| Requirement {
                    key,
                    any_of: [value].into(),
                    ..Requirement::default()
                })
                .collect(),
            ..Constraints::default()
        },
        count: count?.value,
    })
}

/// What one unit wants.
fn unit(section: &Section<'_>) -> Resources {
    let gpus = section.count("gpus", 0..=64);
    let shared = section.count("gpu_milli", 1..=999);
    if let (Some(gpus), Some(shared)) = (&gpus, &shared)
        && gpus.value > 0
    {
        let message = "stands beside gpus: a unit has whole GPUs or a share of one";
        section.report(shared.offset, "gpu_milli", message, "keep one of the two");
    }
    let cpus = section.cpus("cpus");
    let memory = section.parsed("memory", "64GiB", values::size);
    let unit = Resources {
        cpu: MilliCpu(cpus.unwrap_or(0)),
        memory: memory.unwrap_or(Bytes::ZERO),
        gpus: gpus.map_or(0, |at| at.value),
        gpu_milli: shared.map_or(0, |at| at.value),
        extended: BTreeMap::new(),
    };
    let asked = ["gpus", "gpu_milli", "cpus", "memory"];
    if unit.is_zero() && !asked.iter().any(|key| section.blames(&section.key(key))) {
        let fix = "write gpus, gpu_milli, cpus or memory of one unit";
        section.report(
            section.offset(),
            "gpus",
            "is missing: a unit is nothing",
            fix,
        );
    }
    unit
}

pub(super) fn teams(sections: Vec<(String, Section<'_>)>) -> BTreeMap<String, Budget> {
    let mut teams = BTreeMap::new();
    for (name, section) in sections {
        if !plain(&name) {
            section.report(section.offset(), "", "is no plain name", NAME);
        }
        let budget = Budget {
            max_cost: section.usd("max_cost_usd_per_hour").map(MicroUsd),
            max_gpus: section.count("max_gpus", 0..=10_000_000).map(|at| at.value),
        };
        let limits = ["max_cost_usd_per_hour", "max_gpus"];
        if !limits.iter().any(|key| section.has(key)) {
            let fix =
                "write max_cost_usd_per_hour = 100.0 or max_gpus = 64, or leave the table out";
            section.report(
                section.offset(),
                "max_gpus",
                "and max_cost_usd_per_hour are missing: the budget limits nothing",
                fix,
            );
        }
        section.finish();
        teams.insert(name, budget);
    }
    teams
}
