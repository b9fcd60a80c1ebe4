//! The calls of the AWS interface, answered from the made world. A part of `cloud`.

use super::{Cloud, Made, TYPE, refusal};
use async_trait::async_trait;
use drover_aws::{
    Activities, Activity, ActivityStatus, AwsApi, AwsError, Group, GroupName, Instance, InstanceId,
    InstanceTypeFacts, LaunchAsk, LaunchRefusal, LaunchReply, Launched, Market, Region,
    TemplateFacts, TemplateRef, classify,
};
use std::collections::BTreeMap;

#[async_trait]
impl AwsApi for Cloud {
    async fn describe_groups(
        &self,
        _: &Region,
        names: &[GroupName],
    ) -> Result<BTreeMap<GroupName, Group>, AwsError> {
        let came = self.enter().await;
        let mut world = self.world();
        // AWS answers for at most 100 names at a time.
        for _ in names.chunks(100) {
            self.note(&mut world, "DescribeAutoScalingGroups", "", came);
        }
        let found = names
            .iter()
            .filter_map(|name| Some((name.clone(), world.groups.get(name)?.clone())));
        Ok(found.collect())
    }

    async fn describe_activities(
        &self,
        _: &Region,
        group: &GroupName,
        since_unix_ms: i64,
    ) -> Result<Activities, AwsError> {
        let came = self.enter().await;
        let mut world = self.world();
        self.note(
            &mut world,
            "DescribeScalingActivities",
            group.as_str(),
            came,
        );
        let all = world.activities.get(group).cloned().unwrap_or_default();
        let items = all
            .into_iter()
            .rev()
            .filter(|a| a.started_unix_ms >= Some(since_unix_ms));
        Ok(Activities {
            items: items.collect(),
            complete: true,
        })
    }

    async fn launch_instances(&self, _: &Region, ask: &LaunchAsk) -> Result<LaunchReply, AwsError> {
        let came = self.enter().await;
        let now = self.clock.wall().0;
        let mut world = self.world();
        let token = ask.token.to_string();
        if let Some(reply) = world.tokens.get(&token).cloned() {
            return Ok(reply);
        }
        let ids = world.start(&ask.group, ask.count, now);
        let granted = u32::try_from(ids.len()).expect("few");
        let group = world.groups.get_mut(&ask.group).expect("the group");
        group.desired += granted;
        let mut reply = LaunchReply::default();
        if granted > 0 {
            reply.launched.push(Launched {
                instances: ids,
                instance_type: Some(TYPE.into()),
                zone: group.zones.first().cloned(),
                market: None,
            });
        }
        if granted < ask.count {
            let message = refusal(group);
            reply.refused.push(LaunchRefusal {
                instance_type: Some(TYPE.into()),
                zone: group.zones.first().cloned(),
                market: None,
                code: Some("InsufficientInstanceCapacity".into()),
                class: classify(Some("InsufficientInstanceCapacity"), &message),
                message,
            });
        }
        world.tokens.insert(token.clone(), reply.clone());
        world.made.push(Made {
            call: "LaunchInstances",
            group: ask.group.to_string(),
            token,
            count: ask.count,
            granted,
            at: (came, now),
        });
        Ok(reply)
    }

    async fn set_desired_capacity(
        &self,
        _: &Region,
        name: &GroupName,
        desired: u32,
    ) -> Result<(), AwsError> {
        let came = self.enter().await;
        let now = self.clock.wall().0;
        let mut world = self.world();
        let group = world.groups.get_mut(name).expect("the group");
        let raised = desired > group.desired;
        group.desired = desired;
        let live = u32::try_from(group.members.len()).expect("few");
        let text = refusal(group);
        let wanted = desired.saturating_sub(live);
        let granted = u32::try_from(world.start(name, wanted, now).len()).expect("few");
        if granted < wanted {
            let id = format!("a-{}", world.made.len());
            let at = i64::try_from(now).ok();
            world
                .activities
                .entry(name.clone())
                .or_default()
                .push(Activity {
                    id,
                    started_unix_ms: at,
                    ended_unix_ms: at,
                    status: ActivityStatus::Failed,
                    description: "Launching a new EC2 instance.".into(),
                    cause: String::new(),
                    class: Some(classify(None, &text)),
                    message: Some(text),
                    details: None,
                });
        }
        world.made.push(Made {
            call: if raised {
                "SetDesiredCapacity"
            } else {
                "lowered"
            },
            group: name.to_string(),
            token: String::new(),
            count: wanted,
            granted,
            at: (came, now),
        });
        Ok(())
    }

    async fn terminate_with_decrement(&self, _: &Region, id: &InstanceId) -> Result<(), AwsError> {
        let came = self.enter().await;
        let mut world = self.world();
        for group in world.groups.values_mut() {
            let before = group.members.len();
            group.members.retain(|member| member.id != *id);
            group.desired -= u32::from(group.members.len() < before);
        }
        self.note(&mut world, "TerminateInstanceInAutoScalingGroup", "", came);
        Ok(())
    }

    async fn protect_from_scale_in(
        &self,
        _: &Region,
        _: &GroupName,
        _: &[InstanceId],
    ) -> Result<(), AwsError> {
        Ok(())
    }

    async fn suspend_launch(&self, _: &Region, group: &GroupName) -> Result<(), AwsError> {
        self.enter().await;
        let mut world = self.world();
        let group = world.groups.get_mut(group).expect("the group");
        group.suspended.insert("Launch".to_owned(), String::new());
        Ok(())
    }

    async fn resume_launch(&self, _: &Region, group: &GroupName) -> Result<(), AwsError> {
        self.enter().await;
        let mut world = self.world();
        world
            .groups
            .get_mut(group)
            .expect("the group")
            .suspended
            .remove("Launch");
        Ok(())
    }

    async fn tag_group(
        &self,
        _: &Region,
        group: &GroupName,
        key: &str,
        value: &str,
    ) -> Result<(), AwsError> {
        self.enter().await;
        let mut world = self.world();
        let tags = &mut world.groups.get_mut(group).expect("the group").tags;
        tags.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    async fn describe_instances(
        &self,
        _: &Region,
        ids: &[InstanceId],
    ) -> Result<BTreeMap<InstanceId, Instance>, AwsError> {
        let came = self.enter().await;
        let mut world = self.world();
        for _ in ids.chunks(200) {
            self.note(&mut world, "DescribeInstances", "", came);
        }
        let found = ids
            .iter()
            .filter_map(|id| Some((id.clone(), world.instances.get(id)?.clone())));
        Ok(found.collect())
    }

    async fn describe_instance_types(
        &self,
        _: &Region,
        types: &[String],
    ) -> Result<BTreeMap<String, InstanceTypeFacts>, AwsError> {
        let came = self.enter().await;
        self.note(&mut self.world(), "DescribeInstanceTypes", "", came);
        let facts = |name: &String| InstanceTypeFacts {
            name: name.clone(),
            vcpus: Some(4),
            memory_mib: Some(16_384),
            gpus: vec![drover_aws::Gpu {
                model: "A10G".into(),
                maker: None,
                count: 1,
                memory_mib: Some(22_888),
            }],
            local_disk_gb: None,
            architectures: vec![],
            bare_metal: Some(false),
        };
        Ok(types
            .iter()
            .map(|name| (name.clone(), facts(name)))
            .collect())
    }

    async fn describe_template(
        &self,
        _: &Region,
        _: &TemplateRef,
    ) -> Result<Option<TemplateFacts>, AwsError> {
        let came = self.enter().await;
        self.note(
            &mut self.world(),
            "DescribeLaunchTemplateVersions",
            "",
            came,
        );
        Ok(Some(TemplateFacts {
            id: Some("lt-1".into()),
            version: Some(1),
            instance_type: Some(TYPE.into()),
            image: None,
            market: Market::OnDemand,
            reservations: Default::default(),
        }))
    }
}
