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
    #[arg(long, value_name = "NAME", value_parser = group)]
    group: Vec<String>,
    /// Only these regions, all of one partition of AWS. May be repeated.
    #[arg(long, value_name = "REGION", value_parser = region)]
    region: Vec<String>,
    /// Only this account, 12 digits.
    #[arg(long, value_name = "ID", value_parser = account)]
    account: Option<String>,
    /// Queue of notices (its ARN). May be repeated.
    #[arg(long, value_name = "ARN", value_parser = queue)]
    queue: Vec<String>,
    /// Role of another account that is assumed (its ARN). May be repeated; that role needs a policy of its own.
    #[arg(long, value_name = "ARN", value_parser = role)]
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

/// A group's name. What IAM reads as a pattern would allow other groups too.
fn group(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err(
            "is empty: name a group, or leave --group out for every group with the tag".to_owned(),
        );
    }
    match text.chars().find(|c| "*?$:".contains(*c) || c.is_control()) {
        Some(odd) => Err(format!(
            "{text:?} is no name of a group here: {odd:?} is not allowed"
        )),
        None => Ok(text.to_owned()),
    }
}

/// A region's name: its form, since new ones come.
fn region(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('-').collect();
    let word = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase());
    match parts.split_last() {
        Some((number, words))
            if words.len() >= 2
                && words.iter().all(word)
                && (1..=2).contains(&number.len())
                && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            Ok(text.to_owned())
        }
        _ => Err(format!("{text:?} is no region: write one like us-east-1")),
    }
}

/// The ARN of a queue of SQS.
fn queue(text: &str) -> Result<String, String> {
    match text.split(':').collect::<Vec<_>>().as_slice() {
        ["arn", partition, "sqs", of, id, name]
            if partition.starts_with("aws")
                && region(of).is_ok()
                && account(id).is_ok()
                && !name.is_empty() =>
        {
            Ok(text.to_owned())
        }
        _ => Err(format!(
            "{text:?} is no ARN of a queue: write arn:aws:sqs:us-east-1:123456789012:NAME"
        )),
    }
}

/// The ARN of a role.
fn role(text: &str) -> Result<String, String> {
    match text.splitn(6, ':').collect::<Vec<_>>().as_slice() {
        ["arn", partition, "iam", "", id, name]
            if partition.starts_with("aws")
                && account(id).is_ok()
                && name
                    .strip_prefix("role/")
                    .is_some_and(|name| !name.is_empty()) =>
        {
            Ok(text.to_owned())
        }
        _ => Err(format!(
            "{text:?} is no ARN of a role: write arn:aws:iam::123456789012:role/NAME"
        )),
    }
}

/// The partition of AWS that a region lies in.
fn partition_of(region: &str) -> &'static str {
    [
        ("cn-", "aws-cn"),
        ("us-gov-", "aws-us-gov"),
        ("us-iso-", "aws-iso"),
        ("us-isob-", "aws-iso-b"),
        ("eu-isoe-", "aws-iso-e"),
        ("us-isof-", "aws-iso-f"),
        ("eusc-", "aws-eusc"),
    ]
    .into_iter()
    .find(|(area, _)| region.starts_with(area))
    .map_or("aws", |(_, partition)| partition)
}

/// Prints it.
///
/// # Errors
/// What is named lies in several partitions of AWS, or stdout cannot be written.
pub fn run(args: &Args) -> Result<(), CliError> {
    args.one_partition().map_err(CliError::Usage)?;
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

    /// The partitions that regions, queues and roles name, each with what names it first.
    fn partitions(&self) -> BTreeMap<&str, &str> {
        let regions = self.region.iter().map(|name| (partition_of(name), name));
        let arns = self.queue.iter().chain(&self.role_arn);
        let arns = arns.filter_map(|arn| Some((arn.split(':').nth(1)?, arn)));
        let mut all: BTreeMap<&str, &str> = BTreeMap::new();
        for (partition, by) in regions.chain(arns) {
            all.entry(partition).or_insert(by);
        }
        all
    }

    /// No role and no policy reaches from one partition into another.
    fn one_partition(&self) -> Result<(), String> {
        let all = self.partitions();
        if all.len() < 2 {
            return Ok(());
        }
        let named = all
            .iter()
            .map(|(partition, by)| format!("{by} is in {partition}"));
        let named: Vec<String> = named.collect();
        Err(format!(
            "{}: one policy is for one partition of AWS; make one for each",
            named.join(", ")
        ))
    }

    fn partition(&self) -> &str {
        self.partitions().keys().next().copied().unwrap_or("aws")
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
    }

    #[test]
    fn what_is_no_name_is_refused_with_its_option_and_the_fix() {
        for (option, value, says) in [
            ("--account", "12", "12 digits"),
            ("--region", "moon", "us-east-1"),
            ("--region", "us-east-1a", "no region"),
            ("--region", "", "no region"),
            ("--queue", "foo", "arn:aws:sqs:"),
            ("--queue", "arn:aws:sqs:moon:123456789012:q", "arn:aws:sqs:"),
            ("--role-arn", "foo", "arn:aws:iam::"),
            (
                "--role-arn",
                "arn:aws:iam::123456789012:user/ada",
                "no ARN of a role",
            ),
            ("--group", "", "leave --group out"),
            ("--group", "*", "not allowed"),
        ] {
            let read = Line::try_parse_from(["policy", option, value]);
            let said = read
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            assert!(
                said.contains(option) && said.contains(says),
                "{option} {value}: {said}"
            );
        }
    }

    #[test]
    fn a_policy_is_for_one_partition() {
        let read = |line: &str| {
            let words = ["policy"].into_iter().chain(line.split_whitespace());
            Line::try_parse_from(words).expect("a command line").args
        };
        for line in [
            "--region us-gov-west-1 --region us-east-1",
            "--region us-gov-west-1 --queue arn:aws:sqs:us-east-1:123456789012:q",
            "--region cn-north-1 --role-arn arn:aws:iam::123456789012:role/drover",
        ] {
            let said = read(line).one_partition().expect_err(line);
            assert!(said.contains("one partition"), "{said}");
        }
        let args = read("--role-arn arn:aws-cn:iam::123456789012:role/drover");
        assert_eq!((args.one_partition(), args.partition()), (Ok(()), "aws-cn"));
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
