//! The fleet of glass.

use async_trait::async_trait;
use drover::adapters::clock::ManualClock;
use drover::adapters::demand::requests::Requests;
use drover::adapters::store::memory::{Disk, MemoryStore};
use drover::config::{self, Config};
use drover::control::commands::Commands;
use drover::control::cycle::{Control, Ports};
use drover::control::journal::Journal;
use drover::control::settings::{Ask, Settings};
use drover::control::view::{FleetView, NodeView};
use drover::ports::actuate::{
    ActuateError, Actuator, Dead, Instance, InstanceState, LaunchOrder, LaunchOutcome,
    NO_SUCH_GROUP, PoolReading, ProviderFailure, Raise, Recipe, Trace, Way,
};
use drover::ports::calls::CallCounts;
use drover::ports::clock::Clock;
use drover::ports::hooks::Hook;
use drover::ports::link::{AgentLink, AgentNotice, AgentView};
use drover::ports::notices::{CloudNotice, NoticeSource};
use drover::ports::store::{CommitError, Entry, Fence, Guard, Op, ReadError, Revision, Store};
use drover::records::{
    DesiredState, DrainPolicy, EventRecord, NodeRecord, OrderRecord, RequestSpec, keys,
};
use drover::serve::http::Sources;
use drover_core::model::{
    Bytes, FailureKind, InstanceId, Locality, Market, MicroUsd, MilliCpu, Millis, NodeId, Offering,
    OfferingId, PoolId, PoolKind, ReservedRoom, Resources, Steering, Stop, UnixMs,
};
use drover_proto::v1;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, watch};

/// Ends the coordinator right after its n-th durable step (a commit, or a call of the cloud).
#[derive(Default)]
pub struct Crash {
    steps: AtomicU64,
    at: AtomicU64,
    happened: Notify,
}

impl Crash {
    pub fn arm(&self, at: u64) {
        self.steps.store(0, Ordering::SeqCst);
        self.at.store(at, Ordering::SeqCst);
    }
    pub fn disarm(&self) {
        self.at.store(0, Ordering::SeqCst);
    }
    /// The step was done; its answer never arrives.
    async fn step(&self) {
        let step = self.steps.fetch_add(1, Ordering::SeqCst) + 1;
        let at = self.at.load(Ordering::SeqCst);
        if at != 0 && step >= at {
            self.happened.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

/// The store in memory, with crashes.
pub struct GlassStore {
    inner: MemoryStore,
    crash: Arc<Crash>,
}

#[async_trait]
impl Store for GlassStore {
    fn fence(&self) -> Fence {
        self.inner.fence()
    }
    fn store_id(&self) -> &str {
        self.inner.store_id()
    }
    async fn get(&self, key: &str) -> Result<Option<Entry>, ReadError> {
        self.inner.get(key).await
    }
    async fn list(&self, prefix: &str) -> Result<Vec<Entry>, ReadError> {
        self.inner.list(prefix).await
    }
    async fn commit(
        &self,
        fence: Fence,
        guards: &[Guard],
        ops: &[Op],
    ) -> Result<Revision, CommitError> {
        let result = self.inner.commit(fence, guards, ops).await;
        self.crash.step().await;
        result
    }
    async fn backup(&self, to: &Path) -> Result<(), CommitError> {
        self.inner.backup(to).await
    }
}

/// A machine of the cloud.
#[derive(Clone)]
pub struct Machine {
    pub pool: String,
    pub state: InstanceState,
    pub token: String,
    pub launched: UnixMs,
    /// Its provider ends it then.
    pub ends: Option<UnixMs>,
}

/// What the cloud does when it is asked for a pool.
#[derive(Clone, Default)]
pub struct Script {
    /// Grants at most so many in all.
    pub capacity: Option<u32>,
    /// Every launch fails so.
    pub launch_fails: Option<FailureKind>,
    /// Calls are turned away before anything is asked, so and with this code.
    pub turned_away: Option<(FailureKind, &'static str)>,
    /// The launch takes effect, its answer is lost.
    pub answer_lost: bool,
    /// Every termination fails so.
    pub leave_fails: Option<FailureKind>,
    /// A termination gives no answer until [`Cloud::answer`].
    pub leave_hangs: bool,
    /// What a person should mend there.
    pub warnings: Vec<String>,
    /// Cannot be read.
    pub dark: bool,
    /// New instances are not shown.
    pub hides: bool,
    /// The provider's own minimum.
    pub least: Option<u32>,
    /// The provider's own maximum.
    pub most: Option<u32>,
    /// Why nothing may be ended there.
    pub no_removal: Option<String>,
    /// Members that do not run any more: id, only stopped, what it says about launches.
    pub dead: Vec<(String, bool, Option<FailureKind>)>,
    /// Instance type; empty: p2.
    pub kind: String,
    /// Lifecycle hooks of the group.
    pub hooks: Vec<Hook>,
    /// The provider answers that there is no such group.
    pub gone: bool,
    /// What its nodes are made from: template, the rest.
    pub recipe: (String, String),
    /// What the provider says that stops it.
    pub stops: Vec<Stop>,
    /// Nobody knows what its type offers.
    pub unknown_type: bool,
    /// What a launch that fails says; empty: the kind.
    pub words: String,
    /// It is asked by raising a capacity: no ids are told.
    pub nameless: bool,
    /// It offers itself as a whole, and no zone.
    pub whole: bool,
    /// Wanted beyond what is there.
    pub unfilled: u32,
    /// Calls about hooks fail so.
    pub hook_fails: Option<FailureKind>,
    /// It is asked for a size: answers name no instance, and beyond the capacity nothing comes.
    pub sized: bool,
    /// What it reports by itself.
    pub failures: Vec<ProviderFailure>,
    /// Reservations that its offering comes out of.
    pub reservations: Vec<ReservedRoom>,
    /// GPU model that its offering promises; empty: k80.
    pub promises: String,
}

/// The cloud.
#[derive(Default)]
pub struct Cloud {
    pub machines: Mutex<BTreeMap<String, Machine>>,
    pub scripts: Mutex<BTreeMap<String, Script>>,
    pub launches: Mutex<Vec<LaunchOrder>>,
    pub ended: Mutex<Vec<String>>,
    /// Terminations that were asked for, answered or not.
    pub leaves: Mutex<Vec<String>>,
    /// Taken off the books.
    pub buried: Mutex<Vec<String>>,
    /// Calls about hooks: what, of which instance, when.
    pub hook_calls: Mutex<Vec<(&'static str, String, UnixMs)>>,
    /// Instances whose hook was completed: nobody waits there any more.
    pub completed: Mutex<BTreeSet<String>>,
    answers_come: Notify,
    answers: Mutex<BTreeMap<String, LaunchOutcome>>,
    next: AtomicU64,
    now: AtomicU64,
    crash: Arc<Crash>,
}

pub fn offering(pool: &str) -> OfferingId {
    OfferingId(format!("{pool}/p2/a/on-demand"))
}

/// The same capacity where no zone can be chosen.
pub fn whole(pool: &str) -> OfferingId {
    OfferingId(format!("{pool}/p2//on-demand"))
}

pub const GPUS: u32 = 16;

impl Cloud {
    pub fn script(&self, pool: &str, change: impl FnOnce(&mut Script)) {
        change(
            self.scripts
                .lock()
                .expect("lock")
                .entry(pool.to_owned())
                .or_default(),
        );
    }
    fn scripted(&self, pool: &str) -> Script {
        self.scripts
            .lock()
            .expect("lock")
            .get(pool)
            .cloned()
            .unwrap_or_default()
    }
    fn now(&self) -> UnixMs {
        UnixMs(self.now.load(Ordering::SeqCst))
    }
    /// A machine that somebody else started.
    pub fn add(&self, pool: &str, id: &str) {
        self.machines.lock().expect("lock").insert(
            id.to_owned(),
            Machine {
                pool: pool.to_owned(),
                state: InstanceState::Running,
                token: String::new(),
                launched: UnixMs(0),
                ends: None,
            },
        );
    }
    /// The same, started now.
    pub fn add_now(&self, pool: &str, id: &str) {
        self.add(pool, id);
        let mut machines = self.machines.lock().expect("lock");
        machines.get_mut(id).expect("a machine").launched = self.now();
    }
    /// Ids of the machines that run in a pool.
    pub fn alive(&self, pool: &str) -> Vec<String> {
        self.machines
            .lock()
            .expect("lock")
            .iter()
            .filter(|(_, machine)| machine.pool == pool && machine.state < InstanceState::Leaving)
            .map(|(id, _)| id.clone())
            .collect()
    }
    /// What hung is answered.
    pub fn answer(&self) {
        self.answers_come.notify_waiters();
    }
    fn hook_called(
        &self,
        pool: &PoolId,
        what: &'static str,
        instance: &InstanceId,
    ) -> Result<bool, ActuateError> {
        let call = (what, instance.0.clone(), self.now());
        self.hook_calls.lock().expect("lock").push(call);
        if let Some(kind) = self.scripted(pool.as_str()).hook_fails {
            return Err(refusal(kind));
        }
        let completed = self.completed.lock().expect("lock");
        Ok(!completed.contains(instance.as_str()))
    }
    /// Seconds since `from` at which an instance's hook was called so.
    pub fn hook_seconds(&self, what: &str, instance: &str, from: UnixMs) -> Vec<u64> {
        let calls = self.hook_calls.lock().expect("lock");
        let these = calls.iter().filter(|(w, i, _)| *w == what && i == instance);
        these.map(|(.., at)| at.since(from).0 / 1_000).collect()
    }
    /// The group ends an instance by itself: it waits in the group's hook.
    pub fn terminates(&self, instance: &str) {
        let mut machines = self.machines.lock().expect("lock");
        machines.get_mut(instance).expect("a machine").state = InstanceState::Leaving;
    }
    pub fn asked(&self) -> usize {
        self.launches.lock().expect("lock").len()
    }
}

fn refusal(kind: FailureKind) -> ActuateError {
    ActuateError {
        kind,
        code: "Glass".to_owned(),
        message: format!("glass: {kind:?}"),
    }
}

fn no_group(pool: &PoolId) -> ActuateError {
    ActuateError {
        kind: FailureKind::Config,
        code: NO_SUCH_GROUP.to_owned(),
        message: format!("there is no group {pool} in glass"),
    }
}

pub struct CloudPort(pub Arc<Cloud>);

#[async_trait]
impl Actuator for CloudPort {
    fn kind(&self) -> PoolKind {
        PoolKind::Sim
    }

    async fn read(&self, pools: &[PoolId]) -> Vec<(PoolId, Result<PoolReading, ActuateError>)> {
        let machines = self.0.machines.lock().expect("lock").clone();
        let now = self.0.now();
        let one = |pool: &PoolId| {
            let script = self.0.scripted(pool.as_str());
            if script.dark {
                return Err(refusal(FailureKind::Transient));
            }
            if script.gone {
                return Err(no_group(pool));
            }
            let kind = match script.kind.as_str() {
                "" => "p2",
                kind => kind,
            };
            let dead = script.dead.iter().map(|(id, stopped, kind)| Dead {
                id: InstanceId::from(id.as_str()),
                stopped: *stopped,
                kind: *kind,
                why: "it was ended".to_owned(),
                since: now,
            });
            let no_removal = script.no_removal.clone().map(|why| Stop::NoRemoval { why });
            let instances = machines
                .iter()
                .filter(|(_, machine)| machine.pool == pool.as_str())
                .filter(|(_, machine)| !script.hides || machine.token.is_empty())
                .map(|(id, machine)| Instance {
                    id: InstanceId::from(id.as_str()),
                    state: machine.state,
                    offering: Some(offering(pool.as_str())),
                    zone: "a".to_owned(),
                    instance_type: kind.to_owned(),
                    protected: None,
                    launched: Some(machine.launched),
                    ends: machine.ends,
                })
                .collect();
            Ok(PoolReading {
                instances,
                offerings: vec![Offering {
                    id: if script.whole {
                        whole(pool.as_str())
                    } else {
                        offering(pool.as_str())
                    },
                    instance_type: kind.to_owned(),
                    zone: if script.whole { "" } else { "a" }.to_owned(),
                    market: Market::OnDemand,
                    price: MicroUsd(14_400_000),
                    allocatable: (!script.unknown_type).then(|| Resources {
                        gpu_milli: 0,
                        cpu: MilliCpu(64_000),
                        memory: Bytes(732 << 30),
                        gpus: GPUS,
                        extended: BTreeMap::new(),
                    }),
                    // As a catalogue names it; the host's driver says "Tesla K80".
                    gpu_model: match script.promises.as_str() {
                        "" => "k80".to_owned(),
                        model => model.to_owned(),
                    },
                    boot: Millis::seconds(60),
                    available: None,
                    reservations: script.reservations,
                }],
                steering: Steering::Zone,
                provider_min: script.least,
                provider_max: script.most,
                stops: no_removal.into_iter().chain(script.stops).collect(),
                removable: true,
                warnings: script.warnings,
                failures: script.failures,
                unfilled: script.unfilled,
                parts: BTreeMap::from([(offering(pool.as_str()), whole(pool.as_str()))]),
                dead: dead.collect(),
                recipe: Recipe {
                    template: script.recipe.0,
                    group: script.recipe.1,
                },
                ..PoolReading::empty(now)
            })
        };
        pools.iter().map(|pool| (pool.clone(), one(pool))).collect()
    }

    async fn launch(&self, order: &LaunchOrder) -> Result<LaunchOutcome, ActuateError> {
        let cloud = &self.0;
        cloud.launches.lock().expect("lock").push(order.clone());
        let script = cloud.scripted(order.pool.as_str());
        if script.gone {
            return Err(no_group(&order.pool));
        }
        if let Some((kind, code)) = script.turned_away {
            return Err(ActuateError {
                code: code.to_owned(),
                ..refusal(kind)
            });
        }
        if let Some(kind) = script.launch_fails {
            cloud.crash.step().await;
            let mut refused = refusal(kind);
            if !script.words.is_empty() {
                refused.message = script.words;
            }
            return Err(refused);
        }
        let known = cloud
            .answers
            .lock()
            .expect("lock")
            .get(&order.token)
            .cloned();
        let outcome = known.unwrap_or_else(|| {
            let alive = u32::try_from(cloud.alive(order.pool.as_str()).len()).unwrap_or(u32::MAX);
            let room = script
                .capacity
                .map_or(u32::MAX, |most| most.saturating_sub(alive));
            let granted = order.count.min(room);
            let mut instances = Vec::new();
            for _ in 0..granted {
                let id = format!("i-{:04}", cloud.next.fetch_add(1, Ordering::SeqCst) + 1);
                cloud.machines.lock().expect("lock").insert(
                    id.clone(),
                    Machine {
                        pool: order.pool.0.clone(),
                        state: InstanceState::Pending,
                        token: order.token.clone(),
                        launched: cloud.now(),
                        ends: None,
                    },
                );
                instances.push(InstanceId(id));
            }
            if script.sized {
                let wanted = alive + script.unfilled;
                cloud.script(order.pool.as_str(), |script| {
                    script.unfilled += order.count - granted;
                });
                return LaunchOutcome {
                    way: Way::SetDesiredCapacity,
                    instances: Vec::new(),
                    granted: order.count,
                    failures: Vec::new(),
                    raised: Some(Raise {
                        from: wanted,
                        to: wanted + order.count,
                    }),
                };
            }
            let failures = if granted < order.count {
                vec![ProviderFailure {
                    id: format!("f-{}", order.token),
                    offering: Some(order.offering.clone()),
                    kind: FailureKind::Shortage,
                    message: "InsufficientInstanceCapacity".to_owned(),
                    at: cloud.now(),
                    trace: Trace::Absent,
                }]
            } else {
                Vec::new()
            };
            LaunchOutcome {
                way: if script.nameless {
                    Way::SetDesiredCapacity
                } else {
                    Way::Sim
                },
                instances: if script.nameless {
                    Vec::new()
                } else {
                    instances
                },
                granted,
                failures,
                raised: None,
            }
        });
        cloud
            .answers
            .lock()
            .expect("lock")
            .insert(order.token.clone(), outcome.clone());
        cloud.crash.step().await;
        if script.answer_lost {
            return Err(refusal(FailureKind::Transient));
        }
        Ok(outcome)
    }

    async fn settle(
        &self,
        order: &LaunchOrder,
        _known: &[InstanceId],
        _now: UnixMs,
    ) -> Result<LaunchOutcome, ActuateError> {
        let machines = self.0.machines.lock().expect("lock");
        let instances: Vec<InstanceId> = machines
            .iter()
            .filter(|(_, machine)| machine.token == order.token)
            .map(|(id, _)| InstanceId::from(id.as_str()))
            .collect();
        Ok(LaunchOutcome {
            way: Way::Sim,
            granted: u32::try_from(instances.len()).unwrap_or(u32::MAX),
            instances,
            failures: Vec::new(),
            raised: None,
        })
    }

    async fn bury(&self, pool: &PoolId, instance: &InstanceId) -> Result<(), ActuateError> {
        let script = self.0.scripted(pool.as_str());
        let mut buried = self.0.buried.lock().expect("lock");
        buried.push(instance.0.clone());
        if let Some(kind) = script.leave_fails {
            return Err(refusal(kind));
        }
        self.0
            .machines
            .lock()
            .expect("lock")
            .remove(instance.as_str());
        self.0.script(pool.as_str(), |script| {
            script.dead.retain(|(id, _, _)| *id != instance.0);
        });
        Ok(())
    }

    async fn leave(&self, pool: &PoolId, instance: &InstanceId) -> Result<(), ActuateError> {
        let script = self.0.scripted(pool.as_str());
        self.0.leaves.lock().expect("lock").push(instance.0.clone());
        if script.leave_hangs {
            self.0.answers_come.notified().await;
        }
        if let Some(kind) = script.leave_fails {
            return Err(refusal(kind));
        }
        if let Some(machine) = self
            .0
            .machines
            .lock()
            .expect("lock")
            .get_mut(instance.as_str())
        {
            machine.state = InstanceState::Gone;
        }
        self.0.ended.lock().expect("lock").push(instance.0.clone());
        self.0.crash.step().await;
        Ok(())
    }

    async fn hooks(&self, pool: &PoolId) -> Result<Vec<Hook>, ActuateError> {
        Ok(self.0.scripted(pool.as_str()).hooks)
    }

    async fn beat(
        &self,
        pool: &PoolId,
        _hook: &str,
        instance: &InstanceId,
    ) -> Result<bool, ActuateError> {
        self.0.hook_called(pool, "beat", instance)
    }

    async fn complete(
        &self,
        pool: &PoolId,
        _hook: &str,
        instance: &InstanceId,
    ) -> Result<bool, ActuateError> {
        let waits = self.0.hook_called(pool, "complete", instance)?;
        self.0
            .completed
            .lock()
            .expect("lock")
            .insert(instance.0.clone());
        self.0.crash.step().await;
        Ok(waits)
    }
}

/// One agent.
#[derive(Clone)]
pub struct Agent {
    pub view: AgentView,
    pub silent: bool,
    /// Does not act on orders.
    pub stubborn: bool,
}

/// All agents.
#[derive(Default)]
pub struct Link {
    pub agents: Mutex<BTreeMap<NodeId, Agent>>,
    pub desired: Mutex<BTreeMap<NodeId, OrderRecord>>,
    pub notices: Mutex<Vec<AgentNotice>>,
    pub forgotten: Mutex<BTreeSet<NodeId>>,
    changed: Mutex<Option<watch::Sender<u64>>>,
}

impl AgentLink for Link {
    fn views(&self) -> Vec<Arc<AgentView>> {
        let agents = self.agents.lock().expect("lock");
        agents
            .values()
            .map(|agent| Arc::new(agent.view.clone()))
            .collect()
    }
    fn view(&self, node: &NodeId) -> Option<Arc<AgentView>> {
        let agents = self.agents.lock().expect("lock");
        agents.get(node).map(|agent| Arc::new(agent.view.clone()))
    }
    fn notices(&self) -> Vec<AgentNotice> {
        self.notices.lock().expect("lock").clone()
    }
    fn settle_notices(&self, ids: &[(NodeId, String)]) {
        self.notices
            .lock()
            .expect("lock")
            .retain(|notice| !ids.contains(&(notice.node.clone(), notice.notice.id.clone())));
    }
    fn desire(&self, node: &NodeId, order: OrderRecord) {
        self.desired
            .lock()
            .expect("lock")
            .insert(node.clone(), order);
    }
    fn forget(&self, node: &NodeId) {
        self.agents.lock().expect("lock").remove(node);
        self.forgotten.lock().expect("lock").insert(node.clone());
    }
    fn changed(&self) -> watch::Receiver<u64> {
        let (sender, receiver) = watch::channel(0);
        *self.changed.lock().expect("lock") = Some(sender);
        receiver
    }
}

/// Queues of glass.
#[derive(Default)]
pub struct Queues {
    pub messages: Mutex<Vec<CloudNotice>>,
    pub troubles: Mutex<Vec<(String, String)>>,
}

impl NoticeSource for Queues {
    fn take(&self) -> Vec<CloudNotice> {
        self.messages.lock().expect("lock").clone()
    }
    fn settle(&self, ids: &[String]) {
        let mut messages = self.messages.lock().expect("lock");
        messages.retain(|message| !ids.contains(&message.id));
    }
    fn troubles(&self) -> Vec<(String, String)> {
        self.troubles.lock().expect("lock").clone()
    }
}

/// Everything together.
pub struct Rig {
    pub disk: Disk,
    pub clock: Arc<ManualClock>,
    pub link: Arc<Link>,
    pub cloud: Arc<Cloud>,
    pub crash: Arc<Crash>,
    pub config: Arc<Config>,
    pub store: Arc<GlassStore>,
    pub queues: Arc<Queues>,
    control: Option<Control>,
    pub commands: Commands,
}

pub const START: UnixMs = UnixMs(1_800_000_000_000);

/// Two cloud pools in two regions and a rack.
pub fn two_pools() -> String {
    let pool = |name: &str| {
        format!(
            "[[pool]]\nname = \"{name}\"\nkind = \"sim\"\nsite = \"{name}-site\"\ngroup = \"{name}\"\nmode = \"full\"\nmax = 200\nidle_after = \"10m\"\nremoval_quota = \"100%\"\n"
        )
    };
    format!(
        "[control]\nbreaker_fleet_percent = 50\nbreaker_pool = 100\n[sim]\ncloud = \"http://127.0.0.1:1\"\n{}{}",
        pool("a"),
        pool("b")
    )
}

impl Rig {
    pub async fn new(config: &str) -> Self {
        let config = config::parse(config).expect("config");
        let crash = Arc::new(Crash::default());
        let disk = Disk::default();
        let clock = Arc::new(ManualClock::at(START));
        clock.advance(Millis::seconds(1_000));
        let cloud = Arc::new(Cloud {
            crash: crash.clone(),
            ..Cloud::default()
        });
        let link = Arc::new(Link::default());
        let config = Arc::new(config);
        let (store, control, commands) =
            Self::build(&disk, &clock, &cloud, &link, &crash, &config).await;
        let mut rig = Self {
            disk,
            clock,
            link,
            cloud,
            crash,
            config,
            store,
            queues: Arc::default(),
            control: Some(control),
            commands,
        };
        rig.listen();
        rig.tick();
        rig
    }

    async fn build(
        disk: &Disk,
        clock: &Arc<ManualClock>,
        cloud: &Arc<Cloud>,
        link: &Arc<Link>,
        crash: &Arc<Crash>,
        config: &Arc<Config>,
    ) -> (Arc<GlassStore>, Control, Commands) {
        let store = Arc::new(GlassStore {
            inner: MemoryStore::open(disk),
            crash: crash.clone(),
        });
        let clock: Arc<dyn Clock> = clock.clone();
        let journal = Journal::open(store.clone(), clock.clone())
            .await
            .expect("journal");
        let journal = Arc::new(journal);
        let control = Control::new(
            config.clone(),
            Ports {
                journal,
                link: link.clone(),
                actuators: vec![Arc::new(CloudPort(cloud.clone()))],
                sources: vec![Arc::new(Requests::new(store.clone(), Millis::minutes(20)))],
                clock,
            },
        );
        let (commands, _) = control.commands();
        (store, control, commands)
    }

    /// The coordinator dies and starts again: another process on the same store. Sessions open again.
    pub async fn restart(&mut self) {
        self.control = None;
        let (store, control, commands) = Self::build(
            &self.disk,
            &self.clock,
            &self.cloud,
            &self.link,
            &self.crash,
            &self.config,
        )
        .await;
        (self.store, self.control, self.commands) = (store, Some(control), commands);
        self.listen();
    }

    fn listen(&mut self) {
        let queues = self.queues.clone();
        self.control.as_mut().expect("runs").hear_from(queues);
    }

    /// An agent tells something.
    pub fn notice(&self, node: &NodeId, notice: v1::Notice) {
        self.link.notices.lock().expect("lock").push(AgentNotice {
            node: node.clone(),
            notice,
        });
    }

    pub async fn with_config(&mut self, text: &str) {
        self.config = Arc::new(config::parse(text).expect("config"));
        self.restart().await;
    }

    /// Another config is pushed into the running coordinator.
    pub async fn push_config(&mut self, text: &str) {
        self.push(text, Ask::Settings).await;
    }

    /// Discovery found other groups than before.
    pub async fn push_discovered(&mut self, text: &str) {
        self.push(text, Ask::Discovered).await;
    }

    /// Discovery could not read something.
    pub async fn push_troubles(&mut self, troubles: &[&str]) {
        let troubles = troubles.iter().map(|what| (*what).to_owned()).collect();
        let control = self.control.as_mut().expect("it runs");
        let told = control.answer(Ask::Undiscovered(troubles)).await;
        told.expect("taken");
    }

    async fn push(&mut self, text: &str, ask: fn(Box<Settings>) -> Ask) {
        self.config = Arc::new(config::parse(text).expect("config"));
        let settings = Settings {
            config: self.config.clone(),
            actuators: vec![Arc::new(CloudPort(self.cloud.clone()))],
            sources: vec![Arc::new(Requests::new(
                self.store.clone(),
                Millis::minutes(20),
            ))],
        };
        let control = self.control.as_mut().expect("it runs");
        control
            .answer(ask(Box::new(settings)))
            .await
            .expect("taken");
    }

    fn tick(&self) {
        self.cloud.now.store(self.clock.wall().0, Ordering::SeqCst);
        let (now, mono) = (self.clock.wall(), self.clock.mono());
        let desired = self.link.desired.lock().expect("lock").clone();
        for (id, agent) in self.link.agents.lock().expect("lock").iter_mut() {
            if agent.silent {
                agent.view.connected = false;
                continue;
            }
            agent.view.connected = true;
            agent.view.last_seen = now;
            agent.view.last_seen_mono = mono.0;
            agent.view.workloads_at = now;
            if let Some(order) = desired.get(id)
                && !agent.stubborn
            {
                obey(&mut agent.view, order);
            }
        }
    }

    /// Agents report, then cycles run until none asks for another.
    pub async fn cycle(&mut self) {
        for _ in 0..30 {
            self.tick();
            if !self.once().await {
                return;
            }
        }
        panic!("cycles never come to rest");
    }

    /// One cycle, whether or not it asks for another.
    pub async fn once_only(&mut self) {
        self.tick();
        self.once().await;
    }

    async fn once(&mut self) -> bool {
        let control = self.control.as_mut().expect("runs");
        control.cycle().await.expect("a cycle")
    }

    /// One cycle that may crash; true: it did, and the coordinator is gone.
    pub async fn cycle_or_crash(&mut self) -> bool {
        self.tick();
        let crashed = {
            let control = self.control.as_mut().expect("runs");
            let happened = self.crash.happened.notified();
            tokio::select! {
                biased;
                () = happened => true,
                done = control.cycle() => { done.expect("a cycle"); false }
            }
        };
        if crashed {
            self.control = None;
        }
        crashed
    }

    /// Time passes in steps of ten seconds, a cycle after each.
    pub async fn pass(&mut self, span: Millis) {
        let mut left = span.0;
        while left > 0 {
            let step = left.min(10_000);
            self.clock.advance(Millis(step));
            self.cycle().await;
            left -= step;
        }
    }

    /// What monitoring is shown.
    pub fn sources(&self, calls: Arc<dyn CallCounts>) -> Sources {
        let control = self.control.as_ref().expect("runs");
        Sources {
            views: control.views(),
            journal: self.commands.journal().clone(),
            pace: control.pace(),
            calls,
            clock: self.clock.clone(),
            started: START,
        }
    }

    pub fn now(&self) -> UnixMs {
        self.clock.wall()
    }

    pub fn view(&self) -> Arc<FleetView> {
        self.commands.view()
    }

    pub fn node(&self, id: &str) -> NodeView {
        let view = self.view();
        let found = view.named(id);
        (*found.first().unwrap_or_else(|| panic!("no node {id}"))).clone()
    }

    pub fn has_node(&self, id: &str) -> bool {
        !self.view().named(id).is_empty()
    }

    /// Machines that nobody speaks for and that stay: the share of the fleet that may go is of all.
    pub fn bystanders(&self, count: u32) {
        for n in 0..count {
            self.cloud.add("b", &format!("by-{n}"));
        }
    }

    /// An agent enrols for an instance and opens its session.
    pub async fn join(&self, pool: &str, instance: &str) -> NodeId {
        self.join_with(pool, instance, GPUS, |_| {}).await
    }

    pub async fn join_with(
        &self,
        pool: &str,
        instance: &str,
        gpus: u32,
        change: impl FnOnce(&mut AgentView),
    ) -> NodeId {
        let id = NodeId(format!("n-{instance}"));
        let record = NodeRecord {
            // An empty name is a token without a pool.
            pool: Some(PoolId::from(pool)).filter(|pool| !pool.as_str().is_empty()),
            instance: Some(InstanceId::from(instance)),
            not_after: UnixMs(u64::MAX),
            ..NodeRecord::joined(id.clone(), format!("host-{instance}"), self.clock.wall())
        };
        let key = keys::named(keys::NODE, id.as_str());
        let value = serde_json::to_vec(&record).expect("json");
        self.store
            .inner
            .commit(self.store.fence(), &[], &[Op::Put(key, value)])
            .await
            .expect("enrolled");
        if let Some(machine) = self.cloud.machines.lock().expect("lock").get_mut(instance) {
            machine.state = InstanceState::Running;
        }
        let mut view = agent_view(&id, instance, gpus);
        change(&mut view);
        self.link.agents.lock().expect("lock").insert(
            id.clone(),
            Agent {
                view,
                silent: false,
                stubborn: false,
            },
        );
        self.tick();
        id
    }

    /// Changes the record of a node as `serve` does.
    pub async fn edit(&self, node: &NodeId, change: impl FnOnce(&mut NodeRecord)) {
        let key = keys::named(keys::NODE, node.as_str());
        let entry = self.store.inner.get(&key).await.expect("read");
        let entry = entry.expect("a record");
        let mut record: NodeRecord = serde_json::from_slice(&entry.value).expect("json");
        change(&mut record);
        let put = Op::Put(key, serde_json::to_vec(&record).expect("json"));
        self.store
            .inner
            .commit(self.store.fence(), &[], &[put])
            .await
            .expect("written");
    }

    /// Every machine that boots has its agent join.
    pub async fn boot_all(&self) {
        for pool in self.config.pools.clone() {
            for id in self.cloud.alive(pool.name.as_str()) {
                let node = NodeId(format!("n-{id}"));
                let known = self.link.agents.lock().expect("lock").contains_key(&node);
                if !known && !id.starts_with("by-") {
                    self.join(pool.name.as_str(), &id).await;
                }
            }
        }
    }

    pub fn agent(&self, node: &NodeId, change: impl FnOnce(&mut Agent)) {
        change(
            self.link
                .agents
                .lock()
                .expect("lock")
                .get_mut(node)
                .expect("an agent"),
        );
        self.tick();
    }

    /// Something runs there; an empty text ends it.
    pub fn work(&self, node: &NodeId, command: &str) {
        self.agent(node, |agent| {
            let items = if command.is_empty() {
                Vec::new()
            } else {
                vec![v1::Workload {
                    kind: v1::WorkloadKind::GpuProcess.into(),
                    id: "4711:1".into(),
                    user: "alice".into(),
                    command: command.to_owned(),
                    gpus: vec!["GPU-0".into()],
                    ..v1::Workload::default()
                }]
            };
            let list = agent.view.workloads.as_mut().expect("a list");
            Arc::make_mut(list).items = items;
        });
    }

    /// What runs there says that it can move, or says no more so.
    pub fn movable(&self, node: &NodeId, movable: bool) {
        self.agent(node, |agent| {
            let list = agent.view.workloads.as_mut().expect("a list");
            for work in &mut Arc::make_mut(list).items {
                work.movable = movable;
            }
        });
    }

    pub async fn ask(&self, name: &str, units: u32, gpus: u32) {
        self.ask_with(name, units, gpus, |_| {}).await;
    }

    pub async fn ask_with(
        &self,
        name: &str,
        units: u32,
        gpus: u32,
        change: impl FnOnce(&mut RequestSpec),
    ) {
        let mut spec = RequestSpec {
            units,
            unit: Resources {
                gpus,
                ..Resources::default()
            },
            whole_nodes: false,
            gpu_model: String::new(),
            duration: Some(Millis::minutes(30)),
            gang_min: None,
            locality: Locality::Any,
            priority: 0,
            pools: Vec::new(),
            labels: BTreeMap::new(),
            hold: None,
            ..RequestSpec::default()
        };
        change(&mut spec);
        self.commands
            .create_request("admin/ada", name, &spec)
            .await
            .expect("created");
    }

    pub async fn events(&self, what: &str) -> Vec<Arc<EventRecord>> {
        let all = self.commands.events(0, "", usize::MAX).await;
        all.into_iter().filter(|event| event.what == what).collect()
    }

    pub fn shown(&self, request: &str) -> &'static str {
        let view = self.view();
        view.request(request)
            .unwrap_or_else(|| panic!("no request {request}"))
            .shown
            .word()
    }

    pub async fn count(&self, prefix: &str) -> usize {
        self.store.inner.list(prefix).await.expect("listed").len()
    }

    /// Every key with its value, without events, audit and the sign of life.
    pub async fn records(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = self.store.inner.list("/").await.expect("listed");
        entries
            .into_iter()
            .filter(|entry| {
                ![keys::EVENT, keys::AUDIT, keys::ALIVE]
                    .iter()
                    .any(|prefix| entry.key.starts_with(prefix))
            })
            .map(|entry| (entry.key, entry.value))
            .collect()
    }
}

fn agent_view(id: &NodeId, instance: &str, gpus: u32) -> AgentView {
    AgentView {
        node: id.clone(),
        connected: true,
        last_seen: UnixMs(0),
        last_seen_mono: 0,
        facts: Arc::new(v1::Facts {
            hostname: format!("host-{instance}"),
            instance_id: Some(instance.to_owned()),
            cpus: Some(64),
            memory_bytes: Some(732 << 30),
            gpus: (0..gpus)
                .map(|index| v1::GpuFacts {
                    uuid: format!("GPU-{index}"),
                    name: "Tesla K80".into(),
                    index,
                    ..v1::GpuFacts::default()
                })
                .collect(),
            ..v1::Facts::default()
        }),
        telemetry: Some(Arc::new(v1::Telemetry::default())),
        workloads: Some(Arc::new(v1::WorkloadList {
            items: Vec::new(),
            unreadable: Vec::new(),
            witnesses: vec!["gpu-processes".into(), "processes".into()],
        })),
        workloads_at: UnixMs(0),
        conditions: Vec::new(),
        actual: Some(v1::NodeActual::default()),
        order_status: None,
        observed: None,
        highest_epoch: 0,
        clock_offset_ms: 0,
    }
}

/// What a healthy agent does with an order.
fn obey(view: &mut AgentView, order: &OrderRecord) {
    let evicts = order
        .drain
        .as_ref()
        .is_some_and(|drain| drain.policy == DrainPolicy::Evict);
    if let (true, Some(list)) = (evicts, &mut view.workloads) {
        // What can move goes within the grace; the rest stays, so that a test sees it.
        Arc::make_mut(list).items.retain(|work| !work.movable);
    }
    let work = view.workloads.as_ref().map_or(0, |list| list.items.len());
    let now = u32::try_from(work).unwrap_or(u32::MAX);
    view.highest_epoch = view.highest_epoch.max(order.epoch);
    let desired = match order.desired {
        DesiredState::Active => v1::Desired::Active,
        DesiredState::Cordoned => v1::Desired::Cordoned,
        DesiredState::Draining => v1::Desired::Draining,
    };
    view.observed = Some(v1::Order {
        epoch: order.epoch,
        generation: order.generation,
        desired: desired.into(),
        ..v1::Order::default()
    });
    if let Some(actual) = &mut view.actual {
        actual.cordoned_by_us = desired != v1::Desired::Active;
    }
    let mut status = v1::OrderStatus {
        epoch: order.epoch,
        generation: order.generation,
        workloads_now: now,
        ..v1::OrderStatus::default()
    };
    if let Some(drain) = &order.drain {
        status.drain_id = drain.id.0.clone();
        let state = if now == 0 {
            v1::DrainState::Drained
        } else {
            status.blockers.push(v1::Blocker {
                kind: "workload".into(),
                subject: "4711:1".into(),
                message: "process 4711 (alice) holds 1 GPU".into(),
            });
            v1::DrainState::Waiting
        };
        status.drain_state = state.into();
    }
    view.order_status = Some(status);
}
