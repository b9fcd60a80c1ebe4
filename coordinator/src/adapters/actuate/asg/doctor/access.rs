//! What the coordinator's credentials may do: IAM's simulation of their policies, and EC2's dry run of the template.
//!
//! Called by `doctor`. Neither is the whole truth: what cannot be made sure is a doubt and no finding.

use std::collections::{BTreeMap, BTreeSet};

use drover_aws::{
    AwsSurvey, DryRun, Grant, Group, Narrow, Need, Permission, PolicyQuestion, Region,
    TemplateFacts, grants,
};
use drover_core::model::Mode;
use futures::join;

use super::super::owner::{OWNER_TAG, UNCLAIMED};
use super::{Notes, group::template_of};
use crate::ports::survey::{Finding, Question, SurveyAsk};

/// Modes with what each needs first of all.
const MODES: [(Need, Mode, &str); 3] = [
    (Need::Observe, Mode::Observe, "observe"),
    (Need::Grow, Mode::Grow, "grow"),
    (Need::Full, Mode::Full, "full"),
];

/// Who asks.
#[derive(Debug, PartialEq, Eq)]
struct Caller<'a> {
    partition: &'a str,
    account: &'a str,
    /// `role` or `user`, and its name; absent for the root user and for federated ones.
    principal: Option<(&'static str, &'a str)>,
}

impl<'a> Caller<'a> {
    fn parse(arn: &'a str) -> Option<Self> {
        let parts: Vec<&str> = arn.splitn(6, ':').collect();
        let ["arn", partition, _, _, account, resource] = parts[..] else {
            return None;
        };
        let mut words = resource.split('/');
        let principal = match words.next() {
            Some("assumed-role") => words.next().map(|name| ("role", name)),
            Some("role") => words.next_back().map(|name| ("role", name)),
            Some("user") => words.next_back().map(|name| ("user", name)),
            _ => None,
        };
        Some(Self {
            partition,
            account,
            principal,
        })
    }
}

/// Words of a dry run that concern what the group says and the template leaves out: subnets, types.
const LEFT_TO_THE_GROUP: [&str; 3] = ["VPCIdNotSpecified", "MissingInput", "MissingParameter"];
/// A group can give everything but this.
const NOT_THE_GROUPS: &str = "ImageId";

fn left_to_the_group(why: &str) -> bool {
    LEFT_TO_THE_GROUP.iter().any(|word| why.contains(word)) && !why.contains(NOT_THE_GROUPS)
}

/// Asks both. `template` is what the group's template says; absent, it is not tried.
pub(super) async fn judge(
    api: &impl AwsSurvey,
    place: &Region,
    group: &Group,
    ask: &SurveyAsk,
    template: Option<&TemplateFacts>,
) -> Notes {
    let mut notes = Notes::default();
    // Without a type in it EC2 would refuse what the group itself completes.
    let whole = template.is_some_and(|facts| facts.instance_type.is_some());
    let dry = async {
        match template_of(group).filter(|_| whole) {
            Some(template) => Some(api.dry_run_launch(place, template).await),
            None => None,
        }
    };
    let (caller, dry) = join!(api.caller(place), dry);
    match dry.map(|dry| notes.answer(Question::DryRun, dry)) {
        Some(Some(DryRun::Wrong(why))) if left_to_the_group(&why) => {
            notes.doubts.push(format!(
                "EC2 cannot try the template without what the group adds to it: {why}"
            ));
        }
        Some(Some(DryRun::Wrong(why))) => notes.findings.push(Finding::TemplateRefused { why }),
        Some(Some(DryRun::Denied(why))) => notes.doubts.push(format!(
            "EC2 does not let these credentials try the template (they need no ec2:RunInstances for anything else): {why}"
        )),
        Some(Some(DryRun::Allowed) | None) | None => {}
    }
    if let Some(arn) = notes.answer(Question::Caller, caller) {
        simulate(api, place, group, ask, &arn, &mut notes).await;
    }
    notes
}

async fn simulate(
    api: &impl AwsSurvey,
    place: &Region,
    group: &Group,
    ask: &SurveyAsk,
    arn: &str,
    notes: &mut Notes,
) {
    let Some(caller) = Caller::parse(arn).filter(|caller| caller.principal.is_some()) else {
        notes.doubts.push(format!(
            "what {arn} may do cannot be simulated: it is neither a role nor a user"
        ));
        return;
    };
    let wanted: Vec<Grant> = grants()
        .into_iter()
        .filter(|grant| MODES.iter().any(|(need, ..)| grant.need == *need))
        .collect();
    let mut said: BTreeMap<String, Permission> = BTreeMap::new();
    for question in questions(&wanted, place, group, &caller) {
        match api.simulate_policy(place, arn, &question).await {
            Ok(answer) => said.extend(answer),
            Err(error) => {
                notes
                    .findings
                    .push(super::unasked(Question::Permissions, &error));
                return;
            }
        }
    }
    for (need, mode, word) in MODES {
        let of = |wanted: &&Grant| wanted.need == need;
        let missing: BTreeMap<&str, Permission> = wanted
            .iter()
            .filter(of)
            .filter_map(|grant| Some((grant.action, *said.get(grant.action)?)))
            .filter(|(_, said)| *said != Permission::Allowed)
            .collect();
        if !missing.is_empty() {
            notes.findings.push(Finding::Permissions {
                mode: word,
                denied: missing.values().any(|said| *said == Permission::Denied),
                actions: missing.keys().map(|action| (*action).to_owned()).collect(),
                now: ask.mode >= mode,
                principal: caller.principal.map(|(kind, name)| (kind, name.to_owned())),
            });
        }
    }
    let unsaid: BTreeSet<&str> = wanted
        .iter()
        .map(|grant| grant.action)
        .filter(|action| !said.contains_key(*action))
        .collect();
    if !unsaid.is_empty() {
        let list: Vec<&str> = unsaid.into_iter().collect();
        notes.doubts.push(format!(
            "IAM's simulation says nothing of {}",
            list.join(", ")
        ));
    }
    notes.doubts.push(
        "IAM's simulation leaves out policies of the organisation, of sessions and of resources: what it allows may still be denied"
            .to_owned(),
    );
}

/// One question for what knows no resource, one for the group, one for the tags on it.
fn questions(
    wanted: &[Grant],
    place: &Region,
    group: &Group,
    caller: &Caller<'_>,
) -> Vec<PolicyQuestion> {
    // The group's own part of its ARN is in no describe that is made; a policy has a star there.
    let arn = format!(
        "arn:{}:autoscaling:{}:{}:autoScalingGroup:00000000-0000-0000-0000-000000000000:autoScalingGroupName/{}",
        caller.partition,
        place.as_str(),
        caller.account,
        group.name
    );
    let here = ("aws:RequestedRegion".to_owned(), place.as_str().to_owned());
    let owner = group.tags.get(OWNER_TAG).map_or(UNCLAIMED, String::as_str);
    let owned = [
        (format!("aws:ResourceTag/{OWNER_TAG}"), owner.to_owned()),
        (
            format!("autoscaling:ResourceTag/{OWNER_TAG}"),
            owner.to_owned(),
        ),
    ];
    let actions = |narrows: &[Narrow]| -> Vec<String> {
        let of = wanted.iter().filter(|g| narrows.contains(&g.narrow));
        of.map(|grant| grant.action.to_owned()).collect()
    };
    let anywhere = PolicyQuestion {
        actions: actions(&[Narrow::Region, Narrow::Nothing]),
        resources: Vec::new(),
        context: BTreeMap::from([here.clone()]),
    };
    let on_group = PolicyQuestion {
        actions: actions(&[Narrow::Group]),
        resources: vec![arn.clone()],
        context: owned.iter().cloned().chain([here.clone()]).collect(),
    };
    let keys = ("aws:TagKeys".to_owned(), OWNER_TAG.to_owned());
    let on_tags = PolicyQuestion {
        actions: actions(&[Narrow::GroupTags]),
        resources: vec![arn],
        context: owned.into_iter().chain([here, keys]).collect(),
    };
    let mut all = vec![anywhere, on_group, on_tags];
    all.retain(|question| !question.actions.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_a_role_a_user_or_nobody_who_can_be_simulated() {
        let of = |arn| Caller::parse(arn).and_then(|c| c.principal);
        assert_eq!(
            of("arn:aws:sts::123456789012:assumed-role/drover/i-1"),
            Some(("role", "drover"))
        );
        assert_eq!(
            of("arn:aws:iam::123456789012:user/ops/ann"),
            Some(("user", "ann"))
        );
        assert_eq!(of("arn:aws:iam::123456789012:root"), None);
        assert_eq!(of("arn:aws:sts::123456789012:federated-user/ann"), None);
        assert_eq!(Caller::parse("nonsense"), None);
    }
}
