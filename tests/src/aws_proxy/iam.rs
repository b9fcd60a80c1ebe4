//! Permissions: what the simulator says, what a refused call says, EC2's dry run.
//!
//! Called by the server, before a call and for the calls that ask. The rows are in the scenario.

use super::query::Query;
use super::reply::Reply;
use super::scenario::{Decision, PermissionRow, concerns};
use super::server::Proxy;
use super::xml::Element;

const CALLER: &str = "arn:aws:iam::123456789012:user/proxy";

fn names(row: &PermissionRow, action: &str) -> bool {
    match row.action.strip_suffix('*') {
        Some(begin) => action.starts_with(begin),
        None => row.action == action,
    }
}

fn decide(proxy: &Proxy, region: Option<&str>, action: &str) -> Option<PermissionRow> {
    let rows = proxy.scenario().permissions.clone();
    rows.into_iter()
        .filter(|r| names(r, action))
        .find(|r| match region {
            Some(region) => concerns(r.region.as_ref(), region),
            None => r.region.is_none(),
        })
}

/// The refusal of a call that the caller may not make.
pub(super) fn refuse(proxy: &Proxy, query: &Query) -> Option<Reply> {
    let action = format!("{}:{}", query.service, query.action);
    let row = decide(proxy, Some(&query.region), &action)?;
    let why = match row.decision {
        Decision::Allowed => return None,
        Decision::ExplicitDeny => "with an explicit deny in a service control policy".to_owned(),
        Decision::ImplicitDeny => {
            format!("because no identity-based policy allows the {action} action")
        }
    };
    let text = format!("User: {CALLER} is not authorized to perform: {action} {why}");
    Some(if query.service == "ec2" {
        let text = format!("You are not authorized to perform this operation. {text}");
        Reply::error(query, 403, "UnauthorizedOperation", &text)
    } else if query.json.is_some() {
        Reply::error(query, 400, "AccessDeniedException", &text)
    } else {
        Reply::error(query, 403, "AccessDenied", &text)
    })
}

/// Answers SimulatePrincipalPolicy.
pub(super) fn simulate(proxy: &Proxy, query: &Query) -> Reply {
    let actions = query.list("ActionNames");
    if query.get("PolicySourceArn").is_empty() || actions.is_empty() {
        let text = "Invalid ARN or no action names.";
        return Reply::error(query, 400, "InvalidInput", text);
    }
    let results = actions
        .iter()
        .map(|action| {
            let row = decide(proxy, None, action);
            let decision = row.map_or(Decision::Allowed, |r| r.simulated.unwrap_or(r.decision));
            let word = match decision {
                Decision::Allowed => "allowed",
                Decision::ExplicitDeny => "explicitDeny",
                Decision::ImplicitDeny => "implicitDeny",
            };
            Element::node(
                "member",
                vec![
                    Element::leaf("EvalActionName", action),
                    Element::leaf("EvalResourceName", "*"),
                    Element::leaf("EvalDecision", word),
                    Element::node("MatchedStatements", vec![]),
                    Element::node("MissingContextValues", vec![]),
                ],
            )
        })
        .collect();
    Reply::iam(
        "SimulatePrincipalPolicy",
        vec![
            Element::node("EvaluationResults", results),
            Element::leaf("IsTruncated", "false"),
        ],
    )
}

/// Answers a dry run of RunInstances: what its launch template lacks is said before the permission is.
pub(super) async fn dry_run(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let mut form = Vec::new();
    for key in ["LaunchTemplateId", "LaunchTemplateName"] {
        let value = query.get(&format!("LaunchTemplate.{key}"));
        if !value.is_empty() {
            form.push((key, value));
        }
    }
    if form.is_empty() {
        return proxy.upstream().forward(query).await;
    }
    let version = query.get("LaunchTemplate.Version");
    if !version.is_empty() {
        form.push(("LaunchTemplateVersion.1", version));
    }
    let upstream = proxy.upstream();
    let reply = upstream
        .ask_ec2(&query.region, "DescribeLaunchTemplateVersions", &form)
        .await?;
    let Some(tree) = reply.tree()? else {
        return Ok(reply);
    };
    let versions = tree.child("launchTemplateVersionSet");
    let Some(found) = versions.and_then(|s| s.children.first()) else {
        let text =
            format!("Could not find the specified version {version} for the launch template.");
        return Ok(Reply::error(
            query,
            400,
            "InvalidLaunchTemplateId.VersionNotFound",
            &text,
        ));
    };
    let data = found.child("launchTemplateData");
    let image = data.map_or("", |d| d.text_of("imageId"));
    if image.is_empty() && query.get("ImageId").is_empty() {
        let text = "The request must contain the parameter ImageId";
        return Ok(Reply::error(query, 400, "MissingParameter", text));
    }
    let text = "Request would have succeeded, but DryRun flag is set.";
    Ok(Reply::error(query, 412, "DryRunOperation", text))
}
