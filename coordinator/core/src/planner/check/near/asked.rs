//! What classes ask of the units near them, and which counts a unit is in: found once for each, from the labels. Called by
//! the replay; counts nothing.

use super::{At, Replay};
use crate::model::{Near, Selector, Spread};
use crate::planner::matching::selects;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A selector asked from a namespace, or several that all must name a unit.
pub(super) type Whom<'a> = Vec<(&'a Selector, &'a str)>;

/// Counts that units are in, and those that keep them away.
pub(super) type Named = (Vec<At>, Vec<At>);

/// What a class asks and who counts it.
#[derive(Default)]
pub(super) struct Asks<'a> {
    /// None of these may be in the domain, one of its own units at most.
    pub away: Vec<(At, bool)>,
    pub fellows: Vec<At>,
    pub own_fellow: bool,
    pub spread: Vec<(&'a Spread, At)>,
    /// Counts that its units are in, and those that keep them away.
    pub counted: Vec<At>,
    pub kept_by: Vec<At>,
}

pub(super) fn ask<'a>(select: &'a Selector, from: &'a str) -> (&'a Selector, &'a str) {
    let own = !select.everywhere && select.namespaces.is_empty();
    (select, if own { from } else { "" })
}

/// A fellow is named by all selectors of an affinity.
pub(super) fn fellows<'a>(near: &'a [Near], from: &'a str) -> Whom<'a> {
    let all: BTreeSet<_> = near.iter().map(|n| ask(&n.select, from)).collect();
    all.into_iter().collect()
}

impl<'a> Replay<'_, 'a> {
    /// Counts of those (or of those who keep away those) that have these labels.
    fn naming(&self, labels: &BTreeMap<String, String>, space: &str, keep: bool) -> Vec<At> {
        let all = self.index.iter().filter(|((keeping, _, whom), _)| {
            let named = |(s, from): &(&Selector, &str)| selects(s, from, labels, space);
            *keeping == keep && whom.iter().all(named)
        });
        all.map(|(_, at)| *at).collect()
    }

    /// Both, found once.
    pub(super) fn named(&mut self, labels: &'a BTreeMap<String, String>, space: &'a str) -> Named {
        if let Some(known) = self.names.get(&(labels, space)) {
            return known.clone();
        }
        let all = (
            self.naming(labels, space, false),
            self.naming(labels, space, true),
        );
        self.names.insert((labels, space), all.clone());
        all
    }

    /// What a class asks, found once.
    pub(super) fn asks(&mut self, at: u32) -> Rc<Asks<'a>> {
        if let Some(Some(asks)) = self.asks.get(at as usize) {
            return asks.clone();
        }
        let mut asks = Asks::default();
        if let Some(class) = self.facts.input.classes.get(at as usize) {
            let (c, from) = (&class.constraints, class.namespace.as_str());
            let (named, kept_by) = self.named(&class.labels, &class.namespace);
            asks.kept_by = kept_by;
            for near in &c.anti_affinity {
                let whom = vec![ask(&near.select, from)];
                let count = self.index[&(false, near.topology.as_str(), whom.clone())];
                asks.away.push((count, named.contains(&count)));
                let keeping = self.index[&(true, near.topology.as_str(), whom)];
                asks.counted.push(keeping);
            }
            for near in &c.affinity {
                let key = (false, near.topology.as_str(), fellows(&c.affinity, from));
                asks.fellows.push(self.index[&key]);
            }
            asks.own_fellow = asks.fellows.iter().all(|count| named.contains(count));
            for spread in c.spread.iter().filter(|s| s.hard) {
                let whom = vec![ask(&spread.select, from)];
                let count = self.index[&(false, spread.topology.as_str(), whom)];
                asks.spread.push((spread, count));
            }
            asks.counted.extend(named);
            asks.counted.sort_unstable();
            asks.counted.dedup();
        }
        let asks = Rc::new(asks);
        if let Some(slot) = self.asks.get_mut(at as usize) {
            *slot = Some(asks.clone());
        }
        asks
    }
}
