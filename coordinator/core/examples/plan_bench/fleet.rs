//! A large fleet that lives: 10,000 nodes with 50,000 workloads in 500 pools, without and with 2,000 gangs that wait.

use super::shapes::{Dice, NOW, class, empty, offering, placed, pool, size};
use super::{Case, Looked};
use drover_core::model::{
    Action, Busy, Gang, Lifecycle, Locality, Market, MicroUsd, Millis, NodeInput, PlanInput,
    Planned, PoolInput,
};

const POOLS: u32 = 500;
const NODES: u32 = 10_000;
/// Workloads per node, so 50,000 in all.
const WORKLOADS: usize = 5;
const GANGS: u32 = 2_000;
const SITES: u32 = 10;
/// One node: eight GPUs.
const CPU: u64 = 96_000;
const MEMORY: u64 = 1 << 40;
const GPUS: u32 = 8;

pub(crate) fn cases() -> Vec<Case> {
    let (nodes, pools) = (NODES, POOLS);
    let quiet = format!("{nodes} nodes, 50,000 workloads, {pools} pools");
    let gangs = format!("{quiet}, {GANGS} pending gangs of mixed shape");
    let short = format!("{gangs}, the budget used up");
    vec![
        Case {
            name: quiet,
            make: Box::new(fleet),
            look: look_quiet,
            target_ms: None,
            target_mb: None,
            against: Vec::new(),
        },
        Case {
            name: gangs,
            make: Box::new(|| with_gangs(fleet())),
            look: look_gangs,
            target_ms: Some(250.0),
            target_mb: Some(300.0),
            against: Vec::new(),
        },
        Case {
            name: short,
            make: Box::new(|| without_growth(with_gangs(fleet()))),
            look: look_gangs,
            target_ms: None,
            target_mb: None,
            against: Vec::new(),
        },
    ]
}

fn fleet() -> PlanInput {
    let mut input = empty();
    for p in 0..POOLS {
        let site = format!("site-{}", p % SITES);
        let mut pool = pool(&format!("pool-{p:03}"), &site, 40, p);
        let price = MicroUsd(50_000_000 + u64::from(p) * 10_000);
        let zone = format!("{site}-{}", p % 3);
        let made = offering(
            &pool,
            "p5",
            &zone,
            Market::OnDemand,
            price,
            size(CPU, MEMORY, GPUS),
        );
        pool.offerings.push(made);
        input.pools.push(pool);
    }
    let dice = &mut Dice(7);
    for n in 0..NODES {
        let pool = &input.pools[(n % POOLS) as usize];
        input.nodes.push(node(n, pool, dice));
    }
    input.nodes.sort_by(|a, b| a.id.cmp(&b.id));
    input
}

/// Five workloads that take five to eight of the eight GPUs.
fn node(number: u32, pool: &PoolInput, dice: &mut Dice) -> NodeInput {
    let gpus = dice.pick(&[5, 6, 7, 8]);
    let offering = &pool.offerings[0];
    NodeInput {
        gpu_shares: Vec::new(),
        workloads: Vec::new(),
        launched: None,
        last_ran: None,
        id: format!("n-{number:05}").as_str().into(),
        name: format!("host-{number:05}"),
        pool: Some(pool.id.clone()),
        site: Some(pool.site.clone()),
        zone: offering.zone.clone(),
        instance: Some(format!("i-{number:017x}").as_str().into()),
        offering: Some(offering.id.clone()),
        lifecycle: Lifecycle::Ready,
        cordon: None,
        unreachable: false,
        faulty: None,
        allocatable: size(CPU, MEMORY, GPUS),
        used: size(u64::from(gpus) * 10_000, u64::from(gpus) << 36, gpus),
        reserved: Vec::new(),
        gpu_model: offering.gpu_model.clone(),
        labels: pool.labels.clone(),
        taints: pool.taints.clone(),
        busy: Busy::Working {
            what: (0..WORKLOADS)
                .map(|w| format!("GPU process {w}:{number} (alice) python train.py"))
                .collect(),
            movable: false,
        },
        drain: None,
        price: offering.price,
    }
}

/// Gangs of mixed shape, each a class of its own: 8 to 64 GPUs in units of one to eight, in one node, pool, zone, site or
/// anywhere, a third of them elastic. The fleet has room for most of them.
fn with_gangs(mut input: PlanInput) -> PlanInput {
    let dice = &mut Dice(11);
    for g in 0..GANGS {
        let gpus = dice.pick(&[1, 1, 2, 4, 8]);
        let locality = dice.pick(&[
            Locality::Pool,
            Locality::Pool,
            Locality::Zone,
            Locality::Site,
            Locality::Any,
            Locality::Node,
        ]);
        let all = if locality == Locality::Node {
            GPUS
        } else {
            dice.pick(&[8, 16, 32, 64])
        };
        let units = (all / gpus).max(1);
        let cpu = dice.pick(&[4_000, 8_000, 10_000]);
        let unit = size(cpu * u64::from(gpus), u64::from(gpus) << 34, gpus);
        let mut class = class(&format!("gang-{g:04}"), units, unit);
        class.submitted.0 = NOW.0 - u64::from(GANGS - g) * 1_000;
        class.gang = Some(Gang {
            min: if dice.pick(&[0, 0, 1]) == 1 {
                units.div_ceil(2)
            } else {
                units
            },
            assigned: 0,
            locality,
            hold: Millis::minutes(20),
            holding_since: None,
        });
        input.classes.push(class);
    }
    input
}

/// The same, and the budget is used up: most of them cannot be whole.
fn without_growth(mut input: PlanInput) -> PlanInput {
    input.policy.max_gpus = Some(NODES * GPUS);
    input
}

fn look_quiet(input: &PlanInput, planned: &Planned) -> Looked {
    // Everything works and nothing waits: nothing may be done.
    match planned.plan.actions.as_slice() {
        [] if planned.report.nodes.len() == input.nodes.len() => Ok(Vec::new()),
        [] => Err(format!("{} nodes explained", planned.report.nodes.len())),
        [first, ..] => Err(format!(
            "{} actions, the first {first:?}",
            planned.plan.actions.len()
        )),
    }
}

fn look_gangs(input: &PlanInput, planned: &Planned) -> Looked {
    if let Some(act) = planned
        .plan
        .actions
        .iter()
        .find(|action| !matches!(action, Action::Launch { .. }))
    {
        return Err(format!("{act:?}"));
    }
    let mut whole = 0_u32;
    for (class, outcome) in input.classes.iter().zip(&planned.report.classes) {
        let here = outcome.fitted + outcome.coming + outcome.grown;
        let least = class.gang.as_ref().map_or(class.count, |gang| gang.min);
        if here >= least {
            whole += 1;
        } else if here > 0 {
            return Err(format!("{:?} got {here} of {}", class.source, class.count));
        }
    }
    let room = free(input);
    let (with, _) = placed(planned);
    if whole == 0 || with > room {
        return Err(format!(
            "{whole} gangs whole, {with} units placed where {room} have room"
        ));
    }
    Ok(vec![
        ("gangs that are whole", f64::from(whole), "gangs", None),
        ("units placed", f64::from(with), "units", None),
    ])
}

/// Free GPUs, and those of the nodes that the pools may still grow by.
fn free(input: &PlanInput) -> u32 {
    let now = input
        .nodes
        .iter()
        .map(|node| node.allocatable.gpus - node.used.gpus);
    let grown: u32 = input.pools.iter().map(|pool| pool.max * GPUS).sum();
    let standing = u32::try_from(input.nodes.len()).unwrap_or(u32::MAX) * GPUS;
    now.sum::<u32>() + grown - standing
}
