//! Domains of places: which value of a label each kind of place has, and which kinds are in the same domains for a class.
//! Found once per run; called by `near`, by packings that go by domain, and by the counts. Counts nothing.

use super::{Near, Rules, Spot};
use crate::planner::matching::{Place, ZONE};
use std::collections::{BTreeMap, BTreeSet};

/// A node label that spans domains.
pub(super) struct Axis {
    /// Per kind of place, its domain.
    pub of_kind: Vec<Option<u32>>,
    /// Per kind: it will be in some domain, nobody knows in which.
    pub unknown: Vec<bool>,
    pub domains: usize,
}

impl Axis {
    pub(super) fn new(key: &str, kinds: &[Place<'_>]) -> Self {
        let mut index: BTreeMap<&str, u32> = BTreeMap::new();
        let of_kind = kinds
            .iter()
            .map(|place| {
                let value = place.label(key)?;
                let next = u32::try_from(index.len()).unwrap_or(u32::MAX);
                Some(*index.entry(value).or_insert(next))
            })
            .collect();
        let unknown = kinds.iter().map(|k| key == ZONE && k.zone_open);
        Self {
            unknown: unknown.collect(),
            of_kind,
            domains: index.len(),
        }
    }
}

impl Near {
    /// It will be in a domain that nobody knows yet.
    pub(super) fn is_unknown(&self, axis: usize, kind: usize) -> bool {
        self.axes[axis].unknown[kind]
    }

    /// Domain of a kind on an axis.
    pub(super) fn domain(&self, axis: usize, kind: usize) -> Option<usize> {
        self.axes[axis].of_kind[kind].map(|d| d as usize)
    }

    /// Kinds by the domains that the rules of a class tell apart; none when it has no rule about domains.
    pub fn areas(&self, class: usize) -> &[Vec<usize>] {
        let at = self.rule_of[class].and_then(|at| self.rules[at as usize].areas);
        at.map_or(&[], |at| &self.areas[at])
    }

    /// Axes that the rules of a class look at.
    pub(super) fn axes_of(&self, rules: &Rules) -> BTreeSet<usize> {
        let counters = rules.limits.iter().map(|l| l.counter);
        let counters = counters
            .chain(rules.needs.iter().copied())
            .chain(rules.spreads.iter().map(|s| s.counter));
        let axes = counters.filter_map(|c| match self.spots[c as usize] {
            Spot::Axis(axis, _) => Some(axis),
            Spot::Host => None,
        });
        axes.collect()
    }

    /// Kinds by the domains of all axes.
    pub fn all_areas(&self) -> Vec<Vec<usize>> {
        self.areas_of(&(0..self.axes.len()).collect())
    }

    pub(super) fn areas_of(&self, axes: &BTreeSet<usize>) -> Vec<Vec<usize>> {
        let kinds = self.axes.first().map_or(0, |a| a.of_kind.len());
        if axes.is_empty() || kinds == 0 {
            return Vec::new();
        }
        let mut areas: BTreeMap<Vec<(Option<u32>, bool)>, Vec<usize>> = BTreeMap::new();
        for kind in 0..kinds {
            let at = |a: &usize| (self.axes[*a].of_kind[kind], self.axes[*a].unknown[kind]);
            let domains = axes.iter().map(at).collect();
            areas.entry(domains).or_default().push(kind);
        }
        areas.into_values().collect()
    }

    /// Two kinds are in the same domains on every axis.
    pub fn same_domains(&self, one: usize, other: usize) -> bool {
        let at = |axis: &Axis, kind: usize| (axis.of_kind[kind], axis.unknown[kind]);
        let same = |axis: &Axis| at(axis, one) == at(axis, other);
        one == other || self.axes.iter().all(same)
    }

    /// Domains of a kind on all axes, to compare.
    pub fn domains(&self, kind: usize) -> Vec<(Option<u32>, bool)> {
        let at = |axis: &Axis| (axis.of_kind[kind], axis.unknown[kind]);
        self.axes.iter().map(at).collect()
    }
}
