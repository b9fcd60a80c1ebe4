//! How one look adds to what an adoption has seen. Pure.
//!
//! A plan of a pool in `observe` wants the same again in every cycle, since nothing is done: asks are counted by how far a
//! plan wants more than the one before it, removals by nodes that become due, and both are summed over time. Removals are
//! what the plan would begin at once, within the pool's removal quota: the sum is what Drover would have saved at least.

use crate::records::adoption::{DECISIONS, SAMPLES};
use crate::records::{AdoptionRecord, Decision, Sample};
use drover_core::model::{InstanceId, MicroUsd, Millis, NodeId, UnixMs};
use std::collections::{BTreeMap, BTreeSet};

/// The shortest sample.
const SHORTEST: Millis = Millis::minutes(1);
/// Nodes that one decision names.
const NAMED: usize = 5;
const HOUR_MS: u64 = 3_600_000;

/// A node that would have been drained.
#[derive(Debug, Clone, Default)]
pub(super) struct Removal {
    pub(super) gpus: u32,
    pub(super) price: MicroUsd,
    /// What would be done, and why.
    pub(super) what: String,
}

/// One pool in one cycle.
#[derive(Debug, Clone, Default)]
pub(super) struct Look {
    pub(super) now: UnixMs,
    pub(super) members: BTreeSet<InstanceId>,
    /// Members that no agent speaks for.
    pub(super) blind: u32,
    pub(super) idle: u32,
    pub(super) idle_gpus: u64,
    /// Per hour.
    pub(super) idle_price: MicroUsd,
    /// Nodes that the plan would ask for.
    pub(super) ask: u32,
    /// In words, by offering.
    pub(super) asks: Vec<String>,
    pub(super) removals: BTreeMap<NodeId, Removal>,
}

/// The look before; nothing at first.
#[derive(Debug, Default)]
pub(super) struct Before {
    last: Option<Look>,
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// What a price per hour comes to.
fn cost(price: MicroUsd, span: Millis) -> MicroUsd {
    let product = u128::from(price.0) * u128::from(span.0) / u128::from(HOUR_MS);
    MicroUsd(u64::try_from(product).unwrap_or(u64::MAX))
}

/// Adds a look, `passed` after the one before it.
pub(super) fn add(record: &mut AdoptionRecord, before: &mut Before, look: Look, passed: Millis) {
    let left = record.span.minus(record.watched);
    let passed = passed.min(left);
    record.last = Some(look.now);
    // What held since the last look is what that look saw.
    if let Some(last) = &before.last {
        record.watched = record.watched.plus(passed);
        let tally = &mut record.tally;
        tally.idle_gpu_ms += last.idle_gpus * passed.0;
        tally.idle_cost = tally.idle_cost.plus(cost(last.idle_price, passed));
        tally.missing_node_ms += u64::from(last.ask) * passed.0;
        tally.blind_node_ms += u64::from(last.blind) * passed.0;
        for removal in last.removals.values() {
            tally.removable_gpu_ms += u64::from(removal.gpus) * passed.0;
            tally.removable_cost = tally.removable_cost.plus(cost(removal.price, passed));
        }
        tally.came += look.members.difference(&last.members).count() as u64;
        tally.went += last.members.difference(&look.members).count() as u64;
    }
    decide(record, before.last.as_ref(), &look);
    sample(record, &look);
    before.last = Some(look);
}

/// What the plan newly wants.
fn decide(record: &mut AdoptionRecord, last: Option<&Look>, look: &Look) {
    let wanted = last.map_or(0, |last| last.ask);
    let more = look.ask.saturating_sub(wanted);
    if more > 0 {
        record.tally.would_ask += u64::from(more);
        let what = format!("{more} more nodes: {}", few(look.asks.iter()));
        note(record, look.now, what);
    }
    let due: Vec<&Removal> = look
        .removals
        .iter()
        .filter(|(id, _)| last.is_none_or(|last| !last.removals.contains_key(*id)))
        .map(|(_, removal)| removal)
        .collect();
    if !due.is_empty() {
        record.tally.would_remove += due.len() as u64;
        let what = few(due.iter().map(|removal| &removal.what));
        note(record, look.now, what);
    }
}

fn few<'a>(all: impl Iterator<Item = &'a String>) -> String {
    let all: Vec<&str> = all.map(String::as_str).collect();
    let named = all
        .iter()
        .take(NAMED)
        .copied()
        .collect::<Vec<_>>()
        .join("; ");
    match all.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named}; and {more} more"),
    }
}

fn note(record: &mut AdoptionRecord, at: UnixMs, what: String) {
    if record.decisions.len() >= DECISIONS {
        record.decisions.remove(0);
        record.dropped += 1;
    }
    record.decisions.push(Decision { at, what });
}

fn sample(record: &mut AdoptionRecord, look: &Look) {
    let width = Millis(record.span.0 / SAMPLES).max(SHORTEST);
    let (ask, remove) = (look.ask, count(look.removals.len()));
    let (size, idle) = (count(look.members.len()), look.idle);
    match record.samples.last_mut() {
        Some(last) if look.now.0.saturating_sub(last.at.0) < width.0 => {
            last.size = size;
            last.idle = idle;
            last.would_ask = last.would_ask.max(ask);
            last.would_remove = last.would_remove.max(remove);
        }
        _ => {
            // Time in which nobody looked makes more of them than the span has.
            if record.samples.len() as u64 >= 2 * SAMPLES {
                record.samples.remove(0);
            }
            record.samples.push(Sample {
                at: look.now,
                size,
                idle,
                would_ask: ask,
                would_remove: remove,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(span: Millis) -> AdoptionRecord {
        AdoptionRecord {
            region: "r1".into(),
            role: None,
            group: "g".into(),
            by: "admin/ada".into(),
            since: UnixMs(0),
            span,
            watched: Millis::ZERO,
            last: None,
            left: None,
            tally: Default::default(),
            samples: Vec::new(),
            decisions: Vec::new(),
            dropped: 0,
        }
    }

    fn look(minute: u64, members: u32, ask: u32, due: &[&str]) -> Look {
        let removal = |what: &str| Removal {
            gpus: 8,
            price: MicroUsd(60_000_000),
            what: format!("drain {what}"),
        };
        Look {
            now: UnixMs(minute * 60_000),
            members: (0..members)
                .map(|n| InstanceId::new(format!("i-{n}")))
                .collect(),
            blind: 1,
            idle: 2,
            idle_gpus: 16,
            idle_price: MicroUsd(120_000_000),
            ask,
            asks: vec!["ask for some".to_owned()],
            removals: due
                .iter()
                .map(|id| (NodeId::new(*id), removal(id)))
                .collect(),
        }
    }

    #[test]
    fn the_same_wish_in_every_cycle_is_one_wish() {
        let (mut record, mut before) = (record(Millis::minutes(60)), Before::default());
        for (minute, ask, due) in [
            (0, 3, &["n-1"][..]),
            (1, 3, &["n-1"]),
            (2, 5, &["n-1", "n-2"]),
            (3, 0, &[]),
            (4, 2, &["n-1"]),
        ] {
            add(
                &mut record,
                &mut before,
                look(minute, 4, ask, due),
                Millis::minutes(1),
            );
        }
        assert_eq!(record.tally.would_ask, 3 + 2 + 2);
        assert_eq!(record.tally.would_remove, 1 + 1 + 1);
        assert_eq!(
            record.watched,
            Millis::minutes(4),
            "the first look begins, it ends nothing"
        );
        assert_eq!(record.tally.missing_node_ms, (3 + 3 + 5) * 60_000);
        assert_eq!(record.tally.removable_gpu_ms, (8 + 8 + 16) * 60_000);
        assert_eq!(record.tally.removable_cost, MicroUsd(4_000_000));
        assert_eq!(record.tally.idle_gpu_ms, 4 * 16 * 60_000);
        assert_eq!(record.tally.idle_cost, MicroUsd(8_000_000));
        assert_eq!(record.tally.blind_node_ms, 4 * 60_000);
        assert_eq!(record.decisions.len(), 6);
    }

    #[test]
    fn what_came_and_went_is_counted_by_instance() {
        let (mut record, mut before) = (record(Millis::minutes(60)), Before::default());
        for (minute, members) in [(0, 4), (1, 6), (2, 5)] {
            add(
                &mut record,
                &mut before,
                look(minute, members, 0, &[]),
                Millis::minutes(1),
            );
        }
        assert_eq!((record.tally.came, record.tally.went), (2, 1));
    }

    #[test]
    fn time_ends_with_the_span_and_nothing_grows_without_bound() {
        let mut record = record(Millis::minutes(1_000));
        let mut before = Before::default();
        for minute in 0..2_000 {
            let due = format!("n-{minute}");
            add(
                &mut record,
                &mut before,
                look(minute, 1, 0, &[&due]),
                Millis::minutes(1),
            );
        }
        assert!(record.is_complete());
        assert_eq!(record.watched, record.span);
        assert_eq!(record.tally.idle_gpu_ms, 1_000 * 16 * 60_000);
        assert_eq!(record.decisions.len(), DECISIONS);
        assert_eq!(record.dropped, 1_900);
        assert!(record.samples.len() as u64 <= 2 * SAMPLES);
        let bytes = serde_json::to_vec(&record).expect("JSON").len();
        assert!(bytes < crate::ports::store::VALUE_BYTES, "{bytes}");
    }
}
