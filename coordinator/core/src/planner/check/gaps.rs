//! I9: a report without a gap. Finds the gaps, and fills those that are left with a reason that shows the fault. Called by
//! `check`; looks at no action.

use super::{Culprit, Violation, names};
use crate::model::{ClassOutcome, NodeOutcome, PlanInput, Planned, PoolOutcome, Reason};
use std::collections::BTreeSet;

/// I9: a report without a gap.
pub(super) fn report(input: &PlanInput, planned: &Planned) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut say = |why: String| {
        found.push(Violation {
            invariant: names::I9,
            why,
            culprit: Culprit::Report,
        })
    };
    let report = &planned.report;
    if report.classes.len() != input.classes.len() {
        say(format!(
            "{} classes, {} outcomes",
            input.classes.len(),
            report.classes.len()
        ));
    }
    for (i, outcome) in report.classes.iter().enumerate() {
        if outcome.reasons.is_empty() || outcome.reasons.contains(&Reason::Unexplained) {
            say(format!("class {i} has no reason"));
        }
    }
    let pools: BTreeSet<_> = report
        .pools
        .iter()
        .filter(|p| !p.reasons.is_empty())
        .map(|p| &p.pool)
        .collect();
    for pool in input.pools.iter().filter(|p| !pools.contains(&p.id)) {
        say(format!("pool {} has no reason", pool.id));
    }
    let nodes: BTreeSet<_> = report.nodes.iter().map(|n| &n.node).collect();
    for node in input.nodes.iter().filter(|n| !nodes.contains(&n.id)) {
        say(format!("node {} has no reason", node.id));
    }
    found
}

/// Fills the gaps that `report` finds with a reason that shows the fault.
pub(super) fn complete(input: &PlanInput, planned: &mut Planned) {
    let report = &mut planned.report;
    for class in input.classes.iter().skip(report.classes.len()) {
        report.classes.push(ClassOutcome {
            source: class.source.clone(),
            fitted: 0,
            coming: 0,
            grown: 0,
            unplaced: class.count,
            reasons: Vec::new(),
            impossible: false,
            held: 0,
        });
    }
    for outcome in report.classes.iter_mut().filter(|o| o.reasons.is_empty()) {
        outcome.reasons.push(Reason::Unexplained);
    }
    for outcome in report.pools.iter_mut().filter(|o| o.reasons.is_empty()) {
        outcome.reasons.push(Reason::Unexplained);
    }
    let pools: BTreeSet<_> = report.pools.iter().map(|p| p.pool.clone()).collect();
    for pool in input.pools.iter().filter(|p| !pools.contains(&p.id)) {
        report.pools.push(PoolOutcome {
            demanded: None,
            pool: pool.id.clone(),
            reasons: vec![Reason::Unexplained],
        });
    }
    let nodes: BTreeSet<_> = report.nodes.iter().map(|n| n.node.clone()).collect();
    for node in input.nodes.iter().filter(|n| !nodes.contains(&n.id)) {
        report.nodes.push(NodeOutcome {
            node: node.id.clone(),
            reason: Reason::Unexplained,
        });
    }
}
