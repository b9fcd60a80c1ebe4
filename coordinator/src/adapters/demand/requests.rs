//! Capacity requests as demand: the units of every open request that have no assignment yet.
//!
//! Read by control through the port. The records are control's; here they are only counted.

use crate::ports::demand::{DemandError, DemandReading, DemandSource, Members, REQUESTS};
use crate::ports::store::Store;
use crate::records::{AssignmentTarget, RequestRecord, RequestState, keys, wants};
use async_trait::async_trait;
use drover_core::model::{Class, Gang, Millis, Source, UnixMs};
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
        labels: wants::label(request),
        namespace: String::new(),
        team: spec.team.clone(),
        run_time: spec.duration,
        max_wait: spec.max_wait,
        deadline: spec.deadline,
        source: Source::Request(request.name.clone()),
        unit: spec.whole_unit(),
        whole_node: spec.whole_nodes,
        count,
        constraints: wants::constraints(request),
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
    use crate::records::{AssignmentRecord, RequestSpec, SpreadWish};
    use drover_core::model::{LaunchId, NodeId, Operator, RequestName, Requirement, Resources};

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
                gang_min: Some(3),
                ..RequestSpec::default()
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

    #[test]
    fn what_a_request_says_reaches_the_planner() {
        let mut asked = request(RequestState::Pending, 0, 0);
        asked.spec = RequestSpec {
            gpu_milli: 250,
            unit: Resources::default(),
            team: "vision".into(),
            duration: Some(Millis::minutes(8)),
            max_wait: Some(Millis::minutes(5)),
            deadline: Some(UnixMs(99)),
            labels: [("disk".to_owned(), "ssd".to_owned())].into(),
            rules: vec![Requirement {
                key: "slow".into(),
                op: Operator::Absent,
                any_of: [].into(),
            }],
            tolerations: [("gpu".to_owned(), [].into())].into(),
            spread: vec![SpreadWish {
                topology: "topology.kubernetes.io/zone".into(),
                max_skew: 2,
                hard: true,
            }],
            ..asked.spec
        };
        let class = class(&asked, Millis(9)).expect("it waits");
        assert_eq!(class.unit.gpu_milli, 250);
        assert_eq!(class.team, "vision");
        assert_eq!(class.run_time, Some(Millis::minutes(8)));
        assert_eq!(class.max_wait, Some(Millis::minutes(5)));
        assert_eq!(class.deadline, Some(UnixMs(99)));
        let wants = class.constraints;
        let keys: Vec<&str> = wants
            .requirements
            .iter()
            .map(|rule| rule.key.as_str())
            .collect();
        assert_eq!(keys, ["disk", "slow"]);
        assert!(wants.tolerations.contains_key("gpu"));
        let spread = &wants.spread[0];
        assert_eq!((spread.max_skew, spread.hard), (2, true));
        // Its own units are the ones that are counted.
        let rule = &spread.select.requirements[0];
        assert!(rule.holds(class.labels.get(&rule.key).map(String::as_str)));
    }

    #[test]
    fn a_record_stays_readable_by_the_release_before() {
        // What the first release wrote and read: nothing more is written unless it was asked for.
        let plain = request(RequestState::Pending, 1, 0);
        let value = serde_json::to_value(&plain).expect("json");
        let names: Vec<&str> = value["spec"]
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            names,
            [
                "duration",
                "gang_min",
                "gpu_model",
                "hold",
                "labels",
                "locality",
                "pools",
                "priority",
                "unit",
                "units",
                "whole_nodes"
            ]
        );
        // And where a share was asked for, the amounts that refuse unknown names do not have it.
        let mut shares = plain.clone();
        shares.spec.gpu_milli = 500;
        let value = serde_json::to_value(&shares).expect("json");
        assert_eq!(value["spec"]["gpu_milli"], 500);
        assert!(value["spec"]["unit"].get("gpu_milli").is_none());
        let back: RequestRecord = serde_json::from_value(value).expect("read");
        assert_eq!(back, shares);
        let old = r#"{"units":1,"unit":{"cpu":0,"memory":0,"gpus":1}}"#;
        let read: RequestSpec = serde_json::from_str(old).expect("an old record");
        assert_eq!((read.team.as_str(), read.deadline), ("", None));
    }
}
