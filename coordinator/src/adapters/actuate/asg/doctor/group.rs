//! What the group itself shows: guards, processes, health checks, lifetime, weights, tags. Pure.
//!
//! Called by `doctor` with what a describe said.

use drover_aws::{Group, GroupTemplate, TemplateFacts, TemplateRef};
use drover_core::model::InstanceId;

use super::super::owner::{OWNER_TAG, Owner, frozen};
use super::super::withdraw::under_way;
use super::is_spot;
use crate::ports::survey::{Finding, SurveyAsk, SuspendedBy};

/// Processes that end members on AWS's own account.
const END_MEMBERS: [&str; 2] = ["AZRebalance", "ReplaceUnhealthy"];
/// A large machine is up after this at the latest; health must not be judged before.
const SLOW_BOOT_SECONDS: u32 = 600;
/// Ids and names of Cluster Autoscaler's discovery; its `node-template` tags only describe nodes.
const CLUSTER_AUTOSCALER: &str = "k8s.io/cluster-autoscaler/";
const NODE_TEMPLATE: &str = "k8s.io/cluster-autoscaler/node-template/";

/// The template that the group names, where it names one.
pub(super) fn template_of(group: &Group) -> Option<&TemplateRef> {
    match &group.template {
        GroupTemplate::Template(template) => Some(template),
        GroupTemplate::Mixed(policy) => policy.template.as_ref(),
        GroupTemplate::Configuration(_) | GroupTemplate::Missing => None,
    }
}

/// As people name it; the id where there is no name.
pub(super) fn label(template: &TemplateRef) -> String {
    let named = template.name.as_ref().or(template.id.as_ref());
    named.cloned().unwrap_or_else(|| "(unnamed)".to_owned())
}

/// Names of the types that it launches; of what runs where nothing else tells.
pub(super) fn types_of(group: &Group, template: Option<&TemplateFacts>) -> Vec<String> {
    let mut names: Vec<String> = match &group.template {
        GroupTemplate::Mixed(policy) => policy
            .overrides
            .iter()
            .filter_map(|o| o.instance_type.clone())
            .collect(),
        _ => Vec::new(),
    };
    if names.is_empty() {
        names.extend(template.and_then(|t| t.instance_type.clone()));
    }
    if names.is_empty() {
        names.extend(group.members.iter().filter_map(|m| m.instance_type.clone()));
    }
    names.retain(|name| !name.is_empty());
    names.sort_unstable();
    names.dedup();
    names
}

/// Whether any of it can be spot.
pub(super) fn may_be_spot(group: &Group, template: Option<&TemplateFacts>) -> bool {
    let mixed = match &group.template {
        GroupTemplate::Mixed(policy) => policy.on_demand_percent_above_base.unwrap_or(100) < 100,
        _ => false,
    };
    mixed || is_spot(template)
}

/// Who suspended a process, by AWS's reason. AWS writes "User suspended at ..." for a call, and names itself otherwise.
fn suspended_by(why: &str) -> SuspendedBy {
    let why = why.to_ascii_lowercase();
    if why.contains("user suspended") {
        SuspendedBy::Caller
    } else if why.contains("administrat") || why.contains("auto scaling suspended") {
        SuspendedBy::Aws
    } else {
        SuspendedBy::Unknown
    }
}

/// All that the group shows.
pub(super) fn judge(
    owner: &Owner,
    group: &Group,
    ask: &SurveyAsk,
    spot: bool,
    findings: &mut Vec<Finding>,
) {
    findings.extend(
        group
            .status
            .clone()
            .map(|status| Finding::GroupGoing { status }),
    );
    match &group.template {
        GroupTemplate::Missing => findings.push(Finding::TemplateMissing),
        GroupTemplate::Mixed(policy) if policy.template.is_none() => {
            findings.push(Finding::TemplateMissing);
        }
        GroupTemplate::Configuration(name) => {
            findings.push(Finding::LaunchConfiguration { name: name.clone() });
        }
        GroupTemplate::Mixed(_) | GroupTemplate::Template(_) => {}
    }
    if group.is_weighted() {
        findings.push(Finding::Weighted);
    }
    protection(group, findings);
    processes(group, findings);
    health(group, findings);
    if group.capacity_rebalance == Some(true) {
        findings.push(Finding::CapacityRebalance { spot });
    }
    let lifetime = group.max_lifetime_seconds;
    findings.extend(lifetime.map(|seconds| Finding::MaxLifetime { seconds }));
    let running = group.live_count();
    let max = group.max;
    if running > max {
        findings.push(Finding::MaxBelowRunning { max, running });
    }
    if let Some(config) = ask.max.filter(|most| *most > max && running <= max) {
        findings.push(Finding::MaxBelowConfig { max, config });
    }
    tags(owner, group, findings);
    agents(group, ask, findings);
}

fn protection(group: &Group, findings: &mut Vec<Finding>) {
    if !group.protects_new {
        findings.push(Finding::NewUnprotected);
    }
    let bare: Vec<String> = group
        .members
        .iter()
        .filter(|m| m.is_live() && !m.protected)
        .map(|m| m.id.to_string())
        .collect();
    if !bare.is_empty() {
        findings.push(Finding::MembersUnprotected { ids: bare });
    }
}

fn processes(group: &Group, findings: &mut Vec<Finding>) {
    for process in END_MEMBERS {
        if !group.suspended.contains_key(process) {
            findings.push(Finding::EndsMembers { process });
        }
    }
    for (process, why) in &group.suspended {
        let why = why.clone();
        let by = suspended_by(&why);
        match process.as_str() {
            "AZRebalance" | "ReplaceUnhealthy" => {}
            "Launch" => {
                let ours = under_way(&group.tags).is_some();
                let by = if ours { SuspendedBy::Drover } else { by };
                findings.push(Finding::LaunchSuspended { by, why });
            }
            "Terminate" => findings.push(Finding::TerminateSuspended { by, why }),
            other => findings.push(Finding::OtherSuspended {
                process: other.to_owned(),
                why,
            }),
        }
    }
}

fn health(group: &Group, findings: &mut Vec<Finding>) {
    let acts = !group.suspended.contains_key("ReplaceUnhealthy");
    let kinds = group.health_check.as_deref().unwrap_or("EC2");
    let more = kinds
        .split(',')
        .map(str::trim)
        .any(|kind| !kind.is_empty() && kind != "EC2");
    if more {
        let kinds = kinds.to_owned();
        findings.push(Finding::HealthChecks { kinds, acts });
    }
    // EC2's own checks look at a machine that runs; the others look at what must have booted first.
    if let Some(seconds) = group.health_check_grace_seconds
        && seconds < SLOW_BOOT_SECONDS
        && more
        && acts
    {
        findings.push(Finding::GraceShort { seconds });
    }
}

fn tags(owner: &Owner, group: &Group, findings: &mut Vec<Finding>) {
    let tag = |key: &str| group.tags.get(key).map(|value| value.trim());
    if let Err(why) = owner.judge(&group.tags) {
        findings.push(match tag(OWNER_TAG) {
            None | Some("") => Finding::NotOffered,
            Some(_) => Finding::OthersGroup { why },
        });
    }
    if let Some(why) = frozen(&group.tags) {
        findings.push(Finding::Frozen { why });
    }
    let keys = |wanted: &dyn Fn(&str) -> bool| -> Vec<String> {
        let found = group.tags.keys().filter(|key| wanted(key));
        found.cloned().collect()
    };
    let scaler =
        keys(&|key| key.starts_with(CLUSTER_AUTOSCALER) && !key.starts_with(NODE_TEMPLATE));
    if !scaler.is_empty() {
        findings.push(Finding::ClusterAutoscaler { keys: scaler });
    }
    match (tag("eks:nodegroup-name"), tag("eks:cluster-name")) {
        (Some(name), _) => findings.push(Finding::EksNodegroup {
            name: name.to_owned(),
        }),
        (None, Some(name)) => findings.push(Finding::EksCluster {
            name: name.to_owned(),
        }),
        (None, None) => {}
    }
    // The discovery tag only marks what Karpenter may look at.
    let karpenter = keys(&|key| {
        key.split('/').next().is_some_and(|domain| {
            domain.ends_with("karpenter.sh") || domain.ends_with("karpenter.k8s.aws")
        }) && key != "karpenter.sh/discovery"
    });
    if !karpenter.is_empty() {
        findings.push(Finding::Karpenter { keys: karpenter });
    }
}

fn agents(group: &Group, ask: &SurveyAsk, findings: &mut Vec<Finding>) {
    let Some(known) = &ask.agents else {
        return;
    };
    let live = || group.members.iter().filter(|m| m.is_live());
    let heard = |m: &&drover_aws::Member| known.contains(&InstanceId::new(m.id.as_str()));
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let (of, with) = (count(live().count()), count(live().filter(heard).count()));
    if with < of {
        let without = of - with;
        findings.push(Finding::NoAgents { without, of });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_suspended_a_process_is_read_from_awss_words() {
        let table = [
            (
                "User suspended at 2026-11-30T08:00:00Z",
                SuspendedBy::Caller,
            ),
            (
                "Administratively suspended at 2026-11-30T08:00:00Z",
                SuspendedBy::Aws,
            ),
            ("", SuspendedBy::Unknown),
            ("something new", SuspendedBy::Unknown),
        ];
        for (why, by) in table {
            assert_eq!(suspended_by(why), by, "{why:?}");
        }
    }
}
