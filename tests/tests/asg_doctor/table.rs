//! The groups: each as it is set up, what is found of it, and what mends it.
//!
//! Used by `ways` alone. A kind of finding without a group here fails a test there.

use super::ways::{Step, Way, World, right, wrong};
use drover_tests::aws_proxy::{
    Deed, Effect, Fault, OverlayRow, QuotaRow, RefreshRow, Scenario, Timing,
};
use drover_tests::moto::Mixed;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// All of them.
pub(super) fn all() -> Vec<Way> {
    let parts = [
        right_ones(),
        around(),
        unasked(),
        templates(),
        guards(),
        own_ways(),
        owners(),
    ];
    parts.into_iter().flatten().collect()
}

/// DescribeAutoScalingGroups shows this of the group.
fn shown(scenario: &mut Scenario, group: &str, set: Value) {
    scenario.overlays.push(OverlayRow {
        action: "DescribeAutoScalingGroups".to_owned(),
        of: BTreeMap::from([("AutoScalingGroupName".to_owned(), group.to_owned())]),
        set: set.as_object().expect("an object").clone(),
        ..OverlayRow::default()
    });
}

/// A call that may not be made; of every group where none is named.
fn denied(scenario: &mut Scenario, action: &str, group: Option<&str>) {
    scenario.faults.push(Fault {
        action: Some(action.to_owned()),
        group: group.map(str::to_owned),
        effect: Effect::Error {
            status: 403,
            code: "AccessDenied".to_owned(),
            message: format!("is not authorized to perform: {action}"),
        },
        ..Fault::default()
    });
}

fn permission(scenario: &mut Scenario, row: Value) {
    let row = serde_json::from_value(row).expect("a row");
    scenario.permissions.push(row);
}

const POLICY: &[(&str, &str)] = &[
    ("PolicyName", "cpu"),
    ("PolicyType", "SimpleScaling"),
    ("AdjustmentType", "ChangeInCapacity"),
    ("ScalingAdjustment", "1"),
];
const NIGHT: &[(&str, &str)] = &[
    ("ScheduledActionName", "night"),
    ("Recurrence", "0 20 * * *"),
    ("MinSize", "0"),
    ("MaxSize", "1"),
    ("DesiredCapacity", "0"),
];

fn hook(
    transition: &'static str,
    default: &'static str,
    seconds: &'static str,
) -> [(&'static str, &'static str); 4] {
    [
        ("LifecycleHookName", "wait"),
        ("LifecycleTransition", transition),
        ("DefaultResult", default),
        ("HeartbeatTimeout", seconds),
    ]
}

const COMES: &str = "autoscaling:EC2_INSTANCE_LAUNCHING";
const GOES: &str = "autoscaling:EC2_INSTANCE_TERMINATING";

/// Groups that are right, also where they come near to being wrong.
fn right_ones() -> Vec<Way> {
    let mut off = POLICY.to_vec();
    off.push(("Enabled", "false"));
    vec![
        right("right"),
        right("policy-off").call("PutScalingPolicy", &off),
        right("hook-lets-go").call("PutLifecycleHook", &hook(COMES, "CONTINUE", "60")),
        right("hook-long").call("PutLifecycleHook", &hook(GOES, "ABANDON", "3600")),
        right("young").call("UpdateAutoScalingGroup", &[("HealthCheckGracePeriod", "0")]),
        right("hints")
            .tag(
                "k8s.io/cluster-autoscaler/node-template/label/team",
                "vision",
            )
            .tag("karpenter.sh/discovery", "lab"),
        right("refreshed").world(|s, _, group| refresh(s, group, "Successful")),
        right("sized-warm")
            .group(|g| g.max = 1)
            .call("PutWarmPool", &[("MaxGroupPreparedCapacity", "1")]),
    ]
}

fn refresh(scenario: &mut Scenario, group: &str, status: &str) {
    scenario.refreshes.push(RefreshRow {
        group: group.to_owned(),
        id: "r-1".to_owned(),
        status: status.to_owned(),
        percent: 40,
        ..RefreshRow::default()
    });
}

/// What is around the group.
fn around() -> Vec<Way> {
    vec![
        Way {
            region: "us-east-9",
            ..wrong("region", "must", "region").by("aws ec2 describe-regions")
        }
        .says("us-east-9"),
        wrong("nowhere", "must", "group_missing")
            .says("no group doc-nowhere")
            .by("describe-auto-scaling-groups"),
        wrong("going", "must", "group_going")
            .group(|g| g.desired = 1)
            .call("DeleteAutoScalingGroup", &[("ForceDelete", "true")])
            .world(|s, _, group| {
                s.timing.push(Timing {
                    group: Some(group.to_owned()),
                    terminating_ms: 3_600_000,
                    ..Timing::default()
                });
            })
            .says("Delete in progress"),
        wrong("blind", "note", "no_agents")
            .group(|g| g.desired = 2)
            .says("2 of 2 members"),
        wrong("quota", "should", "quota")
            .group(|g| g.instance_type = "p4d.24xlarge".to_owned())
            .world(|s, region, _| {
                s.quotas.push(QuotaRow {
                    region: Some(region.to_owned()),
                    code: "L-417A185B".to_owned(),
                    name: "Running On-Demand P instances".to_owned(),
                    value: 960.0,
                    ..QuotaRow::default()
                });
            })
            .says("20 p4d.24xlarge need 1920")
            .by("--quota-code L-417A185B --desired-value 1920"),
        wrong("not-granted", "should", "permissions")
            .world(|s, _, _| permission(s, json!({"action": "autoscaling:SetDesiredCapacity"})))
            .wide()
            .says("not granted to these credentials, before the pool leaves")
            .by("put-user-policy"),
        wrong("refused", "must", "permissions")
            .world(|s, _, _| {
                permission(s, json!({"action": "ec2:DescribeInstances", "decision": "allowed", "simulated": "explicit_deny"}));
            })
            .wide()
            .says("are denied to these credentials: ec2:DescribeInstances")
            .by("drover pools policy --mode observe"),
    ]
}

/// A question without permission; the others are still asked.
fn unasked() -> Vec<Way> {
    let of_group: [(&str, &str, World); 5] = [
        ("ask-policies", "scaling policies", |s, _, g| {
            denied(s, "DescribePolicies", Some(g))
        }),
        ("ask-schedules", "scheduled actions", |s, _, g| {
            denied(s, "DescribeScheduledActions", Some(g))
        }),
        ("ask-refreshes", "instance refreshes", |s, _, g| {
            denied(s, "DescribeInstanceRefreshes", Some(g))
        }),
        ("ask-hooks", "lifecycle hooks", |s, _, g| {
            denied(s, "DescribeLifecycleHooks", Some(g))
        }),
        ("ask-warm", "warm pool", |s, _, g| {
            denied(s, "DescribeWarmPool", Some(g))
        }),
    ];
    let of_all: [(&str, &str, World); 6] = [
        ("ask-template", "launch template", |s, _, _| {
            denied(s, "DescribeLaunchTemplateVersions", None)
        }),
        ("ask-types", "instance types offer", |s, _, _| {
            denied(s, "DescribeInstanceTypes", None)
        }),
        ("ask-caller", "whose credentials", |s, _, _| {
            denied(s, "GetCallerIdentity", None)
        }),
        ("ask-permissions", "credentials may do", |s, _, _| {
            denied(s, "SimulatePrincipalPolicy", None)
        }),
        ("ask-quotas", "quotas", |s, _, _| {
            denied(s, "ListServiceQuotas", None)
        }),
        ("ask-group", "the group could not", |s, _, _| {
            denied(s, "DescribeAutoScalingGroups", None)
        }),
    ];
    let made = |(name, says, world): (&'static str, &'static str, World)| {
        // Something to judge beside it, which does not end with the question.
        let severity = if name == "ask-group" {
            "must"
        } else {
            "should"
        };
        let way = wrong(name, severity, "not_asked").world(world).says(says);
        // Who asks may ask anybody.
        let way = match name {
            "ask-caller" => way,
            _ => way.by("drover pools policy --doctor"),
        };
        if name == "ask-group" {
            return way;
        }
        way.group(|g| g.protects_new = false)
            .beside(&["new_unprotected"])
    };
    let wide = of_all.map(|row| made(row).wide());
    of_group.map(made).into_iter().chain(wide).collect()
}

/// What it launches.
fn templates() -> Vec<Way> {
    vec![
        wrong("empty", "must", "no_launch_template")
            .world(|s, _, group| shown(s, group, json!({"LaunchTemplate": null})))
            .says("nothing can be launched")
            .by("--launch-template"),
        wrong("old", "should", "launch_configuration")
            .world(|s, _, group| {
                shown(
                    s,
                    group,
                    json!({"LaunchTemplate": null, "LaunchConfigurationName": "lc-old"}),
                );
            })
            .says("lc-old")
            .by("--launch-template"),
        wrong("version", "must", "template_version_missing")
            .world(|s, _, group| shown(s, group, json!({"LaunchTemplate": {"Version": "77"}})))
            .says("version 77")
            .by("describe-launch-template-versions"),
        wrong("unnamed", "should", "template_version_unnamed")
            .world(|s, _, group| shown(s, group, json!({"LaunchTemplate": {"Version": null}})))
            .says("no version")
            .by("Version=$Default"),
        Way {
            steps: vec![Step::Ec2(
                "CreateLaunchTemplateVersion",
                vec![
                    ("LaunchTemplateName", "doc-no-image".to_owned()),
                    ("LaunchTemplateData.InstanceType", "g5.xlarge".to_owned()),
                ],
            )],
            ..wrong("no-image", "must", "template_refused").says("ImageId")
        },
        wrong("image-gone", "must", "template_refused")
            .world(|s, _, _| {
                s.faults.push(Fault {
                    action: Some("RunInstances".to_owned()),
                    effect: Effect::Error {
                        status: 400,
                        code: "InvalidAMIID.NotFound".to_owned(),
                        message: "The image id '[ami-12c6146b]' does not exist".to_owned(),
                    },
                    ..Fault::default()
                });
            })
            .wide()
            .says("InvalidAMIID.NotFound"),
        wrong("type", "must", "unknown_type")
            .group(|g| g.instance_type = "g99.xlarge".to_owned())
            .says("g99.xlarge")
            .by("describe-instance-type-offerings"),
        wrong("weights", "must", "weighted")
            .group(|g| {
                g.mixed = Some(Mixed {
                    types: vec!["g5.xlarge".into()],
                    on_demand_percent: 100,
                    weight: Some(2),
                });
            })
            .says("WeightedCapacity")
            .by("--mixed-instances-policy file://mixed.json"),
    ]
}

/// What protects its members.
fn guards() -> Vec<Way> {
    let elb = ("HealthCheckType", "ELB");
    vec![
        wrong("bare", "must", "new_unprotected")
            .group(|g| g.protects_new = false)
            .mended_by("--new-instances-protected-from-scale-in"),
        wrong("member", "must", "members_unprotected")
            .group(|g| g.desired = 2)
            .call(
                "SetInstanceProtection",
                &[
                    ("InstanceIds.member.1", "MEMBER"),
                    ("ProtectedFromScaleIn", "false"),
                ],
            )
            .beside(&["no_agents"])
            .says("1 members")
            .mended_by("--protected-from-scale-in --instance-ids i-"),
        wrong("zones", "must", "ends_members")
            .resumed("AZRebalance")
            .says("even out zones")
            .mended_by("suspend-processes"),
        wrong("health", "must", "ends_members")
            .resumed("ReplaceUnhealthy")
            .says("unhealthy")
            .mended_by("suspend-processes"),
        wrong("launch", "must", "launch_suspended")
            .suspended("Launch")
            .says("by a call of a person")
            .mended_by("--scaling-processes Launch"),
        wrong("launch-aws", "must", "launch_suspended")
            .deed(Deed::Suspend {
                process: "Launch".to_owned(),
                reason: Some("Administratively suspended at 2026-11-30T08:00:00Z".to_owned()),
            })
            .says("by AWS itself")
            .mended_by("--scaling-processes Launch"),
        wrong("launch-drover", "note", "launch_suspended")
            .tag("drover:withdraw", "1800000000000")
            .suspended("Launch")
            .says("by Drover"),
        wrong("terminate", "must", "terminate_suspended")
            .suspended("Terminate")
            .says("no node can leave")
            .mended_by("--scaling-processes Terminate"),
        wrong("checks", "note", "process_suspended")
            .suspended("HealthCheck")
            .says("not seen by the group")
            .mended_by("--scaling-processes HealthCheck"),
        wrong("elb", "should", "health_checks")
            .call("UpdateAutoScalingGroup", &[elb])
            .says("ELB, which nothing acts on")
            .mended_by("--health-check-type EC2"),
        wrong("elb-acts", "must", "health_checks")
            .call(
                "UpdateAutoScalingGroup",
                &[elb, ("HealthCheckGracePeriod", "1800")],
            )
            .resumed("ReplaceUnhealthy")
            .beside(&["ends_members"])
            .says("members that fail them are ended")
            .mended_by("--health-check-type EC2"),
        wrong("lattice", "should", "health_checks")
            .world(|s, _, group| shown(s, group, json!({"HealthCheckType": "EC2,VPC_LATTICE"})))
            .says("VPC_LATTICE")
            .by("--health-check-type EC2"),
        wrong("grace", "should", "grace_short")
            .call(
                "UpdateAutoScalingGroup",
                &[elb, ("HealthCheckGracePeriod", "60")],
            )
            .resumed("ReplaceUnhealthy")
            .beside(&["ends_members", "health_checks"])
            .says("60 s")
            .mended_by("--health-check-grace-period 1800"),
    ]
}

/// What it does by itself.
fn own_ways() -> Vec<Way> {
    let rebalance = [("CapacityRebalance", "true")];
    vec![
        wrong("rebalance", "should", "capacity_rebalance")
            .call("UpdateAutoScalingGroup", &rebalance)
            .says("no spot now")
            .mended_by("--no-capacity-rebalance"),
        wrong("rebalance-spot", "must", "capacity_rebalance")
            .group(|g| {
                g.mixed = Some(Mixed {
                    types: vec!["g5.xlarge".into()],
                    on_demand_percent: 0,
                    weight: None,
                });
            })
            .call("UpdateAutoScalingGroup", &rebalance)
            .says("ends spot members")
            .mended_by("--no-capacity-rebalance"),
        wrong("policy", "must", "scaling_policy")
            .call("PutScalingPolicy", POLICY)
            .says("cpu (SimpleScaling)")
            .mended_by("delete-policy"),
        wrong("policy-held", "note", "scaling_policy")
            .call("PutScalingPolicy", POLICY)
            .suspended("AlarmNotification")
            .beside(&["process_suspended"])
            .says("does nothing while")
            .mended_by("delete-policy"),
        wrong("schedule", "must", "scheduled_action")
            .call("PutScheduledUpdateGroupAction", NIGHT)
            .says("0 20 * * *")
            .mended_by("delete-scheduled-action"),
        wrong("schedule-held", "note", "scheduled_action")
            .call("PutScheduledUpdateGroupAction", NIGHT)
            .suspended("ScheduledActions")
            .beside(&["process_suspended"])
            .says("does nothing while")
            .mended_by("delete-scheduled-action"),
        wrong("refresh", "must", "instance_refresh")
            .world(|s, _, group| refresh(s, group, "InProgress"))
            .says("r-1 is at work (InProgress)")
            .by("cancel-instance-refresh"),
        wrong("lifetime", "must", "max_lifetime")
            .call(
                "UpdateAutoScalingGroup",
                &[("MaxInstanceLifetime", "86400")],
            )
            .says("24 h")
            .mended_by("--max-instance-lifetime 0"),
        wrong("maximum", "must", "max_below_running")
            .group(|g| g.desired = 2)
            .call("UpdateAutoScalingGroup", &[("MaxSize", "1")])
            .beside(&["no_agents"])
            .says("2 members are more than the group's maximum 1")
            .mended_by("--max-size 2"),
        // Its pool is in the config, with a maximum of 10.
        wrong("low", "note", "max_below_config")
            .group(|g| g.max = 5)
            .says("below the 10 that its pool may have")
            .mended_by("--max-size 10"),
        wrong("hook", "should", "launch_hook")
            .call("PutLifecycleHook", &hook(COMES, "ABANDON", "3600"))
            .says("wait ends an instance")
            .mended_by("--default-result CONTINUE"),
        wrong("hook-short", "should", "terminate_hook")
            .call("PutLifecycleHook", &hook(GOES, "ABANDON", "60"))
            .says("waits 60 s")
            .mended_by("--heartbeat-timeout 300"),
        wrong("warm", "note", "warm_pool")
            .group(|g| g.max = 1)
            .call("PutWarmPool", &[])
            .says("maximum minus desired")
            .mended_by("put-warm-pool"),
    ]
}

/// Whose it is.
fn owners() -> Vec<Way> {
    let mut foreign = wrong("foreign", "must", "others_group").says("another coordinator");
    foreign.group.tags = vec![("drover:owner".to_owned(), "another/3".to_owned())];
    let mut untagged = wrong("untagged", "must", "not_offered").says("drover:owner");
    untagged.group.tags.clear();
    vec![
        foreign.mended_by("Value=unclaimed"),
        untagged.mended_by("Value=unclaimed"),
        wrong("scaler", "must", "cluster_autoscaler")
            .tag("k8s.io/cluster-autoscaler/enabled", "true")
            .tag("k8s.io/cluster-autoscaler/lab", "owned")
            .says("two would drive it")
            .mended_by("delete-tags"),
        wrong("nodegroup", "must", "eks_nodegroup")
            .tag("eks:nodegroup-name", "gpu")
            .says("node group gpu"),
        wrong("cluster", "note", "eks_cluster")
            .tag("eks:cluster-name", "lab")
            .says("cluster lab"),
        wrong("karpenter", "should", "karpenter")
            .tag("karpenter.sh/nodepool", "gpu")
            .says("karpenter.sh/nodepool")
            .mended_by("delete-tags"),
        wrong("frozen", "should", "frozen")
            .tag("drover:freeze", "audit")
            .says("audit")
            .mended_by("delete-tags"),
    ]
}
