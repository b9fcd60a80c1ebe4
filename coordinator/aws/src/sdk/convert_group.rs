//! Auto Scaling groups: from the SDK's types to ours.
//!
//! Called by `read`. A group without its sizes is refused by the name of the field: to take a missing maximum
//! for zero would stop a pool, to take a missing desired for zero would ask twice.

use aws_sdk_autoscaling::types as sdk;

use super::convert::BadField;
use crate::{
    Group, GroupName, GroupTemplate, Member, MemberState, MixedPolicy, Override, TemplateRef,
};

pub(super) fn group(raw: sdk::AutoScalingGroup) -> Result<Group, BadField> {
    let name = raw.auto_scaling_group_name.unwrap_or_default();
    let size = |field: &'static str, value: Option<i32>| {
        value
            .and_then(|v| u32::try_from(v).ok())
            .ok_or_else(|| BadField {
                what: format!("group {name:?}"),
                field,
            })
    };
    let (min, max) = (
        size("MinSize", raw.min_size)?,
        size("MaxSize", raw.max_size)?,
    );
    let desired = size("DesiredCapacity", raw.desired_capacity)?;
    if name.is_empty() {
        return Err(BadField {
            what: "a group".to_owned(),
            field: "AutoScalingGroupName",
        });
    }
    let members = raw
        .instances
        .unwrap_or_default()
        .into_iter()
        .map(|m| member(&name, m))
        .collect::<Result<_, _>>()?;
    let template = match (
        raw.mixed_instances_policy,
        raw.launch_template,
        raw.launch_configuration_name,
    ) {
        (Some(policy), _, _) => GroupTemplate::Mixed(mixed(policy)),
        (None, Some(template), _) => GroupTemplate::Template(template_ref(template)),
        (None, None, Some(configuration)) => GroupTemplate::Configuration(configuration),
        (None, None, None) => GroupTemplate::Missing,
    };
    Ok(Group {
        min,
        max,
        desired,
        zones: raw.availability_zones.unwrap_or_default(),
        subnets: raw
            .vpc_zone_identifier
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|s| !s.is_empty())
            .map(str::to_owned)
            .collect(),
        template,
        tags: raw
            .tags
            .unwrap_or_default()
            .into_iter()
            .filter_map(|t| Some((t.key?, t.value.unwrap_or_default())))
            .collect(),
        suspended: raw
            .suspended_processes
            .unwrap_or_default()
            .into_iter()
            .filter_map(|p| Some((p.process_name?, p.suspension_reason.unwrap_or_default())))
            .collect(),
        protects_new: raw.new_instances_protected_from_scale_in.unwrap_or(false),
        status: raw.status,
        health_check: raw.health_check_type,
        health_check_grace_seconds: raw
            .health_check_grace_period
            .and_then(|s| u32::try_from(s).ok()),
        max_lifetime_seconds: raw
            .max_instance_lifetime
            .and_then(|s| u32::try_from(s).ok())
            .filter(|s| *s > 0),
        capacity_rebalance: raw.capacity_rebalance,
        warm_pool_size: raw
            .warm_pool_size
            .filter(|_| raw.warm_pool_configuration.is_some())
            .and_then(|n| u32::try_from(n).ok()),
        members,
        name: GroupName::new(name),
    })
}

pub(super) fn member(group: &str, raw: sdk::Instance) -> Result<Member, BadField> {
    let bad = |field| BadField {
        what: format!("a member of group {group:?}"),
        field,
    };
    let state = raw.lifecycle_state.ok_or_else(|| bad("LifecycleState"))?;
    Ok(Member {
        id: raw
            .instance_id
            .filter(|i| !i.is_empty())
            .ok_or_else(|| bad("InstanceId"))?
            .into(),
        instance_type: raw.instance_type,
        zone: raw.availability_zone,
        state: MemberState::parse(state.as_str()),
        healthy: raw.health_status.map(|h| h.eq_ignore_ascii_case("healthy")),
        // Absent counts as unprotected: then protection is set, which harms nothing.
        protected: raw.protected_from_scale_in.unwrap_or(false),
        weight: raw.weighted_capacity,
        template: raw.launch_template.map(template_ref),
    })
}

fn mixed(raw: sdk::MixedInstancesPolicy) -> MixedPolicy {
    let (template, overrides) = raw
        .launch_template
        .map(|t| {
            (
                t.launch_template_specification,
                t.overrides.unwrap_or_default(),
            )
        })
        .unwrap_or_default();
    let spread = raw.instances_distribution;
    let count = |value: Option<i32>| value.and_then(|v| u32::try_from(v).ok());
    MixedPolicy {
        template: template.map(template_ref),
        overrides: overrides
            .into_iter()
            .map(|o| Override {
                instance_type: o.instance_type,
                weight: o.weighted_capacity,
                by_requirements: o.instance_requirements.is_some(),
            })
            .collect(),
        on_demand_base: count(spread.as_ref().and_then(|s| s.on_demand_base_capacity)),
        on_demand_percent_above_base: count(
            spread.and_then(|s| s.on_demand_percentage_above_base_capacity),
        ),
    }
}

fn template_ref(raw: sdk::LaunchTemplateSpecification) -> TemplateRef {
    TemplateRef {
        id: raw.launch_template_id,
        name: raw.launch_template_name,
        version: raw.version,
    }
}
