//! The loop of a simulation: what is due happens, cycles run until quiet, and time jumps to the next moment at which
//! anything can change. No sleeping, no timers of this world; deterministic for a seed.
//!
//! Called by the CLI and the benchmarks. **Invariant:** control is the very one of production; only its ports differ.

use super::config::{Approvals, SimConfig};
use super::history::History;
use super::invariants::Watch;
use super::placer;
use super::ports::agents::Agents;
use super::ports::cloud::Cloud;
use super::ports::queue::Queue;
use super::stage::{START, Shared, Stage};
use super::trace::Trace;
use crate::adapters::clock::ManualClock;
use crate::adapters::store::memory::{Disk, MemoryStore};
use crate::control::commands::{CommandError, Commands};
use crate::control::cycle::{Control, CycleError, Ports};
use crate::control::journal::Journal;
use crate::ports::store::{CommitError, ReadError, Store};
use drover_core::model::{Millis, Resources, UnixMs};
use std::sync::Arc;

/// Cycles at one moment, at most.
const IN_A_ROW: u32 = 500;
/// A run in which nothing changes for so long, and that has no running job and none to come, is over.
const STILL: Millis = Millis::minutes(24 * 60);

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
    /// The simulation panicked: a fault of Drover's.
    #[error("the simulation broke off: {0}")]
    Broke(String),
}

impl SimError {
    pub(super) const fn record(error: serde_json::Error) -> Self {
        Self::Record(error)
    }
}

/// Plays a trace.
///
/// # Errors
/// Control's store failed, which in memory means a fault of Drover's.
pub fn run(trace: &Trace, setup: &SimConfig, seed: u64) -> Result<History, SimError> {
    // A thread of its own: the caller may stand in a runtime already.
    std::thread::scope(|scope| {
        let played = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .map_err(SimError::Start)?;
            runtime.block_on(async {
                let mut engine = Engine::new(trace, setup, seed).await?;
                engine.play().await?;
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

/// Leaves out jobs that fit no offering of the config's groups; the trace says how many.
pub fn leave_out_unfit(trace: &mut Trace, setup: &SimConfig) {
    let offered: Vec<(Resources, String)> = setup
        .world
        .groups
        .iter()
        .flat_map(|group| &group.offerings)
        .map(|offering| {
            let has = super::stage::node::allocatable(offering);
            (has, offering.gpu_model.clone())
        })
        .collect();
    let fits = |unit: &Resources| {
        let whole = Resources {
            gpus: unit.gpus + u32::from(unit.gpu_milli > 0),
            gpu_milli: 0,
            ..unit.clone()
        };
        offered.iter().any(|(has, _)| whole.fits(has))
    };
    let (kept, left): (Vec<_>, Vec<_>) = std::mem::take(&mut trace.jobs)
        .into_iter()
        .partition(|job| fits(&job.unit) && job.rest.as_ref().is_none_or(fits));
    trace.jobs = kept;
    for _ in left {
        trace.skip("fits no offering");
    }
}

struct Engine {
    stage: Shared,
    clock: Arc<ManualClock>,
    control: Control,
    commands: Commands,
    store: Arc<MemoryStore>,
    queue: Arc<Queue>,
    setup: SimConfig,
    watch: Watch,
    /// When anything changed last.
    changed: UnixMs,
    stop: Option<UnixMs>,
}

impl Engine {
    async fn new(trace: &Trace, setup: &SimConfig, seed: u64) -> Result<Self, SimError> {
        let stage = Shared::new(Stage::new(trace, setup, seed));
        let clock = Arc::new(ManualClock::at(START));
        let store = Arc::new(MemoryStore::open(&Disk::with_id("0000000000000000")));
        let journal = Arc::new(Journal::open(store.clone(), clock.clone()).await?);
        let queue = Arc::new(Queue::new(stage.clone(), setup.config.control.gang_hold));
        let mut control = Control::new(
            setup.config.clone(),
            Ports {
                journal,
                link: Arc::new(Agents::new(stage.clone())),
                actuators: vec![Arc::new(Cloud(stage.clone()))],
                sources: vec![queue.clone()],
                clock: clock.clone(),
            },
        );
        control.repeatable(seed);
        let (commands, _) = control.commands();
        Ok(Self {
            stage,
            clock,
            control,
            commands,
            store,
            queue,
            setup: setup.clone(),
            watch: Watch::default(),
            changed: START,
            stop: setup.simulate.end.map(|end| START.after(end)),
        })
    }

    async fn play(&mut self) -> Result<(), SimError> {
        loop {
            self.stage.lock().advance();
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

    /// Cycles until nothing changes any more at this moment.
    async fn settle(&mut self) -> Result<(), SimError> {
        for _ in 0..IN_A_ROW {
            Stage::enrol(&self.stage, self.store.as_ref() as &dyn Store).await?;
            let before = self.stage.lock().version;
            let again = self.control.cycle().await?;
            let view = self.commands.view();
            let mut acted = false;
            if self.setup.simulate.approvals == Approvals::AtOnce {
                for approval in &view.approvals {
                    self.commands
                        .approve("admin/simulated", &approval.id)
                        .await?;
                    acted = true;
                }
            }
            let told = self.queue.told();
            {
                let mut stage = self.stage.lock();
                let plan = view.plan.as_deref();
                placer::place(&mut stage, self.setup.simulate.placer, &told, plan);
                stage.advance();
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

    /// The next moment at which anything can change.
    fn next(&self) -> UnixMs {
        let stage = self.stage.lock();
        let due = self.control.next_due(stage.now);
        let longest = stage.now.after(self.setup.simulate.interval);
        [stage.next(), due, Some(longest)]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(longest)
            .max(UnixMs(stage.now.0 + 1))
    }

    fn pass(&mut self, to: UnixMs) {
        let mut stage = self.stage.lock();
        self.clock.advance(to.since(stage.now));
        stage.now = to;
    }

    /// All is done, or nothing will change any more.
    fn is_over(&mut self) -> bool {
        let stage = self.stage.lock();
        let jobs = &stage.jobs;
        if jobs.submitted < jobs.all.len() || !jobs.running.is_empty() {
            return false;
        }
        let alive = stage.world.running() > 0;
        if jobs.pending() == 0 && !alive {
            return true;
        }
        let idle = stage.pools.values().map(|pool| pool.idle_after).max();
        let patience = STILL.plus(idle.unwrap_or_default());
        stage.now.since(self.changed) >= patience
    }

    fn finish(self) -> History {
        let planning = self.control.planning();
        let mut stage = self.stage.lock();
        // When nothing came any more, the run was over with the last change.
        let over = self.stop.is_none_or(|stop| stage.now < stop);
        let end = if over { self.changed } else { stage.now };
        stage.history.end = end.since(START);
        stage.history.plans = planning.plans;
        stage.history.plan_seconds = planning.took.as_secs_f64();
        std::mem::take(&mut stage.history)
    }
}

#[cfg(test)]
mod tests;
