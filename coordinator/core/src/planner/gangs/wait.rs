//! A gang that may wait and can be whole in time with what running work gives back: it waits, and holds what there is.
//! Called by `gangs` only.

use super::hold::Case;
use super::{Gangs, Round, Short, Who, name};
use crate::planner::patience::Ends;
use crate::planner::state::Work;
use std::collections::{BTreeMap, BTreeSet};

impl Gangs {
    /// True when it waits: nothing is asked for it now.
    pub(super) fn waits<'a>(
        &mut self,
        work: &mut Work<'a>,
        round: &mut Round<'a>,
        who: &Who<'_>,
        kind: usize,
        ends: &mut Ends,
    ) -> bool {
        let Who {
            class,
            gang,
            need,
            home,
        } = *who;
        if work.input.classes[class].max_wait.is_none() {
            return false;
        }
        let Some(place) = self.promised(work, round, who, kind, ends) else {
            return false;
        };
        let ever = round.ever(work, kind, class);
        let there = BTreeSet::from([place.clone()]);
        let case = Case {
            class,
            kind,
            gang,
            need,
            home: if home.is_empty() { &there } else { home },
            short: Short {
                could: need,
                place: name(work, &place),
            },
            ever,
            again: true,
        };
        let over = super::hold::over(gang, work.input.now);
        self.hold(work, round, &case, over);
        true
    }

    /// The first domain in which it can be whole in time.
    fn promised<'a>(
        &self,
        work: &mut Work<'a>,
        round: &Round<'a>,
        who: &Who<'_>,
        kind: usize,
        ends: &mut Ends,
    ) -> Option<super::Domain> {
        let map = round.maps.get(&who.gang.locality)?;
        let look = round.looks[kind].as_ref()?;
        let of = |work: &Work<'_>, b: usize| map.of_bin(b, work.bins[b].kind);
        let domains: BTreeSet<usize> = ends.bins().iter().filter_map(|b| of(work, *b)).collect();
        for domain in domains {
            let place = &map.domains[domain];
            let welcome = who.home.is_empty() || who.home.contains(place);
            if !welcome || self.holders.contains_key(place) {
                continue;
            }
            let kinds: Vec<bool> = (0..work.bins.len())
                .map(|b| of(work, b) == Some(domain))
                .collect();
            let inside = |b: usize| kinds[b];
            let span = look.spans.iter().find(|s| s.domain == domain);
            let now = |got: &BTreeMap<usize, u32>| {
                let units = span.map_or_else(Vec::new, |s| look.take(s, who.need));
                let other = units.iter().filter(|(b, _)| !got.contains_key(b));
                other.map(|(_, n)| *n).sum()
            };
            if ends.gang(work, who.class, who.need, &inside, &now) {
                return Some(place.clone());
            }
        }
        None
    }
}
