//! What IAM says that somebody may do.
//!
//! Called by `survey` only. The answer leaves out organisation policies: an allowed action may still be denied.

use std::collections::BTreeMap;

use aws_sdk_iam::types::{
    ContextEntry, ContextKeyTypeEnum, PolicyEvaluationDecisionType as Decision,
};

use crate::sdk::SdkAws;
use crate::sdk::turn::{Turn, next};
use crate::{AwsError, Call, Permission, PolicyQuestion, Region};

pub(super) async fn simulate(
    aws: &SdkAws,
    region: &Region,
    caller: &str,
    question: &PolicyQuestion,
) -> Result<BTreeMap<String, Permission>, AwsError> {
    // One turn for all: what follows the first question is paid for like it.
    let mut turn = aws.turn(region, Call::SimulatePrincipalPolicy);
    let Some(assumed) = AssumedRole::parse(caller) else {
        return ask(aws, &mut turn, caller, question).await;
    };
    // A session is no principal that can be simulated: its role is. The session's ARN leaves out the role's path.
    match ask(aws, &mut turn, &assumed.role_arn(), question).await {
        Err(e) if e.code.as_deref() == Some("NoSuchEntity") => {
            let arn = role_arn(aws, &turn, &assumed.role).await?;
            ask(aws, &mut turn, &arn, question).await
        }
        done => done,
    }
}

async fn ask(
    aws: &SdkAws,
    turn: &mut Turn<'_>,
    principal: &str,
    question: &PolicyQuestion,
) -> Result<BTreeMap<String, Permission>, AwsError> {
    let clients = aws.clients(turn.region).await;
    let request = clients
        .iam
        .simulate_principal_policy()
        .policy_source_arn(principal)
        .set_action_names(Some(question.actions.clone()))
        .set_resource_arns(Some(question.resources.clone()).filter(|r| !r.is_empty()))
        .set_context_entries(Some(context(question)).filter(|c| !c.is_empty()));
    let mut found = BTreeMap::new();
    let mut marker = None;
    loop {
        let page = turn
            .read(|| request.clone().set_marker(marker.clone()).send())
            .await?;
        for result in page.evaluation_results.unwrap_or_default() {
            let permission = match result.eval_decision {
                Decision::Allowed => Permission::Allowed,
                Decision::ExplicitDeny => Permission::Denied,
                _ => Permission::NotGranted,
            };
            found.insert(result.eval_action_name, permission);
        }
        marker = next(page.marker.filter(|_| page.is_truncated), marker.as_ref());
        if marker.is_none() {
            return Ok(found);
        }
    }
}

fn context(question: &PolicyQuestion) -> Vec<ContextEntry> {
    let entry = |(key, value): (&String, &String)| {
        let kind = if key == "aws:TagKeys" {
            ContextKeyTypeEnum::StringList
        } else {
            ContextKeyTypeEnum::String
        };
        ContextEntry::builder()
            .context_key_name(key)
            .context_key_values(value)
            .context_key_type(kind)
            .build()
    };
    question.context.iter().map(entry).collect()
}

/// The role's ARN with its path.
async fn role_arn(aws: &SdkAws, asked: &Turn<'_>, name: &str) -> Result<String, AwsError> {
    let clients = aws.clients(asked.region).await;
    let request = clients.iam.get_role().role_name(name);
    let mut turn = aws.turn(asked.region, Call::GetRole);
    // Not the first request of what was asked: it pays for itself.
    turn.sent = asked.sent;
    let reply = turn.read(|| request.clone().send()).await?;
    let role = reply
        .role
        .ok_or_else(|| turn.lacks("an answer without the role"))?;
    Ok(role.arn)
}

/// `arn:aws:sts::123456789012:assumed-role/NAME/SESSION`.
#[derive(Debug, PartialEq, Eq)]
struct AssumedRole {
    partition: String,
    account: String,
    role: String,
}

impl AssumedRole {
    fn parse(arn: &str) -> Option<Self> {
        let parts: Vec<&str> = arn.splitn(6, ':').collect();
        let ["arn", partition, "sts", _, account, resource] = parts[..] else {
            return None;
        };
        let role = resource.strip_prefix("assumed-role/")?.split('/').next()?;
        Some(Self {
            partition: partition.to_owned(),
            account: account.to_owned(),
            role: role.to_owned(),
        })
    }

    fn role_arn(&self) -> String {
        format!(
            "arn:{}:iam::{}:role/{}",
            self.partition, self.account, self.role
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_led_back_to_its_role() {
        let role = |arn| AssumedRole::parse(arn).map(|a| a.role_arn());
        assert_eq!(
            role("arn:aws:sts::123456789012:assumed-role/Fleet/i-0abc").as_deref(),
            Some("arn:aws:iam::123456789012:role/Fleet")
        );
        assert_eq!(
            role("arn:aws-cn:sts::123456789012:assumed-role/Fleet/x:y").as_deref(),
            Some("arn:aws-cn:iam::123456789012:role/Fleet")
        );
        assert_eq!(role("arn:aws:iam::123456789012:user/ann"), None);
        assert_eq!(role("arn:aws:sts::123456789012:federated-user/ann"), None);
    }
}
