//! Plays the mishaps of a simulation: begins each when its time has come, and ends it.
//!
//! Called by the engine before it lets cycles run. Everything here happens to Drover; nothing here is Drover.

use super::people::PERSON;
use super::{Engine, SimError};
use crate::adapters::store::memory::DiskCopy;
use crate::control::cycle::CycleError;
use crate::records::{FreezeRecord, keys};
use crate::sim::fault::{Fault, Kind};
use crate::sim::stage::node::State;
use crate::sim::stage::{START, Stage};
use crate::world::generator::Generator;
use crate::world::{Ask, MarketSpec};
use drover_core::model::{Millis, UnixMs};

/// A wall clock that jumps is ahead by so much.
const JUMP: Millis = Millis::minutes(90);
/// A person looks at a restored store for so long before thawing it.
const LOOK: Millis = Millis::minutes(10);

/// What is to come and what goes on.
pub(super) struct Schedule {
    /// By time, the next one last.
    ahead: Vec<Fault>,
    /// What ends, and when.
    open: Vec<(UnixMs, End)>,
    dice: Generator,
    asks: u32,
}

/// How a mishap ends.
enum End {
    Uncordon(Vec<usize>),
    Source,
    Clock,
    Restore(DiskCopy),
    Thaw,
    Crash,
    Silence(Vec<usize>),
}

impl Schedule {
    pub(super) fn new(faults: &[Fault], seed: u64) -> Self {
        let mut ahead = faults.to_vec();
        // Those of one moment begin in their order.
        ahead.reverse();
        ahead.sort_by_key(|fault| std::cmp::Reverse(fault.at));
        Self {
            ahead,
            open: Vec::new(),
            dice: Generator::new(seed ^ 0x6d69_7368),
            asks: 0,
        }
    }

    /// When one begins or ends next.
    pub(super) fn next(&self) -> Option<UnixMs> {
        let begins = self.ahead.last().map(|fault| START.after(fault.at));
        let ends = self.open.iter().map(|(at, _)| *at).min();
        begins.into_iter().chain(ends).min()
    }

    /// Nothing is to come or goes on.
    pub(super) fn is_over(&self) -> bool {
        self.ahead.is_empty() && self.open.is_empty()
    }
}

impl Engine {
    /// Everything that begins or ends now.
    pub(super) async fn mishaps(&mut self) -> Result<(), SimError> {
        let now = self.stage.lock().now;
        let (over, open) = std::mem::take(&mut self.mishaps.open)
            .into_iter()
            .partition(|(at, _)| *at <= now);
        self.mishaps.open = open;
        let over: Vec<(UnixMs, End)> = over;
        for (_, end) in over {
            self.end(end).await?;
        }
        while let Some(fault) = self.mishaps.ahead.pop_if(|f| START.after(f.at) <= now) {
            let name = fault.kind.name();
            self.stage.lock().note(format!("mishap: {name}"));
            self.begin(&fault).await?;
        }
        Ok(())
    }

    /// Some nodes that are up and heard of, drawn by lot.
    fn some(&mut self, fault: &Fault, whole_site: bool) -> Vec<usize> {
        let stage = self.stage.lock();
        let mut up: Vec<usize> = (stage.agents.values().copied())
            .filter(|at| stage.nodes[*at].state == State::Up && !stage.is_silent(*at))
            .filter(|at| fault.pool.is_empty() || stage.nodes[*at].pool.as_str() == fault.pool)
            .collect();
        if whole_site {
            let count = u64::try_from(up.len()).unwrap_or(0);
            let drawn = usize::try_from(self.mishaps.dice.below(count)).unwrap_or(0);
            let Some(region) = up.get(drawn).map(|at| stage.nodes[*at].region.clone()) else {
                return up;
            };
            let there = |at: &usize| stage.nodes[*at].region == region;
            return stage.agents.values().copied().filter(there).collect();
        }
        let mut some = Vec::new();
        while !up.is_empty() && some.len() < usize::try_from(fault.count).unwrap_or(usize::MAX) {
            let count = u64::try_from(up.len()).unwrap_or(0);
            let drawn = usize::try_from(self.mishaps.dice.below(count)).unwrap_or(0);
            some.push(up.swap_remove(drawn));
        }
        some
    }

    async fn begin(&mut self, fault: &Fault) -> Result<(), SimError> {
        let now = self.stage.lock().now;
        let until = now.after(fault.lasts);
        match fault.kind {
            Kind::SiteSilent | Kind::NodesSilent => {
                let nodes = self.some(fault, fault.kind == Kind::SiteSilent);
                let mut stage = self.stage.lock();
                for at in &nodes {
                    stage.mishaps.silent.insert(*at, until);
                }
                stage.version += 1;
                self.mishaps.open.push((until, End::Silence(nodes)));
            }
            Kind::NodesLost => {
                let nodes = self.some(fault, false);
                let mut stage = self.stage.lock();
                for at in nodes {
                    stage.end_node(at, "its machine died");
                }
            }
            Kind::Cordon => self.cordon(fault, until).await?,
            Kind::SourceFails | Kind::SourceEmpty | Kind::SourceStale => {
                self.stage.lock().mishaps.source = Some(fault.kind);
                self.mishaps.open.push((until, End::Source));
            }
            Kind::ClockJump => {
                let mut stage = self.stage.lock();
                stage.mishaps.ahead = JUMP;
                self.clock.jump_to(stage.wall());
                self.mishaps.open.push((until, End::Clock));
            }
            Kind::Crash => {
                self.death.after(fault.count);
                self.mishaps.open.push((until, End::Crash));
            }
            Kind::Restore => {
                let copy = self.disk.copy();
                self.mishaps.open.push((until, End::Restore(copy)));
            }
            Kind::SecondCoordinator => self.second().await?,
            Kind::ForeignLaunch => self.foreign(fault),
        }
        Ok(())
    }

    async fn end(&mut self, end: End) -> Result<(), SimError> {
        match end {
            End::Silence(nodes) => {
                let mut stage = self.stage.lock();
                let now = stage.now;
                for at in nodes {
                    if stage.mishaps.silent.get(&at).is_some_and(|u| *u <= now) {
                        stage.mishaps.silent.remove(&at);
                    }
                }
                stage.version += 1;
            }
            End::Uncordon(nodes) => {
                for at in nodes {
                    let id = {
                        let mut stage = self.stage.lock();
                        stage.mishaps.cordoned.remove(&at);
                        let node = &stage.nodes[at];
                        (node.state == State::Up).then(|| node.id.clone())
                    };
                    if let Some(id) = id {
                        // A node that died meanwhile has no record any more.
                        let _ = self
                            .person("an uncordon", async |commands| {
                                commands.uncordon(PERSON, id.as_str()).await
                            })
                            .await?;
                    }
                }
            }
            End::Source => {
                let mut stage = self.stage.lock();
                stage.mishaps.source = None;
                stage.version += 1;
            }
            End::Clock => {
                let mut stage = self.stage.lock();
                stage.mishaps.ahead = Millis::ZERO;
                self.clock.jump_to(stage.wall());
                stage.version += 1;
            }
            End::Crash => self.death.never(),
            End::Restore(copy) => {
                self.disk.put_back(&copy);
                self.watch.store_lost();
                self.freeze()?;
                self.restart().await?;
                let now = self.stage.lock().now;
                self.mishaps.open.push((now.after(LOOK), End::Thaw));
            }
            End::Thaw => {
                // Somebody may have thawed it already.
                let _ = self
                    .person("a thaw", async |commands| commands.thaw(PERSON, None).await)
                    .await?;
            }
        }
        Ok(())
    }

    async fn cordon(&mut self, fault: &Fault, until: UnixMs) -> Result<(), SimError> {
        let mut done = Vec::new();
        for at in self.some(fault, false) {
            let id = self.stage.lock().nodes[at].id.clone();
            // A node that control does not know yet, or that leaves, cannot be cordoned.
            let cordoned = self
                .person("a cordon", async |commands| {
                    commands.cordon(PERSON, id.as_str(), "looking at it").await
                })
                .await?;
            if cordoned.is_ok() {
                self.stage.lock().mishaps.cordoned.insert(at);
                done.push(at);
            }
        }
        self.mishaps.open.push((until, End::Uncordon(done)));
        Ok(())
    }

    /// As `drover restore` leaves it.
    fn freeze(&self) -> Result<(), SimError> {
        let record = FreezeRecord {
            pool: None,
            by: PERSON.to_owned(),
            reason: "restored from a backup".to_owned(),
            since: self.stage.lock().wall(),
        };
        let value = serde_json::to_vec(&record).map_err(SimError::record)?;
        self.disk.write(&keys::named(keys::FREEZE, "*"), value);
        Ok(())
    }

    /// Another coordinator takes the store; this one goes on until it notices, and must change nothing (I10).
    async fn second(&mut self) -> Result<(), SimError> {
        let before = self.stage.lock().version;
        let other = self.start().await?;
        self.awaited = "the last cycle of a coordinator that no longer leads";
        let fenced = match self.control.cycle().await {
            Err(CycleError::Fenced(_)) => true,
            Ok(_) | Err(CycleError::Read(_)) => false,
        };
        let mut stage = self.stage.lock();
        if !fenced && stage.version != before {
            let what = "a coordinator that no longer leads has acted".to_owned();
            stage.violated("I10 fenced", what);
        }
        drop(stage);
        self.take(other);
        Ok(())
    }

    /// Somebody else starts instances in a group.
    fn foreign(&mut self, fault: &Fault) {
        self.mishaps.asks += 1;
        let mut stage = self.stage.lock();
        let chosen = stage
            .pools
            .values()
            .find(|pool| fault.pool.is_empty() || pool.id.as_str() == fault.pool);
        let Some((id, group)) = chosen.map(|pool| (pool.id.clone(), pool.group.clone())) else {
            return;
        };
        let ask = {
            let groups = &stage.world.spec().groups;
            let found = groups.iter().find(|spec| spec.name == group);
            let Some(offering) = found.and_then(|spec| spec.offerings.first()) else {
                return;
            };
            Ask {
                group,
                instance_type: offering.instance_type.clone(),
                zone: offering.zone.clone(),
                market: MarketSpec::clone(&offering.market),
                count: fault.count,
                token: format!("somebody-else-{}", self.mishaps.asks),
            }
        };
        // A group that is full, or an API that is away, refuses them as well.
        let _ = Stage::launch(&mut stage, &id, &ask);
    }
}
