//! One measured figure and how it is printed.
//!
//! Called by every bench. stdout is data; a bench talks on stderr.

use serde::Serialize;

/// How to print figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// Columns for people, at the end.
    Table,
    /// One object a line, as soon as it is known.
    Json,
}

/// One figure. `target` is the most that is allowed, in the same unit.
#[derive(Debug, Serialize)]
struct Figure {
    bench: &'static str,
    case: String,
    value: f64,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
}

/// Takes figures as they are measured.
pub(crate) struct Sink {
    bench: &'static str,
    output: Output,
    figures: Vec<Figure>,
}

impl Sink {
    pub(crate) fn new(bench: &'static str, output: Output) -> Self {
        Self {
            bench,
            output,
            figures: Vec::new(),
        }
    }

    /// A figure without a budget.
    pub(crate) fn add(&mut self, case: impl Into<String>, value: f64, unit: &'static str) {
        self.push(case.into(), value, unit, None);
    }

    /// A figure that must stay below `target`.
    pub(crate) fn add_below(
        &mut self,
        case: impl Into<String>,
        value: f64,
        unit: &'static str,
        target: f64,
    ) {
        self.push(case.into(), value, unit, Some(target));
    }

    /// A figure that may have a budget.
    pub(crate) fn put(
        &mut self,
        case: impl Into<String>,
        value: f64,
        unit: &'static str,
        target: Option<f64>,
    ) {
        self.push(case.into(), value, unit, target);
    }

    fn push(&mut self, case: String, value: f64, unit: &'static str, target: Option<f64>) {
        let met = target.map(|target| value <= target);
        let figure = Figure {
            bench: self.bench,
            case,
            value: rounded(value),
            unit,
            target: target.map(rounded),
            met,
        };
        if self.output == Output::Json {
            println!(
                "{}",
                serde_json::to_string(&figure).expect("a figure is plain data")
            );
        }
        self.figures.push(figure);
    }

    /// Prints what is still to be printed.
    pub(crate) fn finish(&self) {
        if self.output == Output::Table {
            print!("{}", table(&self.figures));
        }
    }
}

/// Bytes as megabytes of 10^6.
#[expect(clippy::cast_precision_loss, reason = "a size for people")]
pub(crate) fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Four digits after the point: the finest unit is a share of a percent.
fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

fn table(figures: &[Figure]) -> String {
    let mut rows = vec![["case", "value", "unit", "target", "met"].map(str::to_owned)];
    rows.extend(figures.iter().map(|figure| {
        [
            figure.case.clone(),
            figure.value.to_string(),
            figure.unit.to_owned(),
            figure
                .target
                .map(|target| format!("<= {target}"))
                .unwrap_or_default(),
            figure
                .met
                .map(|met| if met { "yes" } else { "NO" }.to_owned())
                .unwrap_or_default(),
        ]
    }));
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..5).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_and_met_are_there_only_where_a_budget_is_named() {
        let mut sink = Sink::new("agent", Output::Table);
        sink.add("rss", 12.5, "MB");
        sink.add_below("size", 9.0, "MB", 10.0);
        sink.add_below("cpu", 0.2, "% of a core", 0.15);
        let lines: Vec<String> = sink
            .figures
            .iter()
            .map(|figure| serde_json::to_string(figure).unwrap())
            .collect();
        assert_eq!(
            lines,
            [
                r#"{"bench":"agent","case":"rss","value":12.5,"unit":"MB"}"#,
                r#"{"bench":"agent","case":"size","value":9.0,"unit":"MB","target":10.0,"met":true}"#,
                r#"{"bench":"agent","case":"cpu","value":0.2,"unit":"% of a core","target":0.15,"met":false}"#,
            ]
        );
        let table = table(&sink.figures);
        assert!(
            table.contains("cpu   0.2    % of a core  <= 0.15  NO"),
            "{table}"
        );
    }
}
