//! Builds the state of a run from the input: pools, nodes and launches as bins, kinds of places, matches, order of use.
//! Called once by `plan`, through `Work::new`. Bad items are noted, never fatal.

use super::{PoolCount, Work, intern, order_by_index, partial};
use crate::model::{Busy, Cordon, Lifecycle, Mode, PlanInput, Reason};
use crate::planner::arriving::Arriving;
use crate::planner::choose::Choose;
use crate::planner::effort::Effort;
use crate::planner::ledger::{self, Ledger};
use crate::planner::matching::{self, Keys, NodeRules, Place};
use crate::planner::near::{self, Content, Near, Tally};
use crate::planner::offers::{self, Offer};
use crate::planner::size::{Free, Names};
use crate::planner::stay::Stays;
use crate::planner::supply::{At, Bin, Tier, is_present, node_supply, reserve, reserve_coming};
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
            groups: Vec::new(),
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
        work.offers = offers::collect(&work, &keys, &mut kind_index);
        for (o, offer) in work.offers.iter().enumerate() {
            work.offers_of[offer.pool].push(o);
        }
        for (b, bin) in work.bins.iter().enumerate() {
            if let Some(p) = bin.pool {
                work.bins_of[p].push(b);
            }
        }
        work.kinds = order_by_index(kind_index);
        work.ledger = ledger::ledger(&work);
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

    fn add_nodes(&mut self, keys: &Keys<'a>, kind_index: &mut BTreeMap<Place<'a>, usize>) {
        let mut seen = BTreeSet::new();
        for (i, node) in self.input.nodes.iter().enumerate() {
            let at = node
                .pool
                .as_ref()
                .and_then(|p| self.pool_index.get(p).copied());
            self.node_pool.push(at);
            if !seen.insert(&node.id) {
                self.node_kind.push(0);
                self.bad_nodes
                    .insert(i, format!("two nodes have the id {}", node.id));
                continue;
            }
            if let Some(p) = at {
                self.nodes_of[p].push(i);
                let count = &mut self.counts[p];
                if is_present(node) {
                    count.present = count.present.saturating_add(1);
                    count.nodes = count.nodes.saturating_add(1);
                    let out = node.drain.is_some()
                        || matches!(
                            node.lifecycle,
                            Lifecycle::Draining | Lifecycle::Drained | Lifecycle::Leaving
                        );
                    if out {
                        count.removing = count.removing.saturating_add(1);
                    } else if node.faulty.is_none() && node.cordon != Some(Cordon::Drover) {
                        count.staying = count.staying.saturating_add(1);
                    }
                }
            }
            let pool = at.map(|p| &self.input.pools[p]);
            let kind = intern(kind_index, Place::of_node(node, pool, keys));
            self.node_kind.push(kind);
            if is_present(node) {
                let count = self
                    .shapes
                    .entry((kind, at, &node.allocatable))
                    .or_insert(0);
                *count += 1;
            }
            let Some((tier, total)) = node_supply(node, pool) else {
                continue;
            };
            let total = self.names.size(total);
            let mut free = Free {
                size: total.minus(&self.names.size(&node.used)),
                shares: node.gpu_shares.clone(),
            };
            free.shares.sort_unstable();
            for held in &node.reserved {
                reserve(&mut free, &self.names, held);
            }
            let idle = (matches!(node.busy, Busy::Idle { .. }) || tier == Tier::Coming)
                && node.reserved.is_empty();
            self.bin_of_node.insert(i, self.bins.len());
            self.bins.push(Bin {
                at: At::Node(i),
                kind,
                pool: at,
                tier,
                empty: idle && node.used.is_zero(),
                idle,
                would: tier == Tier::OwnCordoned && pool.is_some_and(|p| p.mode == Mode::Observe),
                total,
                free,
                content: Content::default(),
                placed: Vec::new(),
                held: Vec::new(),
            });
        }
    }

    fn add_launches(&mut self, keys: &Keys<'a>, kind_index: &mut BTreeMap<Place<'a>, usize>) {
        let mut seen = BTreeSet::new();
        let mut left = offers::MAX_NODES;
        for (i, launch) in self.input.launches.iter().enumerate() {
            let twin = !seen.insert(&launch.id);
            let Some(&p) = self.pool_index.get(&launch.pool) else {
                continue;
            };
            let count = &mut self.counts[p];
            count.present = count.present.saturating_add(launch.count);
            if launch.deadline <= self.input.now {
                continue;
            }
            count.staying = count.staying.saturating_add(launch.count);
            if twin {
                self.bad_pools
                    .entry(p)
                    .or_default()
                    .push(format!("two launches have the id {}", launch.id));
                continue;
            }
            let pool = &self.input.pools[p];
            let offering = pool.offerings.iter().find(|o| o.id == launch.offering);
            let Some((offering, total)) = offering.and_then(|o| Some((o, o.allocatable.as_ref()?)))
            else {
                let what = format!(
                    "launch {} names offering {}, which gives nothing",
                    launch.id, launch.offering
                );
                self.bad_pools.entry(p).or_default().push(what);
                continue;
            };
            let kind = intern(kind_index, Place::of(pool, offering, keys));
            let nodes = launch.count.min(left);
            left -= nodes;
            let total = self.names.size(total);
            let first = self.bins.len();
            for n in 0..nodes {
                self.bins.push(Bin {
                    at: At::Coming(i, n),
                    kind,
                    pool: Some(p),
                    tier: Tier::Coming,
                    total: total.clone(),
                    free: Free::whole(total.clone()),
                    content: Content::default(),
                    empty: true,
                    idle: true,
                    would: false,
                    placed: Vec::new(),
                    held: Vec::new(),
                });
            }
            reserve_coming(self.input, &self.units, launch, &mut self.bins[first..]);
        }
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
