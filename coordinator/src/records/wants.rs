//! What a request asks of places, as the planner reads it. Used where its units are demand, and where room is made for them
//! elsewhere; changes no record.

use super::{REQUEST_LABEL, RequestRecord};
use drover_core::model::{Constraints, Operator, Requirement, Selector, Spread};
use std::collections::BTreeMap;

/// Label of the units that a request asks for.
#[must_use]
pub fn label(request: &RequestRecord) -> BTreeMap<String, String> {
    [(REQUEST_LABEL.to_owned(), request.name.0.clone())].into()
}

/// Where its units may go.
#[must_use]
pub fn constraints(request: &RequestRecord) -> Constraints {
    let spec = &request.spec;
    let equal = spec.labels.iter().map(|(key, value)| Requirement {
        op: Operator::In,
        key: key.clone(),
        any_of: [value.clone()].into(),
    });
    // Its own units and nobody else's are counted.
    let own = Selector {
        requirements: vec![Requirement {
            op: Operator::In,
            key: REQUEST_LABEL.to_owned(),
            any_of: [request.name.0.clone()].into(),
        }],
        ..Selector::default()
    };
    let spread = spec.spread.iter().map(|wish| Spread {
        topology: wish.topology.clone(),
        select: own.clone(),
        max_skew: wish.max_skew,
        min_domains: 0,
        hard: wish.hard,
    });
    Constraints {
        gpu_model: spec.gpu_model.clone(),
        pools: spec.pools.iter().cloned().collect(),
        requirements: equal.chain(spec.rules.iter().cloned()).collect(),
        preferred: spec.preferred.clone(),
        tolerations: spec.tolerations.clone(),
        spread: spread.collect(),
        ..Constraints::default()
    }
}
