//! The calls that only read, with their paging.
//!
//! Called by `sdk` only. What may pass by itself is asked again.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::{Filter, InstanceType};

use super::turn::each_page;
use super::{SdkAws, convert, convert_ec2, convert_group};
use crate::{
    Activities, AwsError, Call, FailureKind, Group, GroupName, Instance, InstanceId,
    InstanceTypeFacts, Region, TemplateFacts, TemplateRef,
};

/// Records a page; AWS's default is 50, its maximum 100.
const PAGE: i32 = 100;
/// Names a call; AWS's limit for the names of one DescribeAutoScalingGroups.
const NAMES_AT_ONCE: usize = 100;
/// Pages of activities read for one group in one call: 2,000 activities.
const MAX_ACTIVITY_PAGES: usize = 20;
/// Values of one EC2 filter (AWS's limit is 200).
const FILTER_VALUES: usize = 200;
/// Types of one DescribeInstanceTypes call (AWS's limit).
const TYPES_AT_ONCE: usize = 100;

pub(super) async fn groups(
    aws: &SdkAws,
    region: &Region,
    names: &[GroupName],
) -> Result<BTreeMap<GroupName, Group>, AwsError> {
    let clients = aws.clients(region).await;
    let mut turn = aws.turn(region, Call::DescribeAutoScalingGroups);
    let mut found = BTreeMap::new();
    // An empty list of names would describe every group of the region.
    for some in names.chunks(NAMES_AT_ONCE) {
        let request = clients
            .autoscaling
            .describe_auto_scaling_groups()
            .set_auto_scaling_group_names(Some(
                some.iter().map(|n| n.as_str().to_owned()).collect(),
            ))
            .max_records(PAGE);
        each_page!(turn, request, page => {
            for raw in page
                .auto_scaling_groups
                .unwrap_or_default()
            {
                let group = convert_group::group(raw)
                    .map_err(|e| turn.lacks(e))?;
                found.insert(group.name.clone(), group);
            }
        });
    }
    Ok(found)
}

pub(super) async fn activities(
    aws: &SdkAws,
    region: &Region,
    group: &GroupName,
    since_unix_ms: i64,
) -> Result<Activities, AwsError> {
    let clients = aws.clients(region).await;
    let mut turn = aws.turn(region, Call::DescribeScalingActivities);
    let mut found = Activities {
        items: Vec::new(),
        complete: true,
    };
    let request = clients
        .autoscaling
        .describe_scaling_activities()
        .auto_scaling_group_name(group.as_str())
        .max_records(PAGE);
    let mut read = 0;
    each_page!(turn, request, page => {
        let more = page.next_token.is_some();
        for raw in page.activities.unwrap_or_default() {
            let activity = convert::activity(raw);
            if activity
                .started_unix_ms
                .is_some_and(|at| at < since_unix_ms)
            {
                return Ok(found);
            }
            found.items.push(activity);
        }
        read += 1;
        if more && read == MAX_ACTIVITY_PAGES {
            found.complete = false;
            break;
        }
    });
    Ok(found)
}

pub(super) async fn instances(
    aws: &SdkAws,
    region: &Region,
    instances: &[InstanceId],
) -> Result<BTreeMap<InstanceId, Instance>, AwsError> {
    let clients = aws.clients(region).await;
    let mut turn = aws.turn(region, Call::DescribeInstances);
    let mut found = BTreeMap::new();
    // A filter and not the list of ids: one id that AWS does not know yet would fail the whole call.
    for some in instances.chunks(FILTER_VALUES) {
        let filter = Filter::builder()
            .name("instance-id")
            .set_values(Some(some.iter().map(|i| i.as_str().to_owned()).collect()))
            .build();
        let request = clients
            .ec2
            .describe_instances()
            .filters(filter)
            .max_results(1000);
        each_page!(turn, request, page => {
            for reservation in page
                .reservations
                .unwrap_or_default()
            {
                for raw in reservation.instances.unwrap_or_default() {
                    let instance = convert_ec2::instance(raw)
                        .map_err(|e| turn.lacks(e))?;
                    found.insert(instance.id.clone(), instance);
                }
            }
        });
    }
    Ok(found)
}

pub(super) async fn instance_types(
    aws: &SdkAws,
    region: &Region,
    types: &[String],
) -> Result<BTreeMap<String, InstanceTypeFacts>, AwsError> {
    let clients = aws.clients(region).await;
    let mut turn = aws.turn(region, Call::DescribeInstanceTypes);
    let mut found = BTreeMap::new();
    for some in types.chunks(TYPES_AT_ONCE) {
        let request = clients
            .ec2
            .describe_instance_types()
            .set_instance_types(Some(
                some.iter()
                    .map(|t| InstanceType::from(t.as_str()))
                    .collect(),
            ));
        each_page!(turn, request, page => {
            for raw in page
                .instance_types
                .unwrap_or_default()
            {
                let facts = convert_ec2::instance_type(raw)
                    .map_err(|e| turn.lacks(e))?;
                found.insert(facts.name.clone(), facts);
            }
        });
    }
    Ok(found)
}

pub(super) async fn template(
    aws: &SdkAws,
    region: &Region,
    template: &TemplateRef,
) -> Result<Option<TemplateFacts>, AwsError> {
    let call = Call::DescribeLaunchTemplateVersions;
    let clients = aws.clients(region).await;
    let request = clients.ec2.describe_launch_template_versions().versions(
        template
            .version
            .clone()
            .unwrap_or_else(|| "$Default".to_owned()),
    );
    // AWS takes the id or the name, not both.
    let request = match (&template.id, &template.name) {
        (Some(id), _) => request.launch_template_id(id),
        (None, Some(name)) => request.launch_template_name(name),
        (None, None) => {
            let text = "the group names a launch template without id and name".to_owned();
            return Err(AwsError::unreported(
                call,
                region,
                FailureKind::Config,
                text,
                false,
            ));
        }
    };
    let mut turn = aws.turn(region, call);
    let reply = turn.read(|| request.clone().send()).await?;
    Ok(reply
        .launch_template_versions
        .unwrap_or_default()
        .into_iter()
        .next()
        .map(convert_ec2::template))
}
