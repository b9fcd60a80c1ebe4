//! What one planning run works on: the input indexed, supply as bins, counts per pool, the ledger of limits. Built once
//! by `plan`; fit, gangs, grow, targets and shrink change it in turn, so each decision sees the one before it.

use super::ledger::{self, Ledger};
use super::matching::Place;
use super::offers::{self, Offer};
use super::supply::{At, Bin, Tier, is_present, node_supply, reserve_coming};
use crate::model::{
    Busy, Cordon, Lifecycle, Mode, PlanInput, PoolId, Reason, RequestName, Resources, Source,
};
use std::collections::{BTreeMap, BTreeSet};

/// New nodes of one offer with equal content.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub offer: usize,
    pub nodes: u32,
    pub free: Resources,
    pub whole: bool,
    /// (class, units per node).
    pub placed: Vec<(usize, u32)>,
    /// Within an attempt: the group of the run's state that it is (a part of); none for new nodes.
    pub origin: Option<usize>,
}

impl Group {
    /// Units of a class on all nodes of the group.
    pub fn units(&self, class: usize) -> u32 {
        let each: u32 = self
            .placed
            .iter()
            .filter(|p| p.0 == class)
            .map(|p| p.1)
            .sum();
        each.saturating_mul(self.nodes)
    }
}

/// What a pool has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PoolCount {
    /// Nodes that count against the maximum: all that are not gone or off, coming and unmanaged ones too.
    pub present: u32,
    /// Nodes without the coming and unmanaged ones: what the removal quota is a share of.
    pub nodes: u32,
    /// Nodes that stay: present without those on their way out and faulty ones.
    pub staying: u32,
    /// Nodes from draining to leaving.
    pub removing: u32,
}

/// Everything of one run.
pub(super) struct Work<'a> {
    pub input: &'a PlanInput,
    pub pool_index: BTreeMap<&'a PoolId, usize>,
    /// Per node: its pool's index; none for foreign ones.
    pub node_pool: Vec<Option<usize>>,
    /// Per node, its kind; 0 for bad nodes.
    pub node_kind: Vec<usize>,
    /// Nodes that cannot be used as input: (node, why).
    pub bad_nodes: BTreeMap<usize, String>,
    /// Faults of the input, per pool.
    pub bad_pools: BTreeMap<usize, Vec<String>>,
    pub kinds: Vec<Place<'a>>,
    /// Per constraint set, per kind.
    matches: Vec<Vec<bool>>,
    /// Per class: wants no GPU, and an offering without GPUs could serve it.
    pub plain: Vec<bool>,
    /// Per class, its constraint set.
    constraint_of: Vec<usize>,
    /// All nodes that exist, whatever their state, by (kind, pool, size): what could ever serve.
    pub shapes: BTreeMap<(usize, Option<usize>, &'a Resources), u32>,
    /// Nodes of each pool that can be used as input, in the input's order.
    pub nodes_of: Vec<Vec<usize>>,
    /// Bins of each pool, in order.
    pub bins_of: Vec<Vec<usize>>,
    /// Offers of each pool, in order.
    pub offers_of: Vec<Vec<usize>>,
    pub bins: Vec<Bin>,
    /// Bins in order of use for units with GPUs (those with a free one), and for those without.
    pub order_gpu: Vec<usize>,
    pub order_cpu: Vec<usize>,
    /// Bins that were taken from since full ones were forgotten.
    taken: usize,
    pub offers: Vec<Offer<'a>>,
    pub ledger: Ledger,
    pub groups: Vec<Group>,
    /// Nodes for standing targets per offer: (minimum, spare).
    pub standing: BTreeMap<usize, (u32, u32)>,
    pub counts: Vec<PoolCount>,
    /// Per pool: the least that a node of it costs per hour, in micro-USD.
    pub lowest: Vec<u64>,
    /// Units per class still without a place.
    pub open: Vec<u32>,
    /// Bin of a node.
    pub bin_of_node: BTreeMap<usize, usize>,
    /// Nodes asked for as probes, per offer.
    pub probes: BTreeMap<usize, u32>,
    /// Nodes asked for a gang that has a part in another place, per offer and class: how many, and where.
    pub elsewhere: BTreeMap<(usize, usize), (u32, String)>,
    /// Nodes uncordoned for standing targets.
    pub kept_standing: BTreeSet<usize>,
    /// Nodes without demand that must stay free (headroom), with the reason that is said of them.
    pub kept_free: BTreeMap<usize, Reason>,
    /// Extra reasons per class.
    pub notes: BTreeMap<usize, Vec<Reason>>,
    /// Gangs by request that have units and are not whole.
    pub partial: BTreeMap<&'a RequestName, usize>,
    /// Some gang holds a part.
    pub holds: bool,
    /// Requests to release.
    pub releases: Vec<(RequestName, Reason)>,
    /// Missing per pool for the standing targets: (minimum, spare).
    pub below: BTreeMap<usize, (u32, u32)>,
}

impl<'a> Work<'a> {
    /// Indexes the input. Bad items are noted, never fatal.
    pub fn new(input: &'a PlanInput) -> Self {
        let keys: BTreeSet<&str> = input
            .classes
            .iter()
            .flat_map(|c| c.constraints.requirements.iter().map(|r| r.key.as_str()))
            .collect();
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
            matches: Vec::new(),
            plain: Vec::new(),
            constraint_of: Vec::new(),
            shapes: BTreeMap::new(),
            nodes_of: vec![Vec::new(); input.pools.len()],
            bins_of: vec![Vec::new(); input.pools.len()],
            offers_of: vec![Vec::new(); input.pools.len()],
            bins: Vec::new(),
            order_gpu: Vec::new(),
            order_cpu: Vec::new(),
            taken: 0,
            offers: Vec::new(),
            ledger: Ledger::default(),
            groups: Vec::new(),
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
        work.order_bins();
        work
    }

    fn add_nodes(&mut self, keys: &BTreeSet<&'a str>, kind_index: &mut BTreeMap<Place<'a>, usize>) {
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
            let mut free = total.minus(&node.used);
            for held in &node.reserved {
                free = free.minus(&held.amount);
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
                placed: Vec::new(),
                held: Vec::new(),
            });
        }
    }

    fn add_launches(
        &mut self,
        keys: &BTreeSet<&'a str>,
        kind_index: &mut BTreeMap<Place<'a>, usize>,
    ) {
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
            let first = self.bins.len();
            for n in 0..nodes {
                self.bins.push(Bin {
                    at: At::Coming(i, n),
                    kind,
                    pool: Some(p),
                    tier: Tier::Coming,
                    total: total.clone(),
                    free: total.clone(),
                    empty: true,
                    idle: true,
                    would: false,
                    placed: Vec::new(),
                    held: Vec::new(),
                });
            }
            reserve_coming(self.input, launch, &mut self.bins[first..]);
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
            let set = *index.entry(&class.constraints).or_insert(next);
            self.constraint_of.push(set);
        }
        self.matches = order_by_index(index)
            .iter()
            .map(|wants| self.kinds.iter().map(|kind| kind.allows(wants)).collect())
            .collect();
    }

    fn is_plain(&self, class: usize) -> bool {
        let unit = &self.input.classes[class];
        let without = |o: &Offer<'_>| o.alloc.as_ref().is_some_and(|a| a.gpus == 0);
        unit.unit.gpus == 0
            && !unit.whole_node
            && unit.constraints.gpu_model.is_empty()
            && self
                .offers
                .iter()
                .any(|o| without(o) && self.matches(class, o.kind) && o.times(unit) > 0)
    }

    fn order_bins(&mut self) {
        let price = |bin: &Bin| match bin.at {
            At::Node(n) => self.input.nodes[n].price.0,
            At::Coming(..) => 0,
        };
        let key = |bin: &Bin| {
            (
                bin.tier,
                price(bin) > 0,
                bin.empty,
                bin.free.gpus,
                bin.free.cpu,
                bin.at,
            )
        };
        let mut order: Vec<usize> = (0..self.bins.len()).collect();
        order.sort_by_key(|i| key(&self.bins[*i]));
        self.order_gpu.clone_from(&order);
        self.order_gpu.retain(|b| self.bins[*b].free.gpus > 0);
        order.sort_by_key(|i| (self.bins[*i].tier, self.bins[*i].total.gpus > 0));
        self.order_cpu = order;
    }

    /// Nodes whose last GPU went: they are not looked at again. Now and then is enough.
    pub fn forget_full(&mut self, taken: usize) {
        self.taken += taken;
        if self.taken * 8 > self.order_gpu.len() {
            self.order_gpu.retain(|b| self.bins[*b].free.gpus > 0);
            self.taken = 0;
        }
    }

    /// Bins in order of use for a class.
    pub fn order_for(&self, class: usize) -> &[usize] {
        if self.input.classes[class].unit.gpus > 0 {
            &self.order_gpu
        } else {
            &self.order_cpu
        }
    }

    /// May units of the class go to places of the kind?
    pub fn matches(&self, class: usize, kind: usize) -> bool {
        self.matches[self.constraint_of[class]][kind]
    }

    /// Some rule of the class is not known: it is left alone.
    pub fn unknown_rule(&self, class: usize) -> bool {
        !self.input.classes[class].constraints.unsupported.is_empty()
    }

    /// Adds a reason to a class.
    pub fn note(&mut self, class: usize, reason: Reason) {
        self.notes.entry(class).or_default().push(reason);
    }
}

pub(super) fn intern<'a>(index: &mut BTreeMap<Place<'a>, usize>, place: Place<'a>) -> usize {
    let next = index.len();
    *index.entry(place).or_insert(next)
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
