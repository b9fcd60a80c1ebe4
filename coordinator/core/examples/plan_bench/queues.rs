//! Long queues: many units in forty shapes beside a fleet that runs (SC-46), where time must hardly grow with the count;
//! and units of which no two are alike, where counting by class saves nothing.

use super::mix::catalogue;
use super::shapes::{Dice, class, empty, launched, placed, same, size};
use super::{Case, Looked, baseline, rules};
use drover_core::model::{
    Busy, Class, Lifecycle, MicroUsd, NodeInput, PlanInput, Planned, Resources, Running,
};

const SHAPES: u32 = 40;
const MIB: u64 = 1 << 20;
/// Units that run, eight to a node.
const RUNNING: u32 = 8_000;
const DISTINCT: u64 = 5_000;

pub(crate) fn cases() -> Vec<Case> {
    let small = queue(3_300);
    let half = queue(33_000);
    let whole = Case {
        against: vec![(half.name.clone(), 110.0)],
        ..queue(66_000)
    };
    let grown = Case {
        name: "40 shapes, 66,000 units (twenty times)".to_owned(),
        against: vec![(small.name.clone(), 300.0)],
        ..queue(66_000)
    };
    vec![small, half, whole, grown, distinct()]
}

fn queue(units: u32) -> Case {
    Case {
        name: format!("40 shapes, {units} units beside {RUNNING} that run"),
        make: Box::new(move || {
            let mut input = empty();
            let mut large = catalogue();
            // From 64 cores on: the plan names every node, so that few of them show what the count costs.
            large.offerings.drain(..64 * 5);
            input.pools.push(large);
            for n in 0..RUNNING / 8 {
                input.nodes.push(busy(n, &input));
            }
            let dice = &mut Dice(46);
            for shape in 0..SHAPES {
                let cpu = 100 * (1 + dice.next() % 40);
                let mib = 128 * (1 + dice.next() % 64);
                let unit = size(cpu, mib * MIB, 0);
                input
                    .classes
                    .push(class(&format!("shape-{shape}"), units / SHAPES, unit));
            }
            input
        }),
        look: look_queue,
        target_ms: None,
        target_mb: None,
        against: Vec::new(),
    }
}

/// Sixteen cores with eight units on them and no room.
fn busy(number: u32, input: &PlanInput) -> NodeInput {
    let pool = &input.pools[0];
    let all = size(16_000, 32 << 30, 0);
    NodeInput {
        id: format!("n-{number:05}").as_str().into(),
        name: format!("host-{number:05}"),
        pool: Some(pool.id.clone()),
        site: Some(pool.site.clone()),
        zone: "zone-1".to_owned(),
        instance: None,
        offering: Some(pool.offerings[0].id.clone()),
        lifecycle: Lifecycle::Ready,
        cordon: None,
        unreachable: false,
        faulty: None,
        allocatable: all.clone(),
        used: all,
        gpu_shares: Vec::new(),
        workloads: vec![Running {
            count: 8,
            unit: size(2_000, 4 << 30, 0),
            labels: std::collections::BTreeMap::new(),
            namespace: String::new(),
            team: String::new(),
            host_ports: std::collections::BTreeSet::new(),
            anti_affinity: Vec::new(),
            started: None,
            ends: None,
            movable: false,
        }],
        reserved: Vec::new(),
        gpu_model: String::new(),
        labels: pool.labels.clone(),
        taints: pool.taints.clone(),
        busy: Busy::Working {
            what: vec!["its work".to_owned()],
            movable: false,
        },
        drain: None,
        price: pool.offerings[0].price,
        launched: None,
        last_ran: None,
    }
}

fn look_queue(input: &PlanInput, planned: &Planned) -> Looked {
    let total: u32 = input.classes.iter().map(|class| class.count).sum();
    let (with, without) = placed(planned);
    same("units placed", with, total)?;
    same("units without a place", without, 0)?;
    let nodes = launched(planned);
    let all = input.classes.iter().fold(0, |sum: u64, c: &Class| {
        sum + c.unit.cpu.0 * u64::from(c.count)
    });
    // The largest type has 400 cores.
    if u64::from(nodes) < all / 400_000 {
        return Err(format!("{nodes} nodes for {all} milli-CPU"));
    }
    Ok(vec![("nodes", f64::from(nodes), "nodes", None)])
}

fn distinct() -> Case {
    Case {
        name: format!("all-distinct shapes, {DISTINCT} units, 400 types"),
        make: Box::new(|| {
            let mut input = empty();
            input.pools.push(catalogue());
            let dice = &mut Dice(5);
            for unit in 0..DISTINCT {
                // No two are alike: the last digits number them.
                let cpu = 100 + dice.next() % 8_000;
                let bytes = ((64 + dice.next() % 16_000) * MIB) + unit;
                input
                    .classes
                    .push(class("distinct", 1, size(cpu, bytes, 0)));
            }
            input
        }),
        look: look_distinct,
        target_ms: Some(500.0),
        target_mb: None,
        against: Vec::new(),
    }
}

fn look_distinct(input: &PlanInput, planned: &Planned) -> Looked {
    let mut units: Vec<&Resources> = input.classes.iter().map(|class| &class.unit).collect();
    units.sort();
    units.dedup();
    let total = u32::try_from(units.len()).map_err(|error| error.to_string())?;
    let (with, _) = placed(planned);
    same("units placed, each of a shape of its own", with, total)?;
    rules::hold(input, planned)?;
    let plain = baseline::first_fit_decreasing(input)?;
    let cost: MicroUsd = planned.report.cost;
    if cost > plain.cost {
        return Err(format!("{cost}, first fit decreasing costs {}", plain.cost));
    }
    Ok(vec![
        ("nodes", f64::from(launched(planned)), "nodes", None),
        (
            "nodes of first fit decreasing",
            f64::from(plain.nodes),
            "nodes",
            None,
        ),
    ])
}
