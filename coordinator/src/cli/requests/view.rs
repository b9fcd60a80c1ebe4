//! A capacity request as the CLI shows it: stable JSON names, table columns, the page of `requests show`.

use super::{place, selector};
use crate::cli::duration;
use crate::cli::nodes::parts::AssignmentView;
use crate::cli::output::{Cell, Column, Page, Sheet, Tabled, Tone, number, text};
use drover_proto::v1;
use serde::Serialize;
use std::collections::BTreeMap;

/// A request.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct RequestView {
    pub name: String,
    pub state: String,
    pub owner: Option<String>,
    pub units: u32,
    pub gpus_per_unit: u32,
    pub milli_cpus_per_unit: u64,
    pub memory_bytes_per_unit: u64,
    pub whole_nodes: bool,
    pub gpu_model: Option<String>,
    pub duration_ms: Option<u64>,
    pub gang: bool,
    pub min_units: Option<u32>,
    pub locality: Option<String>,
    pub priority: i32,
    pub pools: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub hold_ms: Option<u64>,
    pub gpu_milli_per_unit: Option<u32>,
    pub team: Option<String>,
    pub max_wait_ms: Option<u64>,
    pub deadline_unix_ms: Option<u64>,
    pub label_rules: Vec<String>,
    pub preferred_labels: Vec<String>,
    pub tolerations: Vec<String>,
    pub spread: Vec<String>,
    pub submitted_unix_ms: Option<u64>,
    pub served_unix_ms: Option<u64>,
    pub ends_unix_ms: Option<u64>,
    pub units_ready: u32,
    pub units_coming: u32,
    pub units_unavailable: u32,
    pub units_missing: u32,
    pub assignments: Vec<AssignmentView>,
    pub reasons: Vec<String>,
}

impl From<v1::Request> for RequestView {
    fn from(r: v1::Request) -> Self {
        let s = r.spec.unwrap_or_default();
        Self {
            name: s.name,
            state: r.state,
            owner: text(r.owner),
            units: s.units,
            gpus_per_unit: s.gpus_per_unit,
            milli_cpus_per_unit: s.milli_cpus_per_unit,
            memory_bytes_per_unit: s.memory_bytes_per_unit,
            whole_nodes: s.whole_nodes,
            gpu_model: text(s.gpu_model),
            duration_ms: number(s.duration_ms),
            gang: s.gang,
            min_units: Some(s.min_units).filter(|n| *n != 0),
            locality: text(s.locality),
            priority: s.priority,
            pools: s.pools,
            labels: s.labels.into_iter().collect(),
            hold_ms: number(s.hold_ms),
            gpu_milli_per_unit: Some(s.gpu_milli_per_unit).filter(|n| *n != 0),
            team: text(s.team),
            max_wait_ms: number(s.max_wait_ms),
            deadline_unix_ms: s.deadline_unix_ms,
            label_rules: s.label_rules.iter().map(selector::shown).collect(),
            preferred_labels: s.preferred.iter().map(place::wish_shown).collect(),
            tolerations: s.tolerations.iter().map(place::toleration_shown).collect(),
            spread: s.spread.iter().map(place::spread_shown).collect(),
            submitted_unix_ms: number(r.submitted_unix_ms),
            served_unix_ms: r.served_unix_ms,
            ends_unix_ms: r.ends_unix_ms,
            units_ready: r.units_ready,
            units_coming: r.units_coming,
            units_unavailable: r.units_unavailable,
            units_missing: r.units_missing,
            assignments: r.assignments.into_iter().map(Into::into).collect(),
            reasons: r.reasons,
        }
    }
}

impl RequestView {
    /// "60 x 1 GPU titan-x", "4 whole nodes", "1 x 8 CPU, 64GiB".
    #[must_use]
    pub fn wants(&self) -> String {
        let mut parts = Vec::new();
        if self.gpus_per_unit > 0 {
            parts.push(format!("{} GPU", self.gpus_per_unit));
        }
        if let Some(milli) = self.gpu_milli_per_unit {
            let share = format!("0.{milli:03}");
            parts.push(format!("{} GPU", share.trim_end_matches('0')));
        }
        if self.milli_cpus_per_unit > 0 {
            parts.push(format!("{} CPU", duration::cpus(self.milli_cpus_per_unit)));
        }
        if self.memory_bytes_per_unit > 0 {
            parts.push(duration::bytes(self.memory_bytes_per_unit));
        }
        if self.whole_nodes {
            parts.insert(0, "node".to_owned());
        }
        let model = self
            .gpu_model
            .as_ref()
            .map(|m| format!(" {m}"))
            .unwrap_or_default();
        format!("{} x {}{model}", self.units, parts.join(", "))
    }

    /// "16 of 20 units ready, 4 coming"; what is unavailable only when something is.
    #[must_use]
    pub fn progress(&self) -> String {
        let mut text = format!(
            "{} of {} units ready, {} coming",
            self.units_ready, self.units, self.units_coming
        );
        if self.units_unavailable > 0 {
            text.push_str(&format!(", {} unavailable", self.units_unavailable));
        }
        text
    }

    fn state_cell(&self) -> Cell {
        let tone = match self.state.as_str() {
            "served" => Tone::Good,
            "pending" | "partial" => Tone::Busy,
            "impossible" => Tone::Bad,
            _ => Tone::Plain,
        };
        Cell::toned(self.state.clone(), tone)
    }
}

impl Tabled for RequestView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("NAME", |r, _| (&r.name).into()),
            Column::new("STATE", |r, _| r.state_cell()),
            Column::new("WANTS", |r, _| r.wants().into()),
            Column::new("READY", |r, _| {
                format!("{}/{}", r.units_ready, r.units).into()
            }),
            Column::new("COMING", |r, _| r.units_coming.into()),
            Column::wide("UNAVAILABLE", |r, _| r.units_unavailable.into()),
            Column::new("ENDS-IN", |r, now| {
                r.ends_unix_ms
                    .map(|t| duration::span(t.saturating_sub(now)))
                    .into()
            }),
            Column::new("OWNER", |r, _| (&r.owner).into()),
            Column::new("AGE", |r, now| {
                duration::age(now, r.submitted_unix_ms).into()
            }),
            Column::wide("FOR", |r, _| r.duration_ms.map(duration::exact).into()),
            Column::wide("GANG", |r, _| {
                let min = r
                    .min_units
                    .map_or_else(|| "all".to_owned(), |n| format!("min {n}"));
                Some(min).filter(|_| r.gang).into()
            }),
            Column::wide("LOCALITY", |r, _| (&r.locality).into()),
            Column::wide("TEAM", |r, _| r.team.clone().into()),
            Column::wide("PRIORITY", |r, _| r.priority.to_string().into()),
            Column::new("REASON", |r, _| r.reasons.first().cloned().into()),
        ]
    }
}

impl Sheet for RequestView {
    fn sheet(&self, page: &mut Page, now: u64) {
        page.line("Name", Some(&self.name));
        page.line("State", Some(&self.state));
        page.line("Wants", Some(self.wants()));
        page.line("Owner", self.owner.as_ref());
        page.line(
            "Units ready",
            Some(format!("{} of {}", self.units_ready, self.units)),
        );
        page.line("Units coming", Some(self.units_coming));
        page.line(
            "Units unavailable",
            Some(self.units_unavailable).filter(|n| *n > 0),
        );
        page.line("Units missing", Some(self.units_missing));
        page.line(
            "Gang",
            Some(self.min_units.map_or_else(
                || "all or nothing".to_owned(),
                |n| format!("at least {n} units"),
            ))
            .filter(|_| self.gang),
        );
        page.line("Locality", self.locality.as_ref());
        page.line("Priority", Some(self.priority).filter(|p| *p != 0));
        page.line("Pools", text(self.pools.join(",")));
        let labels: Vec<_> = self
            .labels
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        let labels: Vec<_> = labels.iter().chain(&self.label_rules).cloned().collect();
        page.line("Labels", text(labels.join(",")));
        page.line("Preferred labels", text(self.preferred_labels.join(" ")));
        page.line("Tolerations", text(self.tolerations.join(",")));
        page.line("Spread", text(self.spread.join(",")));
        page.line("Team", self.team.as_ref());
        page.line("Max wait", self.max_wait_ms.map(duration::exact));
        page.line("Deadline", self.deadline_unix_ms.map(duration::moment));
        page.line(
            "Held for",
            Some(
                self.duration_ms
                    .map_or_else(|| "until cancelled".to_owned(), duration::exact),
            ),
        );
        page.line(
            "Submitted",
            self.submitted_unix_ms
                .map(|t| duration::age(now, Some(t)) + " ago"),
        );
        page.line(
            "Served",
            self.served_unix_ms
                .map(|t| duration::age(now, Some(t)) + " ago"),
        );
        page.line("Ends", self.ends_unix_ms.map(duration::moment));
        page.lines("Reasons", &self.reasons);
        page.table("Hosts", &self.assignments, now);
    }
}
