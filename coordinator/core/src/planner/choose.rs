//! Chooses among existing and coming nodes: the order of use (I12), who is kept out of which holes, and the score of
//! units that do not simply take the next node in order (`score`). Built once per run; asked by fit, by gangs (order) and by the
//! packings (holes). Places nothing.
//!
//! Measured by replaying and packing the openb trace (`examples/static_packing`, `drover simulate`):
//! - Units without GPUs stay out of nodes with GPUs that are paid by the hour and could leave: they keep such a node
//!   alone in the end, and cost several times a node of their own. Without this rule best fit costs 60.4 % of a node per
//!   job, with it 54.4 %.
//! - Otherwise the node with the least left of CPU and GPUs, a GPU counting as many cores as the cheapest offering gives
//!   with one (leftover GPUs alone 55.1 %, leftover CPU alone 55.0 %, first fit 55.3 %), of equal ones the oldest.
//! - Where run times are stated or learnt, first what the node must stay longer for the unit, then the oldest work
//!   (`stay`): on openb 55.3 %, on the Philly clusters 1.024, 1.037 and 1.034 times the lower bound (best fit: 1.027, 1.038
//!   and 1.056). The least left before the oldest work loses on all three (1.025, 1.037, 1.041).
//! - Where GPUs are shared, what others could still use (`usable`).

mod score;
mod usable;

pub(super) use score::Score;

use super::offers::Offer;
use super::state::Work;
use super::stay::Stay;
use super::supply::{At, Bin, Tier};
use crate::model::{Mode, OfferingId, PoolInput};
use std::collections::BTreeMap;
use usable::Usable;

/// Looks of one plan (bins x kinds of units learnt) at the score of `usable`; further classes take the next in order.
const LOOKS: u64 = 20_000_000;

/// The order of use: less is better.
type Key = (Tier, bool, bool, u64, u64, At);

/// What the choice knows.
#[derive(Default)]
pub(super) struct Choose {
    about: Vec<About>,
    /// Per offer: its nodes have GPUs, are paid by the hour and could leave.
    fleeting: Vec<bool>,
    /// Milli-CPU that a whole free GPU counts as.
    cpu_per_gpu: u64,
    usable: Option<Usable>,
    looks: u64,
    /// Units without GPUs may fill any hole: nothing can be opened for them.
    pub last_resort: bool,
}

/// Of one bin.
struct About {
    /// USD per hour are paid for it, whether it is used or not (I12: what is owned goes first).
    paid: bool,
    /// Paid by the hour, and it could leave.
    fleeting: bool,
    /// Micro-USD per hour.
    price: u64,
    /// When; 0 if unknown.
    launched: u64,
    /// How long it stays in use.
    stay: Stay,
    /// Its place in the order.
    key: Key,
}

/// A node of the pool could leave when it is idle.
fn could_leave(pool: Option<&PoolInput>, staying: u32) -> bool {
    pool.is_some_and(|p| p.mode == Mode::Full && p.removable && staying > p.least())
}

impl Choose {
    /// Of a run whose bins, offers and kinds are there.
    pub fn new(work: &Work<'_>) -> Self {
        let input = work.input;
        let leaving = |pool: Option<usize>| {
            let staying = pool.map_or(0, |p| work.counts[p].staying);
            could_leave(pool.map(|p| &input.pools[p]), staying)
        };
        let fleeting = |o: &Offer<'_>| {
            let pool = &input.pools[o.pool];
            o.size.gpus > 0 && o.tier == 2 && could_leave(Some(pool), u32::MAX)
        };
        let mut choose = Self {
            about: Vec::with_capacity(work.bins.len()),
            fleeting: work.offers.iter().map(fleeting).collect(),
            cpu_per_gpu: cpu_per_gpu(work),
            usable: Usable::new(work),
            looks: LOOKS,
            last_resort: false,
        };
        // Nodes on their way cost what their offering does; most often there are none.
        let comes = work.bins.iter().any(|b| matches!(b.at, At::Coming(..)));
        let paid = work.offers.iter().filter(|o| comes && o.tier == 2);
        let prices: BTreeMap<&OfferingId, u64> = paid.map(|o| (o.id, o.price)).collect();
        for bin in &work.bins {
            let (price, launched, stay) = match bin.at {
                At::Node(n) => {
                    let node = &input.nodes[n];
                    let launched = node.launched.map_or(0, |at| at.0);
                    (node.price.0, launched, work.stays.of_node(node))
                }
                At::Coming(l, _) => {
                    let launch = &input.launches[l];
                    let price = prices.get(&launch.offering).copied().unwrap_or(0);
                    (
                        price,
                        launch.asked.0,
                        work.stays.of_coming(launch, bin.empty),
                    )
                }
            };
            let mut about = About {
                paid: price > 0 && matches!(bin.at, At::Node(_)),
                fleeting: price > 0 && leaving(bin.pool),
                price,
                launched,
                stay,
                key: (bin.tier, false, false, 0, 0, bin.at),
            };
            about.key = choose.key(&about, bin);
            choose.about.push(about);
        }
        choose
    }

    /// What a unit leaves to others counts: a place may become worse by a unit that it took.
    pub const fn weighs_rest(&self) -> bool {
        self.usable.is_some()
    }

    /// Both orders of use: for units with GPUs (bins with a free one), and for those without.
    pub fn orders(&self, work: &Work<'_>) -> (Vec<usize>, Vec<usize>) {
        let mut all: Vec<usize> = (0..work.bins.len()).collect();
        all.sort_by_key(|b| self.about[*b].key);
        let mut gpu = all.clone();
        gpu.retain(|b| work.bins[*b].free.largest_share() > 0);
        all.sort_by_key(|b| self.key_cpu(work, *b));
        (gpu, all)
    }

    fn key(&self, about: &About, bin: &Bin) -> Key {
        (
            bin.tier,
            about.paid,
            bin.empty,
            self.left(bin),
            about.launched,
            bin.at,
        )
    }

    /// Nodes without GPUs first.
    fn key_cpu(&self, work: &Work<'_>, bin: usize) -> (Tier, bool, Key) {
        let key = self.about[bin].key;
        (key.0, work.bins[bin].total.gpus > 0, key)
    }

    /// What is left there, as milli-CPU.
    fn left(&self, bin: &Bin) -> u64 {
        let parts: u64 = bin.free.shares.iter().map(|s| u64::from(*s)).sum();
        let gpus = u64::from(bin.free.size.gpus) * 1_000 + parts;
        let gpus = self.cpu_per_gpu.saturating_mul(gpus) / 1_000;
        bin.free.size.cpu.saturating_add(gpus)
    }
}

/// Of the paid offering with the cheapest GPU, else of any, else of what there is.
fn cpu_per_gpu(work: &Work<'_>) -> u64 {
    let with = work.offers.iter().enumerate();
    let with = with.filter(|(_, o)| o.alloc.is_some() && o.size.gpus > 0);
    let cheapest = with.min_by_key(|(i, o)| {
        let each = o.price.saturating_mul(1_000) / u64::from(o.size.gpus);
        (o.tier != 2, each, *i)
    });
    if let Some((_, offer)) = cheapest {
        return offer.size.cpu / u64::from(offer.size.gpus);
    }
    let with = work.bins.iter().map(|b| &b.total).filter(|t| t.gpus > 0);
    let (cpu, gpus) = with.fold((0_u64, 0_u64), |sum, t| {
        (sum.0.saturating_add(t.cpu), sum.1 + u64::from(t.gpus))
    });
    cpu.checked_div(gpus).unwrap_or(0)
}

impl Work<'_> {
    /// Units of the class stay out of the bin: it has GPUs, is paid by the hour and could leave, and for them an
    /// offering without GPUs could be opened.
    pub fn kept_out(&self, class: usize, bin: usize) -> bool {
        self.plain[class]
            && !self.choose.last_resort
            && self.choose.about[bin].fleeting
            && self.bins[bin].total.gpus > 0
    }

    /// The same of a new node.
    pub fn kept_out_of_new(&self, class: usize, offer: usize) -> bool {
        self.plain[class] && !self.choose.last_resort && self.choose.fleeting[offer]
    }

    /// Works in that units of the class were placed on the bin: its end, and its place in the order.
    pub fn chosen(&mut self, class: usize, bin: usize) {
        let stay = self.stays.of_unit(&self.input.classes[class]);
        let about = &mut self.choose.about[bin];
        about.stay.join(stay);
        let old = (about.key, self.choose.key_cpu(self, bin));
        let key = self.choose.key(&self.choose.about[bin], &self.bins[bin]);
        let mut gpu = std::mem::take(&mut self.order_gpu);
        let mut cpu = std::mem::take(&mut self.order_cpu);
        forward(&mut gpu, bin, |b| self.choose.about[b].key, old.0, key);
        let key_cpu = (old.1.0, old.1.1, key);
        forward(
            &mut cpu,
            bin,
            |b| self.choose.key_cpu(self, b),
            old.1,
            key_cpu,
        );
        (self.order_gpu, self.order_cpu) = (gpu, cpu);
        self.choose.about[bin].key = key;
    }
}

/// Moves a bin whose key became less to its new place.
fn forward<K: Ord>(order: &mut [usize], bin: usize, key: impl Fn(usize) -> K, old: K, new: K) {
    let from = order.partition_point(|b| key(*b) < old);
    // It may have been forgotten.
    if order.get(from) != Some(&bin) {
        return;
    }
    let to = order[..from].partition_point(|b| key(*b) < new);
    order[to..=from].rotate_right(1);
}
