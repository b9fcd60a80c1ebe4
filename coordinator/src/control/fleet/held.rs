//! What requests hold of each node.
//!
//! Called by the join. Pure.

use crate::control::ledger::Ledger;
use crate::records::{AssignmentTarget, RequestState};
use drover_core::model::{NodeId, Reserved, Resources};
use std::collections::BTreeMap;

/// What requests hold, by node.
pub(super) fn reservations(ledger: &Ledger) -> BTreeMap<NodeId, Vec<Reserved>> {
    let mut held: BTreeMap<NodeId, Vec<Reserved>> = BTreeMap::new();
    for (name, request) in &ledger.requests {
        if !matches!(
            request.value.state,
            RequestState::Pending | RequestState::Served
        ) {
            continue;
        }
        let spec = &request.value.spec;
        for assignment in &request.value.assignments {
            if let AssignmentTarget::Node(node) = &assignment.target {
                held.entry(node.clone()).or_default().push(Reserved {
                    request: name.clone(),
                    units: assignment.units,
                    amount: Resources {
                        gpu_milli: spec.gpu_milli.saturating_mul(assignment.units),
                        ..assignment.amount.clone()
                    },
                    team: spec.team.clone(),
                    ends: request.value.ends,
                });
            }
        }
    }
    held
}
