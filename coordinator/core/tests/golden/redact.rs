//! Redaction changes names and nothing else: the plan of the redacted input is the redacted plan. Checked by `script` on
//! every plan of every case, and on random fleets.

use crate::removals::worn_fleet;
use crate::seeds;
use drover_core::model::{Cordon, PlanInput, Planned};
use drover_core::planner::{self, Redaction};

fn text(planned: &Planned) -> String {
    serde_json::to_string_pretty(planned).unwrap()
}

pub fn same_plan(input: &PlanInput) {
    same(input, planner::plan);
}

fn same(input: &PlanInput, plan: fn(&PlanInput) -> Planned) {
    let names = Redaction::of(input);
    let hidden = names.apply(input);
    let wanted = text(&plan(input));
    let mut got = text(&plan(&hidden));
    // Pseudonyms are no words: what the planner made of them can be read back.
    for (name, pseudonym) in names.all() {
        if got.contains(pseudonym) {
            let name = serde_json::to_string(name).unwrap();
            got = got.replace(pseudonym, &name[1..name.len() - 1]);
        }
    }
    let differ: Vec<_> = wanted
        .lines()
        .zip(got.lines())
        .filter(|(a, b)| a != b)
        .take(10)
        .collect();
    assert!(
        wanted == got,
        "the redacted input gives another plan: {differ:#?}"
    );
    assert_eq!(
        planner::redact(&hidden),
        hidden,
        "redacting twice is redacting once"
    );
}

#[test]
fn a_redacted_fleet_gives_the_redacted_plan() {
    seeds::each(100, |seed| same(&worn_fleet(seed), planner::propose));
}

/// Nothing that a person chose is left, whatever field it stands in.
#[test]
fn no_name_is_left() {
    let mut input = worn_fleet(4);
    let secret = "orion";
    input.nodes[0].name = format!("{secret}-desk");
    input.nodes[0].labels.insert(
        "kubernetes.io/hostname".to_owned(),
        format!("{secret}-desk"),
    );
    input.nodes[0]
        .labels
        .insert(format!("{secret}.example/team"), "7".to_owned());
    input.nodes[0].cordon = Some(Cordon::Person {
        who: format!("ann@{secret}"),
        why: format!("benchmarks {secret} before the paper"),
    });
    input.nodes[0]
        .allocatable
        .extended
        .insert(format!("{secret}.example/fpga"), 2);
    input.nodes[0]
        .allocatable
        .extended
        .insert("nvidia.com/mig-1g.5gb".to_owned(), 2);
    input
        .policy
        .teams
        .insert(secret.to_owned(), drover_core::model::Budget::default());
    input.pools[0]
        .disruption
        .push(drover_core::model::Disruption {
            most: drover_core::model::Quota::Count(1),
            strategies: ["empty".to_owned()].into(),
            until: None,
            name: format!("{secret} demo"),
        });
    let text = String::from_utf8(planner::to_bytes(&planner::redact(&input))).unwrap();
    assert!(!text.contains(secret), "{text}");
    for kept in [
        "kubernetes.io/hostname",
        "nvidia.com/mig-1g.5gb",
        "g5.xlarge",
        "NVIDIA A10G",
        "\"empty\"",
    ] {
        assert!(text.contains(kept), "{kept} is lost:\n{text}");
    }
    let hidden = planner::redact(&input);
    let node = &hidden.nodes[0];
    assert_eq!(
        node.labels.get("kubernetes.io/hostname"),
        Some(&node.name),
        "the same name, the same pseudonym"
    );
    same_plan(&input);
}
