//! Karpenter's scheduling benchmark: 400 types with five offerings each, and pods of five families in equal parts: plain,
//! spread over zones, spread over hosts, together in a zone, alone on a host. Every pod must be placed and every rule hold
//! (`rules`), on no more nodes than the pods that are alone on a host, at no more cost than `baseline`.

use super::shapes::{Dice, class, empty, launched, offering, placed, pool, same, size};
use super::{Case, Looked, baseline, rules};
use drover_core::model::{
    Class, Market, MicroUsd, Near, Operator, PlanInput, Planned, Requirement, Resources, Selector,
    Source, Spread,
};
use std::collections::BTreeMap;

const TYPES: u64 = 400;
const PODS: &str = "pods";
const MIB: u64 = 1 << 20;
const CPU: [u64; 5] = [100, 250, 500, 1_000, 1_500];
const MEMORY_MIB: [u64; 6] = [100, 256, 512, 1_024, 2_048, 4_096];
const VALUES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
const LABEL: &str = "my-label";
const FRIENDS: &str = "my-affinity";
const ALONE: &str = "alone";
const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

/// What a pod asks of others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    Alone,
    Friends,
    Hosts,
    Zones,
    Plain,
}

pub(crate) fn cases() -> Vec<Case> {
    let timed = [(1_000, 5.0), (5_000, 15.0), (20_000, 50.0)];
    timed
        .map(|(pods, target)| case(pods, Some(target)))
        .into_iter()
        .chain([case(500, None), case(10_000, None)])
        .collect()
}

fn case(pods: u32, target_ms: Option<f64>) -> Case {
    let make = move || {
        let mut input = empty();
        input.pools.push(catalogue());
        input.classes = classes(pods);
        input
    };
    Case {
        name: format!("karpenter mix, {pods} pods"),
        make: Box::new(make),
        look,
        target_ms,
        target_mb: None,
        against: Vec::new(),
    }
}

/// Same shape, same class: that is what a source gives. Draw order per pod: label, selector's value, CPU, memory.
fn classes(pods: u32) -> Vec<Class> {
    let dice = &mut Dice(42);
    let each = pods / 5;
    let mut shapes: BTreeMap<(Family, usize, usize, u64, u64), u32> = BTreeMap::new();
    for pod in 0..pods {
        let family = match pod.checked_div(each).unwrap_or(5) {
            1 => Family::Zones,
            2 => Family::Hosts,
            3 => Family::Friends,
            4 => Family::Alone,
            _ => Family::Plain,
        };
        let values: Vec<usize> = (0..VALUES.len()).collect();
        let (own, other) = (dice.pick(&values), dice.pick(&values));
        let (own, other) = match family {
            Family::Zones | Family::Hosts => (own, other),
            Family::Plain | Family::Friends => (own, 0),
            Family::Alone => (0, 0),
        };
        let shape = (family, own, other, dice.pick(&CPU), dice.pick(&MEMORY_MIB));
        *shapes.entry(shape).or_insert(0) += 1;
    }
    let class = |((family, own, other, cpu, mib), count)| {
        let mut unit = size(cpu, mib * MIB, 0);
        unit.extended.insert(PODS.to_owned(), 1);
        let mut class = class("kubernetes", count, unit);
        rule(&mut class, family, VALUES[own], VALUES[other]);
        class
    };
    shapes.into_iter().map(class).collect()
}

fn rule(class: &mut Class, family: Family, own: &str, other: &str) {
    let select = |key: &str, value: &str| Selector {
        requirements: vec![Requirement {
            key: key.to_owned(),
            op: Operator::In,
            any_of: [value.to_owned()].into(),
        }],
        ..Selector::default()
    };
    let spread = |topology: &str| Spread {
        topology: topology.to_owned(),
        select: select(LABEL, other),
        max_skew: 1,
        min_domains: 0,
        hard: true,
    };
    let near = |topology: &str, key: &str, value: &str| Near {
        topology: topology.to_owned(),
        select: select(key, value),
    };
    let c = &mut class.constraints;
    let (key, value) = match family {
        Family::Plain => (LABEL, own),
        Family::Zones => {
            c.spread.push(spread(ZONE));
            (LABEL, own)
        }
        Family::Hosts => {
            c.spread.push(spread(HOST));
            (LABEL, own)
        }
        Family::Friends => {
            c.affinity.push(near(ZONE, FRIENDS, own));
            (FRIENDS, own)
        }
        Family::Alone => {
            c.anti_affinity.push(near(HOST, ALONE, "yes"));
            class.source = Source::Scheduler(ALONE.to_owned());
            (ALONE, "yes")
        }
    };
    class.labels.insert(key.to_owned(), value.to_owned());
}

/// Type i: i+1 cores, 2(i+1) GiB, 10(i+1) pods; 100 m and 10 MiB reserved; spot in two zones, on demand in three, all at
/// 0.1 USD per core and 0.1 USD per 10^9 bytes.
pub(crate) fn catalogue() -> drover_core::model::PoolInput {
    let mut pool = pool("default", "site", u32::MAX, 0);
    for i in 1..=TYPES {
        let bytes = 2 * i * 1_024 * MIB;
        let price = MicroUsd(100_000 * i + bytes / 10_000);
        let mut node = size(1_000 * i - 100, bytes - 10 * MIB, 0);
        node.extended.insert(PODS.to_owned(), 10 * i);
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
    rules::hold(input, planned)?;
    let alone = Source::Scheduler(ALONE.to_owned());
    let alone = input.classes.iter().filter(|class| class.source == alone);
    let alone: u32 = alone.map(|class| class.count).sum();
    let nodes = launched(planned);
    if nodes > alone {
        return Err(format!("{nodes} nodes, {alone} pods are alone on theirs"));
    }
    let plain = baseline::first_fit_decreasing(input)?;
    let (cost, bound) = (usd(planned.report.cost), usd(bound(input)));
    if planned.report.cost > plain.cost {
        return Err(format!(
            "{cost} USD/h, first fit decreasing costs {}",
            usd(plain.cost)
        ));
    }
    if cost < bound {
        return Err(format!(
            "{cost} USD/h is below what the pods' size costs, {bound}"
        ));
    }
    let shapes = u32::try_from(input.classes.len()).map_err(|error| error.to_string())?;
    let above = |usd: f64| (usd / bound - 1.0) * 100.0;
    let theirs = above(usd(plain.cost));
    Ok(vec![
        ("classes", f64::from(shapes), "classes", None),
        ("nodes", f64::from(nodes), "nodes", Some(f64::from(alone))),
        (
            "nodes of first fit decreasing",
            f64::from(plain.nodes),
            "nodes",
            None,
        ),
        (
            "cost above the size of all pods",
            above(cost),
            "%",
            Some(theirs),
        ),
        ("the same of first fit decreasing", theirs, "%", None),
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
