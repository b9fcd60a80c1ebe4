//! An AWS of plain values that answers a survey and takes what mends a group. Nothing else may be asked of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use drover_aws::{
    Activities, AwsApi, AwsError, AwsMend, AwsSurvey, Call, DryRun, Group, GroupName,
    GroupTemplate, Instance, InstanceId, InstanceTypeFacts, LaunchAsk, LaunchReply, LifecycleHook,
    Market, Member, MemberState, Permission, PolicyQuestion, QuotaFact, Refresh, Region,
    ScalingPolicy, ScheduledAction, TemplateFacts, TemplateRef, WarmPool,
};

/// What is there, and what was asked.
pub(super) struct World {
    pub(super) groups: BTreeMap<String, Group>,
    pub(super) facts: TemplateFacts,
    pub(super) version_gone: bool,
    pub(super) unknown_type: bool,
    pub(super) policies: Vec<ScalingPolicy>,
    pub(super) schedules: Vec<ScheduledAction>,
    pub(super) refreshes: Vec<Refresh>,
    pub(super) hooks: Vec<LifecycleHook>,
    pub(super) warm: Option<WarmPool>,
    pub(super) caller: String,
    pub(super) dry: Option<DryRun>,
    /// What is not allowed.
    pub(super) said: BTreeMap<String, Permission>,
    pub(super) questions: Vec<PolicyQuestion>,
    pub(super) quotas: Vec<QuotaFact>,
    pub(super) failures: BTreeMap<Call, AwsError>,
    pub(super) changes: Vec<String>,
    /// Findings that come with it and are judged elsewhere.
    pub(super) also: &'static [&'static str],
}

impl Default for World {
    fn default() -> Self {
        Self {
            groups: BTreeMap::new(),
            facts: TemplateFacts {
                id: Some("lt-1".into()),
                version: Some(3),
                instance_type: Some("p5.48xlarge".into()),
                image: Some("ami-1".into()),
                market: Market::OnDemand,
                reservations: drover_aws::ReservationUse::Open,
            },
            version_gone: false,
            unknown_type: false,
            policies: Vec::new(),
            schedules: Vec::new(),
            refreshes: Vec::new(),
            hooks: Vec::new(),
            warm: None,
            caller: String::new(),
            dry: None,
            said: BTreeMap::new(),
            questions: Vec::new(),
            quotas: Vec::new(),
            failures: BTreeMap::new(),
            changes: Vec::new(),
            also: &[],
        }
    }
}

pub(super) fn member(id: &str, state: MemberState) -> Member {
    Member {
        id: id.into(),
        instance_type: Some("p5.48xlarge".into()),
        zone: Some("us-east-1a".into()),
        state,
        healthy: Some(true),
        protected: true,
        weight: None,
        template: None,
    }
}

pub(super) fn group() -> Group {
    let processes = ["AZRebalance", "ReplaceUnhealthy"];
    Group {
        name: "p5".into(),
        min: 0,
        max: 10,
        desired: 2,
        zones: vec!["us-east-1a".into()],
        subnets: vec![],
        template: GroupTemplate::Template(TemplateRef {
            id: Some("lt-1".into()),
            name: Some("p5".into()),
            version: Some("3".into()),
        }),
        tags: BTreeMap::from([("drover:owner".to_owned(), "store/7".to_owned())]),
        suspended: processes
            .map(|p| (p.to_owned(), "User suspended".to_owned()))
            .into(),
        protects_new: true,
        status: None,
        health_check: Some("EC2".into()),
        health_check_grace_seconds: Some(0),
        max_lifetime_seconds: None,
        capacity_rebalance: Some(false),
        warm_pool_size: None,
        members: vec![
            member("i-1", MemberState::InService),
            member("i-2", MemberState::InService),
        ],
    }
}

pub(super) fn error(call: Call, status: u16, code: &str, message: &str) -> AwsError {
    AwsError::reported(
        call,
        &Region::from("us-east-1"),
        status,
        Some(code),
        message,
    )
}

pub(super) struct Clinic(pub(super) Arc<Mutex<World>>);

impl Clinic {
    fn enter(&self, call: Call) -> Result<MutexGuard<'_, World>, AwsError> {
        let world = self.0.lock().expect("the world");
        match world.failures.get(&call) {
            Some(failure) => Err(failure.clone()),
            None => Ok(world),
        }
    }

    fn change(
        &self,
        call: Call,
        group: &GroupName,
        told: String,
        change: impl FnOnce(&mut Group),
    ) -> Result<(), AwsError> {
        let mut world = self.enter(call)?;
        world.changes.push(told);
        change(world.groups.get_mut(group.as_str()).expect("the group"));
        Ok(())
    }
}

#[async_trait]
impl AwsSurvey for Clinic {
    async fn groups_tagged(&self, _: &Region, _: &str) -> Result<Vec<Group>, AwsError> {
        panic!("a survey looks for no groups")
    }
    async fn scaling_policies(
        &self,
        _: &Region,
        _: &GroupName,
    ) -> Result<Vec<ScalingPolicy>, AwsError> {
        Ok(self.enter(Call::DescribePolicies)?.policies.clone())
    }
    async fn scheduled_actions(
        &self,
        _: &Region,
        _: &GroupName,
    ) -> Result<Vec<ScheduledAction>, AwsError> {
        Ok(self
            .enter(Call::DescribeScheduledActions)?
            .schedules
            .clone())
    }
    async fn instance_refreshes(
        &self,
        _: &Region,
        _: &GroupName,
    ) -> Result<Vec<Refresh>, AwsError> {
        Ok(self
            .enter(Call::DescribeInstanceRefreshes)?
            .refreshes
            .clone())
    }
    async fn lifecycle_hooks(
        &self,
        _: &Region,
        _: &GroupName,
    ) -> Result<Vec<LifecycleHook>, AwsError> {
        Ok(self.enter(Call::DescribeLifecycleHooks)?.hooks.clone())
    }
    async fn warm_pool(&self, _: &Region, _: &GroupName) -> Result<Option<WarmPool>, AwsError> {
        Ok(self.enter(Call::DescribeWarmPool)?.warm.clone())
    }
    async fn caller(&self, _: &Region) -> Result<String, AwsError> {
        Ok(self.enter(Call::GetCallerIdentity)?.caller.clone())
    }
    async fn dry_run_launch(&self, _: &Region, _: &TemplateRef) -> Result<DryRun, AwsError> {
        let dry = self.enter(Call::RunInstances)?.dry.clone();
        Ok(dry.expect("an answer to a dry run"))
    }
    async fn simulate_policy(
        &self,
        _: &Region,
        _: &str,
        question: &PolicyQuestion,
    ) -> Result<BTreeMap<String, Permission>, AwsError> {
        let mut world = self.enter(Call::SimulatePrincipalPolicy)?;
        world.questions.push(question.clone());
        let said = |action: &String| {
            let said = world.said.get(action).copied();
            (action.clone(), said.unwrap_or(Permission::Allowed))
        };
        Ok(question.actions.iter().map(said).collect())
    }
    async fn ec2_quotas(&self, _: &Region) -> Result<Vec<QuotaFact>, AwsError> {
        Ok(self.enter(Call::ListServiceQuotas)?.quotas.clone())
    }
    async fn check_region(&self, _: &Region) -> Result<(), AwsError> {
        self.enter(Call::DescribeRegions).map(|_| ())
    }
}

#[async_trait]
impl AwsMend for Clinic {
    async fn protect_new(&self, _: &Region, group: &GroupName) -> Result<(), AwsError> {
        let told = "protect new".to_owned();
        self.change(Call::UpdateAutoScalingGroup, group, told, |g| {
            g.protects_new = true
        })
    }
    async fn suspend_own_removals(&self, _: &Region, group: &GroupName) -> Result<(), AwsError> {
        let told = "suspend AZRebalance ReplaceUnhealthy".to_owned();
        self.change(Call::SuspendProcesses, group, told, |g| {
            for process in ["AZRebalance", "ReplaceUnhealthy"] {
                g.suspended
                    .insert(process.to_owned(), "User suspended".to_owned());
            }
        })
    }
    async fn capacity_rebalance_off(&self, _: &Region, group: &GroupName) -> Result<(), AwsError> {
        let told = "rebalance off".to_owned();
        self.change(Call::UpdateAutoScalingGroup, group, told, |g| {
            g.capacity_rebalance = Some(false);
        })
    }
}

#[async_trait]
impl AwsApi for Clinic {
    async fn describe_groups(
        &self,
        _: &Region,
        names: &[GroupName],
    ) -> Result<BTreeMap<GroupName, Group>, AwsError> {
        let world = self.enter(Call::DescribeAutoScalingGroups)?;
        let found = names
            .iter()
            .filter_map(|n| Some((n.clone(), world.groups.get(n.as_str())?.clone())));
        Ok(found.collect())
    }
    async fn describe_activities(
        &self,
        _: &Region,
        _: &GroupName,
        _: i64,
    ) -> Result<Activities, AwsError> {
        panic!("a survey reads no activities")
    }
    async fn launch_instances(&self, _: &Region, _: &LaunchAsk) -> Result<LaunchReply, AwsError> {
        panic!("a survey launches nothing")
    }
    async fn set_desired_capacity(
        &self,
        _: &Region,
        _: &GroupName,
        _: u32,
    ) -> Result<(), AwsError> {
        panic!("a survey sizes nothing")
    }
    async fn terminate_with_decrement(&self, _: &Region, _: &InstanceId) -> Result<(), AwsError> {
        panic!("a survey ends nothing")
    }
    async fn protect_from_scale_in(
        &self,
        _: &Region,
        group: &GroupName,
        ids: &[InstanceId],
    ) -> Result<(), AwsError> {
        let names: Vec<_> = ids.iter().map(InstanceId::as_str).collect();
        let told = format!("protect {}", names.join(" "));
        self.change(Call::SetInstanceProtection, group, told, |g| {
            let bare = g.members.iter_mut().filter(|m| ids.contains(&m.id));
            bare.for_each(|m| m.protected = true);
        })
    }
    async fn suspend_launch(&self, _: &Region, _: &GroupName) -> Result<(), AwsError> {
        panic!("a survey suspends no launches")
    }
    async fn resume_launch(&self, _: &Region, _: &GroupName) -> Result<(), AwsError> {
        panic!("a survey resumes no launches")
    }
    async fn tag_group(&self, _: &Region, _: &GroupName, _: &str, _: &str) -> Result<(), AwsError> {
        panic!("a survey tags nothing")
    }
    async fn describe_instances(
        &self,
        _: &Region,
        _: &[InstanceId],
    ) -> Result<BTreeMap<InstanceId, Instance>, AwsError> {
        panic!("a survey reads no instances")
    }
    async fn describe_instance_types(
        &self,
        _: &Region,
        types: &[String],
    ) -> Result<BTreeMap<String, InstanceTypeFacts>, AwsError> {
        let world = self.enter(Call::DescribeInstanceTypes)?;
        if world.unknown_type {
            let text = "The following supplied instance types do not exist: [p5.48xlarge]";
            return Err(error(
                Call::DescribeInstanceTypes,
                400,
                "InvalidInstanceType",
                text,
            ));
        }
        let facts = |name: &String| InstanceTypeFacts {
            name: name.clone(),
            vcpus: Some(192),
            memory_mib: Some(2_097_152),
            gpus: vec![],
            local_disk_gb: None,
            architectures: vec![],
            bare_metal: Some(false),
        };
        Ok(types.iter().map(|t| (t.clone(), facts(t))).collect())
    }
    async fn describe_template(
        &self,
        _: &Region,
        _: &TemplateRef,
    ) -> Result<Option<TemplateFacts>, AwsError> {
        let world = self.enter(Call::DescribeLaunchTemplateVersions)?;
        Ok(Some(world.facts.clone()).filter(|_| !world.version_gone))
    }
}
