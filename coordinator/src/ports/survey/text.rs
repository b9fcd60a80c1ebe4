//! Findings in words, with the command that mends each. The one place where they are worded.

mod group;

use super::{Finding, Gap, GroupRef, Hook, Next, Question, Severity, SuspendedBy, Told};
use Severity::{Must, Note, Should};

/// Severity, words, commands.
type Parts = (Severity, String, Vec<String>);

impl Question {
    /// After "could not be asked: ".
    const fn words(self) -> &'static str {
        match self {
            Self::Group => "the group",
            Self::Template => "its launch template",
            Self::Types => "what its instance types offer",
            Self::Policies => "its scaling policies",
            Self::Schedules => "its scheduled actions",
            Self::Refreshes => "its instance refreshes",
            Self::Hooks => "its lifecycle hooks",
            Self::WarmPool => "its warm pool",
            Self::Caller => "whose credentials these are",
            Self::Permissions => "what these credentials may do",
            Self::DryRun => "whether EC2 takes its template",
            Self::Quotas => "the account's quotas",
        }
    }

    /// Without an answer nothing else can be judged.
    const fn is_vital(self) -> bool {
        matches!(self, Self::Group)
    }
}

impl SuspendedBy {
    const fn words(self) -> &'static str {
        match self {
            Self::Caller => "by a call of a person or a program",
            Self::Aws => "by AWS itself, after launches that failed again and again",
            Self::Drover => "by Drover, which gives back what was never filled",
            Self::Unknown => "by whom is not told",
        }
    }
}

/// Tells whose credentials they are, and whether AWS takes them.
const WHO: &str = "aws sts get-caller-identity # as the coordinator, where it runs: does AWS take its credentials? Else give it fresh ones";

/// As one word of a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The group, for a command line.
struct Line<'a>(&'a GroupRef);

impl Line<'_> {
    fn group(&self, verb: &str, more: &str) -> String {
        let (group, region) = (quoted(&self.0.group), quoted(&self.0.region));
        let gap = if more.is_empty() { "" } else { " " };
        format!(
            "aws autoscaling {verb} --region {region} --auto-scaling-group-name {group}{gap}{more}"
        )
    }

    fn processes(&self, verb: &str, process: &str) -> Vec<String> {
        let more = format!("--scaling-processes {}", quoted(process));
        vec![self.group(verb, &more)]
    }

    fn tag(&self, verb: &str, key: &str, value: Option<&str>) -> String {
        let value = value.map_or_else(String::new, |v| {
            format!(",Value={v},PropagateAtLaunch=false")
        });
        let tag = format!(
            "ResourceId={},ResourceType=auto-scaling-group,Key={key}{value}",
            self.0.group
        );
        let region = quoted(&self.0.region);
        format!(
            "aws autoscaling {verb} --region {region} --tags {}",
            quoted(&tag)
        )
    }

    fn untag(&self, keys: &[String]) -> Vec<String> {
        keys.iter()
            .map(|key| self.tag("delete-tags", key, None))
            .collect()
    }

    fn hook(&self, hook: &Hook, more: &str) -> Vec<String> {
        let more = format!("--lifecycle-hook-name {} {more}", quoted(&hook.name));
        vec![self.group("put-lifecycle-hook", &more)]
    }
}

impl Finding {
    /// Severity, words and commands.
    #[must_use]
    pub fn told(&self, of: &GroupRef) -> Told {
        let (severity, words, commands) = self.parts(&Line(of));
        Told {
            severity,
            kind: self.kind().word(),
            words,
            commands,
            fixable: matches!(
                self,
                Self::NewUnprotected
                    | Self::MembersUnprotected { .. }
                    | Self::EndsMembers { .. }
                    | Self::CapacityRebalance { .. }
            ),
        }
    }

    fn parts(&self, line: &Line<'_>) -> Parts {
        match self {
            Self::Region { .. }
            | Self::Unasked { .. }
            | Self::GroupMissing
            | Self::GroupGoing { .. }
            | Self::Permissions { .. }
            | Self::Quota(_)
            | Self::NoAgents { .. } => self.around(line),
            Self::TemplateMissing
            | Self::LaunchConfiguration { .. }
            | Self::VersionMissing { .. }
            | Self::VersionUnnamed { .. }
            | Self::TemplateRefused { .. }
            | Self::UnknownType { .. }
            | Self::Weighted => self.template(line),
            Self::NewUnprotected
            | Self::MembersUnprotected { .. }
            | Self::EndsMembers { .. }
            | Self::LaunchSuspended { .. }
            | Self::TerminateSuspended { .. }
            | Self::OtherSuspended { .. }
            | Self::HealthChecks { .. }
            | Self::GraceShort { .. } => self.guards(line),
            Self::CapacityRebalance { .. }
            | Self::ScalingPolicy { .. }
            | Self::ScheduledAction { .. }
            | Self::RefreshAtWork { .. }
            | Self::MaxLifetime { .. }
            | Self::MaxBelowRunning { .. }
            | Self::MaxBelowConfig { .. }
            | Self::LaunchHookAbandons(_)
            | Self::TerminateHookShort { .. }
            | Self::WarmPoolRefills => self.own_ways(line),
            Self::ClusterAutoscaler { .. }
            | Self::EksNodegroup { .. }
            | Self::EksCluster { .. }
            | Self::Karpenter { .. }
            | Self::OthersGroup { .. }
            | Self::NotOffered
            | Self::Frozen { .. } => self.owners(line),
        }
    }

    /// What is around the group: region, permissions, quotas, agents.
    fn around(&self, line: &Line<'_>) -> Parts {
        let of = line.0;
        match self {
            Self::Region { why } => {
                let words = format!("the region {} cannot be used: {why}", of.region);
                let list = "aws ec2 describe-regions --all-regions --query 'Regions[].RegionName'";
                (Must, words, vec![list.to_owned(), WHO.to_owned()])
            }
            Self::Unasked {
                question,
                next,
                why,
            } => {
                let severity = if question.is_vital() { Must } else { Should };
                let words = format!("{} could not be asked: {why}", question.words());
                let region = quoted(&of.region);
                let mend = next.map(|next| match next {
                    Next::Permission(action) => {
                        format!("drover pools policy --doctor --region {region} # it has {action}")
                    }
                    Next::Credentials => WHO.to_owned(),
                    Next::Reach => format!(
                        "aws autoscaling describe-account-limits --region {region} # where the coordinator runs: does AWS \
                         answer there, is the region's name right?"
                    ),
                });
                (severity, words, mend.into_iter().collect())
            }
            Self::GroupMissing => {
                let words = format!("there is no group {} in {}", of.group, of.region);
                let command = format!(
                    "aws autoscaling describe-auto-scaling-groups --region {} --query 'AutoScalingGroups[].AutoScalingGroupName'",
                    quoted(&of.region)
                );
                (Must, words, vec![command])
            }
            Self::GroupGoing { status } => {
                let words = format!(
                    "the group is being deleted ({status}): take its pool out of the config"
                );
                (Must, words, Vec::new())
            }
            Self::Permissions {
                mode,
                actions,
                denied,
                now,
                principal,
            } => {
                let verb = if *denied { "denied" } else { "not granted" };
                let when = if *now {
                    ""
                } else {
                    ", before the pool leaves the mode that it is in"
                };
                let words = format!(
                    "permissions that mode {mode} needs are {verb} to these credentials{when}: {}",
                    actions.join(", ")
                );
                let file = "policy.json";
                let mut commands = vec![format!(
                    "drover pools policy --mode {mode} --group {} --region {} > {file}",
                    quoted(&of.group),
                    quoted(&of.region)
                )];
                if let Some((kind, name)) = principal {
                    commands.push(format!(
                        "aws iam put-{kind}-policy --{kind}-name {} --policy-name drover --policy-document file://{file}",
                        quoted(name)
                    ));
                }
                (if *now { Must } else { Should }, words, commands)
            }
            Self::Quota(Gap {
                code,
                name,
                allows,
                instance_type,
                max,
                needs,
                running,
            }) => {
                let words = format!(
                    "the quota \"{name}\" allows {allows} vCPUs in all of the account, and {max} {instance_type} need {needs} \
                     (the group's members have {running} of them)"
                );
                let command = format!(
                    "aws service-quotas request-service-quota-increase --region {} --service-code ec2 --quota-code {} \
                     --desired-value {needs}",
                    quoted(&of.region),
                    quoted(code)
                );
                (Should, words, vec![command])
            }
            Self::NoAgents { without, of: all } => {
                let words = format!(
                    "{without} of {all} members have no agent that has ever spoken to this coordinator: they are counted and \
                     never idle. Those that Drover did not launch are never removed; those that it launched and that missed \
                     their deadline are, in mode full (`drover nodes list` says when)"
                );
                (Note, words, Vec::new())
            }
            _ => nothing(),
        }
    }

    /// Whose it is.
    fn owners(&self, line: &Line<'_>) -> Parts {
        let offer = || vec![line.tag("create-or-update-tags", "drover:owner", Some("unclaimed"))];
        match self {
            Self::ClusterAutoscaler { keys } => (
                Must,
                format!(
                    "Cluster Autoscaler finds the group by its tags ({}): two would drive it",
                    keys.join(", ")
                ),
                line.untag(keys),
            ),
            Self::EksNodegroup { name } => (
                Must,
                format!(
                    "EKS manages the group as node group {name}: it replaces members at each update and sets sizes back. Make a group \
                     of your own with its launch template (self-managed nodes), and give that one to Drover"
                ),
                Vec::new(),
            ),
            Self::EksCluster { name } => (
                Note,
                format!(
                    "the group is tagged for the EKS cluster {name}; nothing of EKS may set its size"
                ),
                Vec::new(),
            ),
            Self::Karpenter { keys } => (
                Should,
                format!(
                    "the group carries tags of Karpenter ({}), which drives no groups: whose are they?",
                    keys.join(", ")
                ),
                line.untag(keys),
            ),
            Self::OthersGroup { why } => (Must, why.clone(), offer()),
            Self::NotOffered => (
                Must,
                "the group has no tag drover:owner: it is shown and never changed".to_owned(),
                offer(),
            ),
            Self::Frozen { why } => (
                Should,
                format!(
                    "the group is frozen by its tag drover:freeze ({why}): nothing is changed while it is there"
                ),
                vec![line.tag("delete-tags", "drover:freeze", None)],
            ),
            _ => nothing(),
        }
    }
}

/// Each finding is worded in one of the functions above; a test goes through all of them.
fn nothing() -> Parts {
    (Note, String::new(), Vec::new())
}
