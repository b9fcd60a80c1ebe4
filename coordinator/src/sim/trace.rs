//! The workload of a simulation: jobs with their sizes, submission times and true run times, whatever file they came from.
//!
//! Built by the readers and the generator; read by the engine, the reference policies and the score. Decides nothing.

mod cells;
pub mod generate;
pub mod lines;
pub mod openb;
pub mod philly;
pub mod read;
pub mod simple;

use drover_core::model::{Bytes, Constraints, Locality, Millis, Resources};

/// No job is submitted later, and none runs longer: ten years, as in configs.
pub const LONGEST: Millis = Millis(10 * 365 * 86_400_000);
/// No count is larger: GPUs or CPUs of a unit, units of a job.
pub const MOST: u32 = 1_000_000;
/// No unit has more memory: a million GiB.
pub const MOST_MEMORY: Bytes = Bytes(1_000_000 << 30);

/// All jobs of one simulation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// For people: the file's name or the generator's words.
    pub name: String,
    /// By submission, then id.
    pub jobs: Vec<Job>,
    /// Rows that were left out, with the reason and how many: failed pods, pods that fit nothing.
    pub skipped: Vec<(String, u32)>,
}

/// One job: one unit, or a gang of equal units that starts only whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Unique in its trace.
    pub id: String,
    /// Submitted so long after the start of the simulation.
    pub submit: Millis,
    /// Runs for so long once all its units run. The planner is told only when the simulation says that jobs state it.
    pub duration: Millis,
    /// One unit.
    pub unit: Resources,
    /// Units. More than one is a gang.
    pub units: u32,
    /// Fewest units that are useful; less than `units` for elastic gangs.
    pub min_units: u32,
    /// One further, smaller unit that belongs to the job (the remainder of 12 GPUs on nodes of 8); the job starts when it
    /// has a place too.
    pub rest: Option<Resources>,
    /// One unit takes a whole node.
    pub whole_node: bool,
    /// How near each other a gang's units must be.
    pub locality: Locality,
    /// Where a unit may go.
    pub constraints: Constraints,
    /// Higher goes first.
    pub priority: i32,
    /// Team, for budgets; empty: none.
    pub team: String,
    /// A killed job goes on from its last checkpoint, made this often; absent: it starts anew.
    pub checkpoint: Option<Millis>,
    /// It says that it can move: told to, it writes a checkpoint at once and waits again.
    pub movable: bool,
}

impl Trace {
    /// Sorts its jobs by submission, then id.
    pub fn sort(&mut self) {
        self.jobs
            .sort_by(|a, b| (a.submit, &a.id).cmp(&(b.submit, &b.id)));
    }

    /// Counts a row that was left out.
    pub fn skip(&mut self, why: &str) {
        match self.skipped.iter_mut().find(|(known, _)| known == why) {
            Some((_, count)) => *count += 1,
            None => self.skipped.push((why.to_owned(), 1)),
        }
    }
}

impl Job {
    /// A job of one unit that goes anywhere.
    #[must_use]
    pub fn new(id: String, submit: Millis, duration: Millis, unit: Resources) -> Self {
        Self {
            id,
            submit,
            duration,
            unit,
            units: 1,
            min_units: 1,
            rest: None,
            whole_node: false,
            locality: Locality::Any,
            constraints: Constraints::default(),
            priority: 0,
            team: String::new(),
            checkpoint: None,
            movable: false,
        }
    }
}
