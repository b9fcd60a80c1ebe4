//! Gangs (I8): whole or not at all, in one domain of their locality: on what exists, else with growth in one pool of the
//! domain, in several where that is cheaper or the only way. First every gang gets its minimum; what an elastic one wants
//! beyond it comes after the single classes of its priority. A gang that cannot be whole may hold what part there is, for
//! its hold time and only as the first of its domain. Called by `plan`, per priority.

mod domain;
mod elsewhere;
mod extras;
mod hold;
mod look;
mod map;
mod ways;

pub(super) use domain::{Domain, name};
pub(super) use extras::say_parts;
pub(super) use hold::{holding, kept};

use super::could::{Could, could_ever};
use super::grow::{self, Packing};
use super::state::Work;
use super::supply::Tier;
use crate::model::{Constraints, Gang, Locality, Resources};
use domain::homes;
use look::{Log, Look};
use map::Map;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use ways::{Ask, Ways};

/// What one planning run remembers of its gangs.
#[derive(Default)]
pub(super) struct Gangs {
    /// Gangs that hold partial capacity, per domain.
    holders: BTreeMap<Domain, usize>,
    /// Where gangs that are whole in this plan have their units.
    whole: BTreeMap<usize, Domain>,
}

/// One way to place a gang.
struct Try {
    domain: Domain,
    fits: Vec<(usize, u32)>,
    fitted: u32,
    packing: Option<Packing>,
    placed: u32,
}

/// What gangs of one run share: they are alike in the thousands.
struct Round<'a> {
    maps: BTreeMap<Locality, Map>,
    log: Log,
    would: bool,
    /// Numbers of the kinds of gang.
    kinds: BTreeMap<Kind<'a>, usize>,
    looks: Vec<Option<Look>>,
    evers: Vec<Option<Rc<Could>>>,
    /// Per kind, the least need that could not be met, and what could be had instead.
    failed: Vec<Option<(u32, Short)>>,
}

/// Alike in all that decides where units may go. The last part keeps those apart that count their own units per node.
type Kind<'a> = (
    Locality,
    &'a Resources,
    bool,
    &'a Constraints,
    Option<usize>,
);

/// Most units that could be had, and where.
#[derive(Clone)]
struct Short {
    could: u32,
    place: String,
}

impl<'a> Round<'a> {
    fn new(work: &Work<'a>, would: bool) -> Self {
        Self {
            maps: BTreeMap::new(),
            log: Log::new(work),
            would,
            kinds: BTreeMap::new(),
            looks: Vec::new(),
            evers: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// The kind of a gang; its map and its look are there and up to date afterwards.
    fn kind(&mut self, work: &Work<'a>, class: usize, locality: Locality) -> usize {
        let unit = &work.input.classes[class];
        let own = (unit.constraints.max_per_node > 0).then_some(class);
        let key = (
            locality,
            &unit.unit,
            unit.whole_node,
            &unit.constraints,
            own,
        );
        let next = self.kinds.len();
        let kind = *self.kinds.entry(key).or_insert(next);
        if kind == next {
            self.looks.push(None);
            self.evers.push(None);
            self.failed.push(None);
        }
        let maps = &mut self.maps;
        let map = &*maps
            .entry(locality)
            .or_insert_with(|| Map::new(work, locality));
        match &mut self.looks[kind] {
            Some(look) => look.update(work, map, &self.log),
            look => *look = Some(Look::new(work, map, class, self.would, &self.log)),
        }
        kind
    }

    fn ways<'w, 'q>(
        &'w self,
        work: &'w Work<'a>,
        kind: usize,
        ask: Ask<'q>,
        home: &'w BTreeSet<Domain>,
    ) -> Option<Ways<'w, 'a, 'q>> {
        let gang = work.input.classes[ask.class].gang.as_ref()?;
        let map = self.maps.get(&gang.locality)?;
        let look = self.looks[kind].as_ref()?;
        Some(Ways::new(work, map, look, ask, home))
    }

    fn ever(&mut self, work: &Work<'a>, kind: usize, class: usize) -> Rc<Could> {
        self.evers[kind]
            .get_or_insert_with(|| Rc::new(could_ever(work, class)))
            .clone()
    }
}

impl Gangs {
    /// Places the minimum of gangs, in the order given (age, index), on real supply or, in the second phase, wholly in
    /// observed pools.
    pub fn place(&mut self, work: &mut Work<'_>, gangs: &[usize], would: bool) {
        let mut round = Round::new(work, would);
        for &class in gangs {
            let input = work.input;
            let Some(gang) = &input.classes[class].gang else {
                continue;
            };
            let need = gang.min.saturating_sub(gang.assigned);
            if work.open[class] == 0 || self.whole.contains_key(&class) {
                continue;
            }
            let home = homes(work, class, gang);
            if need == 0 && gang.assigned > 0 {
                self.since_before(work, &mut round, class, gang, &home);
                continue;
            }
            self.one(work, &mut round, class, gang, need.max(1), &home);
        }
    }

    fn one<'a>(
        &mut self,
        work: &mut Work<'a>,
        round: &mut Round<'a>,
        class: usize,
        gang: &Gang,
        need: u32,
        home: &BTreeSet<Domain>,
    ) {
        let kind = round.kind(work, class, gang.locality);
        let would = round.would;
        // Nothing is freed within a round: what could not be had for one cannot be had for another.
        let known = round.failed[kind]
            .as_ref()
            .filter(|(least, _)| home.is_empty() && *least <= need)
            .map(|(_, short)| short.clone());
        let open = work.open[class];
        let ask = Ask {
            class,
            need,
            want: need.min(open),
            reach: open,
            would,
            ledger: &work.ledger.clone(),
        };
        let best = match (&known, round.ways(work, kind, ask, home)) {
            (None, Some(ways)) => ways.whole(need, |_| true),
            _ => None,
        };
        if let Some(best) = best {
            let confirmed = best.confirmed(work);
            apply(work, &mut round.log, class, &best);
            if !confirmed && !would && home.is_empty() {
                let since = gang.holding_since;
                self.insure(work, round, (class, kind), &best.domain, since);
            }
            self.whole.insert(class, best.domain);
            return;
        }
        if would {
            return;
        }
        let ever = round.ever(work, kind, class);
        let again = known.is_some();
        let short = known.unwrap_or_else(|| {
            let best = round
                .ways(work, kind, ask, home)
                .and_then(|ways| ways.most().map(|(n, d)| (n, name(work, d))));
            let (could, place) = best.unwrap_or_default();
            Short { could, place }
        });
        if home.is_empty() {
            let slot = round.failed[kind].get_or_insert_with(|| (need, short.clone()));
            slot.0 = slot.0.min(need);
        }
        let case = hold::Case {
            class,
            kind,
            gang,
            need,
            home,
            short,
            ever,
            again,
        };
        self.short(work, round, &case);
    }
}

impl Try {
    /// All of it is on nodes that take work or that we cordoned ourselves.
    fn confirmed(&self, work: &Work<'_>) -> bool {
        let there = |(b, _): &(usize, u32)| work.bins[*b].tier != Tier::Coming;
        self.placed == self.fitted && self.fits.iter().all(there)
    }
}

/// Less is better: units short, cost, new nodes, existing nodes used late.
fn rating(work: &Work<'_>, t: &Try, want: u32) -> (u32, u64, u32, usize) {
    let (cost, nodes) = t.packing.as_ref().map_or((0, 0), |p| p.opened(work));
    let short = want - t.placed.min(want);
    (short, cost, nodes, late(work, &t.fits))
}

/// How late in the order of use (I12) the last of these nodes stands.
fn late(work: &Work<'_>, fits: &[(usize, u32)]) -> usize {
    let tiers = fits.iter().map(|(b, _)| work.bins[*b].tier as usize);
    tiers.max().unwrap_or(0)
}

fn apply(work: &mut Work<'_>, log: &mut Log, class: usize, t: &Try) {
    for (b, n) in &t.fits {
        work.take(class, *b, *n, false);
        log.took(*b);
    }
    work.forget_full(t.fits.len());
    work.open[class] -= t.fitted;
    if let Some(packing) = &t.packing {
        let rest = work.open[class];
        for group in packing.groups.iter().filter(|g| g.units(class) > 0) {
            log.grew(group.offer);
        }
        grow::commit(work, &[class], packing.clone());
        work.open[class] = rest - (t.placed - t.fitted);
    }
}
