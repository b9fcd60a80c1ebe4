//! Tables of learning: what counts, when it learns, what it forgets.

use super::*;
use crate::model::{Bytes, MilliCpu, Resources, Source, UnixMs};
use std::collections::BTreeMap;

fn class(cpu: u64, gib: u64, gpus: u32, gpu_milli: u32) -> Class {
    Class {
        source: Source::Scheduler("jobs".to_owned()),
        unit: Resources {
            cpu: MilliCpu(cpu),
            memory: Bytes(gib << 30),
            gpus,
            gpu_milli,
            extended: BTreeMap::new(),
        },
        whole_node: false,
        count: 1,
        constraints: Constraints::default(),
        gang: None,
        priority: 0,
        submitted: UnixMs(0),
        labels: BTreeMap::new(),
        namespace: String::new(),
        team: String::new(),
        run_time: None,
        max_wait: None,
        deadline: None,
    }
}

fn came(units: &[(Class, u32)]) -> Asked {
    let mut asked = Asked::default();
    step(
        &mut asked,
        units.iter().map(|(class, count)| (class, *count)),
    );
    asked
}

#[test]
fn counts_units_with_gpus_by_kind() {
    let seen = came(&[
        (class(4_000, 16, 0, 0), 50),
        (class(8_000, 32, 1, 0), 10),
        (class(2_100, 8, 0, 250), 6),
        (class(64_000, 256, 8, 0), 1),
    ]);
    assert_eq!(seen.units, 17, "units without GPUs say nothing of them");
    let kinds: Vec<(u32, u32, u64)> = seen
        .kinds
        .iter()
        .map(|k| (k.gpus, k.cpu_log2, k.weight))
        .collect();
    // A quarter with 2.1 cores has more CPU per GPU than a whole one with 8. 8 GPUs weigh 0.8 + 8 * 0.2 units.
    assert_eq!(
        kinds,
        [(1, 12, 1_000_000), (1, 13, 510_000), (8, 12, 240_000)]
    );
    assert_eq!(seen.shares[&25], 6);
}

#[test]
fn learns_when_arrivals_grew_by_a_quarter() {
    let one = class(8_000, 32, 1, 0);
    let mut state = Asked::default();
    let mut learnt_at = Vec::new();
    for n in 1..=64_u64 {
        let before = state.next;
        step(&mut state, [(&one, 1)]);
        if state.next != before {
            learnt_at.push(n);
        }
    }
    assert_eq!(learnt_at, [16, 20, 25, 31, 38, 47, 58]);
    let kind = &state.kinds[0];
    assert_eq!(kind.weight, 64 * 100_000);
    assert_eq!(kind.cpu / kind.weight, 8_000);
    assert_eq!(kind.memory / kind.weight, 32 << 10);
    assert!(state.residual.is_empty(), "no shares came");
}

#[test]
fn an_old_mix_is_forgotten() {
    let (old, new) = (class(8_000, 32, 1, 0), class(2_000, 8, 4, 0));
    let mut state = Asked::default();
    for _ in 0..200 {
        step(&mut state, [(&old, 1_000)]);
    }
    assert!(state.units <= MOST * 5 / 4, "{}", state.units);
    for _ in 0..400 {
        step(&mut state, [(&new, 1_000)]);
    }
    let weight = |gpus| {
        let kind = state.kinds.iter().find(|k| k.gpus == gpus);
        kind.map_or(0, |k| k.weight)
    };
    assert!(weight(4) > 9 * weight(1), "{} {}", weight(4), weight(1));
}

#[test]
fn kinds_are_bounded_and_the_rarest_goes() {
    let mut state = Asked::default();
    for n in 0..1_000_u32 {
        let mut class = class(8_000, 32, 1, 0);
        class.constraints.gpu_model = format!("model-{n:04}");
        // Rules about other units make no kind of their own.
        class.constraints.max_per_node = n;
        step(&mut state, [(&class, (1_000 - n) / 20 + 1)]);
        assert!(state.kinds.len() <= KINDS);
    }
    let first = &state.kinds[0].constraints;
    assert_eq!(first.gpu_model, "model-0000");
    assert_eq!(first.max_per_node, 0);
}

#[test]
fn any_figures_are_survived() {
    let most = class(u64::MAX, u64::MAX >> 30, u32::MAX, 0);
    let share = class(u64::MAX, 0, 0, u32::MAX);
    let nothing = class(0, 0, 1, 0);
    let mut state = Asked::default();
    for _ in 0..3 {
        step(
            &mut state,
            [(&most, u32::MAX), (&share, u32::MAX), (&nothing, 0)],
        );
    }
    assert_eq!(state.kinds.len(), 2);
}
