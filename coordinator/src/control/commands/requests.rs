//! Create, extend and cancel capacity requests.

use super::{CommandError, Commands, guarded, invalid, made_name};
use crate::control::events::Happening;
use crate::control::journal::Change;
use crate::control::ledger::{Held, one};
use crate::records::{RequestRecord, RequestSpec, RequestState, keys};
use drover_core::model::{Millis, RequestName};
use drover_proto::limits;

/// Longest time that a request may hold capacity, and longest hold of a gang.
const LONGEST: Millis = Millis::minutes(60 * 24 * 366);

impl Commands {
    /// Asks for capacity. With an empty name one is made.
    ///
    /// # Errors
    /// A field is wrong, or a request of that name exists and has not ended.
    pub async fn create_request(
        &self,
        by: &str,
        name: &str,
        spec: &RequestSpec,
    ) -> Result<RequestName, CommandError> {
        let name = if name.is_empty() {
            made_name()
        } else {
            RequestName::from(name)
        };
        self.check(&name, spec)?;
        guarded!({
            let key = keys::named(keys::REQUEST, name.as_str());
            let store = self.journal.store().as_ref();
            let before = one::<RequestRecord>(store, &key).await?;
            if let Some(held) = &before
                && matches!(
                    held.value.state,
                    RequestState::Pending | RequestState::Served
                )
            {
                return Err(CommandError::Exists {
                    kind: "request",
                    name: name.0.clone(),
                });
            }
            let record = RequestRecord {
                name: name.clone(),
                spec: spec.clone(),
                owner: by.to_owned(),
                submitted: self.clock.wall(),
                state: RequestState::Pending,
                served: None,
                ends: None,
                assignments: Vec::new(),
                holding_since: None,
                closed: None,
            };
            let detail = described(spec);
            let mut change = Change::new();
            change
                .put(key, &record, before.map(|held| held.revision))
                .event(Happening::RequestCreated {
                    request: name.clone(),
                    by: by.to_owned(),
                    detail: detail.clone(),
                })
                .audit(by, "request.create", name.as_str(), detail);
            Ok(self.commit(change).await?.map(|_| name.clone()))
        })
    }

    fn check(&self, name: &RequestName, spec: &RequestSpec) -> Result<(), CommandError> {
        let plain = name.0.len() <= 63
            && name.0.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name
                .0
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !plain {
            return Err(invalid(
                "name",
                "use letters, digits, dots and dashes, at most 63",
            ));
        }
        if spec.units == 0 || spec.units > limits::REQUEST_UNITS {
            let most = limits::REQUEST_UNITS;
            return Err(invalid("units", format!("must be from 1 to {most}")));
        }
        if spec.whole_unit().is_zero() && !spec.whole_nodes {
            return Err(invalid(
                "gpus_per_unit",
                "a unit must want GPUs, CPUs, memory or a whole node",
            ));
        }
        if spec.gpu_milli > 999 {
            return Err(invalid(
                "gpu_milli_per_unit",
                "must be from 1 to 999; ask for whole GPUs with gpus_per_unit",
            ));
        }
        if spec.gpu_milli > 0 && (spec.unit.gpus > 0 || spec.whole_nodes) {
            return Err(invalid(
                "gpu_milli_per_unit",
                "stands beside whole GPUs or nodes: a unit has them or a share of one GPU",
            ));
        }
        if spec.deadline.is_some_and(|at| at <= self.clock.wall()) {
            return Err(invalid(
                "deadline_unix_ms",
                "has passed: nothing could start by then",
            ));
        }
        if let (Some(at), Some(wait)) = (spec.deadline, spec.max_wait)
            && self.clock.wall().after(wait) > at
        {
            return Err(invalid(
                "max_wait_ms",
                "is longer than the time until deadline_unix_ms: it would be useless before new nodes are asked for",
            ));
        }
        let teams = &self.config().control.teams;
        if !spec.team.is_empty() && !teams.is_empty() && !teams.contains_key(&spec.team) {
            let known: Vec<&str> = teams.keys().map(String::as_str).collect();
            return Err(invalid(
                "team",
                format!(
                    "no team is named {:?}; the config names {}",
                    spec.team,
                    known.join(", ")
                ),
            ));
        }
        if let Some(min) = spec.gang_min
            && (min == 0 || min > spec.units)
        {
            let units = spec.units;
            return Err(invalid("min_units", format!("must be from 1 to {units}")));
        }
        for (field, span) in [
            ("duration_ms", spec.duration),
            ("hold_ms", spec.hold),
            ("max_wait_ms", spec.max_wait),
        ] {
            if span.is_some_and(|span| span > LONGEST || span == Millis::ZERO) {
                return Err(invalid(field, "must be more than 0 and at most 366 days"));
            }
        }
        if spec.gpu_model.len() > limits::NAME_BYTES {
            return Err(invalid("gpu_model", "is too long"));
        }
        for pool in &spec.pools {
            if self.config().pool(pool).is_none() {
                return Err(invalid(
                    "pools",
                    format!("no pool is named {:?}", pool.as_str()),
                ));
            }
        }
        Ok(())
    }

    async fn open_request(&self, name: &str) -> Result<Held<RequestRecord>, CommandError> {
        if name.is_empty() {
            return Err(invalid("name", "is empty"));
        }
        let key = keys::named(keys::REQUEST, name);
        let held = one::<RequestRecord>(self.journal.store().as_ref(), &key).await?;
        let held = held.ok_or_else(|| CommandError::NotFound {
            kind: "request",
            name: name.to_owned(),
        })?;
        match held.value.state {
            RequestState::Pending | RequestState::Served => Ok(held),
            RequestState::Ended => Err(CommandError::Refused(format!("request {name} has ended"))),
            RequestState::Cancelled => Err(CommandError::Refused(format!(
                "request {name} was cancelled"
            ))),
        }
    }

    /// Holds a request longer: by so much after its end, or after it is served.
    ///
    /// # Errors
    /// No such request, it is over, it has no end, or the time is not sensible.
    pub async fn extend_request(
        &self,
        by: &str,
        name: &str,
        span: Millis,
    ) -> Result<RequestName, CommandError> {
        guarded!({
            let held = self.open_request(name).await?;
            let mut record = held.value;
            let Some(duration) = record.spec.duration else {
                return Err(CommandError::Refused(format!(
                    "request {name} has no end: it is held until cancelled"
                )));
            };
            let longer = Millis(duration.0.saturating_add(span.0));
            if span == Millis::ZERO || longer > LONGEST {
                return Err(invalid(
                    "by_ms",
                    "must be more than 0 and at most 366 days in all",
                ));
            }
            record.spec.duration = Some(longer);
            record.ends = record.ends.map(|ends| ends.after(span));
            let ends = record.ends.unwrap_or(self.clock.wall().after(longer));
            let mut change = Change::new();
            change
                .put(
                    keys::named(keys::REQUEST, name),
                    &record,
                    Some(held.revision),
                )
                .event(Happening::RequestExtended {
                    request: record.name.clone(),
                    by: by.to_owned(),
                    ends,
                })
                .audit(by, "request.extend", name, format!("by {} ms", span.0));
            Ok(self.commit(change).await?.map(|_| record.name))
        })
    }

    /// Takes a request back: its capacity is free at once. Work that runs there is not touched.
    ///
    /// # Errors
    /// No such request, or it is over.
    pub async fn cancel_request(&self, by: &str, name: &str) -> Result<RequestName, CommandError> {
        guarded!({
            let held = self.open_request(name).await?;
            let mut record = held.value;
            record.state = RequestState::Cancelled;
            record.assignments.clear();
            record.holding_since = None;
            record.closed = Some((self.clock.wall(), by.to_owned()));
            let mut change = Change::new();
            change
                .put(
                    keys::named(keys::REQUEST, name),
                    &record,
                    Some(held.revision),
                )
                .event(Happening::RequestCancelled {
                    request: record.name.clone(),
                    by: by.to_owned(),
                })
                .audit(by, "request.cancel", name, "");
            Ok(self.commit(change).await?.map(|_| record.name))
        })
    }
}

/// "60 x 1 GPU of titan-x, gang of at least 60".
fn described(spec: &RequestSpec) -> String {
    let mut parts = Vec::new();
    if spec.whole_nodes {
        parts.push("a whole node".to_owned());
    }
    if spec.unit.gpus > 0 {
        parts.push(format!("{} GPU", spec.unit.gpus));
    }
    if spec.gpu_milli > 0 {
        parts.push(format!("{} thousandths of a GPU", spec.gpu_milli));
    }
    if spec.unit.cpu.0 > 0 {
        parts.push(format!("{} mCPU", spec.unit.cpu.0));
    }
    if spec.unit.memory.0 > 0 {
        parts.push(format!("{} bytes", spec.unit.memory.0));
    }
    let mut text = format!("{} x {}", spec.units, parts.join(" + "));
    if !spec.gpu_model.is_empty() {
        text.push_str(&format!(" of {}", spec.gpu_model));
    }
    if let Some(min) = spec.gang_min {
        text.push_str(&format!(", gang of at least {min}"));
    }
    if !spec.team.is_empty() {
        text.push_str(&format!(", for team {}", spec.team));
    }
    text
}
