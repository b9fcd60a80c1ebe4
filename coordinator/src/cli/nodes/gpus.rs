//! The GPUs of a node as rows: what each is, joined with how it is used. Used by `nodes::view`; missing is not zero.

use super::facts::FactsView;
use super::measures::{GpuUseView, TelemetryView};
use crate::cli::duration;
use crate::cli::output::{Cell, Column, Tabled, Tone};

/// One GPU of a node: what it is and how it is used, joined by UUID.
pub struct GpuRow {
    index: Option<u32>,
    name: Option<String>,
    uuid: Option<String>,
    use_of: Option<GpuUseView>,
    memory_bytes: Option<u64>,
}

impl GpuRow {
    /// All GPUs that the facts name or the telemetry measures.
    #[must_use]
    pub fn join(facts: Option<&FactsView>, telemetry: Option<&TelemetryView>) -> Vec<Self> {
        let named = facts.map(|f| f.gpus.as_slice()).unwrap_or_default();
        let used = telemetry.map(|t| t.gpus.as_slice()).unwrap_or_default();
        let known = named.iter().map(|g| Self {
            index: Some(g.index),
            name: Some(g.name.clone()),
            uuid: Some(g.uuid.clone()),
            use_of: used
                .iter()
                .find(|u| u.uuid.as_ref() == Some(&g.uuid))
                .cloned(),
            memory_bytes: g.memory_bytes,
        });
        let strangers = used
            .iter()
            .filter(|u| !named.iter().any(|g| u.uuid.as_ref() == Some(&g.uuid)))
            .map(|u| Self {
                index: None,
                name: None,
                uuid: u.uuid.clone().or_else(|| u.pci_address.clone()),
                use_of: Some(u.clone()),
                memory_bytes: None,
            });
        known.chain(strangers).collect()
    }

    fn measured<T>(&self, get: fn(&GpuUseView) -> Option<T>) -> Option<T> {
        self.use_of.as_ref().and_then(get)
    }
}

impl Tabled for GpuRow {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("INDEX", |g, _| g.index.into()),
            Column::new("MODEL", |g, _| (&g.name).into()),
            Column::new("STATE", |g, _| {
                let state = g.measured(|u| u.state.clone());
                let tone = match state.as_deref() {
                    Some("ok") => Tone::Good,
                    None => Tone::Plain,
                    Some(_) => Tone::Bad,
                };
                Cell::toned(state.unwrap_or_default(), tone)
            }),
            Column::new("GPU%", |g, _| g.measured(|u| u.utilisation_percent).into()),
            Column::new("MEM", |g, _| {
                let used = g.measured(|u| u.memory_used_bytes);
                match (used, g.memory_bytes) {
                    (None, None) => Cell::default(),
                    (used, total) => {
                        let show =
                            |n: Option<u64>| n.map_or_else(|| "-".to_owned(), duration::bytes);
                        format!("{}/{}", show(used), show(total)).into()
                    }
                }
            }),
            Column::new("TEMP", |g, _| {
                g.measured(|u| u.temperature_c)
                    .map(|c| format!("{c}C"))
                    .into()
            }),
            Column::new("POWER", |g, _| {
                g.measured(|u| u.power_mw)
                    .map(|mw| format!("{}W", mw / 1_000))
                    .into()
            }),
            Column::new("UUID", |g, _| (&g.uuid).into()),
        ]
    }
}
