//! A node as the CLI shows it: stable JSON names, missing values as null, table columns, the page of `nodes show`.
//! Built from the wire type; the wire type goes no further.

use super::measures::{FactsView, GpuRow, TelemetryView};
use crate::cli::duration;
use crate::cli::output::{Cell, Column, Page, Sheet, Tabled, Tone, number, text};
use drover_proto::v1;
use serde::Serialize;
use std::collections::BTreeMap;

/// A node.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are the JSON of docs/cli.md"
)]
pub struct NodeView {
    pub id: String,
    pub name: String,
    pub pool: Option<String>,
    pub site: Option<String>,
    pub state: String,
    pub cordoned: bool,
    pub cordoned_by: Option<String>,
    pub cordon_reason: Option<String>,
    pub unreachable: bool,
    pub foreign: bool,
    pub faulty: Option<String>,
    pub reason: Option<String>,
    pub gpus: u32,
    pub gpus_free: u32,
    pub gpu_model: Option<String>,
    pub instance_id: Option<String>,
    pub instance_type: Option<String>,
    pub zone: Option<String>,
    pub price_micro_usd_per_hour: Option<u64>,
    pub joined_unix_ms: Option<u64>,
    pub last_seen_unix_ms: Option<u64>,
    pub idle_since_unix_ms: Option<u64>,
    pub busy: Vec<String>,
    pub drain: Option<DrainView>,
    pub assignments: Vec<AssignmentView>,
    pub workloads: Vec<WorkloadView>,
    pub conditions: Vec<ConditionView>,
    pub facts: Option<FactsView>,
    pub telemetry: Option<TelemetryView>,
    pub desired: Option<OrderView>,
    pub observed: Option<OrderView>,
    pub labels: BTreeMap<String, String>,
}

/// A drain under way.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are the JSON of docs/cli.md"
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
    reason = "the names are the documentation: they are the JSON of docs/cli.md"
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
    reason = "the names are the documentation: they are the JSON of docs/cli.md"
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
    reason = "the names are the documentation: they are the JSON of docs/cli.md"
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
    reason = "the names are the documentation: they are the JSON of docs/cli.md"
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
    reason = "the names are the documentation: they are the JSON of docs/cli.md"
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

impl From<v1::Node> for NodeView {
    fn from(n: v1::Node) -> Self {
        Self {
            id: n.id,
            name: n.name,
            pool: text(n.pool),
            site: text(n.site),
            state: n.state,
            cordoned: n.cordoned,
            cordoned_by: text(n.cordoned_by),
            cordon_reason: text(n.cordon_reason),
            unreachable: n.unreachable,
            foreign: n.foreign,
            faulty: text(n.faulty),
            reason: text(n.reason),
            gpus: n.gpus,
            gpus_free: n.gpus_free,
            gpu_model: text(n.gpu_model),
            instance_id: text(n.instance_id),
            instance_type: text(n.instance_type),
            zone: text(n.zone),
            price_micro_usd_per_hour: n.price_micro_usd_per_hour,
            joined_unix_ms: number(n.joined_unix_ms),
            last_seen_unix_ms: number(n.last_seen_unix_ms),
            idle_since_unix_ms: n.idle_since_unix_ms,
            busy: n.busy,
            drain: n.drain.map(Into::into),
            assignments: n.assignments.into_iter().map(Into::into).collect(),
            workloads: n.workloads.into_iter().map(Into::into).collect(),
            conditions: n.conditions.into_iter().map(Into::into).collect(),
            facts: n.facts.map(Into::into),
            telemetry: n.telemetry.map(Into::into),
            desired: n.desired.map(Into::into),
            observed: n.observed.map(Into::into),
            labels: n.labels.into_iter().collect(),
        }
    }
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

impl NodeView {
    fn state_cell(&self) -> Cell {
        let mut state = self.state.clone();
        for (set, word) in [
            (self.cordoned && self.drain.is_none(), "cordoned"),
            (
                self.unreachable && self.state != "unreachable",
                "unreachable",
            ),
            (self.faulty.is_some(), "faulty"),
        ] {
            if set {
                state = format!("{state},{word}");
            }
        }
        let tone = match self.state.as_str() {
            _ if self.unreachable || self.faulty.is_some() => Tone::Bad,
            "ready" if !self.cordoned => Tone::Good,
            "off" | "gone" => Tone::Plain,
            _ => Tone::Busy,
        };
        Cell::toned(state, tone)
    }

    fn memory(&self) -> Option<String> {
        let used = self.telemetry.as_ref().and_then(|t| t.memory_used_bytes);
        let total = self.facts.as_ref().and_then(|f| f.memory_bytes);
        match (used, total) {
            (None, None) => None,
            (used, total) => {
                let show = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), duration::bytes);
                Some(format!("{}/{}", show(used), show(total)))
            }
        }
    }
}

impl Tabled for NodeView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("NAME", |n, _| (&n.name).into()),
            Column::new("POOL", |n, _| (&n.pool).into()),
            Column::new("STATE", |n, _| n.state_cell()),
            Column::new("GPUS", |n, _| {
                format!("{}/{}", n.gpus.saturating_sub(n.gpus_free), n.gpus).into()
            }),
            Column::new("GPU-MODEL", |n, _| (&n.gpu_model).into()),
            Column::new("CPU%", |n, _| {
                n.telemetry
                    .as_ref()
                    .and_then(TelemetryView::cpu_percent)
                    .into()
            }),
            Column::new("GPU%", |n, _| {
                n.telemetry
                    .as_ref()
                    .and_then(TelemetryView::gpu_percent)
                    .into()
            }),
            Column::new("MEM", |n, _| n.memory().into()),
            Column::new("AGE", |n, now| duration::age(now, n.joined_unix_ms).into()),
            Column::wide("ID", |n, _| (&n.id).into()),
            Column::wide("INSTANCE", |n, _| (&n.instance_id).into()),
            Column::wide("TYPE", |n, _| (&n.instance_type).into()),
            Column::wide("ZONE", |n, _| (&n.zone).into()),
            Column::wide("USD/H", |n, _| {
                n.price_micro_usd_per_hour.map(duration::usd).into()
            }),
            Column::wide("SEEN", |n, now| {
                duration::age(now, n.last_seen_unix_ms).into()
            }),
            Column::wide("REQUESTS", |n, _| {
                let names: Vec<_> = n.assignments.iter().map(|a| a.request.as_str()).collect();
                names.join(",").into()
            }),
            Column::new("REASON", |n, _| (&n.reason).into()),
        ]
    }
}

impl Sheet for NodeView {
    fn sheet(&self, page: &mut Page, now: u64) {
        page.line("Name", Some(&self.name));
        page.line("Id", Some(&self.id));
        page.line(
            "Pool",
            self.pool.as_deref().or(Some("none: supply, never touched")),
        );
        page.line("Site", self.site.as_ref());
        page.line("State", Some(self.state_cell().into_text()));
        page.line("Reason", self.reason.as_ref());
        page.line("Faulty", self.faulty.as_ref());
        page.line("Cordoned by", self.cordoned_by.as_ref());
        page.line("Cordon reason", self.cordon_reason.as_ref());
        page.line("Instance", self.instance_id.as_ref());
        page.line("Type", self.instance_type.as_ref());
        page.line("Zone", self.zone.as_ref());
        page.line("USD/h", self.price_micro_usd_per_hour.map(duration::usd));
        page.line(
            "Joined",
            self.joined_unix_ms
                .map(|t| duration::age(now, Some(t)) + " ago"),
        );
        page.line(
            "Last seen",
            self.last_seen_unix_ms
                .map(|t| duration::age(now, Some(t)) + " ago"),
        );
        page.line(
            "Idle for",
            self.idle_since_unix_ms.map(|t| duration::age(now, Some(t))),
        );
        page.line(
            "GPUs",
            Some(format!("{} free of {}", self.gpus_free, self.gpus)),
        );
        page.line("GPU model", self.gpu_model.as_ref());
        page.line("Memory", self.memory());
        if let Some(facts) = &self.facts {
            facts.lines(page);
        }
        if let Some(telemetry) = &self.telemetry {
            telemetry.lines(page);
        }
        let labels: Vec<_> = self
            .labels
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        page.line("Labels", text(labels.join(",")));
        if let Some(drain) = &self.drain {
            drain.lines(page, now);
        }
        page.lines("Busy with", &self.busy);
        page.table(
            "GPUs in detail",
            &GpuRow::join(self.facts.as_ref(), self.telemetry.as_ref()),
            now,
        );
        page.table("Workloads", &self.workloads, now);
        page.table("Held by requests", &self.assignments, now);
        page.table("Conditions", &self.conditions, now);
    }
}

impl DrainView {
    fn lines(&self, page: &mut Page, now: u64) {
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
