//! What can be asked: offerings with their price, and what stops and capacity memory allow of them now. Collected once
//! per run by `state`; changes nothing.

use super::matching::{Keys, Place};
use super::reserved::{self, Reserved};
use super::size::Size;
use super::state::{Work, intern};
use super::supply::growth_stop;
use crate::model::{
    Class, FailureKind, Market, MemoryEntry, MicroUsd, Mode, OfferingId, PoolInput, Reason,
    Resources, Steering,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Most nodes that one plan asks for or counts as coming: a guard against absurd input, far above any fleet
/// (DESIGN 10 plans for 10,000).
pub(super) const MAX_NODES: u32 = 100_000;

/// One thing to ask for.
#[derive(Debug, Clone)]
pub(super) struct Offer<'a> {
    pub pool: usize,
    pub id: &'a OfferingId,
    pub kind: usize,
    /// What one node gives; absent: unknown type, never asked.
    pub alloc: Option<Cow<'a, Resources>>,
    /// The same as numbers; nothing for an unknown type.
    pub size: Size,
    pub price: u64,
    /// 0 owned, 1 reserved, 2 paid by the hour (I12).
    pub tier: u8,
    /// The pool is observed: only in `would`.
    pub would: bool,
    /// How it failed, when this ask is a probe.
    pub probe: Option<FailureKind>,
    /// Why it may not be asked now.
    pub closed: Option<Reason>,
    /// Most that memory and stock allow.
    pub most: u32,
    /// Reservations that its nodes come out of, by number; none: out of none.
    pub reserved: Vec<usize>,
    pub boot: u64,
}

impl Offer<'_> {
    /// Units of a class on one empty node; the class must match the kind.
    pub fn times(&self, class: &Class) -> u32 {
        let Some(alloc) = &self.alloc else { return 0 };
        if class.whole_node {
            return u32::from(class.unit.fits(alloc));
        }
        let fits = class.unit.times(alloc);
        match class.constraints.max_per_node {
            0 => fits,
            most => fits.min(most),
        }
    }
}

/// All offers of all pools, in the input's order, and the reservations that they come out of.
pub(super) fn collect<'a>(
    work: &Work<'a>,
    keys: &Keys<'a>,
    kind_index: &mut BTreeMap<Place<'a>, usize>,
) -> (Vec<Offer<'a>>, Reserved) {
    let mut memory: BTreeMap<&OfferingId, &MemoryEntry> = BTreeMap::new();
    for entry in &work.input.memory {
        memory.entry(&entry.offering).or_insert(entry);
    }
    let mut probing: BTreeMap<&OfferingId, u32> = BTreeMap::new();
    for launch in &work.input.launches {
        if let Some(entry) = memory.get(&launch.offering) {
            let sum = probing.entry(&launch.offering).or_default();
            *sum = sum.saturating_add(launch.probing(entry, work.input.now));
        }
    }
    let mut offers = Vec::new();
    let mut reserved = reserved::Index::default();
    for (&id, &p) in &work.pool_index {
        let pool = &work.input.pools[p];
        debug_assert_eq!(*id, pool.id);
        let twice = twice(pool);
        let mut seen = BTreeSet::new();
        let mut first = true;
        let one_each = pool.steering != Steering::Group || pool.offerings.len() < 2;
        for offering in &pool.offerings {
            if twice.contains(&offering.id) && !seen.insert(&offering.id) {
                continue;
            }
            let (alloc, price) = if one_each {
                (
                    offering.allocatable.as_ref().map(Cow::Borrowed),
                    offering.price,
                )
            } else if std::mem::take(&mut first) {
                let (alloc, price) = smallest(pool);
                (alloc.map(Cow::Owned), price)
            } else {
                break;
            };
            let mut offer = Offer {
                pool: p,
                id: &offering.id,
                kind: intern(kind_index, Place::of(pool, offering, keys)),
                size: alloc
                    .as_ref()
                    .map_or_else(Size::default, |a| work.names.size(a)),
                alloc,
                price: price.0,
                tier: match offering.market {
                    Market::Owned => 0,
                    Market::Reserved => 1,
                    Market::Spot | Market::OnDemand => 2,
                },
                would: pool.mode == Mode::Observe,
                probe: None,
                closed: None,
                most: offering.available.unwrap_or(u32::MAX),
                reserved: reserved.add(&offering.reservations),
                boot: offering.boot.0,
            };
            limit(
                &mut offer,
                work,
                pool,
                memory.get(&offering.id).copied(),
                &probing,
            );
            offers.push(offer);
        }
    }
    (offers, reserved.rooms())
}

/// Ids that two offerings of the pool have. By a checksum first: a catalogue has thousands, long and with one beginning.
fn twice(pool: &PoolInput) -> BTreeSet<&OfferingId> {
    let sum = |id: &OfferingId| {
        let bytes = id.as_str().bytes();
        bytes.fold(0_u64, |sum, b| sum.wrapping_mul(31).wrapping_add(b.into()))
    };
    let ids = pool.offerings.iter().map(|o| (sum(&o.id), &o.id));
    let mut ids: Vec<(u64, &OfferingId)> = ids.collect();
    ids.sort_unstable();
    let pairs = ids.windows(2).filter(|w| w[0] == w[1]);
    pairs.map(|w| w[0].1).collect()
}

/// Stops and capacity memory.
fn limit<'a>(
    offer: &mut Offer<'a>,
    work: &Work<'a>,
    pool: &PoolInput,
    entry: Option<&MemoryEntry>,
    probing: &BTreeMap<&OfferingId, u32>,
) {
    if let Some(stop) = growth_stop(pool) {
        offer.closed = Some(Reason::PoolStopped {
            pool: pool.id.clone(),
            stop: stop.clone(),
        });
    } else if offer.alloc.is_none() {
        let itype = pool.offerings.iter().find(|o| o.id == *offer.id);
        offer.closed = Some(Reason::UnknownType {
            pool: pool.id.clone(),
            instance_type: itype.map(|o| o.instance_type.clone()).unwrap_or_default(),
        });
    }
    let Some(entry) = entry else { return };
    // Throttling says nothing about capacity (DESIGN 5).
    if entry.kind == FailureKind::Throttle {
        return;
    }
    let asked = probing.get(offer.id).copied().unwrap_or(0);
    let ration = entry.ration.max(1).saturating_sub(asked);
    if work.input.now < entry.next_probe || ration == 0 {
        offer.closed.get_or_insert(Reason::OutOfCapacity {
            offering: offer.id.clone(),
            failure: entry.kind,
            next_probe: entry.next_probe,
            message: entry.message.clone(),
        });
    }
    offer.probe = Some(entry.kind);
    offer.most = offer.most.min(ration);
}

/// A group that only takes a count may give any of its types: plan with the least of each, at the highest price.
fn smallest(pool: &PoolInput) -> (Option<Resources>, MicroUsd) {
    let price = pool
        .offerings
        .iter()
        .map(|o| o.price)
        .max()
        .unwrap_or_default();
    let mut least: Option<Resources> = None;
    for offering in &pool.offerings {
        let Some(alloc) = &offering.allocatable else {
            return (None, price);
        };
        least = Some(match least {
            None => alloc.clone(),
            Some(have) => Resources {
                cpu: have.cpu.min(alloc.cpu),
                memory: have.memory.min(alloc.memory),
                gpus: have.gpus.min(alloc.gpus),
                gpu_milli: 0,
                extended: have
                    .extended
                    .iter()
                    .map(|(k, v)| {
                        (
                            k.clone(),
                            (*v).min(alloc.extended.get(k).copied().unwrap_or(0)),
                        )
                    })
                    .collect(),
            },
        });
    }
    (least, price)
}
