//! Limits of what agents send ([`drover_proto::limits`]), checked field by field. Called by `serve/agents` before
//! anything is believed.

use drover_proto::{limits, v1};

/// Which field is beyond its limit, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct FieldError {
    /// Path of the field in the message.
    pub field: String,
    /// What is wrong.
    pub problem: String,
}

impl FieldError {
    /// An error of this field.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }
}

impl From<FieldError> for tonic::Status {
    fn from(error: FieldError) -> Self {
        Self::invalid_argument(error.to_string())
    }
}

type Checked = Result<(), FieldError>;

fn bytes(field: &str, text: &str, most: usize) -> Checked {
    if text.len() > most {
        let problem = format!("{} bytes, at most {most}", text.len());
        return Err(FieldError::new(field, problem));
    }
    Ok(())
}

fn names(fields: &[(&str, &str)]) -> Checked {
    fields
        .iter()
        .try_for_each(|(field, text)| bytes(field, text, limits::NAME_BYTES))
}

fn count(field: &str, items: usize, most: usize) -> Checked {
    if items > most {
        let problem = format!("{items} items, at most {most}");
        return Err(FieldError::new(field, problem));
    }
    Ok(())
}

/// Facts of a host.
///
/// # Errors
/// Names the field.
pub fn facts(facts: &v1::Facts) -> Checked {
    names(&[
        ("facts.machine_id", &facts.machine_id),
        ("facts.boot_id", &facts.boot_id),
        ("facts.hostname", &facts.hostname),
        ("facts.instance_id", facts.instance_id()),
        ("facts.zone", facts.zone()),
        ("facts.instance_type", facts.instance_type()),
        ("facts.os", &facts.os),
        ("facts.kernel", &facts.kernel),
        ("facts.arch", &facts.arch),
        ("facts.agent_version", &facts.agent_version),
        ("facts.driver_version", facts.driver_version()),
    ])?;
    count("facts.gpus", facts.gpus.len(), limits::GPUS)?;
    count("facts.disks", facts.disks.len(), limits::DEVICES)?;
    count("facts.nics", facts.nics.len(), limits::DEVICES)?;
    for gpu in &facts.gpus {
        names(&[
            ("facts.gpus.uuid", &gpu.uuid),
            ("facts.gpus.name", &gpu.name),
            ("facts.gpus.pci_address", &gpu.pci_address),
        ])?;
    }
    for disk in &facts.disks {
        bytes("facts.disks.mount", &disk.mount, limits::TEXT_BYTES)?;
        bytes("facts.disks.kind", &disk.kind, limits::NAME_BYTES)?;
    }
    for nic in &facts.nics {
        names(&[("facts.nics.name", &nic.name), ("facts.nics.mac", &nic.mac)])?;
        let field = "facts.nics.addresses";
        count(field, nic.addresses.len(), limits::DEVICES)?;
        for address in &nic.addresses {
            bytes(field, address, limits::NAME_BYTES)?;
        }
    }
    Ok(())
}

/// A report with everything in it.
///
/// # Errors
/// Names the field.
pub fn report(report: &v1::Report) -> Checked {
    if let Some(said) = &report.facts {
        facts(said)?;
    }
    if let Some(said) = &report.telemetry {
        telemetry(said)?;
    }
    if let Some(list) = &report.workloads {
        workloads(list)?;
    }
    if let Some(list) = &report.conditions {
        count("conditions", list.items.len(), limits::CONDITIONS)?;
        for item in &list.items {
            bytes("conditions.kind", &item.kind, limits::NAME_BYTES)?;
            bytes("conditions.subject", &item.subject, limits::TEXT_BYTES)?;
            bytes("conditions.message", &item.message, limits::TEXT_BYTES)?;
        }
    }
    report.actual.as_ref().map_or(Ok(()), actual)
}

/// What a node really is.
///
/// # Errors
/// Names the field.
pub fn actual(actual: &v1::NodeActual) -> Checked {
    let cordon = &actual.foreign_cordon;
    bytes("actual.foreign_cordon", cordon, limits::TEXT_BYTES)
}

fn telemetry(said: &v1::Telemetry) -> Checked {
    count("telemetry.gpus", said.gpus.len(), limits::GPUS)?;
    count("telemetry.disks", said.disks.len(), limits::DEVICES)?;
    count("telemetry.nics", said.nics.len(), limits::DEVICES)?;
    for gpu in &said.gpus {
        names(&[
            ("telemetry.gpus.uuid", &gpu.uuid),
            ("telemetry.gpus.pci_address", &gpu.pci_address),
        ])?;
    }
    for disk in &said.disks {
        bytes("telemetry.disks.mount", &disk.mount, limits::TEXT_BYTES)?;
    }
    for nic in &said.nics {
        bytes("telemetry.nics.name", &nic.name, limits::NAME_BYTES)?;
    }
    Ok(())
}

fn workloads(list: &v1::WorkloadList) -> Checked {
    count("workloads.items", list.items.len(), limits::WORKLOADS)?;
    for item in &list.items {
        names(&[
            ("workloads.items.id", &item.id),
            ("workloads.items.user", &item.user),
            ("workloads.items.request", &item.request),
        ])?;
        bytes("workloads.items.command", &item.command, limits::TEXT_BYTES)?;
        count("workloads.items.gpus", item.gpus.len(), limits::GPUS)?;
        for gpu in &item.gpus {
            bytes("workloads.items.gpus", gpu, limits::NAME_BYTES)?;
        }
    }
    for (field, texts) in [
        ("workloads.unreadable", &list.unreadable),
        ("workloads.witnesses", &list.witnesses),
    ] {
        count(field, texts.len(), limits::CONDITIONS)?;
        for text in texts {
            bytes(field, text, limits::TEXT_BYTES)?;
        }
    }
    Ok(())
}

/// A notice: its id must be there, since it is acknowledged by it.
///
/// # Errors
/// Names the field.
pub fn notice(notice: &v1::Notice) -> Checked {
    if notice.id.is_empty() {
        return Err(FieldError::new("notice.id", "is empty"));
    }
    names(&[("notice.id", &notice.id), ("notice.kind", &notice.kind)])?;
    bytes("notice.subject", &notice.subject, limits::TEXT_BYTES)?;
    bytes("notice.message", &notice.message, limits::TEXT_BYTES)
}

/// What became of an order.
///
/// # Errors
/// Names the field.
pub fn order_status(status: &v1::OrderStatus) -> Checked {
    names(&[
        ("order_status.refused", &status.refused),
        ("order_status.drain_id", &status.drain_id),
    ])?;
    bytes("order_status.reason", &status.reason, limits::TEXT_BYTES)?;
    count(
        "order_status.blockers",
        status.blockers.len(),
        limits::BLOCKERS,
    )?;
    for blocker in &status.blockers {
        let kind = &blocker.kind;
        bytes("order_status.blockers.kind", kind, limits::NAME_BYTES)?;
        let subject = &blocker.subject;
        bytes("order_status.blockers.subject", subject, limits::TEXT_BYTES)?;
        let message = &blocker.message;
        bytes("order_status.blockers.message", message, limits::TEXT_BYTES)?;
    }
    count("order_status.ended", status.ended.len(), limits::WORKLOADS)?;
    for ended in &status.ended {
        bytes("order_status.ended", ended, limits::TEXT_BYTES)?;
    }
    Ok(())
}

/// The first message of a session.
///
/// # Errors
/// Names the field.
pub fn hello(hello: &v1::Hello) -> Checked {
    if hello.protocol != limits::PROTOCOL {
        let problem = format!(
            "{} is not spoken here, but {}",
            hello.protocol,
            limits::PROTOCOL
        );
        return Err(FieldError::new("hello.protocol", problem));
    }
    facts(required("hello.facts", hello.facts.as_ref())?)?;
    if hello.highest_epoch >= u64::MAX / 2 {
        return Err(FieldError::new(
            "hello.highest_epoch",
            "is beyond anything ordered",
        ));
    }
    if let Some(drain) = hello
        .observed
        .as_ref()
        .and_then(|order| order.drain.as_ref())
    {
        bytes("hello.observed.drain.id", &drain.id, limits::NAME_BYTES)?;
        bytes(
            "hello.observed.drain.reason",
            &drain.reason,
            limits::TEXT_BYTES,
        )?;
    }
    hello.actual.as_ref().map_or(Ok(()), actual)
}

/// A field that must be set.
///
/// # Errors
/// Names the field.
pub fn required<'a, T>(field: &str, value: Option<&'a T>) -> Result<&'a T, FieldError> {
    value.ok_or_else(|| FieldError::new(field, "is missing"))
}

/// Raw bytes.
///
/// # Errors
/// Names the field.
pub fn blob(field: &str, value: &[u8], most: usize) -> Checked {
    if value.len() > most {
        let problem = format!("{} bytes, at most {most}", value.len());
        return Err(FieldError::new(field, problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long() -> String {
        "x".repeat(limits::TEXT_BYTES + 1)
    }

    #[test]
    fn what_is_beyond_a_limit_is_named() {
        let facts_of_65 = v1::Facts {
            gpus: vec![v1::GpuFacts::default(); limits::GPUS + 1],
            ..v1::Facts::default()
        };
        let workload = v1::Workload {
            command: long(),
            ..v1::Workload::default()
        };
        let list = |items| v1::Report {
            workloads: Some(v1::WorkloadList {
                items,
                ..v1::WorkloadList::default()
            }),
            ..v1::Report::default()
        };
        let many = vec![v1::Workload::default(); limits::WORKLOADS + 1];
        let conditions = v1::Report {
            conditions: Some(v1::ConditionList {
                items: vec![v1::Condition::default(); limits::CONDITIONS + 1],
            }),
            ..v1::Report::default()
        };
        let status = v1::OrderStatus {
            blockers: vec![v1::Blocker::default(); limits::BLOCKERS + 1],
            ..v1::OrderStatus::default()
        };
        let good = v1::Hello {
            protocol: limits::PROTOCOL,
            facts: Some(v1::Facts::default()),
            ..v1::Hello::default()
        };
        hello(&good).unwrap();
        let old = v1::Hello {
            protocol: 0,
            ..good.clone()
        };
        let no_facts = v1::Hello {
            facts: None,
            ..good.clone()
        };
        let huge = v1::Hello {
            highest_epoch: u64::MAX,
            ..good
        };
        for (checked, field) in [
            (facts(&facts_of_65), "facts.gpus"),
            (report(&list(vec![workload])), "workloads.items.command"),
            (report(&list(many)), "workloads.items"),
            (report(&conditions), "conditions"),
            (order_status(&status), "order_status.blockers"),
            (notice(&v1::Notice::default()), "notice.id"),
            (hello(&old), "hello.protocol"),
            (hello(&no_facts), "hello.facts"),
            (hello(&huge), "hello.highest_epoch"),
            (blob("csr_der", &[0; 9], 8), "csr_der"),
        ] {
            assert_eq!(checked.unwrap_err().field, field);
        }
    }
}
