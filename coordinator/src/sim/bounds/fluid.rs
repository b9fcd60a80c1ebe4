//! The fluid bound: at each instant the cheapest mix of nodes, in fractions, that holds all that runs.
//!
//! Called by `bounds`. Demand is grouped by where it may go at all; by the theorem of Gale it fits exactly when, for each
//! set of places and each kind of amount, what may go only there is no more than what they have.

use super::simplex::Covering;
use super::{Curve, HOUR_MS, usd_hours};
use crate::sim::offered::{Offered, amounts, parts};
use crate::sim::trace::Job;
use drover_core::model::{Millis, Resources};
use std::collections::{BTreeMap, BTreeSet};

/// With more kinds of demand than this, only each alone and all together are looked at: still a bound.
const ALL_SETS_UP_TO: usize = 8;

/// Indices into `offered`.
type Places = BTreeSet<usize>;

/// Cost per hour of what runs, by group and kind of amount.
type Hourly = Box<dyn FnMut(&[Vec<i128>]) -> f64>;

/// Demand by where it may go; what it asks for, in the order of `kinds`.
struct Demand {
    /// One row each: the places, and which demands may go only there.
    sets: Vec<(Places, Vec<usize>)>,
    /// Names of the kinds of amount.
    kinds: Vec<String>,
    /// A change: when, whose, by how much.
    changes: Vec<(Millis, usize, Vec<i128>)>,
}

/// The curve of cost per hour, and the cost of the sums over all time.
pub(super) fn bound(jobs: &[&Job], offered: &[Offered]) -> (Curve, f64) {
    let demand = demand(jobs, offered);
    let mut hourly: Hourly = match alike(offered) {
        Some(kind) => whole_nodes(kind, demand.kinds.clone()),
        None => mixed(offered, &demand),
    };
    let groups = demand.changes.iter().map(|(_, group, _)| group + 1).max();
    let mut running = vec![vec![0; demand.kinds.len()]; groups.unwrap_or(0)];
    let mut sums = vec![vec![0_i128; demand.kinds.len()]; running.len()];
    let mut curve = Curve::default();
    let mut last = Millis::default();
    let mut changes = demand.changes.iter().peekable();
    while let Some((at, group, by)) = changes.next() {
        let span = i128::from(at.0 - last.0);
        for (sum, now) in sums.iter_mut().flatten().zip(running.iter().flatten()) {
            *sum += now * span;
        }
        last = *at;
        for (amount, by) in running[*group].iter_mut().zip(by) {
            *amount += by;
        }
        if changes.peek().is_none_or(|next| next.0 != *at) {
            curve.push(*at, hourly(&running));
        }
    }
    let total = mixed(offered, &demand)(&sums) / HOUR_MS;
    (curve, total)
}

fn demand(jobs: &[&Job], offered: &[Offered]) -> Demand {
    let mut kinds: Vec<String> = Vec::new();
    for kind in offered {
        for (name, amount) in amounts(&kind.allocatable) {
            if amount > 0 && !kinds.iter().any(|known| known == name) {
                kinds.push(name.to_owned());
            }
        }
    }
    let alike = alike(offered);
    let mut groups: BTreeMap<Places, usize> = BTreeMap::new();
    let mut changes = Vec::new();
    for job in jobs {
        for (index, part) in parts(job).into_iter().enumerate() {
            // A share of a GPU is a share here, and a whole node all that it has.
            let stated = if index < job.units as usize {
                &job.unit
            } else {
                job.rest.as_ref().unwrap_or(&job.unit)
            };
            let need = match alike {
                Some(kind) if part.whole => &kind.allocatable,
                _ => stated,
            };
            let places = places(need, job, offered);
            let next = groups.len();
            let group = *groups.entry(places).or_insert(next);
            let amount = vector(need, &kinds);
            let less = amount.iter().map(|by| -by).collect();
            changes.push((job.submit, group, amount));
            let end = Millis(job.submit.0.saturating_add(job.duration.0));
            changes.push((end, group, less));
        }
    }
    changes.sort_by_key(|(at, ..)| *at);
    Demand {
        sets: sets(&groups),
        kinds,
        changes,
    }
}

/// Where something may go: the constraints allow it, and each kind of amount is there.
fn places(need: &Resources, job: &Job, offered: &[Offered]) -> Places {
    (0..offered.len())
        .filter(|index| {
            let kind = &offered[*index];
            let has: BTreeMap<&str, u64> = amounts(&kind.allocatable).into_iter().collect();
            kind.allows(&job.constraints)
                && amounts(need)
                    .into_iter()
                    .all(|(name, want)| want == 0 || has.get(name).is_some_and(|have| *have > 0))
        })
        .collect()
}

fn sets(groups: &BTreeMap<Places, usize>) -> Vec<(Places, Vec<usize>)> {
    let all: Vec<&Places> = groups.keys().collect();
    let mut unions: BTreeSet<Places> = all.iter().map(|set| (*set).clone()).collect();
    unions.insert(all.iter().flat_map(|set| set.iter().copied()).collect());
    if all.len() <= ALL_SETS_UP_TO {
        for set in all {
            let with: Vec<Places> = unions.iter().map(|union| union | set).collect();
            unions.extend(with);
        }
    }
    unions
        .into_iter()
        .map(|union| {
            let only_there = groups
                .iter()
                .filter(|(places, _)| places.is_subset(&union))
                .map(|(_, group)| *group)
                .collect();
            (union, only_there)
        })
        .collect()
}

/// The one kind of node there is, when all are alike in price and size.
fn alike(offered: &[Offered]) -> Option<&Offered> {
    let first = offered.first()?;
    offered
        .iter()
        .all(|kind| kind.price == first.price && kind.allocatable == first.allocatable)
        .then_some(first)
}

fn whole_nodes(kind: &Offered, kinds: Vec<String>) -> Hourly {
    let size = vector(&kind.allocatable, &kinds);
    let price = usd_hours(kind.price.0, Millis::seconds(3_600));
    Box::new(move |running| {
        let nodes = (0..kinds.len())
            .map(|at| {
                let all: i128 = running.iter().map(|group| group[at]).sum();
                -(-all).div_euclid(size[at])
            })
            .max()
            .unwrap_or(0);
        number(nodes) * price
    })
}

fn mixed(offered: &[Offered], demand: &Demand) -> Hourly {
    let sizes: Vec<Vec<i128>> = offered
        .iter()
        .map(|kind| vector(&kind.allocatable, &demand.kinds))
        .collect();
    // The largest node has one of each amount: numbers of like size.
    let scale: Vec<f64> = (0..demand.kinds.len())
        .map(|at| {
            sizes
                .iter()
                .map(|size| number(size[at]))
                .fold(0.0, f64::max)
        })
        .collect();
    let mut rows = Vec::new();
    for (set, _) in &demand.sets {
        for (at, scale) in scale.iter().enumerate() {
            let row = sizes.iter().enumerate().map(|(index, size)| {
                let there = set.contains(&index);
                if there { number(size[at]) / scale } else { 0.0 }
            });
            rows.push(row.collect());
        }
    }
    let prices = offered
        .iter()
        .map(|kind| usd_hours(kind.price.0, Millis::seconds(3_600)))
        .collect();
    let mut covering = Covering::new(rows, prices);
    let sets: Vec<Vec<usize>> = demand.sets.iter().map(|(_, who)| who.clone()).collect();
    Box::new(move |running| {
        let mut wanted = Vec::with_capacity(sets.len() * scale.len());
        for who in &sets {
            for (at, scale) in scale.iter().enumerate() {
                let sum: i128 = who.iter().map(|group| running[*group][at]).sum();
                wanted.push(number(sum) / scale);
            }
        }
        covering.cost(&wanted).unwrap_or(f64::INFINITY)
    })
}

fn vector(of: &Resources, kinds: &[String]) -> Vec<i128> {
    let has: BTreeMap<&str, u64> = amounts(of).into_iter().collect();
    kinds
        .iter()
        .map(|kind| i128::from(has.get(kind.as_str()).copied().unwrap_or(0)))
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "a bound, not an amount")]
fn number(of: i128) -> f64 {
    of as f64
}
