//! An AWS of plain values for the edges: every call is written down, failures are queued, describes can be stale.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use drover_aws::{
    Activities, AwsApi, AwsError, Call, Gpu, Group, GroupName, GroupTemplate, Instance, InstanceId,
    InstanceState, InstanceTypeFacts, LaunchAsk, LaunchReply, Launched, Market, Member,
    MemberState, Region, TemplateFacts, TemplateRef,
};

/// What is there, and what was asked.
#[derive(Default)]
pub(super) struct World {
    pub(super) groups: BTreeMap<GroupName, Group>,
    /// Answers instead of the groups, first to last.
    pub(super) stale: VecDeque<Group>,
    pub(super) instances: BTreeMap<InstanceId, Instance>,
    pub(super) activities: Activities,
    /// Failures by call, first to last; `None` lets a call through.
    pub(super) failures: BTreeMap<Call, VecDeque<Option<AwsError>>>,
    /// Calls whose failure comes after they took effect.
    pub(super) applied: bool,
    pub(super) tokens: BTreeMap<String, LaunchReply>,
    /// Written after each of our own tags: another coordinator.
    pub(super) rival: Option<String>,
    pub(super) calls: Vec<String>,
    pub(super) next: u32,
    /// LaunchInstances calls at work, and the most at once.
    pub(super) launching: (u32, u32),
    /// Other changes that were made meanwhile.
    pub(super) amid: Vec<String>,
    pub(super) now_ms: i64,
    /// The only types that there are; empty: every type there is an A100 machine.
    pub(super) types: BTreeMap<String, InstanceTypeFacts>,
    /// What the launch template says instead of version 1; `Some(None)`: there is no such version.
    pub(super) template: Option<Option<TemplateFacts>>,
}

#[derive(Clone, Default)]
pub(super) struct Fake(pub(super) Arc<Mutex<World>>);

pub(super) fn group(name: &str, zones: &[&str]) -> Group {
    Group {
        name: name.into(),
        min: 0,
        max: 500,
        desired: 0,
        zones: zones.iter().map(|z| (*z).to_owned()).collect(),
        subnets: vec![],
        template: GroupTemplate::Template(TemplateRef {
            id: Some("lt-1".into()),
            name: None,
            version: None,
        }),
        tags: BTreeMap::from([("drover:owner".to_owned(), "store/7".to_owned())]),
        suspended: BTreeMap::from([
            ("AZRebalance".to_owned(), String::new()),
            ("ReplaceUnhealthy".to_owned(), String::new()),
        ]),
        protects_new: true,
        status: None,
        health_check: None,
        health_check_grace_seconds: None,
        max_lifetime_seconds: None,
        capacity_rebalance: Some(false),
        warm_pool_size: None,
        members: vec![],
    }
}

pub(super) fn member(id: &str, state: MemberState, protected: bool) -> Member {
    Member {
        id: id.into(),
        instance_type: Some("p4d.24xlarge".into()),
        zone: Some("a".into()),
        state,
        healthy: Some(true),
        protected,
        weight: None,
        template: None,
    }
}

pub(super) fn error(call: Call, status: u16, code: &str, message: &str) -> AwsError {
    AwsError::reported(call, &Region::from("r1"), status, Some(code), message)
}

pub(super) fn timeout(call: Call) -> AwsError {
    AwsError::unreported(
        call,
        &Region::from("r1"),
        drover_aws::FailureKind::Transient,
        "no reply".into(),
        true,
    )
}

/// Eight A100s under any name.
pub(super) fn a100s(name: &str) -> InstanceTypeFacts {
    InstanceTypeFacts {
        name: name.to_owned(),
        vcpus: Some(96),
        memory_mib: Some(1_179_648),
        gpus: vec![Gpu {
            model: "A100".into(),
            maker: None,
            count: 8,
            memory_mib: Some(40_960),
        }],
        local_disk_gb: None,
        architectures: vec![],
        bare_metal: Some(false),
    }
}

impl World {
    pub(super) fn run(&mut self, id: &InstanceId, group: &GroupName, zone: &str) {
        let mut new = member(id.as_str(), MemberState::InService, true);
        new.zone = Some(zone.to_owned());
        let instance = Instance {
            id: id.clone(),
            instance_type: new.instance_type.clone(),
            state: InstanceState::Running,
            state_reason: None,
            zone: new.zone.clone(),
            market: Market::OnDemand,
            launched_unix_ms: Some(self.now_ms),
            private_ip: None,
            reservation: None,
            image: None,
            tags: BTreeMap::new(),
        };
        self.instances.insert(id.clone(), instance);
        self.groups
            .get_mut(group)
            .expect("the group")
            .members
            .push(new);
    }
}

impl Fake {
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("the world")
    }

    pub(super) fn of(groups: Vec<Group>) -> Self {
        let fake = Self::default();
        fake.world().groups = groups.into_iter().map(|g| (g.name.clone(), g)).collect();
        fake
    }

    pub(super) fn fail(&self, call: Call, failures: Vec<Option<AwsError>>) {
        self.world().failures.insert(call, failures.into());
    }

    /// Mutations so far, and none of the reads.
    pub(super) fn mutations(&self) -> Vec<String> {
        self.world()
            .calls
            .iter()
            .filter(|c| !c.starts_with("describe"))
            .cloned()
            .collect()
    }

    fn enter(&self, call: Call, text: String) -> (MutexGuard<'_, World>, Option<AwsError>) {
        let mut world = self.world();
        world.calls.push(text);
        let failure = world
            .failures
            .get_mut(&call)
            .and_then(VecDeque::pop_front)
            .flatten();
        (world, failure)
    }

    fn change(
        &self,
        call: Call,
        text: String,
        change: impl FnOnce(&mut World),
    ) -> Result<(), AwsError> {
        let (mut world, failure) = self.enter(call, text.clone());
        if world.launching.0 > 0 {
            world.amid.push(text);
        }
        if failure.is_none() || world.applied {
            change(&mut world);
        }
        failure.map_or(Ok(()), Err)
    }
}

impl Fake {
    /// Members show first and the desired capacity follows, as describes of the real one may have it.
    async fn launch(
        &self,
        ask: &LaunchAsk,
        place: &str,
        failure: Option<AwsError>,
    ) -> Result<LaunchReply, AwsError> {
        let token = ask.token.to_string();
        let mut new = Vec::new();
        {
            let mut world = self.world();
            if let Some(failure) = failure.clone().filter(|_| !world.applied) {
                return Err(failure);
            }
            if !world.tokens.contains_key(&token) {
                for _ in 0..ask.count {
                    world.next += 1;
                    let id = InstanceId::new(format!("i-{}", world.next));
                    world.run(&id, &ask.group, place);
                    new.push(id);
                }
            }
        }
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        let mut world = self.world();
        if !new.is_empty() {
            world.groups.get_mut(&ask.group).expect("the group").desired += ask.count;
            let launched = Launched {
                instances: new,
                instance_type: None,
                zone: Some(place.to_owned()),
                market: None,
            };
            let reply = LaunchReply {
                launched: vec![launched],
                refused: vec![],
            };
            world.tokens.insert(token.clone(), reply);
        }
        failure.map_or_else(|| Ok(world.tokens[&token].clone()), Err)
    }
}

#[async_trait]
impl AwsApi for Fake {
    async fn describe_groups(
        &self,
        region: &Region,
        names: &[GroupName],
    ) -> Result<BTreeMap<GroupName, Group>, AwsError> {
        let (mut world, failure) = self.enter(
            Call::DescribeAutoScalingGroups,
            format!("describe {region}"),
        );
        if let Some(failure) = failure.filter(|_| region.as_str() == "r1") {
            return Err(failure);
        }
        if let Some(old) = world.stale.pop_front() {
            return Ok(BTreeMap::from([(old.name.clone(), old)]));
        }
        Ok(names
            .iter()
            .filter_map(|n| Some((n.clone(), world.groups.get(n)?.clone())))
            .collect())
    }

    async fn describe_activities(
        &self,
        _: &Region,
        _: &GroupName,
        _: i64,
    ) -> Result<Activities, AwsError> {
        let (world, failure) = self.enter(
            Call::DescribeScalingActivities,
            "describe activities".into(),
        );
        failure.map_or(Ok(world.activities.clone()), Err)
    }

    async fn launch_instances(&self, _: &Region, ask: &LaunchAsk) -> Result<LaunchReply, AwsError> {
        let place = match &ask.place {
            Some(drover_aws::LaunchPlace::Zone(zone)) => zone.clone(),
            other => format!("{other:?}"),
        };
        let failure = {
            let text = format!("launch {} {place} {}", ask.count, ask.token);
            let (mut world, failure) = self.enter(Call::LaunchInstances, text);
            world.launching.0 += 1;
            world.launching.1 = world.launching.1.max(world.launching.0);
            failure
        };
        let reply = self.launch(ask, &place, failure).await;
        self.world().launching.0 -= 1;
        reply
    }

    async fn set_desired_capacity(
        &self,
        _: &Region,
        group: &GroupName,
        desired: u32,
    ) -> Result<(), AwsError> {
        self.change(
            Call::SetDesiredCapacity,
            format!("desired {desired}"),
            |w| {
                w.groups.get_mut(group).expect("the group").desired = desired;
            },
        )
    }

    async fn terminate_with_decrement(
        &self,
        _: &Region,
        instance: &InstanceId,
    ) -> Result<(), AwsError> {
        self.change(
            Call::TerminateInstanceInAutoScalingGroup,
            format!("terminate {instance}"),
            |w| {
                for group in w.groups.values_mut() {
                    let before = group.members.len();
                    group.members.retain(|m| m.id != *instance);
                    group.desired -= u32::from(group.members.len() < before);
                }
            },
        )
    }

    async fn protect_from_scale_in(
        &self,
        _: &Region,
        group: &GroupName,
        ids: &[InstanceId],
    ) -> Result<(), AwsError> {
        let names: Vec<_> = ids.iter().map(InstanceId::as_str).collect();
        self.change(
            Call::SetInstanceProtection,
            format!("protect {}", names.join(",")),
            |w| {
                let group = w.groups.get_mut(group).expect("the group");
                group
                    .members
                    .iter_mut()
                    .filter(|m| ids.contains(&m.id))
                    .for_each(|m| m.protected = true);
            },
        )
    }

    async fn suspend_launch(&self, _: &Region, group: &GroupName) -> Result<(), AwsError> {
        self.change(Call::SuspendProcesses, "suspend".into(), |w| {
            let group = w.groups.get_mut(group).expect("the group");
            group.suspended.insert("Launch".to_owned(), String::new());
        })
    }

    async fn resume_launch(&self, _: &Region, group: &GroupName) -> Result<(), AwsError> {
        self.change(Call::ResumeProcesses, "resume".into(), |w| {
            let group = w.groups.get_mut(group).expect("the group");
            group.suspended.remove("Launch");
        })
    }

    async fn tag_group(
        &self,
        _: &Region,
        group: &GroupName,
        key: &str,
        value: &str,
    ) -> Result<(), AwsError> {
        self.change(
            Call::CreateOrUpdateTags,
            format!("tag {key}={value}"),
            |w| {
                let rival = w.rival.clone().filter(|_| key == "drover:owner");
                let tags = &mut w.groups.get_mut(group).expect("the group").tags;
                tags.insert(key.to_owned(), rival.unwrap_or_else(|| value.to_owned()));
            },
        )
    }

    async fn describe_instances(
        &self,
        _: &Region,
        ids: &[InstanceId],
    ) -> Result<BTreeMap<InstanceId, Instance>, AwsError> {
        let (world, failure) = self.enter(Call::DescribeInstances, "describe instances".into());
        let found = ids
            .iter()
            .filter_map(|id| Some((id.clone(), world.instances.get(id)?.clone())))
            .collect();
        failure.map_or(Ok(found), Err)
    }

    async fn describe_instance_types(
        &self,
        region: &Region,
        types: &[String],
    ) -> Result<BTreeMap<String, InstanceTypeFacts>, AwsError> {
        let call = Call::DescribeInstanceTypes;
        let (world, failure) = self.enter(call, format!("describe types {}", types.join(",")));
        if let Some(failure) = failure {
            return Err(failure);
        }
        let facts = |name: &String| {
            if world.types.is_empty() {
                return Some(a100s(name));
            }
            world.types.get(name).cloned()
        };
        let found: Option<BTreeMap<_, _>> =
            types.iter().map(|t| Some((t.clone(), facts(t)?))).collect();
        let text = "The following supplied instance types do not exist";
        found
            .ok_or_else(|| AwsError::reported(call, region, 400, Some("InvalidInstanceType"), text))
    }

    async fn describe_template(
        &self,
        _: &Region,
        _: &TemplateRef,
    ) -> Result<Option<TemplateFacts>, AwsError> {
        let (world, failure) = self.enter(
            Call::DescribeLaunchTemplateVersions,
            "describe template".into(),
        );
        if let (None, Some(said)) = (&failure, &world.template) {
            return Ok(said.clone());
        }
        let facts = TemplateFacts {
            id: None,
            version: Some(1),
            instance_type: Some("p4d.24xlarge".into()),
            image: None,
            market: Market::OnDemand,
            reservations: drover_aws::ReservationUse::Open,
        };
        failure.map_or(Ok(Some(facts)), Err)
    }
}
