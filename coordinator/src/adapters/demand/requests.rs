//! Capacity requests as demand: the units of every open request that have no assignment yet.
//!
//! Read by control through the port. The records are control's; here they are only counted.

use crate::ports::demand::{DemandError, DemandReading, DemandSource, Members, REQUESTS};
use crate::ports::store::Store;
use crate::records::{AssignmentTarget, RequestRecord, RequestState, keys};
use async_trait::async_trait;
use drover_core::model::{Class, Constraints, Gang, Millis, Requirement, Source, UnixMs};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The source.
pub struct Requests {
    store: Arc<dyn Store>,
    gang_hold: Millis,
}

impl Requests {
    /// Over the store; `gang_hold` is for gangs that state none.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, gang_hold: Millis) -> Self {
        Self { store, gang_hold }
    }
}

#[async_trait]
impl DemandSource for Requests {
    fn name(&self) -> &str {
        REQUESTS
    }

    async fn read(&self, now: UnixMs) -> Result<DemandReading, DemandError> {
        let entries = self
            .store
            .list(keys::REQUEST)
            .await
            .map_err(|error| DemandError {
                source_name: REQUESTS.to_owned(),
                message: error.to_string(),
            })?;
        let mut reading = DemandReading {
            at: now,
            ..DemandReading::default()
        };
        for entry in entries {
            match serde_json::from_slice::<RequestRecord>(&entry.value) {
                Ok(request) => {
                    if let Some(class) = class(&request, self.gang_hold) {
                        reading.classes.push(class);
                        reading.members.push(Members(vec![request.name.0]));
                    }
                }
                Err(error) => {
                    reading.rejected.insert(entry.key, error.to_string());
                }
            }
        }
        Ok(reading)
    }
}

/// What waits of a request; a served one that lost a node waits again. One with units on a coming launch is listed with a
/// count of zero, since the planner needs its unit.
fn class(request: &RequestRecord, gang_hold: Millis) -> Option<Class> {
    if !matches!(request.state, RequestState::Pending | RequestState::Served) {
        return None;
    }
    let spec = &request.spec;
    let assigned: u32 = request.assignments.iter().map(|found| found.units).sum();
    let count = spec.units.saturating_sub(assigned);
    let coming = request
        .assignments
        .iter()
        .any(|found| matches!(found.target, AssignmentTarget::Launch(..)));
    if count == 0 && !coming {
        return None;
    }
    Some(Class {
        labels: std::collections::BTreeMap::new(),
        namespace: String::new(),
        team: String::new(),
        run_time: None,
        max_wait: None,
        deadline: None,
        source: Source::Request(request.name.clone()),
        unit: spec.unit.clone(),
        whole_node: spec.whole_nodes,
        count,
        constraints: Constraints {
            gpu_model: spec.gpu_model.clone(),
            pools: spec.pools.iter().cloned().collect(),
            requirements: spec
                .labels
                .iter()
                .map(|(key, value)| Requirement {
                    op: drover_core::model::Operator::In,
                    key: key.clone(),
                    any_of: [value.clone()].into(),
                })
                .collect(),
            tolerations: BTreeMap::new(),
            max_per_node: 0,
            unsupported: Vec::new(),
            ..Constraints::default()
        },
        gang: spec.gang_min.map(|min| Gang {
            min,
            assigned,
            locality: spec.locality,
            hold: spec.hold.unwrap_or(gang_hold),
            holding_since: request.holding_since,
        }),
        priority: spec.priority,
        submitted: request.submitted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{AssignmentRecord, RequestSpec};
    use drover_core::model::{LaunchId, Locality, NodeId, RequestName, Resources};

    fn request(state: RequestState, on_node: u32, on_launch: u32) -> RequestRecord {
        let unit = Resources {
            gpus: 1,
            ..Resources::default()
        };
        let record = |target, units: u32| AssignmentRecord {
            target,
            units,
            amount: unit.scaled(units),
        };
        let mut assignments = Vec::new();
        if on_node > 0 {
            assignments.push(record(AssignmentTarget::Node(NodeId::from("n")), on_node));
        }
        if on_launch > 0 {
            let target = AssignmentTarget::Launch(LaunchId::from("l"), 0);
            assignments.push(record(target, on_launch));
        }
        RequestRecord {
            name: RequestName::from("r"),
            spec: RequestSpec {
                units: 4,
                unit: unit.clone(),
                whole_nodes: false,
                gpu_model: String::new(),
                duration: None,
                gang_min: Some(3),
                locality: Locality::Any,
                priority: 0,
                pools: Vec::new(),
                labels: BTreeMap::new(),
                hold: None,
            },
            owner: "admin/a".into(),
            submitted: UnixMs(1),
            state,
            served: None,
            ends: None,
            assignments,
            holding_since: None,
            closed: None,
        }
    }

    #[test]
    fn only_what_has_no_place_waits() {
        let count = |state, node, launch| {
            class(&request(state, node, launch), Millis(9)).map(|class| {
                let gang = class.gang.expect("a gang");
                (class.count, gang.assigned, gang.min, gang.hold)
            })
        };
        let pending = RequestState::Pending;
        assert_eq!(count(pending, 0, 0), Some((4, 0, 3, Millis(9))));
        assert_eq!(count(pending, 1, 0), Some((3, 1, 3, Millis(9))));
        assert_eq!(count(pending, 4, 0), None);
        // Its unit is needed while its launch is on the way.
        assert_eq!(count(pending, 2, 2), Some((0, 4, 3, Millis(9))));
        // A served request that lost a node waits again.
        assert_eq!(
            count(RequestState::Served, 3, 0),
            Some((1, 3, 3, Millis(9)))
        );
        assert_eq!(count(RequestState::Ended, 0, 0), None);
        assert_eq!(count(RequestState::Cancelled, 0, 0), None);
    }
}
