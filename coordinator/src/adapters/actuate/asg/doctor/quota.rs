//! Whether the account's quotas carry the group's maximum.
//!
//! Called by `doctor` with the facts of its types. EC2's quotas count virtual CPUs of a family of types, for on-demand
//! and spot apart; the family is only in the quota's name.

use drover_aws::{AwsSurvey, Group, InstanceTypeFacts, QuotaFact, Region};

use super::Notes;
use crate::ports::survey::{Finding, Gap, Question, SurveyAsk};

/// Asks for the quotas and compares.
pub(super) async fn judge(
    api: &impl AwsSurvey,
    place: &Region,
    group: &Group,
    ask: &SurveyAsk,
    types: &[InstanceTypeFacts],
    spot: bool,
) -> Notes {
    let mut notes = Notes::default();
    let Some((largest, vcpus)) = types
        .iter()
        .filter_map(|t| Some((t, t.vcpus?)))
        .max_by_key(|(_, vcpus)| *vcpus)
    else {
        return notes;
    };
    let Some(quotas) = notes.answer(Question::Quotas, api.ec2_quotas(place).await) else {
        return notes;
    };
    let Some(quota) = quota_of(&quotas, &largest.name, spot) else {
        notes.doubts.push(format!(
            "no quota of {place} names the family of {}: its headroom is not known",
            largest.name
        ));
        return notes;
    };
    let max = ask.max.map_or(group.max, |max| max.min(group.max));
    let needs = u64::from(max) * u64::from(vcpus);
    let cpus_of = |name: &str| types.iter().find(|t| t.name == name)?.vcpus.map(u64::from);
    let running = group
        .members
        .iter()
        .filter(|m| m.is_live())
        .filter_map(|m| cpus_of(m.instance_type.as_deref()?))
        .sum();
    if needs > quota.value {
        notes.findings.push(Finding::Quota(Gap {
            code: quota.code.clone(),
            name: quota.name.clone(),
            allows: quota.value,
            instance_type: largest.name.clone(),
            max,
            needs,
            running,
        }));
    } else {
        notes.doubts.push(format!(
            "the quota \"{}\" ({} vCPUs) is shared by all of the account: what else runs on it was not counted",
            quota.name, quota.value
        ));
    }
    notes
}

/// Families that AWS counts apart, so that they are not in Standard by their first letter.
const OWN_FAMILIES: [&str; 10] = ["dl", "f", "g", "gr", "hpc", "inf", "mac", "p", "trn", "vt"];

/// The family's letters and generation: `p5en.48xlarge` is `p` and `p5`, `u-6tb1.metal` is `u` and `u`.
fn family(instance_type: &str) -> (String, String) {
    let head = instance_type.split(['.', '-']).next().unwrap_or_default();
    let letters: String = head.chars().take_while(char::is_ascii_alphabetic).collect();
    let digits: String = head
        .chars()
        .skip(letters.len())
        .take_while(char::is_ascii_digit)
        .collect();
    let generation = format!("{letters}{digits}");
    (letters, generation)
}

/// The quota that counts this type. Names are as `Running On-Demand G and VT instances`,
/// `Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances`, `All P4, P3 and P2 Spot Instance Requests`.
fn quota_of<'a>(quotas: &'a [QuotaFact], instance_type: &str, spot: bool) -> Option<&'a QuotaFact> {
    let (letters, generation) = family(instance_type);
    // `im4gn`, `is4gen` and `inf`: a family of its own where a quota names it, else by its first letter in Standard.
    let first = letters.get(..1).unwrap_or_default();
    let long = match letters.as_str() {
        "u" => "high memory",
        "gr" => "g",
        other => other,
    };
    let ours: Vec<(&QuotaFact, String)> = quotas
        .iter()
        .filter_map(|quota| {
            let name = quota.name.to_ascii_lowercase();
            let named = if spot {
                name.strip_prefix("all ")?
                    .strip_suffix(" spot instance requests")?
            } else {
                name.strip_prefix("running on-demand ")?
                    .strip_suffix(" instances")?
            };
            Some((quota, named.to_owned()))
        })
        .collect();
    let words = |named: &str| -> Vec<String> {
        named
            .split(|c: char| !c.is_ascii_alphanumeric())
            .map(str::to_owned)
            .collect()
    };
    let naming = |word: &str, standard: bool| {
        ours.iter()
            .find(|(_, named)| {
                named.starts_with("standard") == standard
                    && (named == word || words(named).iter().any(|w| w == word))
            })
            .map(|(quota, _)| *quota)
    };
    naming(&generation, false)
        .or_else(|| naming(long, false))
        .or_else(|| naming(first, true).filter(|_| !OWN_FAMILIES.contains(&letters.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_finds_the_quota_of_its_family() {
        let names = [
            "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
            "Running On-Demand P instances",
            "Running On-Demand G and VT instances",
            "Running On-Demand Inf instances",
            "Running On-Demand X instances",
            "Running On-Demand High Memory instances",
            "Running Dedicated p4d Hosts",
            "All P4, P3 and P2 Spot Instance Requests",
            "All P5 Spot Instance Requests",
            "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
            "All G and VT Spot Instance Requests",
        ];
        let quotas = names.map(|name| QuotaFact {
            code: String::new(),
            name: name.to_owned(),
            value: 1,
        });
        let table = [
            ("p5.48xlarge", false, Some(names[1])),
            ("g6e.xlarge", false, Some(names[2])),
            ("gr6.4xlarge", false, Some(names[2])),
            ("vt1.3xlarge", false, Some(names[2])),
            ("m5.large", false, Some(names[0])),
            ("im4gn.large", false, Some(names[0])),
            ("inf2.xlarge", false, Some(names[3])),
            ("x2gd.large", false, Some(names[4])),
            ("u-6tb1.metal", false, Some(names[5])),
            ("trn1.2xlarge", false, None),
            ("p4d.24xlarge", true, Some(names[7])),
            ("p5en.48xlarge", true, Some(names[8])),
            ("c7i.large", true, Some(names[9])),
            ("g5.xlarge", true, Some(names[10])),
        ];
        for (kind, spot, expect) in table {
            let found = quota_of(&quotas, kind, spot).map(|q| q.name.as_str());
            assert_eq!(found, expect, "{kind} spot {spot}");
        }
    }
}
