//! One group set up right, and one wrong in each way that is known: what is found, and that the rest is silent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use drover_aws::{
    AwsError, Call, DryRun, Group, GroupTemplate, HookDefault, HookOn, LifecycleHook, Market,
    MemberState, MixedPolicy, Override, Permission, QuotaFact, Refresh, Region, ScalingPolicy,
    ScheduledAction, TemplateRef, WarmPool,
};
use drover_core::model::{InstanceId, Millis, Mode};

use self::fake::{Clinic, World, error, group};
use super::super::Owner;
use super::Doctor;
use crate::ports::survey::{
    GroupRef, GroupSurvey, MendError, Question, Severity, Standing, Survey, SurveyAsk,
};

mod fake;

fn of() -> GroupRef {
    GroupRef {
        region: "us-east-1".to_owned(),
        role: None,
        group: "p5".to_owned(),
    }
}

fn ask() -> SurveyAsk {
    SurveyAsk {
        mode: Mode::Full,
        max: Some(10),
        drain: Millis::minutes(5),
        agents: Some(BTreeSet::from([
            InstanceId::new("i-1"),
            InstanceId::new("i-2"),
        ])),
    }
}

fn doctor(world: World) -> (Doctor<Clinic>, Arc<Mutex<World>>) {
    let world = Arc::new(Mutex::new(world));
    let owner = Owner::new("store", 7).expect("an owner");
    (Doctor::new(Clinic(world.clone()), owner), world)
}

async fn survey(world: World) -> Survey {
    doctor(world).0.survey(&of(), &ask()).await
}

#[tokio::test]
async fn a_right_group_is_silent() {
    let survey = survey(World::right()).await;
    assert_eq!(survey.findings, []);
    assert_eq!(survey.standing, Standing::Ours);
    assert_eq!(survey.types, ["p5.48xlarge"]);
    assert_eq!(survey.sizes.map(|s| (s.running, s.max)), Some((2, 10)));
    // What nobody can make sure is said apart.
    assert!(!survey.doubts.is_empty());
}

type Wrong = fn(&mut World);

fn spot(world: &mut World) {
    world.facts.market = Market::Spot;
}

/// Every way, its severity and name, a word of the text, and a word of the command (empty: there is none).
const WAYS: &[(&str, Wrong, Severity, &str, &str, &str)] = {
    use Severity::{Must, Note, Should};
    &[
        (
            "no template",
            |w| w.group().template = GroupTemplate::Missing,
            Must,
            "no_launch_template",
            "nothing can be launched",
            "--launch-template",
        ),
        (
            "launch configuration",
            |w| w.group().template = GroupTemplate::Configuration("old".into()),
            Should,
            "launch_configuration",
            "old",
            "--launch-template",
        ),
        (
            "version gone",
            |w| w.version_gone = true,
            Must,
            "template_version_missing",
            "version 3",
            "describe-launch-template-versions",
        ),
        (
            "no version",
            |w| w.version(None),
            Should,
            "template_version_unnamed",
            "no version",
            "Version=$Default",
        ),
        (
            "image gone",
            |w| w.dry = Some(DryRun::Wrong("InvalidAMIID.NotFound: the image".into())),
            Must,
            "template_refused",
            "InvalidAMIID",
            "",
        ),
        (
            "no image",
            |w| {
                let why = "MissingParameter: The request must contain the parameter ImageId";
                w.dry = Some(DryRun::Wrong(why.into()));
            },
            Must,
            "template_refused",
            "ImageId",
            "",
        ),
        (
            "unknown type",
            |w| w.unknown_type = true,
            Must,
            "unknown_type",
            "p5.48xlarge",
            "describe-instance-type-offerings",
        ),
        (
            "new bare",
            |w| w.group().protects_new = false,
            Must,
            "new_unprotected",
            "scale-in protection",
            "--new-instances-protected-from-scale-in",
        ),
        (
            "members bare",
            |w| w.group().members[0].protected = false,
            Must,
            "members_unprotected",
            "1 members",
            "--instance-ids i-1",
        ),
        (
            "unhealthy replaced",
            |w| w.resume("ReplaceUnhealthy"),
            Must,
            "ends_members",
            "ReplaceUnhealthy",
            "suspend-processes",
        ),
        (
            "zones rebalanced",
            |w| w.resume("AZRebalance"),
            Must,
            "ends_members",
            "AZRebalance",
            "suspend-processes",
        ),
        (
            "launch suspended by a person",
            |w| w.suspend("Launch", "User suspended at 2026-11-30T08:00:00Z"),
            Must,
            "launch_suspended",
            "by a call",
            "resume-processes",
        ),
        (
            "launch suspended by AWS",
            |w| {
                w.suspend(
                    "Launch",
                    "Administratively suspended at 2026-11-30T08:00:00Z",
                )
            },
            Must,
            "launch_suspended",
            "by AWS itself",
            "resume-processes",
        ),
        (
            "launch suspended by Drover",
            |w| {
                w.suspend("Launch", "User suspended");
                w.tag("drover:withdraw", "1800000000000");
            },
            Note,
            "launch_suspended",
            "by Drover",
            "",
        ),
        (
            "terminate suspended",
            |w| w.suspend("Terminate", ""),
            Must,
            "terminate_suspended",
            "not told",
            "resume-processes",
        ),
        (
            "another process",
            |w| w.suspend("AddToLoadBalancer", "User suspended"),
            Note,
            "process_suspended",
            "load balancers",
            "resume-processes",
        ),
        (
            "capacity rebalance",
            |w| {
                w.group().capacity_rebalance = Some(true);
                spot(w);
            },
            Must,
            "capacity_rebalance",
            "ends spot members",
            "--no-capacity-rebalance",
        ),
        (
            "capacity rebalance without spot",
            |w| w.group().capacity_rebalance = Some(true),
            Should,
            "capacity_rebalance",
            "no spot now",
            "--no-capacity-rebalance",
        ),
        (
            "balancer's health",
            |w| w.group().health_check = Some("ELB".into()),
            Should,
            "health_checks",
            "ELB",
            "--health-check-type EC2",
        ),
        (
            "lattice's health",
            |w| w.group().health_check = Some("EC2,VPC_LATTICE".into()),
            Should,
            "health_checks",
            "VPC_LATTICE",
            "--health-check-type EC2",
        ),
        (
            "disks' health",
            |w| w.group().health_check = Some("EC2,EBS".into()),
            Should,
            "health_checks",
            "EBS",
            "--health-check-type EC2",
        ),
        (
            "policy",
            |w| {
                w.policies.push(ScalingPolicy {
                    name: "cpu".into(),
                    kind: Some("TargetTrackingScaling".into()),
                    enabled: true,
                })
            },
            Must,
            "scaling_policy",
            "cpu",
            "delete-policy",
        ),
        (
            "policy held",
            |w| {
                w.policies.push(ScalingPolicy {
                    name: "cpu".into(),
                    kind: Some("SimpleScaling".into()),
                    enabled: true,
                });
                w.also = &["process_suspended"];
                w.suspend("AlarmNotification", "");
            },
            Note,
            "scaling_policy",
            "does nothing",
            "delete-policy",
        ),
        (
            "schedule",
            |w| {
                w.schedules.push(ScheduledAction {
                    name: "night".into(),
                    next_unix_ms: None,
                    recurrence: Some("0 20 * * *".into()),
                    min: None,
                    max: None,
                    desired: Some(0),
                })
            },
            Must,
            "scheduled_action",
            "0 20 * * *",
            "delete-scheduled-action",
        ),
        (
            "refresh",
            |w| {
                w.refreshes.push(Refresh {
                    id: "r-1".into(),
                    status: "InProgress".into(),
                    at_work: true,
                })
            },
            Must,
            "instance_refresh",
            "r-1",
            "cancel-instance-refresh",
        ),
        (
            "lifetime",
            |w| w.group().max_lifetime_seconds = Some(86_400),
            Must,
            "max_lifetime",
            "24 h",
            "--max-instance-lifetime 0",
        ),
        (
            "weights",
            |w| w.mixed(Some("2")),
            Must,
            "weighted",
            "WeightedCapacity",
            "--mixed-instances-policy",
        ),
        (
            "cluster autoscaler",
            |w| w.tag("k8s.io/cluster-autoscaler/enabled", ""),
            Must,
            "cluster_autoscaler",
            "Cluster Autoscaler",
            "delete-tags",
        ),
        (
            "node group",
            |w| w.tag("eks:nodegroup-name", "gpu"),
            Must,
            "eks_nodegroup",
            "gpu",
            "",
        ),
        (
            "cluster",
            |w| w.tag("eks:cluster-name", "lab"),
            Note,
            "eks_cluster",
            "lab",
            "",
        ),
        (
            "karpenter",
            |w| w.tag("karpenter.sh/nodepool", "gpu"),
            Should,
            "karpenter",
            "karpenter.sh/nodepool",
            "delete-tags",
        ),
        (
            "another store's",
            |w| w.tag("drover:owner", "other/3"),
            Must,
            "others_group",
            "another coordinator",
            "drover:owner",
        ),
        (
            "a later opening's",
            |w| w.tag("drover:owner", "store/9"),
            Must,
            "others_group",
            "later opening",
            "drover:owner",
        ),
        (
            "no owner",
            |w| {
                w.group().tags.clear();
            },
            Must,
            "not_offered",
            "drover:owner",
            "Value=unclaimed",
        ),
        (
            "frozen",
            |w| w.tag("drover:freeze", "audit"),
            Should,
            "frozen",
            "audit",
            "delete-tags",
        ),
        (
            "maximum below",
            |w| w.group().max = 1,
            Must,
            "max_below_running",
            "maximum 1",
            "--max-size 2",
        ),
        (
            "maximum below the pool's",
            |w| w.group().max = 5,
            Note,
            "max_below_config",
            "below the 10",
            "--max-size 10",
        ),
        (
            "launching hook",
            |w| {
                w.hooks
                    .push(hook(HookOn::Launching, HookDefault::Abandon, 3_600))
            },
            Should,
            "launch_hook",
            "ABANDON",
            "--default-result CONTINUE",
        ),
        (
            "terminating hook",
            |w| {
                w.hooks
                    .push(hook(HookOn::Terminating, HookDefault::Abandon, 60))
            },
            Should,
            "terminate_hook",
            "60 s",
            "--heartbeat-timeout 300",
        ),
        (
            "permission",
            |w| w.not_granted("autoscaling:SetDesiredCapacity"),
            Must,
            "permissions",
            "not granted",
            "put-role-policy --role-name drover",
        ),
        (
            "permission denied",
            |w| {
                w.said
                    .insert("ec2:DescribeInstances".into(), Permission::Denied);
            },
            Must,
            "permissions",
            "are denied",
            "drover pools policy --mode observe",
        ),
        (
            "quota",
            |w| w.quotas[0].value = 1_000,
            Should,
            "quota",
            "10 p5.48xlarge need 1920",
            "--desired-value 1920",
        ),
        (
            "no agents",
            |w| {
                let more = fake::member("i-3", MemberState::InService);
                w.group().members.push(more);
            },
            Note,
            "no_agents",
            "1 of 3",
            "",
        ),
        (
            "going",
            |w| w.group().status = Some("Delete in progress".into()),
            Must,
            "group_going",
            "Delete in progress",
            "",
        ),
        (
            "warm pool",
            |w| {
                w.warm = Some(WarmPool {
                    min: 0,
                    max_prepared: None,
                    state: "Stopped".into(),
                    reuses: false,
                    status: None,
                    members: vec![],
                })
            },
            Note,
            "warm_pool",
            "maximum minus desired",
            "put-warm-pool",
        ),
        (
            "group gone",
            |w| w.groups.clear(),
            Must,
            "group_missing",
            "no group p5",
            "describe-auto-scaling-groups",
        ),
        (
            "wrong region",
            |w| {
                w.fail(
                    Call::DescribeRegions,
                    400,
                    "InvalidParameterValue",
                    "no such region",
                )
            },
            Must,
            "region",
            "us-east-1",
            "describe-regions",
        ),
    ]
};

fn hook(on: HookOn, default: HookDefault, heartbeat: u32) -> LifecycleHook {
    LifecycleHook {
        name: "wait".into(),
        on: Some(on),
        heartbeat_seconds: Some(heartbeat),
        global_seconds: None,
        default,
        target: None,
    }
}

#[tokio::test]
async fn each_way_to_be_wrong_is_found_alone_with_its_command() {
    for (name, wrong, severity, kind, word, command) in WAYS {
        let mut world = World::right();
        wrong(&mut world);
        let also = world.also;
        let survey = survey(world).await;
        let mut told: Vec<_> = survey.findings.iter().map(|f| f.told(&of())).collect();
        told.retain(|t| !also.contains(&t.kind));
        assert_eq!(told.len(), 1, "{name}: {told:#?}");
        let told = &told[0];
        assert_eq!(
            (told.severity, told.kind),
            (*severity, *kind),
            "{name}: {told:?}"
        );
        assert!(told.words.contains(word), "{name}: {}", told.words);
        let lines = told.commands.join("\n");
        assert_eq!(command.is_empty(), lines.is_empty(), "{name}: {lines}");
        assert!(lines.contains(command), "{name}: {lines}");
        let bare: String = lines.split('\'').step_by(2).collect();
        assert!(
            !bare.contains(['[', '*']),
            "no shell takes it as it stands: {lines}"
        );
        assert!(
            lines.is_empty() || lines.contains("us-east-1") || *kind == "region",
            "{name}: {lines}"
        );
    }
}

#[tokio::test]
async fn health_that_acts_and_a_short_grace_are_said_together() {
    let mut world = World::right();
    world.resume("ReplaceUnhealthy");
    world.group().health_check = Some("ELB".into());
    world.group().health_check_grace_seconds = Some(0);
    let kinds: Vec<_> = survey(world)
        .await
        .findings
        .iter()
        .map(|f| f.told(&of()))
        .map(|t| (t.severity, t.kind))
        .collect();
    use Severity::{Must, Should};
    assert_eq!(
        kinds,
        [
            (Must, "ends_members"),
            (Must, "health_checks"),
            (Should, "grace_short")
        ],
        "the worst first"
    );
}

#[tokio::test]
async fn what_a_mode_beyond_the_pools_needs_is_no_must() {
    let mut world = World::right();
    world.not_granted("autoscaling:TerminateInstanceInAutoScalingGroup");
    let (doctor, _) = doctor(world);
    let watched = SurveyAsk {
        mode: Mode::Grow,
        ..ask()
    };
    let survey = doctor.survey(&of(), &watched).await;
    let told = survey.findings[0].told(&of());
    assert_eq!(
        (told.severity, told.kind),
        (Severity::Should, "permissions")
    );
    assert!(
        told.words.contains("before the pool leaves"),
        "{}",
        told.words
    );
}

#[tokio::test]
async fn a_policy_narrowed_to_the_owner_tag_is_asked_with_it() {
    let (doctor, world) = doctor(World::right());
    doctor.survey(&of(), &ask()).await;
    let world = world.lock().expect("the world");
    let on_group = world
        .questions
        .iter()
        .find(|q| {
            q.actions
                .iter()
                .any(|a| a == "autoscaling:SetDesiredCapacity")
        })
        .expect("a question");
    assert_eq!(on_group.context["aws:ResourceTag/drover:owner"], "store/7");
    assert!(
        on_group.resources[0].ends_with("autoScalingGroupName/p5"),
        "{on_group:?}"
    );
    assert!(
        on_group.resources[0].contains(":us-east-1:123456789012:"),
        "{on_group:?}"
    );
    let describes = &world.questions[0];
    assert!(
        describes.resources.is_empty()
            && describes
                .actions
                .contains(&"ec2:DescribeInstances".to_owned())
    );
}

/// Each question fails alone: it is a finding, and everything else is still judged.
#[tokio::test]
async fn a_question_that_fails_is_a_finding_and_not_the_end() {
    let table = [
        (Call::DescribePolicies, "scaling policies"),
        (Call::DescribeScheduledActions, "scheduled actions"),
        (Call::DescribeInstanceRefreshes, "refreshes"),
        (Call::DescribeLifecycleHooks, "hooks"),
        (Call::DescribeWarmPool, "warm pool"),
        (Call::GetCallerIdentity, "credentials"),
        (Call::SimulatePrincipalPolicy, "may do"),
        (Call::RunInstances, "EC2 takes"),
        (Call::ListServiceQuotas, "quotas"),
        (Call::DescribeInstanceTypes, "instance types"),
        (Call::DescribeLaunchTemplateVersions, "template"),
    ];
    for (call, word) in table {
        let mut world = World::right();
        world.fail(call, 403, "AccessDenied", "is not authorized");
        world.group().protects_new = false;
        let told: Vec<_> = survey(world)
            .await
            .findings
            .iter()
            .map(|f| f.told(&of()))
            .collect();
        let kinds: Vec<_> = told.iter().map(|t| t.kind).collect();
        assert_eq!(kinds, ["new_unprotected", "not_asked"], "{call}: {told:#?}");
        assert!(told[1].words.contains(word), "{call}: {}", told[1].words);
        if let Some(grant) = call.grant() {
            assert!(
                told[1].commands[0].contains(grant.action),
                "{call}: {told:?}"
            );
        }
    }
    // What the first question meets is told as what it is: credentials, a region, a network.
    for (code, kind, words, command) in [
        (
            "ExpiredToken",
            "not_asked",
            "have expired",
            "sts get-caller-identity",
        ),
        (
            "SignatureDoesNotMatch",
            "region",
            "check the region's name",
            "describe-regions",
        ),
        (
            "AuthFailure",
            "region",
            "and the credentials",
            "describe-regions",
        ),
    ] {
        let mut world = World::right();
        world.fail(Call::DescribeRegions, 403, code, "no");
        let survey = survey(world).await;
        let told = survey.findings[0].told(&of());
        assert_eq!((survey.findings.len(), told.kind), (1, kind), "{told:?}");
        let lines = told.commands.join("\n");
        assert!(
            told.words.contains(words) && lines.contains(command),
            "{told:?}"
        );
        assert!(lines.contains("sts get-caller-identity"), "{told:?}");
        assert!(!lines.contains("pools policy"), "{told:?}");
    }
    let silence = AwsError::unreported(
        Call::DescribeRegions,
        &Region::new("us-east-1"),
        drover_aws::FailureKind::Transient,
        "no answer within 10 s".to_owned(),
        false,
    );
    let told = super::unasked(Question::Group, &silence).told(&of());
    assert!(told.commands[0].contains("--region us-east-1"), "{told:?}");
    // Without the group nothing can be said, and that is a must.
    let mut world = World::right();
    world.fail(
        Call::DescribeAutoScalingGroups,
        403,
        "ExpiredToken",
        "the token has expired",
    );
    let told: Vec<_> = survey(world)
        .await
        .findings
        .iter()
        .map(|f| f.told(&of()))
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        (told[0].severity, told[0].kind),
        (Severity::Must, "not_asked")
    );
    assert!(
        told[0].commands.len() == 1 && told[0].commands[0].contains("sts get-caller-identity"),
        "expired credentials are no missing permission: {told:?}"
    );
}

#[tokio::test]
async fn what_cannot_be_made_sure_is_a_doubt() {
    let mut world = World::right();
    world.dry = Some(DryRun::Denied("not authorized".into()));
    world.caller = "arn:aws:iam::123456789012:root".to_owned();
    let survey = survey(world).await;
    assert_eq!(survey.findings, []);
    let doubts = survey.doubts.join("\n");
    assert!(doubts.contains("ec2:RunInstances"), "{doubts}");
    assert!(
        doubts.contains("root may do cannot be simulated"),
        "{doubts}"
    );
    // What the group adds to its template is not held against the template.
    let mut world = World::right();
    world.dry = Some(DryRun::Wrong("VPCIdNotSpecified: No default VPC".into()));
    assert_eq!(self::survey(world).await.findings, []);
}

#[tokio::test]
async fn cluster_autoscalers_words_about_nodes_and_karpenters_discovery_are_no_finding() {
    let mut world = World::right();
    world.tag(
        "k8s.io/cluster-autoscaler/node-template/label/team",
        "vision",
    );
    world.tag("karpenter.sh/discovery", "lab");
    assert_eq!(survey(world).await.findings, []);
}

fn bad() -> World {
    let mut world = World::right();
    world.group().protects_new = false;
    world.group().members[1].protected = false;
    world.group().capacity_rebalance = Some(true);
    world.resume("AZRebalance");
    world.resume("ReplaceUnhealthy");
    world
}

#[tokio::test]
async fn mending_leaves_nothing_that_it_can_mend() {
    for tag in ["store/7", "store/2", "unclaimed"] {
        let mut world = bad();
        world.tag("drover:owner", tag);
        let (doctor, world) = doctor(world);
        let before = doctor.survey(&of(), &ask()).await;
        assert!(
            before.findings.iter().all(|f| f.told(&of()).fixable),
            "{before:?}"
        );
        let done = doctor.mend(&of()).await.expect("mended");
        assert_eq!(done.len(), 4, "{done:?}");
        assert_eq!(
            world.lock().expect("the world").changes,
            [
                "suspend AZRebalance ReplaceUnhealthy",
                "protect new",
                "protect i-2",
                "rebalance off"
            ]
        );
        let after = doctor.survey(&of(), &ask()).await;
        assert_eq!(after.findings, [], "{tag}");
        // Nothing is left to do, and nothing is done again.
        assert_eq!(doctor.mend(&of()).await, Ok(Vec::new()));
    }
}

#[tokio::test]
async fn i5_mine_only_what_is_not_ours_is_not_mended() {
    let table: [(&str, Wrong, &str); 4] = [
        (
            "another's",
            |w| w.tag("drover:owner", "other/1"),
            "another coordinator",
        ),
        (
            "not offered",
            |w| w.group().tags.clear(),
            "no tag drover:owner",
        ),
        ("frozen", |w| w.tag("drover:freeze", "audit"), "audit"),
        ("gone", |w| w.groups.clear(), "no group"),
    ];
    for (name, wrong, word) in table {
        let mut world = bad();
        wrong(&mut world);
        let (doctor, world) = doctor(world);
        let refused = doctor.mend(&of()).await.expect_err(name);
        assert!(matches!(refused, MendError::Refused(_)), "{refused:?}");
        assert!(refused.to_string().contains(word), "{name}: {refused}");
        assert!(
            world.lock().expect("the world").changes.is_empty(),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_mend_that_fails_half_way_says_what_was_done() {
    let mut world = bad();
    world.failures.insert(
        Call::UpdateAutoScalingGroup,
        error(
            Call::UpdateAutoScalingGroup,
            403,
            "AccessDenied",
            "is not authorized",
        ),
    );
    let (doctor, _) = doctor(world);
    let failed = doctor.mend(&of()).await.expect_err("denied");
    let text = failed.to_string();
    assert!(
        text.contains("not authorized") && text.contains("done before: suspended"),
        "{text}"
    );
}

impl World {
    fn group(&mut self) -> &mut Group {
        self.groups.get_mut("p5").expect("the group")
    }

    fn tag(&mut self, key: &str, value: &str) {
        self.group().tags.insert(key.to_owned(), value.to_owned());
    }

    fn suspend(&mut self, process: &str, why: &str) {
        self.group()
            .suspended
            .insert(process.to_owned(), why.to_owned());
    }

    fn resume(&mut self, process: &str) {
        self.group().suspended.remove(process);
    }

    fn not_granted(&mut self, action: &str) {
        self.said.insert(action.to_owned(), Permission::NotGranted);
    }

    fn fail(&mut self, call: Call, status: u16, code: &str, message: &str) {
        self.failures
            .insert(call, error(call, status, code, message));
    }

    fn version(&mut self, version: Option<&str>) {
        self.group().template = GroupTemplate::Template(TemplateRef {
            id: Some("lt-1".into()),
            name: None,
            version: version.map(str::to_owned),
        });
    }

    fn mixed(&mut self, weight: Option<&str>) {
        self.group().template = GroupTemplate::Mixed(MixedPolicy {
            template: Some(TemplateRef {
                id: Some("lt-1".into()),
                name: None,
                version: Some("3".into()),
            }),
            overrides: vec![Override {
                instance_type: Some("p5.48xlarge".into()),
                weight: weight.map(str::to_owned),
                by_requirements: false,
            }],
            on_demand_base: None,
            on_demand_percent_above_base: None,
        });
    }

    /// A group as it should be, ours, with two members.
    fn right() -> Self {
        Self {
            groups: BTreeMap::from([("p5".to_owned(), group())]),
            caller: "arn:aws:sts::123456789012:assumed-role/drover/i-0abc".to_owned(),
            dry: Some(DryRun::Allowed),
            quotas: vec![
                QuotaFact {
                    code: "L-417A185B".into(),
                    name: "Running On-Demand P instances".into(),
                    value: 1_920,
                },
                QuotaFact {
                    code: "L-C4BD4855".into(),
                    name: "All P5 Spot Instance Requests".into(),
                    value: 1_920,
                },
            ],
            ..Self::default()
        }
    }
}
