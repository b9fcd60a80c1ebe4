//! The keys of a `[[pool]]` of kind `asg`.
//!
//! Called by `config::pools`.

use super::{AsgPool, Seen, group};
use crate::config::{aws, regions};
use drover_config::Section;
use std::collections::BTreeSet;

pub(super) fn asg(section: &Section<'_>, owner: &str, seen: &mut Seen) -> Option<AsgPool> {
    let fix = "write region = \"us-west-2\"";
    let region = section
        .required("region", fix)
        .and_then(|at| match regions::region(&at.value) {
            Ok(region) => Some(region),
            Err(message) => {
                let fix = regions::advice(&at.value);
                section.report(at.offset, "region", &message, &fix);
                None
            }
        });
    let role_arn = aws::role(section);
    let place = (region.clone().unwrap_or_default(), role_arn.clone());
    let group = group(section, place, owner, seen);
    let zones = wishes(section, "zones", "us-west-2a", |zone| {
        region
            .as_deref()
            .map_or(Ok(()), |region| regions::zone(zone, region))
    });
    let instance_types = wishes(
        section,
        "instance_types",
        "p4d.24xlarge",
        regions::instance_type,
    );
    Some(AsgPool {
        group: group?,
        region: region?,
        role_arn,
        zones,
        instance_types,
    })
}

/// A list in the order of preference.
fn wishes(
    section: &Section<'_>,
    key: &'static str,
    example: &str,
    check: impl Fn(&str) -> Result<(), String>,
) -> Vec<String> {
    let fix = format!("write {key} = [\"{example}\"] or leave it out");
    let Some(texts) = section.texts(key, &fix) else {
        return Vec::new();
    };
    if texts.is_empty() {
        section.report(section.offset(), key, "is an empty list", &fix);
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for at in texts {
        if let Err(message) = check(&at.value) {
            section.report(at.offset, key, &message, &fix);
        } else if seen.insert(at.value.clone()) {
            found.push(at.value);
        } else {
            let message = format!("names {} again", at.value);
            section.report(at.offset, key, &message, "name each once");
        }
    }
    found
}
