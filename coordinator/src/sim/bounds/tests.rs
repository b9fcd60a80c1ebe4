//! The bounds on workloads small enough to work out by hand.

use super::*;
use crate::sim::trace::Job;
use drover_core::model::{Bytes, MicroUsd, MilliCpu, Resources};

fn kind(name: &str, price: u64, cpus: u64, gib: u64, gpus: u32) -> Offered {
    Offered {
        name: name.to_owned(),
        price: MicroUsd(price),
        allocatable: amount(cpus, gib, gpus),
        ..Offered::default()
    }
}

fn amount(cpus: u64, gib: u64, gpus: u32) -> Resources {
    Resources {
        cpu: MilliCpu(cpus * 1_000),
        memory: Bytes(gib << 30),
        gpus,
        ..Resources::default()
    }
}

fn job(id: &str, hour: u64, hours: u64, unit: Resources) -> Job {
    let span = |hours| Millis::minutes(hours * 60);
    Job::new(id.to_owned(), span(hour), span(hours), unit)
}

fn trace(jobs: Vec<Job>) -> Trace {
    Trace {
        jobs,
        ..Trace::default()
    }
}

fn equal(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
}

#[test]
fn gpu_work_pays_for_gpu_nodes_and_others_use_what_is_left_there() {
    let offered = [
        kind("gpu", 3_060_000, 8, 61, 1),
        kind("cpu", 89_250, 2, 4, 0),
        kind("mem", 132_300, 2, 16, 0),
    ];
    let one = trace(vec![
        job("g", 0, 1, amount(4, 1, 1)),
        job("c", 0, 1, amount(2, 1, 0)),
        job("c2", 0, 1, amount(2, 1, 0)),
        job("c3", 0, 1, amount(2, 1, 0)),
    ]);
    equal(bounds(&one, &offered).fluid, 3.06 + 0.08925);
    // GPU work that wants the CPUs of two GPU nodes gets them, however cheap other CPUs are.
    let wide = trace(vec![
        job("g", 0, 1, amount(8, 1, 1)),
        job("h", 0, 1, amount(8, 1, 0)),
    ]);
    equal(bounds(&wide, &offered).fluid, 3.06 + 4.0 * 0.08925);
    // Memory: 4 GiB come with 2 CPUs, the other 12 as x and y with 2x + 2y >= 2 and 4x + 16y >= 16.
    let memory = trace(vec![job("m", 0, 2, amount(2, 16, 0))]);
    equal(bounds(&memory, &offered).fluid, 2.0 * 0.1323);
}

#[test]
fn over_all_time_is_never_more_than_at_each_instant() {
    let offered = [
        kind("cpu", 100_000, 2, 4, 0),
        kind("mem", 150_000, 2, 16, 0),
    ];
    let two = trace(vec![
        job("a", 0, 1, amount(2, 0, 0)),
        job("b", 1, 1, amount(0, 4, 0)),
    ]);
    let found = bounds(&two, &offered);
    // First two CPUs, then 4 GiB, which the quarter of a memory node holds for less.
    equal(found.fluid, 0.1 + 0.0375);
    equal(found.resource_hours, 0.1);
}

#[test]
fn nodes_that_are_all_alike_are_whole() {
    let offered = [kind("a", 1_000_000, 0, 0, 8), kind("b", 1_000_000, 0, 0, 8)];
    let found = bounds(&trace(vec![job("a", 0, 3, amount(0, 0, 1))]), &offered);
    equal(found.fluid, 3.0);
    equal(found.resource_hours, 3.0 / 8.0);
    equal(found.curve.at(Millis::minutes(1)), 1.0);
    equal(found.curve.at(Millis::minutes(180)), 0.0);
}

#[test]
fn what_nothing_holds_is_in_no_figure() {
    let offered = [kind("a", 1_000_000, 0, 0, 8)];
    let found = bounds(&trace(vec![job("a", 0, 3, amount(0, 0, 9))]), &offered);
    assert_eq!((found.impossible, found.no_packing), (1, 0.0));
    equal(found.fluid, 0.0);
}

#[test]
fn a_level_that_comes_back_was_kept_or_booted() {
    let hour = |hours: u64| Millis::minutes(hours * 60);
    // Up to 2, down to 1 for an hour, up to 3, down to 0 for five hours, up to 1.
    let curve = Curve(vec![
        (hour(0), 2.0),
        (hour(1), 1.0),
        (hour(2), 3.0),
        (hour(3), 0.0),
        (hour(8), 1.0),
        (hour(9), 0.0),
    ]);
    equal(curve.integral(), 7.0);
    // Boot 2 h: levels 1 to 3 begin (6), level 2 bridges one hour (1), level 1 boots again (2).
    equal(curve.with_boot(hour(2)), 7.0 + 6.0 + 1.0 + 2.0);
    // Boot 10 h: the gap of level 1 is bridged, too.
    equal(curve.with_boot(hour(10)), 7.0 + 30.0 + 1.0 + 5.0);
    equal(curve.with_boot(hour(0)), 7.0);
}
