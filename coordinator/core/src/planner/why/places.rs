//! Where units of a class go in this plan, and when they can start. Used by `why`.

use super::super::state::Work;
use super::super::supply::{At, Tier};
use super::alike::{Held, Kind, Told, held};
use crate::model::{Reason, Resources, UnixMs};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Where each class has units: indices of bins; of groups their offer and their place among its groups.
pub(in super::super) struct Places<'w> {
    bins: Vec<Vec<usize>>,
    groups: Vec<Vec<(usize, usize)>>,
    /// Per pool: kinds and sizes of the nodes that exist.
    pub(super) shapes: Vec<Vec<(usize, &'w Resources)>>,
    /// Bins that gangs hold.
    pub(super) held: Vec<Held>,
    /// What was told to classes of one kind.
    pub(super) told: RefCell<BTreeMap<Kind<'w>, Rc<Told>>>,
}

impl<'w> Places<'w> {
    /// Looks once over everything.
    pub fn new(work: &Work<'w>) -> Self {
        let classes = work.input.classes.len();
        let mut all = Self {
            bins: vec![Vec::new(); classes],
            groups: vec![Vec::new(); classes],
            shapes: vec![Vec::new(); work.input.pools.len()],
            held: held(work),
            told: RefCell::default(),
        };
        for (kind, pool, size) in work.shapes.keys() {
            if let Some(p) = pool {
                all.shapes[*p].push((*kind, size));
            }
        }
        for (b, bin) in work.bins.iter().enumerate().filter(|(_, b)| !b.would) {
            for put in &bin.placed {
                add(&mut all.bins[put.class], b);
            }
        }
        for o in 0..work.offers.len() {
            for (at, group) in work.groups.of(o).iter().enumerate() {
                for put in &group.placed {
                    add(&mut all.groups[put.class], (o, at));
                }
            }
        }
        all
    }
    /// Where the units of a class go.
    pub fn say(&self, work: &Work<'_>, class: usize, reasons: &mut Vec<Reason>) {
        let now = work.input.now;
        let (mut units, mut nodes, mut joining) = (0, 0, false);
        let mut asked: BTreeMap<usize, (u32, UnixMs)> = BTreeMap::new();
        for bin in self.bins[class].iter().map(|b| &work.bins[*b]) {
            let here: u32 = bin
                .placed
                .iter()
                .filter(|p| p.class == class)
                .map(|p| p.units)
                .sum();
            if here == 0 {
                continue;
            }
            match (bin.at, bin.tier, bin.pool) {
                (At::Coming(l, _), _, Some(p)) => {
                    let launch = &work.input.launches[l];
                    let boot = work.input.pools[p]
                        .offerings
                        .iter()
                        .find(|o| o.id == launch.offering)
                        .map(|o| o.boot);
                    let ready = launch.asked.after(boot.unwrap_or_default()).max(now);
                    let slot = asked.entry(p).or_insert((0, ready));
                    *slot = (slot.0 + 1, slot.1.min(ready));
                }
                (_, Tier::Coming, _) => joining = true,
                _ => {
                    units += here;
                    nodes += 1;
                }
            }
        }
        let groups = self.groups[class].iter();
        let groups = groups.map(|(o, at)| &work.groups.of(*o)[*at]);
        for group in groups.filter(|g| g.units(class) > 0) {
            let offer = &work.offers[group.offer];
            if !offer.would {
                let ready = UnixMs(now.0.saturating_add(offer.boot));
                let slot = asked.entry(offer.pool).or_insert((0, ready));
                *slot = (slot.0 + group.nodes, slot.1.min(ready));
            }
        }
        if nodes > 0 {
            reasons.push(Reason::FitsNow { units, nodes });
        }
        if joining {
            reasons.push(Reason::NotReady);
        }
        for (p, (nodes, ready)) in asked {
            reasons.push(Reason::AskedFor {
                pool: work.input.pools[p].id.clone(),
                nodes,
                ready,
            });
        }
    }
}

fn add<T: PartialEq>(list: &mut Vec<T>, at: T) {
    if list.last() != Some(&at) {
        list.push(at);
    }
}
