//! What is found in the group itself, in words: what it launches, what protects its members, what it does on its own.

use super::Severity::{Must, Note, Should};
use super::{Line, Parts, nothing, quoted};
use crate::ports::survey::{Finding, SuspendedBy};

/// AWS takes so many ids in one call of SetInstanceProtection.
const IDS: usize = 50;

impl Finding {
    /// What it launches.
    pub(super) fn template(&self, line: &Line<'_>) -> Parts {
        let give = |template: &str| {
            vec![line.group(
                "update-auto-scaling-group",
                &format!("--launch-template {template}"),
            )]
        };
        match self {
            Self::TemplateMissing => (
                Must,
                "the group names no launch template: nothing can be launched".to_owned(),
                give("'LaunchTemplateName=NAME,Version=$Default'"),
            ),
            Self::LaunchConfiguration { name } => (
                Should,
                format!(
                    "the group has the launch configuration {name}: it grows only by SetDesiredCapacity, without a choice of zone \
                     and without an answer about shortage"
                ),
                give("'LaunchTemplateName=NAME,Version=$Default'"),
            ),
            Self::VersionMissing { template, version } => (
                Must,
                format!("version {version} of the launch template {template} does not exist: nothing can be launched"),
                vec![format!(
                    "aws ec2 describe-launch-template-versions --region {} {} --query 'LaunchTemplateVersions[].VersionNumber'",
                    quoted(&line.0.region),
                    named(template)
                )],
            ),
            Self::VersionUnnamed { template } => {
                let key = if template.starts_with("lt-") { "LaunchTemplateId" } else { "LaunchTemplateName" };
                (
                    Should,
                    format!("the group names no version of the launch template {template}: say which one, or that the default is meant"),
                    give(&quoted(&format!("{key}={template},Version=$Default"))),
                )
            }
            Self::TemplateRefused { why } => (
                Must,
                format!("EC2 would not launch the template: {why}"),
                Vec::new(),
            ),
            Self::UnknownType { instance_type, why } => (
                Must,
                format!("{} has no instance type {instance_type}: {why}", line.0.region),
                vec![format!(
                    "aws ec2 describe-instance-type-offerings --region {} --query 'InstanceTypeOfferings[].InstanceType'",
                    quoted(&line.0.region)
                )],
            ),
            Self::Weighted => (
                Must,
                "instances have weights, so that the group's capacity is no number of nodes: take WeightedCapacity out of the policy"
                    .to_owned(),
                vec![
                    format!(
                        "aws autoscaling describe-auto-scaling-groups --region {} --auto-scaling-group-names {} --query \
                         'AutoScalingGroups[0].MixedInstancesPolicy' | jq 'del(.LaunchTemplate.Overrides[].WeightedCapacity)' > mixed.json",
                        quoted(&line.0.region),
                        quoted(&line.0.group)
                    ),
                    line.group("update-auto-scaling-group", "--mixed-instances-policy file://mixed.json"),
                ],
            ),
            _ => nothing(),
        }
    }

    /// What protects members.
    pub(super) fn guards(&self, line: &Line<'_>) -> Parts {
        match self {
            Self::NewUnprotected => (
                Must,
                "new members start without scale-in protection: AWS may choose them when it lowers the group".to_owned(),
                vec![line.group("update-auto-scaling-group", "--new-instances-protected-from-scale-in")],
            ),
            Self::MembersUnprotected { ids } => (
                Must,
                format!("{} members have no scale-in protection: AWS may choose them when it lowers the group", ids.len()),
                ids.chunks(IDS)
                    .map(|part| {
                        let more = format!("--protected-from-scale-in --instance-ids {}", part.join(" "));
                        line.group("set-instance-protection", &more)
                    })
                    .collect(),
            ),
            Self::EndsMembers { process } => {
                let what = match *process {
                    "AZRebalance" => "AWS ends members to even out zones, whatever they do",
                    _ => "AWS ends members that it holds for unhealthy, whatever they do",
                };
                let words = format!("{process} is not suspended: {what}");
                (Must, words, line.processes("suspend-processes", process))
            }
            Self::LaunchSuspended { by, why } => {
                let severity = if *by == SuspendedBy::Drover { Note } else { Must };
                let words = format!("Launch is suspended {}: the group cannot grow (AWS says {why:?})", by.words());
                let commands = match by {
                    SuspendedBy::Drover => Vec::new(),
                    _ => line.processes("resume-processes", "Launch"),
                };
                (severity, words, commands)
            }
            Self::TerminateSuspended { by, why } => {
                let words = format!("Terminate is suspended {}: no node can leave (AWS says {why:?})", by.words());
                (Must, words, line.processes("resume-processes", "Terminate"))
            }
            Self::OtherSuspended { process, why } => {
                let effect = match process.as_str() {
                    "AddToLoadBalancer" => "new members are not registered with the group's load balancers",
                    "HealthCheck" => "members that died are not seen by the group",
                    "AlarmNotification" => "scaling policies do nothing",
                    "ScheduledActions" => "scheduled actions do nothing",
                    "InstanceRefresh" => "instance refreshes do nothing",
                    _ => "which this release does not know",
                };
                let words = format!("{process} is suspended: {effect} (AWS says {why:?})");
                (Note, words, line.processes("resume-processes", process))
            }
            Self::HealthChecks { kinds, acts } => {
                let (severity, effect) = if *acts {
                    (Must, "and members that fail them are ended, whatever they do")
                } else {
                    (Should, "which nothing acts on while ReplaceUnhealthy is suspended; should somebody resume it, they end members")
                };
                let words = format!("health is judged by {kinds}, {effect}");
                (severity, words, vec![line.group("update-auto-scaling-group", "--health-check-type EC2")])
            }
            Self::GraceShort { seconds } => {
                let words = format!(
                    "health is looked at {seconds} s after a member came into service: one that still boots may be ended"
                );
                let command = line.group("update-auto-scaling-group", "--health-check-grace-period 1800");
                (Should, words, vec![command])
            }
            _ => nothing(),
        }
    }

    /// What the group does by itself.
    pub(super) fn own_ways(&self, line: &Line<'_>) -> Parts {
        match self {
            Self::CapacityRebalance { spot } => {
                let (severity, effect) = if *spot {
                    (Must, "AWS ends spot members as soon as it has replaced them, whatever they do")
                } else {
                    (Should, "the group launches no spot now; should it ever, AWS ends members that it has replaced")
                };
                let words = format!("capacity rebalancing is on: {effect}");
                let command = line.group("update-auto-scaling-group", "--no-capacity-rebalance");
                (severity, words, vec![command])
            }
            Self::ScalingPolicy { name, kind, held } => {
                let severity = if *held { Note } else { Must };
                let while_held = if *held { "; it does nothing while AlarmNotification is suspended" } else { "" };
                let words = format!("the scaling policy {name} ({kind}) changes the group's size beside Drover{while_held}");
                let more = format!("--policy-name {}", quoted(name));
                (severity, words, vec![line.group("delete-policy", &more)])
            }
            Self::ScheduledAction { name, when, held } => {
                let severity = if *held { Note } else { Must };
                let while_held = if *held { "; it does nothing while ScheduledActions is suspended" } else { "" };
                let words = format!("the scheduled action {name} changes the group's size beside Drover, {when}{while_held}");
                let more = format!("--scheduled-action-name {}", quoted(name));
                (severity, words, vec![line.group("delete-scheduled-action", &more)])
            }
            Self::RefreshAtWork { id, status } => (
                Must,
                format!("the instance refresh {id} is at work ({status}): it ends members, whatever they do"),
                vec![line.group("cancel-instance-refresh", "")],
            ),
            Self::MaxLifetime { seconds } => (
                Must,
                format!("members are replaced after {} h, whatever they do", seconds / 3_600),
                vec![line.group("update-auto-scaling-group", "--max-instance-lifetime 0")],
            ),
            Self::MaxBelowRunning { max, running } => (
                Must,
                format!("{running} members are more than the group's maximum {max}: AWS looks for members to end"),
                vec![line.group("update-auto-scaling-group", &format!("--max-size {running}"))],
            ),
            Self::MaxBelowConfig { max, config } => (
                Note,
                format!(
                    "the group's maximum {max} is below the {config} that its pool may have: no more than {max} are asked for"
                ),
                vec![line.group("update-auto-scaling-group", &format!("--max-size {config}"))],
            ),
            Self::LaunchHookAbandons(hook) => (
                Should,
                format!(
                    "the launching hook {} ends an instance that nobody answers for within {} s (its default is ABANDON)",
                    hook.name, hook.heartbeat_seconds
                ),
                line.hook(hook, "--default-result CONTINUE"),
            ),
            Self::TerminateHookShort { hook, drain } => {
                let seconds = drain.0.div_ceil(1_000);
                (
                    Should,
                    format!(
                        "the terminating hook {} waits {} s, and emptying a node may take {seconds} s: where AWS ends a member, its \
                         work is cut off",
                        hook.name, hook.heartbeat_seconds
                    ),
                    line.hook(hook, &format!("--heartbeat-timeout {seconds}")),
                )
            }
            Self::WarmPoolRefills => (
                Note,
                "the warm pool has no size of its own: it is maximum minus desired, so that each node that leaves is made up for"
                    .to_owned(),
                vec![line.group("put-warm-pool", "--max-group-prepared-capacity N")],
            ),
            _ => nothing(),
        }
    }
}

/// A template by name or id.
fn named(template: &str) -> String {
    let flag = if template.starts_with("lt-") {
        "--launch-template-id"
    } else {
        "--launch-template-name"
    };
    format!("{flag} {}", quoted(template))
}
