//! Layer 2: `plan(&PlanInput) -> Planned`. Fit, grow, shrink, limits, check, explain.
