//! The loop of a simulation: what is due happens, cycles run until quiet, and time jumps to the next moment at which
//! anything can change. No sleeping, no timers of this world; deterministic for a seed.
//!
//! Called by the CLI and the benchmarks. **Invariant:** control is the very one of production; only its ports differ.

mod mind;
mod mishaps;
mod people;
mod rest;
mod time;
mod unfit;
mod unstarted;

pub use time::STILL;
pub use unfit::leave_out_unfit;

use super::config::{Approvals, SimConfig};
use super::history::History;
use super::invariants::Watch;
use super::placer;
use super::ports::fragile::{Death, Fragile};
use super::ports::queue::Queue;
use super::stage::{START, Shared, Stage};
use super::trace::Trace;
use crate::adapters::clock::ManualClock;
use crate::adapters::store::memory::Disk;
use crate::control::commands::{CommandError, Commands};
use crate::control::cycle::{Control, CycleError, Planning};
use crate::ports::store::{CommitError, ReadError, Store};
use drover_core::model::{Millis, UnixMs};
use mind::Around;
use mishaps::Schedule;
use rest::{Rest, unless_stuck};
use std::sync::Arc;

/// Cycles at one moment, at most.
const IN_A_ROW: u32 = 500;

/// Why a simulation could not go on.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A cycle failed.
    #[error("a cycle failed")]
    Cycle(#[from] CycleError),
    /// The store failed.
    #[error("the store in memory failed")]
    Store(#[source] CommitError),
    /// The store cannot be read.
    #[error("the store in memory cannot be read")]
    Read(#[from] ReadError),
    /// A record cannot be written.
    #[error("a record cannot be written")]
    Record(#[source] serde_json::Error),
    /// What a simulated person did was refused.
    #[error("an approval was refused")]
    Person(#[from] CommandError),
    /// No runtime, no thread.
    #[error("cannot start")]
    Start(#[source] std::io::Error),
    /// It waits for something that never comes: a fault of Drover's, or of the simulation.
    #[error(
        "nothing goes on after {at_s} s of virtual time: it waits for ever for {awaited}{calls}"
    )]
    Stuck {
        /// Virtual time since the start.
        at_s: u64,
        /// What is waited for.
        awaited: &'static str,
        /// Calls that have not ended, as text.
        calls: String,
    },
    /// The simulation panicked: a fault of Drover's.
    #[error("the simulation broke off: {0}")]
    Broke(String),
}

impl SimError {
    pub(super) const fn record(error: serde_json::Error) -> Self {
        Self::Record(error)
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Virtual time since the start.
    pub at: Millis,
    /// Jobs that are over.
    pub done: usize,
}

/// Plays a trace.
///
/// # Errors
/// Control's store failed, which in memory means a fault of Drover's.
pub fn run(trace: &Trace, setup: &SimConfig, seed: u64) -> Result<History, SimError> {
    run_telling(trace, setup, seed, &|_| ())
}

/// Plays a trace, and tells at each moment how far it is.
///
/// # Errors
/// As [`run`].
pub fn run_telling(
    trace: &Trace,
    setup: &SimConfig,
    seed: u64,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<History, SimError> {
    // A thread of its own: the caller may stand in a runtime already.
    std::thread::scope(|scope| {
        let played = scope.spawn(|| {
            let rest = Arc::new(Rest::default());
            let parks = rest.clone();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .on_thread_park(move || parks.parked())
                .build()
                .map_err(SimError::Start)?;
            runtime.block_on(async {
                let mut engine = Engine::new(trace, setup, seed).await?;
                match unless_stuck(&rest, engine.play(tell)).await {
                    Some(played) => played?,
                    None => return Err(engine.stuck()),
                }
                Ok(engine.finish())
            })
        });
        played.join().unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|t| (*t).to_owned()));
            Err(SimError::Broke(text.unwrap_or_default()))
        })
    })
}

struct Engine {
    stage: Shared,
    clock: Arc<ManualClock>,
    disk: Disk,
    death: Arc<Death>,
    control: Control,
    commands: Commands,
    store: Arc<Fragile>,
    queue: Arc<Queue>,
    setup: SimConfig,
    seed: u64,
    /// Coordinators that were started.
    starts: u64,
    mishaps: Schedule,
    /// Plans of coordinators that are no more.
    planning: Planning,
    watch: Watch,
    /// When anything changed last.
    changed: UnixMs,
    stop: Option<UnixMs>,
    /// What is waited for.
    awaited: &'static str,
}

impl Engine {
    async fn new(trace: &Trace, setup: &SimConfig, seed: u64) -> Result<Self, SimError> {
        let stage = Shared::new(Stage::new(trace, setup, seed));
        let clock = Arc::new(ManualClock::at(START));
        let disk = Disk::with_id("0000000000000000");
        let death = Arc::new(Death::default());
        let queue = Arc::new(Queue::new(stage.clone(), setup.config.control.gang_hold));
        let around = Around {
            stage: &stage,
            clock: &clock,
            disk: &disk,
            death: &death,
            queue: &queue,
            setup,
            seed: mind::seed_of(seed, 0),
        };
        let mind = around.start().await?;
        Ok(Self {
            stage,
            clock,
            disk,
            death,
            control: mind.control,
            commands: mind.commands,
            store: mind.store,
            queue,
            setup: setup.clone(),
            seed,
            starts: 1,
            mishaps: Schedule::new(&setup.simulate.faults, seed),
            planning: Planning::default(),
            watch: Watch::default(),
            changed: START,
            stop: setup.simulate.end.map(|end| START.after(end)),
            awaited: "its start",
        })
    }

    /// What the run waits for, when it waits for ever.
    fn stuck(&self) -> SimError {
        let calls = self.control.at_work();
        SimError::Stuck {
            at_s: self.stage.lock().elapsed().0 / 1_000,
            awaited: self.awaited,
            calls: if calls.is_empty() {
                String::new()
            } else {
                format!("; calls that have not ended: {}", calls.join(", "))
            },
        }
    }

    async fn play(&mut self, tell: &(dyn Fn(Progress) + Sync)) -> Result<(), SimError> {
        loop {
            tell(self.pass_on());
            self.mishaps().await?;
            self.settle().await?;
            if self.is_over() {
                return Ok(());
            }
            let next = self.next();
            if self.stop.is_some_and(|stop| next >= stop) {
                self.pass(self.stop.unwrap_or(next));
                return Ok(());
            }
            self.pass(next);
        }
    }

    /// What is due happens.
    fn pass_on(&mut self) -> Progress {
        let mut stage = self.stage.lock();
        let before = stage.version;
        stage.advance();
        if stage.version != before {
            self.changed = stage.now;
        }
        Progress {
            at: stage.elapsed(),
            done: stage.jobs.done,
        }
    }

    /// Cycles until nothing changes any more at this moment.
    async fn settle(&mut self) -> Result<(), SimError> {
        for _ in 0..IN_A_ROW {
            self.awaited = "agents that come";
            let met = async {
                Stage::enrol(&self.stage, self.store.as_ref() as &dyn Store).await?;
                Stage::greet(&self.stage, self.store.as_ref() as &dyn Store).await
            };
            let Some(met) = self.death.or(met).await else {
                self.died().await?;
                continue;
            };
            met?;
            let before = self.stage.lock().version;
            self.awaited = "the end of a cycle";
            let Some(again) = self.death.or(self.control.cycle()).await else {
                self.died().await?;
                continue;
            };
            let again = again?;
            let view = self.commands.view();
            let mut acted = false;
            if self.setup.simulate.approvals == Approvals::AtOnce {
                acted = self.approve_all().await?;
            }
            let told = self.queue.told();
            {
                let mut stage = self.stage.lock();
                let plan = view.plan.as_deref();
                placer::place(&mut stage, self.setup.simulate.placer, &told, plan);
                stage.advance();
                if let Some((input, planned)) = plan {
                    stage.note_held(input, planned);
                }
                let hold = self.setup.config.control.gang_hold;
                self.watch.after_step(&mut stage, &view, hold);
                if stage.version != before {
                    self.changed = stage.now;
                    acted = true;
                }
            }
            if !again && !acted {
                return Ok(());
            }
        }
        let mut stage = self.stage.lock();
        let what = format!("{IN_A_ROW} cycles at one moment did not come to rest");
        stage.violated("quiet", what);
        Ok(())
    }
}

#[cfg(test)]
mod deaths;
#[cfg(test)]
mod tests;
