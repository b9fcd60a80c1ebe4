//! One cycle: observe, bookkeeping, plan, check, commit, execute, publish.

use crate::ports::store::ReadError;
use drover_core::model::{PlanInput, Planned};

/// A plan that changed nothing, or why there is none.
pub type Rehearsal = Result<(PlanInput, Planned), ReadError>;
