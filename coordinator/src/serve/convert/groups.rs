//! Surveys and adoptions to the wire, and groups from it. Used by `serve/admin`; decides nothing.

use super::requests::short;
use crate::control::events::mode_word;
use crate::ports::survey::{Finding, GroupRef, Sizes, Standing, Survey};
use crate::records::AdoptionRecord;
use drover_core::model::{Mode, PoolId};
use drover_proto::{limits, v1};

/// A group as a person means it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// By its pool.
    Pool(String),
    /// By name.
    Group(GroupRef),
}

/// What names a group.
///
/// # Errors
/// A field and what is wrong with it.
pub fn target_from(of: Option<v1::GroupTarget>) -> Result<Target, (&'static str, String)> {
    let of = of.ok_or(("of", "is missing".to_owned()))?;
    for (field, text) in [
        ("pool", &of.pool),
        ("group", &of.group),
        ("region", &of.region),
        ("role_arn", &of.role_arn),
    ] {
        short(field, text, limits::NAME_BYTES).map_err(|bad| (bad.0, bad.1))?;
    }
    if !of.pool.is_empty() {
        let more = [&of.group, &of.region, &of.role_arn];
        if more.iter().any(|text| !text.is_empty()) {
            return Err((
                "pool",
                "give either a pool or a group with its region".to_owned(),
            ));
        }
        return Ok(Target::Pool(of.pool));
    }
    if of.group.is_empty() {
        return Err((
            "group",
            "is empty: give a pool, or a group with its region".to_owned(),
        ));
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if of.region.is_empty() || !of.region.chars().all(plain) {
        let told = format!("{:?} is no region: write one as us-west-2", of.region);
        return Err(("region", told));
    }
    if !of.role_arn.is_empty() && !of.role_arn.starts_with("arn:") {
        return Err((
            "role_arn",
            "is no ARN: write arn:aws:iam::ACCOUNT:role/NAME".to_owned(),
        ));
    }
    Ok(Target::Group(GroupRef {
        group: of.group,
        region: of.region,
        role: Some(of.role_arn).filter(|role| !role.is_empty()),
    }))
}

/// A survey.
pub fn survey(pool: Option<&PoolId>, of: &GroupRef, survey: &Survey) -> v1::GroupSurvey {
    // What is not given to Drover, or is frozen, is not mended by it.
    let given = matches!(survey.standing, Standing::Ours | Standing::Unclaimed);
    let frozen = |found: &Finding| matches!(found, Finding::Frozen { .. });
    let mendable = given && !survey.findings.iter().any(frozen);
    v1::GroupSurvey {
        pool: pool.map(|id| id.0.clone()).unwrap_or_default(),
        group: of.group.clone(),
        region: of.region.clone(),
        role_arn: of.role.clone().unwrap_or_default(),
        standing: survey.standing.word().to_owned(),
        sizes: survey.sizes.map(sizes),
        types: survey.types.clone(),
        findings: survey
            .findings
            .iter()
            .map(|found| finding(found, of, mendable))
            .collect(),
        doubts: survey.doubts.clone(),
    }
}

fn sizes(sizes: Sizes) -> v1::GroupSizes {
    v1::GroupSizes {
        min: sizes.min,
        max: sizes.max,
        desired: sizes.desired,
        running: sizes.running,
    }
}

fn finding(finding: &Finding, of: &GroupRef, mendable: bool) -> v1::Finding {
    let told = finding.told(of);
    v1::Finding {
        severity: told.severity.word().to_owned(),
        kind: told.kind.to_owned(),
        words: told.words,
        commands: told.commands,
        fixable: told.fixable && mendable,
    }
}

/// An adoption. `mode` is absent where the pool is not in the config.
pub fn adoption(pool: &PoolId, record: &AdoptionRecord, mode: Option<Mode>) -> v1::Adoption {
    let tally = &record.tally;
    v1::Adoption {
        pool: pool.0.clone(),
        group: record.group.clone(),
        region: record.region.clone(),
        by: record.by.clone(),
        since_unix_ms: record.since.0,
        for_ms: record.span.0,
        watched_ms: record.watched.0,
        last_look_unix_ms: record.last.map_or(0, |at| at.0),
        left_unix_ms: record.left.map_or(0, |at| at.0),
        mode: mode.map(mode_word).unwrap_or_default().to_owned(),
        tally: Some(v1::AdoptionTally {
            came: tally.came,
            went: tally.went,
            would_ask: tally.would_ask,
            missing_node_ms: tally.missing_node_ms,
            would_remove: tally.would_remove,
            removable_gpu_ms: tally.removable_gpu_ms,
            removable_micro_usd: tally.removable_cost.0,
            idle_gpu_ms: tally.idle_gpu_ms,
            idle_micro_usd: tally.idle_cost.0,
            blind_node_ms: tally.blind_node_ms,
        }),
        samples: record
            .samples
            .iter()
            .map(|sample| v1::AdoptionSample {
                at_unix_ms: sample.at.0,
                size: sample.size,
                idle: sample.idle,
                would_ask: sample.would_ask,
                would_remove: sample.would_remove,
            })
            .collect(),
        decisions: record
            .decisions
            .iter()
            .map(|decision| v1::AdoptionDecision {
                at_unix_ms: decision.at.0,
                what: decision.what.clone(),
            })
            .collect(),
        dropped: record.dropped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(pool: &str, group: &str, region: &str, role: &str) -> v1::GroupTarget {
        v1::GroupTarget {
            pool: pool.to_owned(),
            group: group.to_owned(),
            region: region.to_owned(),
            role_arn: role.to_owned(),
        }
    }

    #[test]
    fn a_group_is_named_in_one_way_and_wrong_ways_name_the_field() {
        let good = target_from(Some(target("", "p5", "us-east-1", "")));
        assert_eq!(
            good,
            Ok(Target::Group(GroupRef {
                group: "p5".into(),
                region: "us-east-1".into(),
                role: None
            }))
        );
        assert_eq!(
            target_from(Some(target("a", "", "", ""))),
            Ok(Target::Pool("a".into()))
        );
        for (of, field) in [
            (None, "of"),
            (Some(target("", "", "", "")), "group"),
            (Some(target("a", "p5", "", "")), "pool"),
            (Some(target("", "p5", "", "")), "region"),
            (Some(target("", "p5", "Oregon!", "")), "region"),
            (Some(target("", "p5", "us-east-1", "drover")), "role_arn"),
            (
                Some(target("", &"x".repeat(2_000), "us-east-1", "")),
                "group",
            ),
        ] {
            let bad = target_from(of.clone()).expect_err("refused");
            assert_eq!(bad.0, field, "{of:?}");
        }
    }

    #[test]
    fn mending_is_offered_only_where_it_would_not_be_refused() {
        let of = GroupRef {
            group: "p5".into(),
            region: "us-east-1".into(),
            role: None,
        };
        let bare = Finding::NewUnprotected;
        let frozen = Finding::Frozen { why: "ada".into() };
        for (standing, findings, offered) in [
            (Standing::Ours, vec![bare.clone()], true),
            (Standing::Unclaimed, vec![bare.clone()], true),
            (Standing::NotOffered, vec![bare.clone()], false),
            (Standing::Others, vec![bare.clone()], false),
            (Standing::Ours, vec![bare, frozen], false),
        ] {
            let found = Survey {
                standing,
                findings,
                ..Survey::default()
            };
            let told = survey(None, &of, &found);
            assert_eq!(told.findings[0].fixable, offered, "{standing:?}");
        }
    }
}
