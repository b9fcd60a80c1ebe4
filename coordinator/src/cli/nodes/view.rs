//! A node as the CLI shows it: stable JSON names, missing values as null, table columns, the page of `nodes show`.
//! Built from the wire type; the wire type goes no further.

use super::facts::FactsView;
use super::gpus::GpuRow;
use super::measures::TelemetryView;
use super::parts::{AssignmentView, ConditionView, DrainView, OrderView, WorkloadView};
use crate::cli::duration;
use crate::cli::output::{Cell, Column, Page, Sheet, Tabled, Tone, number, text};
use drover_proto::v1;
use serde::Serialize;
use std::collections::BTreeMap;

/// A node.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
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
    pub gpus: Option<u32>,
    pub gpus_free: Option<u32>,
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
    pub enrolled_with: Option<String>,
    pub quarantine: Option<String>,
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
            enrolled_with: text(n.enrolled_with),
            quarantine: text(n.quarantine),
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
            (self.quarantine.is_some(), "quarantine"),
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

    /// "3/4": used of all; "-/4" when the use is not known; missing when nothing is.
    fn gpus_used(&self) -> Option<String> {
        let total = self.gpus?;
        let used = self
            .gpus_free
            .map(|free| total.saturating_sub(free).to_string());
        Some(format!("{}/{total}", used.as_deref().unwrap_or("-")))
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
            Column::new("GPUS", |n, _| n.gpus_used().into()),
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
        page.line("Quarantine", self.quarantine.as_ref());
        page.line("Faulty", self.faulty.as_ref());
        page.line("Cordoned by", self.cordoned_by.as_ref());
        page.line("Cordon reason", self.cordon_reason.as_ref());
        page.line("Enrolled with", self.enrolled_with.as_ref());
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
        page.line("GPUs used", self.gpus_used());
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
