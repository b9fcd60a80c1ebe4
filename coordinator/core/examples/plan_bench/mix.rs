//! Karpenter's scheduling benchmark as far as the model can say it: 400 types with five offerings each, and pods of which
//! a fifth exclude each other on one host. The three families with spread and affinity are not expressible yet: their
//! pods are drawn as generic ones, and the case's name says so.

use super::shapes::{Dice, class, empty, launched, offering, placed, pool, same, size};
use super::{Case, Looked};
use drover_core::model::{Market, MicroUsd, PlanInput, Planned, Resources, Source};
use std::collections::BTreeMap;

const TYPES: u64 = 400;
/// Pods that exclude each other on one host: a slot that each host has once. (`max_per_node` counts within one class;
/// this family has thirty shapes.)
const ONE_PER_HOST: &str = "one-per-host";
const PODS: &str = "pods";
const MIB: u64 = 1 << 20;
const CPU: [u64; 5] = [100, 250, 500, 1_000, 1_500];
const MEMORY_MIB: [u64; 6] = [100, 256, 512, 1_024, 2_048, 4_096];

pub(crate) fn cases() -> Vec<Case> {
    [1_000, 5_000, 20_000].map(case).into()
}

fn case(pods: u32) -> Case {
    let mut input = empty();
    input.pools.push(catalogue());
    let exclusive = pods / 5;
    let dice = &mut Dice(42);
    // Same shape, same class: that is what a source gives.
    let mut shapes: BTreeMap<(bool, u64, u64), u32> = BTreeMap::new();
    for pod in 0..pods {
        let shape = (pod < exclusive, dice.pick(&CPU), dice.pick(&MEMORY_MIB));
        *shapes.entry(shape).or_insert(0) += 1;
    }
    for ((alone, cpu, memory), count) in shapes {
        let family = if alone { "exclusive" } else { "generic" };
        let mut unit = size(cpu, memory * MIB, 0);
        unit.extended.insert(PODS.to_owned(), 1);
        if alone {
            unit.extended.insert(ONE_PER_HOST.to_owned(), 1);
        }
        input.classes.push(class(family, count, unit));
    }
    let (types, offerings) = (TYPES, input.pools[0].offerings.len());
    Case {
        name: format!(
            "karpenter mix, 2 of 5 families (generic, host anti-affinity), {pods} pods, {types} types, {offerings} offerings"
        ),
        input,
        look,
        // The budget names the whole mix.
        target_ms: None,
    }
}

/// Type i: i+1 cores, 2(i+1) GiB, 10(i+1) pods; 100 m and 10 MiB reserved; spot in two zones, on demand in three, all at
/// 0.1 USD per core and 0.1 USD per 10^9 bytes.
fn catalogue() -> drover_core::model::PoolInput {
    let mut pool = pool("default", "site", u32::MAX, 0);
    for i in 1..=TYPES {
        let bytes = 2 * i * 1_024 * MIB;
        let price = MicroUsd(100_000 * i + bytes / 10_000);
        let mut node = size(1_000 * i - 100, bytes - 10 * MIB, 0);
        node.extended.insert(PODS.to_owned(), 10 * i);
        node.extended.insert(ONE_PER_HOST.to_owned(), 1);
        for (market, zone) in [
            (Market::Spot, "zone-1"),
            (Market::Spot, "zone-2"),
            (Market::OnDemand, "zone-1"),
            (Market::OnDemand, "zone-2"),
            (Market::OnDemand, "zone-3"),
        ] {
            let name = format!("type-{i}");
            let made = offering(&pool, &name, zone, market, price, node.clone());
            pool.offerings.push(made);
        }
    }
    pool
}

fn look(input: &PlanInput, planned: &Planned) -> Looked {
    let total: u32 = input.classes.iter().map(|class| class.count).sum();
    let (with, without) = placed(planned);
    same("pods placed", with, total)?;
    same("pods without a place", without, 0)?;
    let exclusive: u32 = input
        .classes
        .iter()
        .filter(|class| class.source == Source::Scheduler("exclusive".to_owned()))
        .map(|class| class.count)
        .sum();
    let nodes = launched(planned);
    if nodes < exclusive {
        return Err(format!(
            "{nodes} nodes for {exclusive} pods that exclude each other"
        ));
    }
    let (cost, bound) = (usd(planned.report.cost), usd(bound(input)));
    if cost < bound {
        return Err(format!(
            "{cost} USD/h is below what the pods' size costs, {bound}"
        ));
    }
    let shapes = u32::try_from(input.classes.len()).map_err(|error| error.to_string())?;
    Ok(vec![
        ("classes", f64::from(shapes), "classes"),
        ("nodes", f64::from(nodes), "nodes"),
        ("nodes at least", f64::from(exclusive), "nodes"),
        (
            "cost above the size of all pods",
            (cost / bound - 1.0) * 100.0,
            "%",
        ),
    ])
}

/// What the pods' own size costs: less is impossible, since every type has one price per core and byte.
fn bound(input: &PlanInput) -> MicroUsd {
    let all = input
        .classes
        .iter()
        .fold(Resources::default(), |sum, class| {
            sum.plus(&class.unit.scaled(class.count))
        });
    // A type has 2 GiB per core: the dearer of both sizes decides.
    let cores_milli = all.cpu.0.max(all.memory.0 / (2 * 1_024 * MIB) * 1_000);
    let per_core = 100_000 + 2 * 1_024 * MIB / 10_000;
    MicroUsd(cores_milli * per_core / 1_000)
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn usd(price: MicroUsd) -> f64 {
    price.0 as f64 / 1e6
}
