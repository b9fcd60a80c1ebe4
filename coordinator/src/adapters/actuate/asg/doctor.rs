//! Judges a group before it is driven, and mends what harms nothing.
//!
//! Made by `app` with the same AWS as the actuator; called through [`GroupSurvey`]. A question that AWS does not answer
//! is a finding, never the end of the others. A survey only reads; `mend` changes what a person asked it to.

use async_trait::async_trait;
use drover_aws::{
    AwsApi, AwsError, AwsMend, AwsSurvey, FailureKind, Group, GroupName, Market, Region,
    TemplateFacts,
};
use futures::join;

use super::owner::{Claim, OWNER_TAG, Owner};
use crate::ports::survey::{
    Finding, GroupRef, GroupSurvey, MendError, Next, Question, Sizes, Standing, Survey, SurveyAsk,
};

mod access;
mod asked;
mod group;
mod mend;
mod quota;
#[cfg(test)]
mod tests;

/// The adapter.
pub struct Doctor<A> {
    api: A,
    owner: Owner,
}

impl<A> Doctor<A> {
    /// For a coordinator that groups call `owner`.
    pub const fn new(api: A, owner: Owner) -> Self {
        Self { api, owner }
    }
}

/// Where the calls for a group go.
fn region(of: &GroupRef) -> Region {
    let region = Region::new(of.region.clone());
    match &of.role {
        Some(role) => region.with_role(role.clone()),
        None => region,
    }
}

/// A question that was not answered.
fn unasked(question: Question, error: &AwsError) -> Finding {
    let next = if error.is_credentials() {
        Some(Next::Credentials)
    } else if error.kind == FailureKind::Permission {
        error
            .call
            .grant()
            .map(|grant| Next::Permission(grant.action))
    } else {
        error.is_unanswered().then_some(Next::Reach)
    };
    Finding::Unasked {
        question,
        next,
        why: error.to_string(),
    }
}

/// What answers add up to.
#[derive(Default)]
struct Notes {
    findings: Vec<Finding>,
    doubts: Vec<String>,
}

impl Notes {
    /// The answer, or nothing and a finding.
    fn answer<T>(&mut self, question: Question, answer: Result<T, AwsError>) -> Option<T> {
        answer
            .inspect_err(|error| self.findings.push(unasked(question, error)))
            .ok()
    }
}

#[async_trait]
impl<A: AwsApi + AwsSurvey + AwsMend + 'static> GroupSurvey for Doctor<A> {
    async fn survey(&self, of: &GroupRef, ask: &SurveyAsk) -> Survey {
        let mut survey = self.judge(of, ask).await;
        survey
            .findings
            .sort_by_cached_key(|finding| finding.told(of).severity);
        survey
    }

    async fn mend(&self, of: &GroupRef) -> Result<Vec<String>, MendError> {
        self.put_right(&region(of), &GroupName::new(of.group.clone()))
            .await
    }
}

impl<A: AwsApi + AwsSurvey + AwsMend> Doctor<A> {
    async fn judge(&self, of: &GroupRef, ask: &SurveyAsk) -> Survey {
        let place = region(of);
        let name = GroupName::new(of.group.clone());
        let mut notes = Notes::default();
        let found = match self.api.check_region(&place).await {
            // Whether a region exists is only a better text for what would fail anyhow.
            Err(error) if error.kind == FailureKind::Config || error.may_be_region() => {
                let why = error.to_string();
                return only(Finding::Region { why });
            }
            // A region that does not answer is waited for once.
            Err(error) if error.kind != FailureKind::Permission || error.is_credentials() => {
                return only(unasked(Question::Group, &error));
            }
            _ => self
                .api
                .describe_groups(&place, std::slice::from_ref(&name))
                .await
                .map(|mut groups| groups.remove(&name)),
        };
        let group = match found {
            Ok(Some(group)) => group,
            Ok(None) => return only(Finding::GroupMissing),
            Err(error) => return only(unasked(Question::Group, &error)),
        };
        let template = self.template(&place, &group, &mut notes).await;
        let types = self
            .types(&place, &group, template.as_ref(), &mut notes)
            .await;
        let spot = group::may_be_spot(&group, template.as_ref());
        group::judge(&self.owner, &group, ask, spot, &mut notes.findings);
        let (asked, access, quotas) = join!(
            asked::judge(&self.api, &place, &group, ask),
            access::judge(&self.api, &place, &group, ask, template.as_ref()),
            quota::judge(&self.api, &place, &group, ask, &types, spot),
        );
        for part in [asked, access, quotas] {
            notes.findings.extend(part.findings);
            notes.doubts.extend(part.doubts);
        }
        Survey {
            standing: self.standing(&group),
            sizes: Some(Sizes {
                min: group.min,
                max: group.max,
                desired: group.desired,
                running: group.live_count(),
            }),
            types: types.into_iter().map(|t| t.name).collect(),
            findings: notes.findings,
            doubts: notes.doubts,
        }
    }

    fn standing(&self, group: &Group) -> Standing {
        let tag = group
            .tags
            .get(OWNER_TAG)
            .map(|v| v.trim())
            .unwrap_or_default();
        match self.owner.judge(&group.tags) {
            Ok(Claim::Ours) => Standing::Ours,
            Ok(Claim::Open) if tag == super::UNCLAIMED => Standing::Unclaimed,
            // Of an earlier opening of this store.
            Ok(Claim::Open) => Standing::Ours,
            Err(_) if tag.is_empty() => Standing::NotOffered,
            Err(_) => Standing::Others,
        }
    }

    /// What the template says; findings where it is missing or EC2 would not take it.
    async fn template(
        &self,
        place: &Region,
        group: &Group,
        notes: &mut Notes,
    ) -> Option<TemplateFacts> {
        let named = group::template_of(group)?;
        let label = group::label(named);
        if named.version.is_none() {
            let template = label.clone();
            notes.findings.push(Finding::VersionUnnamed { template });
        }
        let answer = self.api.describe_template(place, named).await;
        let missing = match answer {
            Ok(Some(facts)) => return Some(facts),
            Ok(None) => true,
            Err(ref error) => matches!(error.kind, FailureKind::Config | FailureKind::Gone),
        };
        if missing {
            notes.findings.push(Finding::VersionMissing {
                template: label,
                version: named
                    .version
                    .clone()
                    .unwrap_or_else(|| "$Default".to_owned()),
            });
        } else {
            notes.answer(Question::Template, answer);
        }
        None
    }

    /// Facts of the types that the group launches.
    async fn types(
        &self,
        place: &Region,
        group: &Group,
        template: Option<&TemplateFacts>,
        notes: &mut Notes,
    ) -> Vec<drover_aws::InstanceTypeFacts> {
        let names = group::types_of(group, template);
        if names.is_empty() {
            return Vec::new();
        }
        if let Ok(found) = self.api.describe_instance_types(place, &names).await {
            return found.into_values().collect();
        }
        // One that the region does not know spoils the answer for all: each for itself.
        let mut found = Vec::new();
        for name in names {
            let one = self
                .api
                .describe_instance_types(place, std::slice::from_ref(&name))
                .await;
            match one {
                Ok(facts) if facts.contains_key(&name) => found.extend(facts.into_values()),
                Ok(_) => notes.findings.push(Finding::UnknownType {
                    instance_type: name,
                    why: "AWS leaves it out of its answer".to_owned(),
                }),
                Err(error) if error.kind == FailureKind::Config => {
                    notes.findings.push(Finding::UnknownType {
                        instance_type: name,
                        why: error.message,
                    });
                }
                Err(error) => {
                    notes.findings.push(unasked(Question::Types, &error));
                    break;
                }
            }
        }
        found
    }
}

/// Nothing else can be said.
fn only(finding: Finding) -> Survey {
    Survey {
        findings: vec![finding],
        ..Survey::default()
    }
}

/// Whether a template's market is spot.
fn is_spot(template: Option<&TemplateFacts>) -> bool {
    template.is_some_and(|t| t.market == Market::Spot)
}
