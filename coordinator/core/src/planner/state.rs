//! What one planning run works on: the input indexed, supply as bins, counts per pool, the ledger of limits. Built once
//! by `plan`; fit, gangs, grow, targets and shrink change it in turn, so each decision sees the one before it. How
//! much room places have is in `room`.

mod build;
mod groups;
mod room;

use groups::Groups;

use super::arriving::Arriving;
use super::choose::Choose;
use super::effort::Effort;
use super::ledger::Ledger;
use super::matching::Place;
use super::near::{Content, Near, Tally};
use super::offers::Offer;
use super::size::{Free, Names, Size};
use super::stay::Stays;
use super::supply::{Bin, Tier};
use super::teams::Teams;
use crate::model::{Demanded, PlanInput, PoolId, Reason, RequestName, Resources};
use std::collections::{BTreeMap, BTreeSet};

/// Units of a class on one node, or on each node of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Put {
    pub class: usize,
    pub units: u32,
    /// When in the run: the plan lists its runs in this order, in which the rules between units hold.
    pub step: u32,
}

/// New nodes of one offer with equal content.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub offer: usize,
    pub nodes: u32,
    pub free: Free,
    pub whole: bool,
    /// Per node.
    pub placed: Vec<Put>,
    /// What the rules between units count on each node.
    pub content: Content,
    /// Within an attempt: the leaf of the run's group that it is (a part of); none for new nodes.
    pub origin: Option<usize>,
    /// Where its first node stands in the order of opening, of the run or of the attempt.
    pub leaf: usize,
}

impl Group {
    /// Units of a class on all nodes of the group.
    pub fn units(&self, class: usize) -> u32 {
        let each: u32 = self
            .placed
            .iter()
            .filter(|p| p.class == class)
            .map(|p| p.units)
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
    pub names: Names<'a>,
    /// Per class, one unit.
    pub units: Vec<Size>,
    /// Rules between units, and their counts now.
    pub near: Near,
    pub tally: Tally,
    /// Nodes that come, as they were asked for.
    pub arriving: Arriving,
    /// Looks that are left.
    pub effort: Effort,
    /// Steps so far.
    pub step: u32,
    /// Classes whose rules cannot be used, and which.
    unusable: BTreeMap<usize, String>,
    /// Per set of rules about nodes, per kind.
    matches: Vec<Vec<bool>>,
    /// Per class with preferences about labels: their weight per kind.
    weights: BTreeMap<usize, Vec<u32>>,
    /// Per class: wants no GPU, and an offering without GPUs could serve it.
    pub plain: Vec<bool>,
    /// Per class, its set of rules about nodes.
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
    /// How long work runs, as far as known.
    pub stays: Stays,
    /// Who chooses what among them.
    pub choose: Choose,
    /// Bins in order of use for units with GPUs (those with a free one), and for those without.
    pub order_gpu: Vec<usize>,
    pub order_cpu: Vec<usize>,
    /// Bins that were taken from since full ones were forgotten.
    taken: usize,
    pub offers: Vec<Offer<'a>>,
    pub ledger: Ledger,
    /// What teams with a budget use.
    pub teams: Teams<'a>,
    pub groups: Groups,
    /// Nodes for headroom per offer, and the units that they take.
    pub headroom: BTreeMap<usize, (u32, u32)>,
    /// Headroom that is missing, per pool that it is said of.
    pub headroom_short: BTreeMap<usize, Vec<Reason>>,
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
    /// Per pool that anticipates, once demand is placed: the latest that takes or waits for an idle or a new node.
    pub demanded: BTreeMap<usize, Demanded>,
}

impl Work<'_> {
    /// Nodes whose last GPU went: they are not looked at again. Now and then is enough.
    pub fn forget_full(&mut self, taken: usize) {
        self.taken += taken;
        if self.taken * 8 > self.order_gpu.len() {
            self.order_gpu
                .retain(|b| self.bins[*b].free.largest_share() > 0);
            self.taken = 0;
        }
    }

    /// Bins in order of use for a class.
    pub fn order_for(&self, class: usize) -> &[usize] {
        let unit = &self.units[class];
        if unit.gpus > 0 || unit.milli > 0 {
            &self.order_gpu
        } else {
            &self.order_cpu
        }
    }

    /// May units of the class go to places of the kind?
    pub fn matches(&self, class: usize, kind: usize) -> bool {
        self.matches[self.constraint_of[class]][kind]
    }

    /// The class's set of rules about nodes.
    pub fn set_of(&self, class: usize) -> usize {
        self.constraint_of[class]
    }

    /// Some rule of the class is not known, or cannot be used: it is left alone.
    pub fn unknown_rule(&self, class: usize) -> bool {
        !self.input.classes[class].constraints.unsupported.is_empty()
            || self.unusable.contains_key(&class)
    }

    /// Weight of the class's preferences about labels that places of the kind fulfil.
    pub fn weight(&self, class: usize, kind: usize) -> u32 {
        self.weights.get(&class).map_or(0, |all| all[kind])
    }

    /// Takes room of a bin for units, or holds it.
    pub fn take(&mut self, class: usize, bin: usize, units: u32, hold: bool) {
        let unit = &self.units[class];
        let whole = self.input.classes[class].whole_node;
        let b = &mut self.bins[bin];
        if b.empty && b.tier == Tier::Coming && !b.would {
            self.arriving.used.push(bin);
        }
        b.occupy(unit, whole, units);
        if hold {
            b.held.push((class, units));
            return;
        }
        self.book_bin(class, bin, units);
        let b = &mut self.bins[bin];
        self.step += 1;
        b.placed.push(Put {
            class,
            units,
            step: self.step,
        });
        self.tally
            .put(&self.near, class, b.kind, &mut b.content, (units, 1), true);
    }

    /// Puts what a bin got of a class since a step together.
    pub fn join_puts(&mut self, class: usize, bin: usize, since: u32) {
        let placed = &mut self.bins[bin].placed;
        let mine = |put: &Put| put.class == class && put.step > since;
        let units = placed.iter().filter(|p| mine(p)).map(|p| p.units).sum();
        let Some(first) = placed.iter().position(mine) else {
            return;
        };
        let mut at = 0;
        placed.retain(|put| {
            at += 1;
            !mine(put) || at == first + 1
        });
        placed[first].units = units;
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
