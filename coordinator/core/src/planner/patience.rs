//! Patience: a class with a maximum wait may wait, so long since it was submitted, for nodes whose running work states an
//! end within that time, instead of having nodes asked for. Called by `plan` before growth, in the order in which classes
//! are placed; promises no room twice.

use super::size::Free;
use super::state::Work;
use super::supply::{At, Tier};
use crate::model::{Reason, UnixMs};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes named per class at most.
const NAMED: usize = 3;

/// Room that will be free, and what was promised of it.
pub(super) struct Ends {
    /// When work ends, in order: bin and what it gives back, as an index in `gives`.
    events: Vec<(UnixMs, usize, usize)>,
    gives: Vec<Free>,
    /// Units promised per bin: (class, units).
    promised: BTreeMap<usize, Vec<(usize, u32)>>,
    /// Units that wait, per class.
    waiting: BTreeMap<usize, u32>,
}

impl Ends {
    /// What running work says. Nothing is looked at when nobody may wait.
    pub fn new(work: &Work<'_>) -> Self {
        let mut ends = Self {
            events: Vec::new(),
            gives: Vec::new(),
            promised: BTreeMap::new(),
            waiting: BTreeMap::new(),
        };
        let now = work.input.now;
        let waits =
            |c: &crate::model::Class| c.max_wait.is_some_and(|w| c.submitted.after(w) > now);
        if !work.input.classes.iter().any(waits) {
            return ends;
        }
        for (b, bin) in work.bins.iter().enumerate() {
            let (At::Node(n), Tier::Ready, false) = (bin.at, bin.tier, bin.would) else {
                continue;
            };
            let node = &work.input.nodes[n];
            let running = node.workloads.iter();
            let mut given: Vec<(UnixMs, Free)> = running
                .filter_map(|w| {
                    Some((
                        w.ends?,
                        Free::whole(work.names.size(&w.unit.scaled(w.count))),
                    ))
                })
                .collect();
            let held = node.reserved.iter();
            given.extend(
                held.filter_map(|r| Some((r.ends?, Free::whole(work.names.size(&r.amount))))),
            );
            for (at, free) in given {
                // Shares of GPUs are not put together again here.
                if at >= now && free.size.milli == 0 {
                    ends.events.push((at, b, ends.gives.len()));
                    ends.gives.push(free);
                }
            }
        }
        ends.events.sort_unstable_by_key(|(at, b, g)| (*at, *b, *g));
        ends
    }

    /// Units per entry of `order` that wait; the reasons are noted.
    pub fn wait(&mut self, work: &mut Work<'_>, order: &[usize]) -> Vec<u32> {
        let mut waits = vec![0; order.len()];
        if self.events.is_empty() {
            return waits;
        }
        let mut by_age: Vec<usize> = (0..order.len()).collect();
        by_age.sort_by_key(|i| (work.input.classes[order[*i]].submitted, order[*i]));
        for i in by_age {
            waits[i] = self.class(work, order[i], work.open[order[i]]);
        }
        waits
    }

    /// Units of one single class that wait, of so many that are open.
    fn class(&mut self, work: &mut Work<'_>, class: usize, open: u32) -> u32 {
        let Some(until) = may_wait(work, class).filter(|_| open > 0) else {
            return 0;
        };
        // Once promised it waits, for observed pools as well.
        if let Some(units) = self.waiting.get(&class) {
            return (*units).min(open);
        }
        let found = self.look(work, class, until, open, &|_| true);
        if found.units > 0 {
            self.promise(work, class, until, &found);
        }
        found.units
    }

    /// A gang that needs so many units among the bins of one domain waits; `now`: units of the domain that are free on
    /// nodes whose work states no end.
    pub fn gang(
        &mut self,
        work: &mut Work<'_>,
        class: usize,
        need: u32,
        inside: &dyn Fn(usize) -> bool,
        now: &dyn Fn(&BTreeMap<usize, u32>) -> u32,
    ) -> bool {
        let Some(until) = may_wait(work, class) else {
            return false;
        };
        let found = self.look(work, class, until, need, inside);
        let waits = found.units > 0 && found.units.saturating_add(now(&found.got)) >= need;
        if waits {
            self.promise(work, class, until, &found);
        }
        waits
    }

    /// Units of the class wait.
    pub fn waits(&self, class: usize) -> bool {
        self.waiting.contains_key(&class)
    }

    /// Bins whose work states an end.
    pub fn bins(&self) -> BTreeSet<usize> {
        self.events.iter().map(|(_, b, _)| *b).collect()
    }

    fn look(
        &self,
        work: &Work<'_>,
        class: usize,
        until: UnixMs,
        open: u32,
        inside: &dyn Fn(usize) -> bool,
    ) -> Found {
        let unit = &work.input.classes[class];
        let mut free: BTreeMap<usize, Free> = BTreeMap::new();
        let mut found = Found::default();
        let in_time = |at: UnixMs| at <= until && unit.deadline.is_none_or(|d| at <= d);
        for (at, b, give) in &self.events {
            if found.units == open || !in_time(*at) {
                break;
            }
            let bin = &work.bins[*b];
            if !inside(*b) || !work.matches(class, bin.kind) {
                continue;
            }
            let will = free.entry(*b).or_insert_with(|| bin.free.clone());
            will.give(&self.gives[*give]);
            let mut room = will.clone();
            for (other, units) in self.promised.get(b).into_iter().flatten() {
                room.take(&work.units[*other], *units);
            }
            let mine = found.got.get(b).copied().unwrap_or(0);
            let units = if unit.whole_node {
                u32::from(room.size == bin.total && mine == 0)
            } else {
                room.take(&work.units[class], mine);
                room.times(&work.units[class])
            };
            let n = units.min(open - found.units);
            if n == 0 {
                continue;
            }
            found.units += n;
            let first = found.got.insert(*b, mine + n);
            if let (At::Node(node), None) = (bin.at, first) {
                found.nodes.push((node, *at));
            }
        }
        found
    }

    fn promise(&mut self, work: &mut Work<'_>, class: usize, until: UnixMs, found: &Found) {
        for (b, units) in &found.got {
            self.promised.entry(*b).or_default().push((class, *units));
        }
        self.waiting.insert(class, found.units);
        for (node, at) in found.nodes.iter().take(NAMED) {
            let node = work.input.nodes[*node].id.clone();
            work.note(class, Reason::WaitsForEnd { node, until: *at });
        }
        work.note(class, Reason::PatientUntil { until });
    }
}

/// Room that is free in time.
#[derive(Default)]
struct Found {
    units: u32,
    /// Units per bin.
    got: BTreeMap<usize, u32>,
    /// Nodes, in the order in which they have room, and when.
    nodes: Vec<(usize, UnixMs)>,
}

/// Until when a class may wait; none: no longer, or not at all. One with rules about its neighbours does not: who will be
/// there then is not known.
fn may_wait(work: &Work<'_>, class: usize) -> Option<UnixMs> {
    let unit = &work.input.classes[class];
    let until = unit.submitted.after(unit.max_wait?);
    (until > work.input.now && !work.near.touches(class)).then_some(until)
}
