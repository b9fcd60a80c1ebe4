//! The metrics page: one snapshot of what the coordinator published, rendered at the moment of the scrape.
//!
//! Used by `serve/http`. Every family is a constant beside the code that fills it and stands in docs/metrics.md; a test
//! holds the two together. **Labels are bounded**: pools, regions, roles, calls and words; never a node, an instance, a
//! request or a person.

mod acts;
mod aws;
mod control;
mod family;
mod fleet;
mod nodes;
mod pools;

use super::Sources;
use crate::control::pace::Spans;
use crate::control::tally::Counts;
use crate::control::view::FleetView;
use crate::ports::calls::CallCount;
use drover_core::model::UnixMs;
use family::Sheet;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::Arc;

/// Before every name but the standard ones of a process.
const PREFIX: &str = "drover";

/// How the page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus's older text format 0.0.4.
    Prometheus,
}

impl Format {
    /// What these `Accept` headers want: OpenMetrics only for who names it.
    pub fn wanted<'a>(mut accept: impl Iterator<Item = &'a str>) -> Self {
        if accept.any(|value| value.contains("application/openmetrics-text")) {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// Its content type.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// What one page shows.
#[derive(Debug)]
pub(super) struct Snapshot {
    view: Arc<FleetView>,
    counts: Counts,
    cycles: Spans,
    plans: Spans,
    cycle_failures: u64,
    calls: Vec<CallCount>,
    now: UnixMs,
    started: UnixMs,
}

impl Snapshot {
    pub(super) fn of(sources: &Sources) -> Self {
        Self {
            view: sources.views.borrow().clone(),
            counts: sources.journal.counts(),
            cycles: sources.pace.cycles(),
            plans: sources.pace.plans(),
            cycle_failures: sources.pace.failures(),
            calls: sources.calls.calls(),
            now: sources.clock.wall(),
            started: sources.started,
        }
    }
}

/// Renders a snapshot.
pub(super) fn page(snapshot: Snapshot, format: Format) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Process(snapshot.started)));
    let own = registry.sub_registry_with_prefix(PREFIX);
    own.register_collector(Box::new(snapshot));
    let mut page = String::new();
    match format {
        Format::OpenMetrics => text::encode(&mut page, &registry)?,
        Format::Prometheus => prometheus_text::encode(&mut page, &registry)?,
    }
    Ok(page)
}

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut sheet = Sheet::new(encoder);
        control::write(&mut sheet, self)?;
        fleet::write(&mut sheet, self)?;
        pools::write(&mut sheet, self)?;
        nodes::write(&mut sheet, self)?;
        acts::write(&mut sheet, self)?;
        aws::write(&mut sheet, self)
    }
}

/// What every process tells under the same name.
#[derive(Debug)]
struct Process(UnixMs);

impl Collector for Process {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        control::process(&mut Sheet::new(encoder), self.0)
    }
}
