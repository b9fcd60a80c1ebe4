//! Reads what a Prometheus exporter says, as strictly as OpenMetrics 1.0 is written, and fetches it.
//!
//! Used by suites that look at `/metrics`. It is no client library: what it does not know it refuses.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// For a page of text from loopback, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a family says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Family {
    /// counter, gauge, histogram, info.
    pub kind: String,
    /// What it means.
    pub help: String,
    /// The suffix of its name that is its unit; empty without.
    pub unit: String,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// With its suffix (`_total`, `_bucket`).
    pub name: String,
    /// All of them.
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: f64,
}

/// A page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exposition {
    /// By name, without suffixes.
    pub families: BTreeMap<String, Family>,
    /// In the order of the page.
    pub samples: Vec<Sample>,
}

impl Exposition {
    /// Reads an OpenMetrics page.
    ///
    /// # Errors
    /// The line that breaks a rule, and which.
    pub fn read(text: &str) -> Result<Self, String> {
        let body = text
            .strip_suffix("# EOF\n")
            .ok_or("the page does not end with # EOF")?;
        let mut page = Self::default();
        let mut current = String::new();
        let mut seen = BTreeSet::new();
        for line in body.lines() {
            let wrong = |what: &str| format!("{what}: {line}");
            if let Some(meta) = line.strip_prefix("# ") {
                page.meta(meta, &mut current).map_err(|what| wrong(&what))?;
                continue;
            }
            let sample = sample(line).ok_or_else(|| wrong("no sample"))?;
            let family = page.families.get(&current);
            let family = family.ok_or_else(|| wrong("a sample before its family"))?;
            if !belongs(&sample, &current, &family.kind) {
                return Err(wrong(&format!("no sample of {current} ({})", family.kind)));
            }
            if family.kind != "gauge" && sample.value < 0.0 {
                return Err(wrong("a count below zero"));
            }
            if !seen.insert((sample.name.clone(), sample.labels.clone())) {
                return Err(wrong("told twice"));
            }
            page.samples.push(sample);
        }
        page.histograms()?;
        Ok(page)
    }

    fn meta(&mut self, meta: &str, current: &mut String) -> Result<(), String> {
        let mut parts = meta.splitn(3, ' ');
        let (Some(word), Some(name), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("no line about a family".to_owned());
        };
        if name != current && self.families.contains_key(name) {
            return Err(format!("{name} in two places"));
        }
        name.clone_into(current);
        let family = self.families.entry(name.to_owned()).or_default();
        let field = match word {
            "HELP" => &mut family.help,
            "TYPE" => &mut family.kind,
            "UNIT" if name.ends_with(&format!("_{rest}")) => &mut family.unit,
            _ => return Err("no HELP, TYPE or fitting UNIT".to_owned()),
        };
        if !field.is_empty() || rest.is_empty() {
            return Err("said twice, or empty".to_owned());
        }
        rest.clone_into(field);
        Ok(())
    }

    /// Buckets only grow, and the last one holds all.
    fn histograms(&self) -> Result<(), String> {
        let kinds = self.families.iter();
        for (name, _) in kinds.filter(|(_, family)| family.kind == "histogram") {
            let buckets = self.of(&format!("{name}_bucket"));
            let values: Vec<f64> = buckets.iter().map(|sample| sample.value).collect();
            let last = buckets.last().ok_or(format!("{name} has no bucket"))?;
            let all = self.value(&format!("{name}_count"), &[]);
            let infinite = last.labels.get("le").is_some_and(|le| le == "+Inf");
            if !values.is_sorted() || !infinite || all != Some(last.value) {
                return Err(format!("{name}: its buckets do not add up"));
            }
        }
        Ok(())
    }

    /// All samples of a name.
    #[must_use]
    pub fn of(&self, name: &str) -> Vec<&Sample> {
        let all = self.samples.iter();
        all.filter(|sample| sample.name == name).collect()
    }

    /// The value of the one sample of this name with exactly these labels.
    #[must_use]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let found = self.samples.iter().find(|sample| {
            sample.name == name
                && sample.labels.len() == labels.len()
                && labels
                    .iter()
                    .all(|(key, value)| sample.labels.get(*key).is_some_and(|is| is == value))
        });
        found.map(|sample| sample.value)
    }
}

/// A sample has one of the names that its family's kind allows.
fn belongs(sample: &Sample, family: &str, kind: &str) -> bool {
    let Some(suffix) = sample.name.strip_prefix(family) else {
        return false;
    };
    match kind {
        "gauge" => suffix.is_empty(),
        "counter" => suffix == "_total",
        "info" => suffix == "_info" && sample.value == 1.0,
        "histogram" => matches!(suffix, "_bucket" | "_sum" | "_count"),
        _ => false,
    }
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    let value = value.strip_prefix(' ')?;
    let plain = value
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'e'));
    (is_name(name) && plain).then_some(Sample {
        name: name.to_owned(),
        labels,
        value: value.parse().ok()?,
    })
}

/// Labels up to the closing brace, and what stands behind it.
fn labels(mut rest: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut found = BTreeMap::new();
    loop {
        let (key, behind) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut chars = behind.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next()?.1 {
                    'n' => '\n',
                    same @ ('\\' | '"') => same,
                    _ => return None,
                }),
                (_, same) => value.push(same),
            }
        };
        if !is_name(key) || found.insert(key.to_owned(), value).is_some() {
            return None;
        }
        rest = &behind[end + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Some((found, rest.strip_prefix('}')?)),
        }
    }
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_lowercase() || b == b'_')
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// What a server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Status line and headers.
    pub head: String,
    /// Body.
    pub body: String,
}

/// Asks once, on a connection of its own; `None` while nobody listens or the answer is cut off.
#[must_use]
pub fn ask(at: SocketAddr, method: &str, path: &str, accept: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect(at).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {at}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some(Answer {
        status: head.split(' ').nth(1)?.parse().ok()?,
        head: head.to_owned(),
        body: body.to_owned(),
    })
}

/// The metrics of a coordinator.
///
/// # Panics
/// When they cannot be had, or are no OpenMetrics.
#[must_use]
#[track_caller]
pub fn scrape(at: SocketAddr) -> Exposition {
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    let answer = ask(at, "GET", "/metrics", accept).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.head.contains("openmetrics-text"), "{}", answer.head);
    Exposition::read(&answer.body).unwrap_or_else(|why| panic!("{why}\n{}", answer.body))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# HELP a_seconds Spans\n# TYPE a_seconds histogram\n# UNIT a_seconds seconds\n\
        a_seconds_sum 0.5\na_seconds_count 2\na_seconds_bucket{le=\"0.5\"} 1\na_seconds_bucket{le=\"+Inf\"} 2\n\
        # HELP b Counts\n# TYPE b counter\nb_total{x=\"q\\\"\\\\\\n\",y=\"\"} 3\n# EOF\n";

    #[test]
    fn a_page_is_read() {
        let page = Exposition::read(GOOD).expect("good");
        assert_eq!(
            page.value("b_total", &[("x", "q\"\\\n"), ("y", "")]),
            Some(3.0)
        );
        assert_eq!(page.value("b_total", &[("y", "")]), None);
        assert_eq!(page.families["a_seconds"].unit, "seconds");
    }

    #[test]
    fn a_page_that_breaks_a_rule_is_refused() {
        for (from, to) in [
            ("# EOF\n", ""),
            ("b_total{", "b{"),
            ("} 3", "} -3"),
            ("} 3", "} NaN"),
            ("+Inf\"} 2", "+Inf\"} 3"),
            ("0.5\"} 1", "0.5\"} 3"),
            ("y=\"\"", "x=\"\""),
            ("# TYPE b counter", "# TYPE b gauge"),
            ("# UNIT a_seconds seconds", "# UNIT a_seconds bytes"),
            ("# HELP b Counts\n", "# HELP a_seconds Again\n"),
            ("\\n\"", "\\t\""),
        ] {
            let bad = GOOD.replace(from, to);
            assert_ne!(bad, GOOD, "{from}");
            assert!(Exposition::read(&bad).is_err(), "{from} as {to}");
        }
    }
}
