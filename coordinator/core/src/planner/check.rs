//! Check of a plan against the invariants. Its shape; the invariants themselves come with the next change.

use crate::model::{PlanInput, Planned};

/// What a plan violates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the invariant.
    pub invariant: &'static str,
    /// Why, for people.
    pub why: String,
}

/// Drops what violates an invariant.
#[must_use]
pub fn check(_input: &PlanInput, planned: Planned) -> Planned {
    planned
}

/// All that a plan violates.
#[must_use]
pub fn violations(_input: &PlanInput, _planned: &Planned) -> Vec<Violation> {
    Vec::new()
}
