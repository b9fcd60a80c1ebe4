//! Parts of a node as the CLI shows it: its drain, workloads, conditions, orders, and who holds it. Used by
//! `nodes::view` and by requests; stable JSON names, missing values as null.

use crate::cli::duration;
use crate::cli::output::{Cell, Column, Page, Tabled, Tone, number, text};
use drover_proto::v1;
use serde::Serialize;

/// A drain under way.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct DrainView {
    pub id: String,
    pub policy: Option<String>,
    pub state: Option<String>,
    pub by: String,
    pub reason: Option<String>,
    pub since_unix_ms: Option<u64>,
    pub deadline_unix_ms: Option<u64>,
    pub then: Option<String>,
    pub workloads_at_start: u32,
    pub workloads_now: u32,
    pub blockers: Vec<BlockerView>,
}

/// What keeps a drain from being done.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct BlockerView {
    pub kind: String,
    pub subject: Option<String>,
    pub message: String,
}

/// Units of a request on a node.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct AssignmentView {
    pub request: String,
    pub node: Option<String>,
    pub node_name: Option<String>,
    pub instance_id: Option<String>,
    pub pool: Option<String>,
    pub units: u32,
    pub gpus: u32,
    pub ready: bool,
}

/// Something that runs.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct WorkloadView {
    pub kind: Option<String>,
    pub id: String,
    pub user: Option<String>,
    pub command: Option<String>,
    pub gpus: Vec<String>,
    pub gpu_memory_bytes: Option<u64>,
    pub request: Option<String>,
}

/// Something to know.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct ConditionView {
    pub kind: String,
    pub subject: Option<String>,
    pub message: String,
    pub since_unix_ms: Option<u64>,
    pub faulty: bool,
}

/// What the node is told, or says it was told.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct OrderView {
    pub epoch: u64,
    pub generation: u64,
    pub desired: Option<String>,
    pub drain_id: Option<String>,
}

/// The short name of a wire enum: `DRAIN_STATE_WAITING` with prefix `DRAIN_STATE_` is "waiting"; unspecified is missing.
pub(super) fn short(full: &str, prefix: &str) -> Option<String> {
    let name = full.strip_prefix(prefix).unwrap_or(full).to_lowercase();
    Some(name).filter(|n| n != "unspecified")
}

impl From<v1::NodeDrain> for DrainView {
    fn from(d: v1::NodeDrain) -> Self {
        Self {
            policy: short(d.policy().as_str_name(), "DRAIN_POLICY_"),
            state: short(d.state().as_str_name(), "DRAIN_STATE_"),
            id: d.id,
            by: d.by,
            reason: text(d.reason),
            since_unix_ms: number(d.since_unix_ms),
            deadline_unix_ms: number(d.deadline_unix_ms),
            then: text(d.then),
            workloads_at_start: d.workloads_at_start,
            workloads_now: d.workloads_now,
            blockers: d
                .blockers
                .into_iter()
                .map(|b| BlockerView {
                    kind: b.kind,
                    subject: text(b.subject),
                    message: b.message,
                })
                .collect(),
        }
    }
}

impl From<v1::Assignment> for AssignmentView {
    fn from(a: v1::Assignment) -> Self {
        Self {
            request: a.request,
            node: text(a.node),
            node_name: text(a.node_name),
            instance_id: text(a.instance_id),
            pool: text(a.pool),
            units: a.units,
            gpus: a.gpus,
            ready: a.ready,
        }
    }
}

impl From<v1::Workload> for WorkloadView {
    fn from(w: v1::Workload) -> Self {
        Self {
            kind: short(w.kind().as_str_name(), "WORKLOAD_KIND_"),
            id: w.id,
            user: text(w.user),
            command: text(w.command),
            gpus: w.gpus,
            gpu_memory_bytes: w.gpu_memory_bytes,
            request: text(w.request),
        }
    }
}

impl From<v1::Condition> for ConditionView {
    fn from(c: v1::Condition) -> Self {
        Self {
            kind: c.kind,
            subject: text(c.subject),
            message: c.message,
            since_unix_ms: number(c.since_unix_ms),
            faulty: c.faulty,
        }
    }
}

impl From<v1::Order> for OrderView {
    fn from(o: v1::Order) -> Self {
        Self {
            epoch: o.epoch,
            generation: o.generation,
            desired: short(o.desired().as_str_name(), "DESIRED_"),
            drain_id: o.drain.and_then(|d| text(d.id)),
        }
    }
}

impl DrainView {
    pub(super) fn lines(&self, page: &mut Page, now: u64) {
        page.line("Drain", self.state.as_ref());
        page.line("Drain policy", self.policy.as_ref());
        page.line("Drain by", Some(&self.by));
        page.line("Drain reason", self.reason.as_ref());
        page.line(
            "Draining for",
            self.since_unix_ms.map(|t| duration::age(now, Some(t))),
        );
        page.line(
            "Drain deadline",
            self.deadline_unix_ms.map(duration::moment),
        );
        page.line("Then", self.then.as_ref());
        page.line(
            "Workloads left",
            Some(format!(
                "{} of {}",
                self.workloads_now, self.workloads_at_start
            )),
        );
        let blockers: Vec<_> = self.blockers.iter().map(|b| b.message.clone()).collect();
        page.lines("Waits for", &blockers);
    }
}

impl Tabled for WorkloadView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("KIND", |w, _| (&w.kind).into()),
            Column::new("ID", |w, _| (&w.id).into()),
            Column::new("USER", |w, _| (&w.user).into()),
            Column::new("GPUS", |w, _| w.gpus.len().to_string().into()),
            Column::new("GPU-MEM", |w, _| {
                w.gpu_memory_bytes.map(duration::bytes).into()
            }),
            Column::new("REQUEST", |w, _| (&w.request).into()),
            Column::new("COMMAND", |w, _| (&w.command).into()),
        ]
    }
}

impl Tabled for AssignmentView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("REQUEST", |a, _| (&a.request).into()),
            Column::new("NODE", |a, _| {
                a.node_name.as_ref().or(a.node.as_ref()).cloned().into()
            }),
            Column::new("POOL", |a, _| (&a.pool).into()),
            Column::new("INSTANCE", |a, _| (&a.instance_id).into()),
            Column::new("UNITS", |a, _| a.units.into()),
            Column::new("GPUS", |a, _| a.gpus.into()),
            Column::new("READY", |a, _| match a.ready {
                true => Cell::toned("yes", Tone::Good),
                false => Cell::toned("no", Tone::Busy),
            }),
        ]
    }
}

impl Tabled for ConditionView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("KIND", |c, _| {
                Cell::toned(
                    c.kind.clone(),
                    if c.faulty { Tone::Bad } else { Tone::Busy },
                )
            }),
            Column::new("SUBJECT", |c, _| (&c.subject).into()),
            Column::new("FOR", |c, now| duration::age(now, c.since_unix_ms).into()),
            Column::new("MESSAGE", |c, _| (&c.message).into()),
        ]
    }
}
