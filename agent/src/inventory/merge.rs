//! Joins a reading with what is known: a lost GPU keeps its last identity and has no values. Pure.

use std::collections::BTreeSet;

use crate::observation::{GpuFacts, GpuState, GpuUse};
use crate::probe::protocol::{GpuReading, Reading};

/// Facts and use of all GPUs, by index. `known` are the facts before; `processes_known` the UUIDs whose processes are.
#[must_use]
pub fn merge(
    known: &[GpuFacts],
    reading: &Reading,
    processes_known: &BTreeSet<String>,
) -> (Vec<GpuFacts>, Vec<GpuUse>) {
    let named: BTreeSet<&str> = reading
        .gpus
        .iter()
        .filter_map(|gpu| Some(gpu.identity.as_ref()?.uuid.as_str()))
        .collect();
    let mut facts: Vec<GpuFacts> = Vec::new();
    let mut uses: Vec<GpuUse> = Vec::new();
    for gpu in &reading.gpus {
        // One that was lost before this driver session could name it: who had the index is it.
        let before = known.iter().find(|known| match &gpu.identity {
            Some(identity) => known.uuid == identity.uuid,
            None => known.index == gpu.index && !named.contains(known.uuid.as_str()),
        });
        let Some(fact) = fact(gpu, before) else {
            continue;
        };
        uses.push(use_of(gpu, &fact, processes_known.contains(&fact.uuid)));
        facts.push(fact);
    }
    // The driver does not mention it any more, or does not let us look.
    for gone in known {
        if facts.iter().any(|fact| fact.uuid == gone.uuid) {
            continue;
        }
        let denied = reading.denied.contains(&gone.index);
        uses.push(GpuUse {
            uuid: gone.uuid.clone(),
            pci_address: gone.pci_address.clone(),
            state: if denied { GpuState::Ok } else { GpuState::Lost },
            ..GpuUse::default()
        });
        facts.push(gone.clone());
    }
    facts.sort_by(|a, b| (a.index, &a.uuid).cmp(&(b.index, &b.uuid)));
    (facts, uses)
}

fn fact(gpu: &GpuReading, before: Option<&GpuFacts>) -> Option<GpuFacts> {
    let memory_bytes = gpu
        .values
        .memory_total_bytes
        .or_else(|| before.and_then(|before| before.memory_bytes));
    match &gpu.identity {
        Some(identity) => Some(GpuFacts {
            uuid: identity.uuid.clone(),
            name: identity.name.clone(),
            memory_bytes,
            pci_address: identity.pci_address.clone(),
            index: gpu.index,
        }),
        None => before.cloned(),
    }
}

fn use_of(gpu: &GpuReading, fact: &GpuFacts, processes_known: bool) -> GpuUse {
    let base = GpuUse {
        uuid: fact.uuid.clone(),
        pci_address: fact.pci_address.clone(),
        state: gpu.state,
        ..GpuUse::default()
    };
    if gpu.state != GpuState::Ok {
        return base;
    }
    let values = &gpu.values;
    GpuUse {
        utilisation_percent: values.utilisation_percent,
        memory_utilisation_percent: values.memory_utilisation_percent,
        memory_used_bytes: values.memory_used_bytes,
        memory_reserved_bytes: values.memory_reserved_bytes,
        used_includes_reserved: values.used_includes_reserved,
        temperature_c: values.temperature_c,
        power_mw: values.power_mw,
        power_limit_mw: values.power_limit_mw,
        sm_clock_mhz: values.sm_clock_mhz,
        memory_clock_mhz: values.memory_clock_mhz,
        throttle_reasons: values.throttle_reasons,
        power_violation_ns: values.power_violation_ns,
        processes_known,
        ..base
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::protocol::{Identity, Values};

    fn gpu(index: u32, uuid: Option<&str>, state: GpuState) -> GpuReading {
        GpuReading {
            index,
            identity: uuid.map(|uuid| Identity {
                uuid: uuid.to_owned(),
                pci_address: format!("0000:{index:02x}:00.0"),
                name: "TITAN X".to_owned(),
            }),
            state,
            values: Values {
                memory_total_bytes: Some(12),
                power_mw: Some(9),
                ..Values::default()
            },
            processes: None,
        }
    }

    fn reading(gpus: Vec<GpuReading>) -> Reading {
        Reading {
            gpus,
            ..Reading::default()
        }
    }

    fn states(uses: &[GpuUse]) -> Vec<(&str, GpuState, Option<u32>)> {
        uses.iter()
            .map(|gpu| (gpu.uuid.as_str(), gpu.state, gpu.power_mw))
            .collect()
    }

    #[test]
    fn a_lost_gpu_keeps_its_identity_and_has_no_values() {
        let both = reading(vec![
            gpu(0, Some("a"), GpuState::Ok),
            gpu(1, Some("b"), GpuState::Ok),
        ]);
        let (known, uses) = merge(&[], &both, &BTreeSet::new());
        let ok = |uuid| (uuid, GpuState::Ok, Some(9));
        let lost = |uuid| (uuid, GpuState::Lost, None);
        assert_eq!(states(&uses), [ok("a"), ok("b")]);

        // Lost while the child knows who it is, after a new child cannot tell, and when it is not even counted.
        for now in [
            vec![
                gpu(0, Some("a"), GpuState::Ok),
                gpu(1, Some("b"), GpuState::Lost),
            ],
            vec![
                gpu(0, Some("a"), GpuState::Ok),
                gpu(1, None, GpuState::Lost),
            ],
            vec![gpu(0, Some("a"), GpuState::Ok)],
        ] {
            let (facts, uses) = merge(&known, &reading(now), &BTreeSet::new());
            assert_eq!(facts, known);
            assert_eq!(states(&uses), [ok("a"), lost("b")]);
        }
    }

    #[test]
    fn indices_may_change_and_nameless_gpus_are_left_out() {
        let before = reading(vec![
            gpu(0, Some("a"), GpuState::Ok),
            gpu(1, Some("b"), GpuState::Ok),
        ]);
        let (known, _) = merge(&[], &before, &BTreeSet::new());
        let after = reading(vec![
            gpu(0, Some("b"), GpuState::Ok),
            gpu(1, Some("a"), GpuState::Ok),
        ]);
        let (facts, uses) = merge(&known, &after, &BTreeSet::from(["a".to_owned()]));
        assert_eq!(
            facts
                .iter()
                .map(|gpu| gpu.uuid.as_str())
                .collect::<Vec<_>>(),
            ["b", "a"]
        );
        assert_eq!(
            uses.iter()
                .map(|gpu| gpu.processes_known)
                .collect::<Vec<_>>(),
            [false, true]
        );
        let (facts, _) = merge(
            &[],
            &reading(vec![gpu(0, None, GpuState::Lost)]),
            &BTreeSet::new(),
        );
        assert_eq!(facts, []);
    }

    #[test]
    fn a_gpu_that_may_not_be_opened_is_not_lost() {
        let (known, _) = merge(
            &[],
            &reading(vec![gpu(0, Some("a"), GpuState::Ok)]),
            &BTreeSet::new(),
        );
        let denied = Reading {
            denied: vec![0],
            ..Reading::default()
        };
        let (_, uses) = merge(&known, &denied, &BTreeSet::new());
        assert_eq!(states(&uses), [("a", GpuState::Ok, None)]);
    }
}
