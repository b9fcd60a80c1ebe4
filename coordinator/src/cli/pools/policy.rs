//! `drover pools policy`: the least IAM policy for a mode. Called by `cli/pools`; asks nobody. The permissions are those
//! of the calls themselves (`drover_aws::grants`); here they become a policy.

use super::Mode;
use crate::cli::exit::CliError;
use crate::cli::output::{json, write_out};
use drover_aws::{Grant, Narrow, Need, grants};
use serde_json::{Map, Value, json as value};
use std::collections::BTreeMap;

/// Tags that Drover writes.
const TAGS: [&str; 3] = ["drover:ask", "drover:owner", "drover:withdraw"];
const OWNER_TAG: &str = "aws:ResourceTag/drover:owner";

/// The least IAM policy for a mode.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What Drover may do to the pools: `full` may end drained nodes, `grow` may not, `observe` only looks.
    #[arg(long, value_enum, default_value = "full")]
    mode: Mode,
    /// Only these groups; without one any that carries the tag `drover:owner`. May be repeated.
    #[arg(long, value_name = "NAME")]
    group: Vec<String>,
    /// Only these regions. May be repeated.
    #[arg(long, value_name = "REGION")]
    region: Vec<String>,
    /// Only this account, 12 digits.
    #[arg(long, value_name = "ID", value_parser = account)]
    account: Option<String>,
    /// Queue of notices (its ARN). May be repeated.
    #[arg(long, value_name = "ARN")]
    queue: Vec<String>,
    /// Role of another account that is assumed (its ARN). May be repeated; that role needs a policy of its own.
    #[arg(long, value_name = "ARN")]
    role_arn: Vec<String>,
    /// With what `pools doctor` and `pools adopt` read beside it.
    #[arg(long)]
    doctor: bool,
    /// With what `pools doctor --fix` changes.
    #[arg(long)]
    fix: bool,
}

fn account(text: &str) -> Result<String, String> {
    if text.len() == 12 && text.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} is no account: write its 12 digits"))
}

/// Prints it.
///
/// # Errors
/// stdout cannot be written.
pub fn run(args: &Args) -> Result<(), CliError> {
    write_out(json(&policy(args))?.as_bytes())
}

impl Args {
    fn wants(&self, need: Need) -> bool {
        match need {
            Need::Observe => true,
            Need::Grow => !matches!(self.mode, Mode::Observe),
            Need::Full => matches!(self.mode, Mode::Full),
            Need::Doctor => self.doctor || self.fix,
            Need::Mend => self.fix,
            Need::Queue => !self.queue.is_empty(),
        }
    }

    fn partition(&self) -> &'static str {
        match self.region.first().map(String::as_str) {
            Some(region) if region.starts_with("cn-") => "aws-cn",
            Some(region) if region.starts_with("us-gov-") => "aws-us-gov",
            _ => "aws",
        }
    }

    fn account(&self) -> &str {
        self.account.as_deref().unwrap_or("*")
    }

    /// ARNs of the groups. Their own part of it is made by AWS.
    fn groups(&self) -> Vec<String> {
        let (partition, account) = (self.partition(), self.account());
        let or_any = |names: &[String]| -> Vec<String> {
            if names.is_empty() {
                vec!["*".to_owned()]
            } else {
                names.to_vec()
            }
        };
        let mut arns = Vec::new();
        for region in or_any(&self.region) {
            for group in or_any(&self.group) {
                arns.push(format!(
                    "arn:{partition}:autoscaling:{region}:{account}:autoScalingGroup:*:autoScalingGroupName/{group}"
                ));
            }
        }
        arns
    }

    fn principals(&self) -> Vec<String> {
        let (partition, account) = (self.partition(), self.account());
        ["role", "user"]
            .map(|kind| format!("arn:{partition}:iam::{account}:{kind}/*"))
            .to_vec()
    }
}

/// The policy.
fn policy(args: &Args) -> Value {
    let mut actions: BTreeMap<Narrow, Vec<&'static str>> = BTreeMap::new();
    for Grant { action, narrow, .. } in grants().into_iter().filter(|g| args.wants(g.need)) {
        actions.entry(narrow).or_default().push(action);
    }
    let mut statements: Vec<Value> = actions
        .into_iter()
        .map(|(narrow, mut actions)| {
            actions.sort_unstable();
            actions.dedup();
            statement(args, narrow, &actions)
        })
        .collect();
    if !args.role_arn.is_empty() {
        statements.push(value!({
            "Sid": "AssumeRoles",
            "Effect": "Allow",
            "Action": ["sts:AssumeRole"],
            "Resource": args.role_arn,
        }));
    }
    value!({ "Version": "2012-10-17", "Statement": statements })
}

fn statement(args: &Args, narrow: Narrow, actions: &[&str]) -> Value {
    let mut condition = Map::new();
    let owned = value!({ OWNER_TAG: "false" });
    let (name, resource) = match narrow {
        Narrow::Region => {
            if !args.region.is_empty() {
                let here = value!({ "aws:RequestedRegion": args.region });
                condition.insert("StringEquals".to_owned(), here);
            }
            ("Region", vec!["*".to_owned()])
        }
        Narrow::Nothing => ("Account", vec!["*".to_owned()]),
        Narrow::Group => {
            condition.insert("Null".to_owned(), owned);
            ("Groups", args.groups())
        }
        Narrow::GroupTags => {
            condition.insert("Null".to_owned(), owned);
            let keys = value!({ "aws:TagKeys": TAGS });
            condition.insert("ForAllValues:StringEquals".to_owned(), keys);
            ("OwnTags", args.groups())
        }
        Narrow::Queue => ("Queues", args.queue.clone()),
        Narrow::Principal => ("WhoAsks", args.principals()),
    };
    let mut statement = value!({
        "Sid": name,
        "Effect": "Allow",
        "Action": actions,
        "Resource": resource,
    });
    if !condition.is_empty() {
        statement["Condition"] = Value::Object(condition);
    }
    statement
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use drover_aws::Call;
    use std::collections::BTreeSet;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn of(line: &str) -> Value {
        let words = ["policy"].into_iter().chain(line.split_whitespace());
        policy(&Line::try_parse_from(words).expect("a command line").args)
    }

    fn allowed(policy: &Value) -> BTreeSet<String> {
        let statements = policy["Statement"].as_array().expect("statements");
        let actions = statements
            .iter()
            .flat_map(|s| s["Action"].as_array().expect("actions"));
        actions
            .map(|a| a.as_str().expect("an action").to_owned())
            .collect()
    }

    /// Neither drifts from the other: every call is allowed in the modes that make it, and nothing is that none makes.
    #[test]
    fn a_policy_allows_just_the_calls_that_are_made() {
        for (mode, most) in [
            ("observe", Need::Observe),
            ("grow", Need::Grow),
            ("full", Need::Full),
        ] {
            let mut expect: BTreeSet<String> = Call::ALL
                .into_iter()
                .filter_map(Call::grant)
                .filter(|grant| grant.need <= most)
                .map(|grant| grant.action.to_owned())
                .collect();
            if most >= Need::Grow {
                // Asked by AWS in the caller's name.
                expect.insert("ec2:CreateFleet".to_owned());
            }
            assert_eq!(allowed(&of(&format!("--mode {mode}"))), expect, "{mode}");
        }
        let all = "--doctor --fix --queue arn:aws:sqs:us-east-1:123456789012:notices";
        let everything: BTreeSet<String> = grants().iter().map(|g| g.action.to_owned()).collect();
        assert_eq!(allowed(&of(all)), everything);
        assert!(
            !everything.contains("ec2:RunInstances"),
            "it would launch past every group"
        );
    }

    #[test]
    fn observe_only_looks_and_grow_ends_nothing() {
        for action in allowed(&of("--mode observe")) {
            let verb = action.split(':').nth(1).expect("a verb");
            assert!(verb.starts_with("Describe"), "{action}");
        }
        let grow = allowed(&of("--mode grow"));
        assert!(
            !grow.iter().any(|action| action.contains("Terminate")),
            "{grow:?}"
        );
    }

    #[test]
    fn what_aws_can_narrow_is_narrowed() {
        let policy = of(
            "--mode full --group p5 --group g6 --region us-east-1 --region us-west-2 --account 123456789012 \
             --role-arn arn:aws:iam::210987654321:role/drover",
        );
        let by_name = |name: &str| {
            let all = policy["Statement"].as_array().expect("statements");
            all.iter()
                .find(|s| s["Sid"] == name)
                .cloned()
                .unwrap_or_else(|| panic!("no {name}: {policy}"))
        };
        let groups = by_name("Groups");
        assert_eq!(groups["Resource"].as_array().map(Vec::len), Some(4));
        assert_eq!(
            groups["Resource"][0],
            "arn:aws:autoscaling:us-east-1:123456789012:autoScalingGroup:*:autoScalingGroupName/p5"
        );
        assert_eq!(
            groups["Condition"]["Null"]["aws:ResourceTag/drover:owner"],
            "false"
        );
        let tags = by_name("OwnTags");
        assert_eq!(tags["Action"], value!(["autoscaling:CreateOrUpdateTags"]));
        assert_eq!(
            tags["Condition"]["ForAllValues:StringEquals"]["aws:TagKeys"],
            value!(TAGS)
        );
        let region = by_name("Region");
        assert_eq!(
            region["Condition"]["StringEquals"]["aws:RequestedRegion"],
            value!(["us-east-1", "us-west-2"])
        );
        assert_eq!(
            by_name("AssumeRoles")["Resource"][0],
            "arn:aws:iam::210987654321:role/drover"
        );
        for line in ["--region cn-north-1", "--region us-gov-west-1"] {
            let arn = of(line)["Statement"].to_string();
            let partition = if line.contains("cn-") {
                "arn:aws-cn:"
            } else {
                "arn:aws-us-gov:"
            };
            assert!(arn.contains(partition), "{arn}");
        }
        assert!(Line::try_parse_from(["policy", "--account", "12"]).is_err());
    }

    /// The tags of a policy are those that the adapter writes; the layers keep the two from one constant.
    #[test]
    fn the_tags_are_those_that_are_written() {
        let adapter = [
            include_str!("../../adapters/actuate/asg/owner.rs"),
            include_str!("../../adapters/actuate/asg/journal.rs"),
            include_str!("../../adapters/actuate/asg/withdraw.rs"),
        ]
        .concat();
        for tag in TAGS {
            assert!(
                adapter.contains(&format!("\"{tag}\"")),
                "{tag} is written by nobody"
            );
        }
    }
}
