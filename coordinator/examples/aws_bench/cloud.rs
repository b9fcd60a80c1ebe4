//! An AWS of plain values: groups, rations of capacity, a delay for every call, and a list of what was called.
//!
//! It knows nothing of Drover. Capacity that is short refuses in the call or, by SetDesiredCapacity, in an activity.

mod api;

use drover::ports::clock::Clock;
use drover_aws::{
    Activity, Group, GroupName, GroupTemplate, Instance, InstanceId, InstanceState, LaunchReply,
    Market, Member, MemberState, MixedPolicy, Override, TemplateRef,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The only type.
pub const TYPE: &str = "g5.xlarge";

/// One call that was made.
#[derive(Debug, Clone)]
pub struct Made {
    pub call: &'static str,
    pub group: String,
    pub token: String,
    pub count: u32,
    pub granted: u32,
    /// Milliseconds since 1970 when it came in, and when its answer went out.
    pub at: (u64, u64),
}

#[derive(Default)]
pub struct World {
    groups: BTreeMap<GroupName, Group>,
    /// How many more may be launched; absent: any.
    left: BTreeMap<GroupName, u32>,
    instances: BTreeMap<InstanceId, Instance>,
    activities: BTreeMap<GroupName, Vec<Activity>>,
    tokens: BTreeMap<String, LaunchReply>,
    pub made: Vec<Made>,
    next: u64,
}

#[derive(Clone)]
pub struct Cloud {
    world: Arc<Mutex<World>>,
    clock: Arc<dyn Clock>,
    delay: Duration,
}

fn refusal(group: &Group) -> String {
    let zone = group.zones.first().map_or("", String::as_str);
    format!(
        "We currently do not have sufficient {TYPE} capacity in the Availability Zone you requested ({zone}). Our system \
         will be working on provisioning additional capacity."
    )
}

impl Cloud {
    pub fn new(clock: Arc<dyn Clock>, delay: Duration) -> Self {
        Self {
            world: Arc::default(),
            clock,
            delay,
        }
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("the world")
    }

    /// A group of one zone; `by_desired`: of a shape that LaunchInstances refuses.
    pub fn group(&self, name: &str, zone: &str, max: u32, left: Option<u32>, by_desired: bool) {
        let template = if by_desired {
            GroupTemplate::Mixed(MixedPolicy {
                template: Some(reference()),
                overrides: vec![Override {
                    instance_type: Some(TYPE.into()),
                    weight: None,
                    by_requirements: false,
                }],
                on_demand_base: None,
                on_demand_percent_above_base: Some(50),
            })
        } else {
            GroupTemplate::Template(reference())
        };
        let suspended = ["AZRebalance", "ReplaceUnhealthy"];
        let group = Group {
            name: name.into(),
            min: 0,
            max,
            desired: 0,
            zones: vec![zone.to_owned()],
            subnets: vec![],
            template,
            tags: BTreeMap::from([("drover:owner".to_owned(), "unclaimed".to_owned())]),
            suspended: suspended
                .map(|name| (name.to_owned(), String::new()))
                .into(),
            protects_new: true,
            status: None,
            health_check: None,
            health_check_grace_seconds: None,
            warm_pool_size: None,
            max_lifetime_seconds: None,
            capacity_rebalance: Some(false),
            members: vec![],
        };
        let mut world = self.world();
        if let Some(left) = left {
            world.left.insert(group.name.clone(), left);
        }
        world.groups.insert(group.name.clone(), group);
    }

    /// Calls so far.
    pub fn calls(&self, call: &str) -> u32 {
        let world = self.world();
        let made = world.made.iter().filter(|made| made.call == call).count();
        u32::try_from(made).unwrap_or(u32::MAX)
    }

    async fn enter(&self) -> u64 {
        let now = self.clock.wall().0;
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        now
    }

    fn note(&self, world: &mut World, call: &'static str, group: &str, came: u64) {
        world.made.push(Made {
            call,
            group: group.to_owned(),
            token: String::new(),
            count: 0,
            granted: 0,
            at: (came, self.clock.wall().0),
        });
    }
}

fn reference() -> TemplateRef {
    TemplateRef {
        id: Some("lt-1".into()),
        name: None,
        version: Some("1".into()),
    }
}

impl World {
    /// Starts up to `count`; gives their ids.
    fn start(&mut self, name: &GroupName, count: u32, now: u64) -> Vec<InstanceId> {
        let left = self.left.get_mut(name);
        let granted = match left {
            Some(left) => {
                let granted = count.min(*left);
                *left -= granted;
                granted
            }
            None => count,
        };
        let group = self.groups.get_mut(name).expect("the group");
        let zone = group.zones[0].clone();
        let mut ids = Vec::new();
        for _ in 0..granted {
            self.next += 1;
            let id = InstanceId::new(format!("i-{:017x}", self.next));
            group.members.push(Member {
                id: id.clone(),
                instance_type: Some(TYPE.into()),
                zone: Some(zone.clone()),
                state: MemberState::InService,
                healthy: Some(true),
                protected: true,
                weight: None,
                template: None,
            });
            self.instances.insert(
                id.clone(),
                Instance {
                    id: id.clone(),
                    instance_type: Some(TYPE.into()),
                    state: InstanceState::Running,
                    state_reason: None,
                    zone: Some(zone.clone()),
                    market: Market::OnDemand,
                    launched_unix_ms: i64::try_from(now).ok(),
                    private_ip: None,
                    reservation: None,
                    image: None,
                    tags: BTreeMap::new(),
                },
            );
            ids.push(id);
        }
        ids
    }
}
