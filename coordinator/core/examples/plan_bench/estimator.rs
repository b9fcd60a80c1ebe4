//! The packing estimate of the Cluster Autoscaler (pkg/estimator, BenchmarkBinpackingEstimate): 50,000 pods of 50 m and
//! 1,000 pods of 95 m on nodes of 1,000 m; 2,595 nodes are optimal (2,595,000 m), smallest first would take 2,600.

use super::shapes::{class, empty, launched, offering, placed, pool, same, size};
use super::{Case, Looked};
use drover_core::model::{Market, MicroUsd, NodeInput, PlanInput, Planned, Resources};

/// Pods are a resource of their own: 100 per node there.
const PODS: &str = "pods";

fn with_pods(mut size: Resources, pods: u64) -> Resources {
    size.extended.insert(PODS.to_owned(), pods);
    size
}

/// The whole benchmark, with its old node of another zone that nothing is packed on.
pub(crate) fn case() -> Case {
    Case {
        name: "estimator, 50,000 + 1,000 pods".to_owned(),
        make: Box::new(input),
        look,
        target_ms: Some(10.0),
        target_mb: None,
        against: Vec::new(),
    }
}

fn input() -> PlanInput {
    let mut input = empty();
    let mut group = pool("template", "site", 3_000, 0);
    let node = with_pods(size(1_000, 5_000 << 20, 0), 100);
    let made = offering(
        &group,
        "template",
        "zone-1",
        Market::OnDemand,
        MicroUsd(1_000_000),
        node,
    );
    group.offerings.push(made);
    input.pools.push(group);
    input.nodes.push(old_node());
    // Their memory figures are bytes, so memory never binds.
    input
        .classes
        .push(class("large", 1_000, with_pods(size(95, 190, 0), 1)));
    input
        .classes
        .push(class("small", 50_000, with_pods(size(50, 100, 0), 1)));
    input
}

/// In no pool and under somebody's cordon: there the estimator is told not to pack on it.
fn old_node() -> NodeInput {
    NodeInput {
        gpu_shares: Vec::new(),
        workloads: Vec::new(),
        launched: None,
        last_ran: None,
        id: "old".into(),
        name: "old".to_owned(),
        pool: None,
        site: None,
        zone: "zone-2".to_owned(),
        instance: None,
        offering: None,
        lifecycle: drover_core::model::Lifecycle::Ready,
        cordon: Some(drover_core::model::Cordon::Person {
            who: "the benchmark".to_owned(),
            why: "not packed on".to_owned(),
        }),
        unreachable: false,
        faulty: None,
        allocatable: with_pods(size(100, 100 << 20, 0), 10),
        used: Resources::default(),
        reserved: Vec::new(),
        gpu_model: String::new(),
        labels: Default::default(),
        taints: Default::default(),
        busy: drover_core::model::Busy::Working {
            what: vec!["its own work".to_owned()],
            movable: false,
        },
        drain: None,
        price: MicroUsd::ZERO,
    }
}

fn look(_: &PlanInput, planned: &Planned) -> Looked {
    let (with, without) = placed(planned);
    same("pods placed", with, 51_000)?;
    same("pods without a place", without, 0)?;
    same("nodes", launched(planned), 2_595)?;
    Ok(vec![("nodes", 2_595.0, "nodes", Some(2_595.0))])
}
