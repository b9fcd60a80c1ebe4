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
mod tries;
mod wait;
mod ways;

pub(super) use domain::{Domain, name};
pub(super) use extras::say_parts;
pub(super) use hold::{holding, kept};

use super::could::{Could, could_ever};
use super::patience::Ends;
use super::state::Work;
use crate::model::{Constraints, Gang, Locality, Resources, UnixMs};
use domain::homes;
use look::{Log, Look};
use map::Map;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use tries::{afford, apply};
use ways::{Ask, Ways};

/// What one planning run remembers of its gangs.
#[derive(Default)]
pub(super) struct Gangs {
    /// Gangs that hold partial capacity, per domain.
    holders: BTreeMap<Domain, usize>,
    /// Where gangs that are whole in this plan have their units.
    whole: BTreeMap<usize, Domain>,
}

/// A gang whose turn it is.
struct Who<'g> {
    class: usize,
    gang: &'g Gang,
    /// Units that must be placed.
    need: u32,
    /// Where its assigned units are; empty: nowhere yet.
    home: &'g BTreeSet<Domain>,
}

impl Who<'_> {
    /// What it asks now, of what is left.
    fn ask<'w>(&self, work: &'w Work<'_>, would: bool) -> Ask<'w> {
        let open = work.open[self.class];
        Ask {
            class: self.class,
            need: self.need,
            want: self.need.min(open),
            reach: open,
            would,
            ledger: &work.ledger,
        }
    }
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

/// Alike in all that decides where units may go. Those that rules between units touch are apart.
type Kind<'a> = (
    Locality,
    &'a Resources,
    bool,
    &'a Constraints,
    Option<usize>,
    Option<UnixMs>,
);

/// Most units that could be had, and where.
#[derive(Clone)]
struct Short {
    could: u32,
    place: String,
}

impl<'a> Round<'a> {
    fn new(would: bool) -> Self {
        Self {
            maps: BTreeMap::new(),
            log: Log::default(),
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
        let own = work.near.touches(class).then_some(class);
        let key = (
            locality,
            &unit.unit,
            unit.whole_node,
            &unit.constraints,
            own,
            unit.deadline,
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
    pub fn place(&mut self, work: &mut Work<'_>, gangs: &[usize], ends: &mut Ends, would: bool) {
        let mut round = Round::new(would);
        for &class in gangs {
            let input = work.input;
            let Some(gang) = &input.classes[class].gang else {
                continue;
            };
            let need = gang.min.saturating_sub(gang.assigned);
            if work.open[class] == 0 || self.whole.contains_key(&class) || ends.waits(class) {
                continue;
            }
            if !work.effort.begins(class) {
                continue;
            }
            work.effort.spend(work.offers.len());
            let home = homes(work, class, gang);
            if need == 0 && gang.assigned > 0 {
                self.since_before(work, &mut round, class, gang, &home);
                continue;
            }
            let who = Who {
                class,
                gang,
                need: need.max(1),
                home: &home,
            };
            self.one(work, &mut round, &who, ends);
        }
    }

    fn one<'a>(
        &mut self,
        work: &mut Work<'a>,
        round: &mut Round<'a>,
        who: &Who<'_>,
        ends: &mut Ends,
    ) {
        let Who {
            class,
            gang,
            need,
            home,
        } = *who;
        let kind = round.kind(work, class, gang.locality);
        let would = round.would;
        // Nothing is freed within a round: what could not be had for one cannot be had for another.
        let known = round.failed[kind]
            .as_ref()
            .filter(|(least, _)| home.is_empty() && *least <= need)
            .map(|(_, short)| short.clone());
        let best = match &known {
            None => afford(work, round, kind, who.ask(work, would), home),
            Some(_) => Ok(None),
        };
        let best = match best {
            Ok(best) => best,
            Err(reason) => {
                // Nothing is held for what its team may not pay.
                work.note(class, reason);
                hold::give_up(work, who);
                return;
            }
        };
        if let Some(best) = best {
            let grows = best.placed > best.fitted;
            if grows && !would && self.waits(work, round, who, kind, ends) {
                return;
            }
            let confirmed = best.confirmed(work);
            let domain = apply(work, round, class, best);
            if !confirmed && !would && home.is_empty() {
                let since = gang.holding_since;
                self.insure(work, round, (class, kind), &domain, since);
            }
            self.whole.insert(class, domain);
            return;
        }
        if would || self.waits(work, round, who, kind, ends) {
            return;
        }
        let ever = round.ever(work, kind, class);
        let again = known.is_some();
        let short = known.unwrap_or_else(|| {
            let best = round
                .ways(work, kind, who.ask(work, would), home)
                .and_then(|ways| ways.most().map(|(n, d)| (n, name(work, d))));
            let (could, place) = best.unwrap_or_default();
            Short { could, place }
        });
        if home.is_empty() && need <= work.open[class] {
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
