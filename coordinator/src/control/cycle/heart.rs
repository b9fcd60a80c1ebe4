//! The coordinator's heart: what it is made of, and what others may ask of it between cycles.
//!
//! Made by `app` and by the simulator; every part of control works on its fields, nobody else does.

use crate::config::Config;
use crate::control::background::Background;
use crate::control::chance::Chance;
use crate::control::deeds::{Deed, Done};
use crate::control::journal::Journal;
use crate::control::launches::Answer;
use crate::control::learning::Learning;
use crate::control::ledger::Ledger;
use crate::control::observe::Pools;
use crate::control::pace::Pace;
use crate::control::plans::PlanFiles;
use crate::control::seen::Seen;
use crate::control::view::FleetView;
use crate::control::wake::Wake;
use crate::ports::actuate::Actuator;
use crate::ports::clock::Clock;
use crate::ports::demand::DemandSource;
use crate::ports::link::AgentLink;
use crate::ports::notices::NoticeSource;
use drover_core::model::LaunchId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What the heart works with.
pub struct Ports {
    /// Writer of the store.
    pub journal: Arc<Journal>,
    /// Agents.
    pub link: Arc<dyn AgentLink>,
    /// Pools, one per kind.
    pub actuators: Vec<Arc<dyn Actuator>>,
    /// Demand.
    pub sources: Vec<Arc<dyn DemandSource>>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// The coordinator's heart.
pub struct Control {
    pub(in crate::control) config: Arc<Config>,
    pub(in crate::control) journal: Arc<Journal>,
    pub(in crate::control) link: Arc<dyn AgentLink>,
    pub(in crate::control) sources: Vec<Arc<dyn DemandSource>>,
    pub(in crate::control) clock: Arc<dyn Clock>,
    pub(in crate::control) pools: Pools,
    /// Launch calls at work.
    pub(in crate::control) asks: Background<LaunchId, Answer>,
    /// Calls at work that end, protect or give back.
    pub(in crate::control) deeds: Background<Deed, Done>,
    pub(in crate::control) seen: Seen,
    pub(in crate::control) wake: Wake,
    pub(in crate::control) views: watch::Sender<Arc<FleetView>>,
    pub(in crate::control) settings: watch::Sender<Arc<Config>>,
    pub(in crate::control) plans: Option<PlanFiles>,
    pub(in crate::control) chance: Arc<Chance>,
    /// As the last cycle left it.
    pub(in crate::control) last_ledger: Ledger,
    pub(in crate::control) planning: Planning,
    pub(in crate::control) pace: Arc<Pace>,
    pub(in crate::control) learning: Learning,
    /// What clouds tell by themselves.
    pub(in crate::control) notices: Option<Arc<dyn NoticeSource>>,
}

/// What planning has cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Planning {
    /// Plans made.
    pub plans: u64,
    /// Time that the planner took for them, checks not counted twice.
    pub took: Duration,
}

impl Control {
    /// Ready for its first cycle.
    #[must_use]
    pub fn new(config: Arc<Config>, ports: Ports) -> Self {
        let seen = Seen::new(ports.clock.wall(), ports.clock.mono());
        let wake = Wake::default();
        Self {
            settings: watch::channel(config.clone()).0,
            config,
            journal: ports.journal,
            link: ports.link,
            sources: ports.sources,
            clock: ports.clock,
            pools: Pools::new(ports.actuators, wake.clone()),
            asks: Background::new(wake.clone()),
            deeds: Background::new(wake.clone()),
            seen,
            wake,
            views: watch::channel(Arc::new(FleetView::default())).0,
            plans: None,
            chance: Arc::default(),
            last_ledger: Ledger::default(),
            planning: Planning::default(),
            pace: Arc::default(),
            learning: Learning::default(),
            notices: None,
        }
    }

    /// Ids, tokens and jitter from a seed, and calls are waited for however long they take: for runs that must be alike,
    /// whose calls take no time of their own. Before the first cycle.
    pub fn repeatable(&mut self, seed: u64) {
        self.chance = Arc::new(Chance::seeded(seed));
        self.pools.wait_for_calls();
        self.asks.wait_for_calls();
        self.deeds.wait_for_calls();
    }

    /// What planning has cost so far.
    #[must_use]
    pub const fn planning(&self) -> Planning {
        self.planning
    }

    /// How long cycles and plans took, and how many cycles failed.
    #[must_use]
    pub fn pace(&self) -> Arc<Pace> {
        self.pace.clone()
    }

    /// Calls to the outside that were begun and have not been taken, as text.
    #[must_use]
    pub fn at_work(&self) -> Vec<String> {
        let asks = self.asks.flying().map(|launch| format!("launch {launch}"));
        let deeds = self.deeds.flying().map(|deed| format!("{deed:?}"));
        let reads = self.pools.reading().map(|pool| format!("reading {pool}"));
        asks.chain(deeds).chain(reads).collect()
    }

    /// The bell that wakes the loop around it.
    #[must_use]
    pub fn wake(&self) -> Wake {
        self.wake.clone()
    }

    /// Every snapshot that is published.
    #[must_use]
    pub fn views(&self) -> watch::Receiver<Arc<FleetView>> {
        self.views.subscribe()
    }
}
