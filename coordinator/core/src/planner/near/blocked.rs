//! Which rule between units is in the way of what stays without a place, in words' parts. Called once by `plan`, after
//! everything is placed; notes reasons, decides nothing.

use super::{Content, Near, Site, Spot, Tally};
use crate::model::{Class, Near as Rule, Reason, Selector};
use crate::planner::matching::words;
use crate::planner::packing::{fits_new, may_open};
use crate::planner::state::Work;

/// Notes, for each class with units left, the first rule that keeps them off places with room.
pub(in crate::planner) fn note(work: &mut Work<'_>) {
    for class in 0..work.input.classes.len() {
        if work.open[class] > 0 && !work.unknown_rule(class) && work.near.touches(class) {
            let reason = first(work, class);
            if let Some(reason) = reason {
                work.note(class, reason);
            }
        }
    }
}

fn first(work: &Work<'_>, class: usize) -> Option<Reason> {
    let unit = &work.units[class];
    let input = &work.input.classes[class];
    for bin in work.bins.iter().filter(|b| !b.would) {
        if work.matches(class, bin.kind) && bin.fits(unit, input.whole_node) > 0 {
            let site = Site {
                kind: bin.kind,
                content: &bin.content,
                nodes: 1,
                fresh: false,
            };
            if let Some(reason) = work.tally.blocks(&work.near, class, input, site) {
                return Some(reason);
            }
        }
    }
    for (o, offer) in work.offers.iter().enumerate().filter(|(_, o)| !o.would) {
        let room = may_open(work, class, offer)
            && fits_new(work, class, offer) > 0
            && work.ledger.room(&work.offers, o) > 0;
        if room {
            let site = Site {
                kind: offer.kind,
                content: &Content::EMPTY,
                nodes: 1,
                fresh: true,
            };
            if let Some(reason) = work.tally.blocks(&work.near, class, input, site) {
                return Some(reason);
            }
        }
    }
    None
}

impl Tally {
    /// The first rule of the class that allows nothing more at the place.
    fn blocks(&self, near: &Near, class: usize, input: &Class, site: Site<'_>) -> Option<Reason> {
        let rules = near.of(class);
        let have = |counter: u32| match near.spots[counter as usize] {
            Spot::Host => site.content.get(counter),
            Spot::Axis(axis, at) => {
                let d = near.domain(axis, site.kind);
                d.map_or(0, |d| self.flat(at + d))
            }
        };
        let full = |most: Option<u32>, have: u32| most.map_or(have > 0, |most| have >= most);
        let limits = &rules.limits;
        if let Some(limit) = limits.iter().find(|l| full(l.most, have(l.counter))) {
            return why_limit(near, input, limit.counter);
        }
        let mut takes = super::Takes::ALL;
        self.fellows(near, class, site, &mut takes);
        if takes.is_none() {
            return input.constraints.affinity.first().map(|rule| {
                let what = format!("no unit {} in its {}", named(&rule.select), rule.topology);
                Reason::NearRule { what }
            });
        }
        if self.takes(near, class, site).is_none() {
            let rule = input.constraints.spread.iter().find(|s| s.hard);
            return rule.map(|rule| Reason::NearRule {
                what: format!(
                    "at most {} more {} in one {} than in another",
                    rule.max_skew,
                    named(&rule.select),
                    rule.topology
                ),
            });
        }
        None
    }
}

fn why_limit(near: &Near, input: &Class, counter: u32) -> Option<Reason> {
    let what = match &near.terms[counter as usize] {
        super::Counted::Class => return None,
        super::Counted::Port => {
            let port = input.constraints.host_ports.first()?.port;
            return Some(Reason::HostPortTaken { port });
        }
        super::Counted::Keeping(topology) => {
            format!("a unit in its {topology} keeps it away")
        }
        super::Counted::Named(topology) => {
            let mine = |rule: &&Rule| rule.topology == *topology;
            let rule = input.constraints.anti_affinity.iter().find(mine)?;
            format!("a unit {} is in its {topology}", named(&rule.select))
        }
    };
    Some(Reason::NearRule { what })
}

/// "with app=db".
fn named(select: &Selector) -> String {
    let rules: Vec<String> = select.requirements.iter().map(words).collect();
    if rules.is_empty() {
        "of any kind".to_owned()
    } else {
        format!("with {}", rules.join(" and "))
    }
}
