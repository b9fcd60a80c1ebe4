//! Builds the state of a run from the input: pools, nodes and launches as bins, kinds of places, matches, order of use.
//! Called once by `plan`, through `Work::new`. Bad items are noted, never fatal.

mod supply;

use super::{Groups, PoolCount, Work};
use crate::model::{PlanInput, Reason, RequestName, Source};
use crate::planner::arriving::Arriving;
use crate::planner::choose::Choose;
use crate::planner::effort::Effort;
use crate::planner::ledger::{self, Ledger};
use crate::planner::matching::{self, NodeRules, Place};
use crate::planner::near::{self, Near, Tally};
use crate::planner::offers::{self, Offer};
use crate::planner::size::Names;
use crate::planner::stay::Stays;
use crate::planner::teams::Teams;
use std::collections::{BTreeMap, BTreeSet};

impl<'a> Work<'a> {
    /// Indexes the input. Bad items are noted, never fatal.
    pub fn new(input: &'a PlanInput) -> Self {
        let keys = matching::keys(input);
        let names = Names::new(input);
        let units = input.classes.iter().map(|c| names.size(&c.unit)).collect();
        let mut pool_index = BTreeMap::new();
        let mut bad_pools: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for (i, pool) in input.pools.iter().enumerate() {
            if pool_index.contains_key(&pool.id) {
                bad_pools
                    .entry(i)
                    .or_default()
                    .push(format!("two pools are named {}", pool.id));
            } else {
                pool_index.insert(&pool.id, i);
            }
        }
        let mut work = Self {
            input,
            pool_index,
            node_pool: Vec::with_capacity(input.nodes.len()),
            node_kind: Vec::with_capacity(input.nodes.len()),
            bad_nodes: BTreeMap::new(),
            bad_pools,
            kinds: Vec::new(),
            names,
            units,
            near: Near::default(),
            tally: Tally::default(),
            arriving: Arriving::default(),
            effort: Effort::default(),
            step: 0,
            unusable: BTreeMap::new(),
            matches: Vec::new(),
            weights: BTreeMap::new(),
            plain: Vec::new(),
            constraint_of: Vec::new(),
            shapes: BTreeMap::new(),
            nodes_of: vec![Vec::new(); input.pools.len()],
            bins_of: vec![Vec::new(); input.pools.len()],
            offers_of: vec![Vec::new(); input.pools.len()],
            bins: Vec::new(),
            stays: Stays::new(&input.learnt, input.now),
            choose: Choose::default(),
            order_gpu: Vec::new(),
            order_cpu: Vec::new(),
            taken: 0,
            offers: Vec::new(),
            ledger: Ledger::default(),
            teams: Teams::new(input),
            groups: Groups::default(),
            headroom: BTreeMap::new(),
            headroom_short: BTreeMap::new(),
            standing: BTreeMap::new(),
            counts: vec![PoolCount::default(); input.pools.len()],
            lowest: Vec::new(),
            open: input.classes.iter().map(|c| c.count).collect(),
            bin_of_node: BTreeMap::new(),
            probes: BTreeMap::new(),
            elsewhere: BTreeMap::new(),
            kept_standing: BTreeSet::new(),
            kept_free: BTreeMap::new(),
            notes: BTreeMap::new(),
            partial: partial(input),
            holds: false,
            releases: Vec::new(),
            below: BTreeMap::new(),
            demanded: BTreeMap::new(),
        };
        let mut kind_index: BTreeMap<Place<'a>, usize> = BTreeMap::new();
        work.add_nodes(&keys, &mut kind_index);
        work.add_launches(&keys, &mut kind_index);
        for (i, pool) in input.pools.iter().enumerate() {
            work.counts[i].present = work.counts[i].present.saturating_add(pool.unmanaged);
        }
        let (offers, reserved) = offers::collect(&work, &keys, &mut kind_index);
        work.offers = offers;
        work.groups = Groups::new(work.offers.len());
        for (o, offer) in work.offers.iter().enumerate() {
            work.offers_of[offer.pool].push(o);
        }
        for (b, bin) in work.bins.iter().enumerate() {
            if let Some(p) = bin.pool {
                work.bins_of[p].push(b);
            }
        }
        work.kinds = order_by_index(kind_index);
        work.ledger = ledger::ledger(&work, reserved);
        work.lowest = work.lowest_prices();
        work.match_constraints();
        work.plain = (0..input.classes.len()).map(|c| work.is_plain(c)).collect();
        work.choose = Choose::new(&work);
        (work.order_gpu, work.order_cpu) = work.choose.orders(&work);
        for (i, class) in input.classes.iter().enumerate() {
            if let Some(rule) = near::unusable(class) {
                work.note(i, Reason::UnsupportedRule { rule: rule.clone() });
                work.unusable.insert(i, rule);
            }
        }
        (work.near, work.tally) = Near::build(&mut work);
        work.arriving = Arriving::new(&work);
        work
    }

    fn lowest_prices(&self) -> Vec<u64> {
        let mut all = vec![u64::MAX; self.input.pools.len()];
        for offer in &self.offers {
            all[offer.pool] = all[offer.pool].min(offer.price);
        }
        for (node, pool) in self.input.nodes.iter().zip(&self.node_pool) {
            if let Some(p) = pool {
                all[*p] = all[*p].min(node.price.0);
            }
        }
        all
    }

    fn match_constraints(&mut self) {
        let mut index = BTreeMap::new();
        for class in &self.input.classes {
            let next = index.len();
            let wants = &class.constraints;
            let rules = NodeRules::of(wants);
            let (set, _) = *index.entry(rules).or_insert((next, wants));
            self.constraint_of.push(set);
        }
        let mut sets: Vec<_> = index.into_values().collect();
        sets.sort_by_key(|(set, _)| *set);
        self.matches = sets
            .iter()
            .map(|(_, wants)| self.kinds.iter().map(|kind| kind.allows(wants)).collect())
            .collect();
        for (i, class) in self.input.classes.iter().enumerate() {
            let wishes = &class.constraints.preferred;
            if !wishes.is_empty() {
                let each = self.kinds.iter().map(|kind| kind.weight(wishes));
                self.weights.insert(i, each.collect());
            }
        }
    }

    fn is_plain(&self, class: usize) -> bool {
        let unit = &self.input.classes[class];
        let without = |o: &Offer<'_>| o.alloc.as_ref().is_some_and(|a| a.gpus == 0);
        unit.unit.gpus == 0
            && unit.unit.gpu_milli == 0
            && !unit.whole_node
            && unit.constraints.gpu_model.is_empty()
            && self
                .offers
                .iter()
                .any(|o| without(o) && self.matches(class, o.kind) && o.times(unit) > 0)
    }
}

fn order_by_index<K>(index: BTreeMap<K, usize>) -> Vec<K> {
    let mut all: Vec<(usize, K)> = index.into_iter().map(|(k, i)| (i, k)).collect();
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, k)| k).collect()
}

fn partial(input: &PlanInput) -> BTreeMap<&RequestName, usize> {
    let all = input.classes.iter().enumerate();
    all.filter_map(|(i, class)| {
        let gang = class.gang.as_ref()?;
        match &class.source {
            Source::Request(name) if gang.assigned > 0 && gang.assigned < gang.min => {
                Some((name, i))
            }
            _ => None,
        }
    })
    .collect()
}
