//! Finds the rules between units of one run, and counts what is there. Called once by `state`; never changes afterwards.

mod eligible;

use super::terms::{Term, Terms};
use super::{Axis, Content, Counted, Even, Limit, Near, Rules, Spot, Tally};
use crate::model::{Class, Lifecycle, Source};
use crate::planner::matching::HOST;
use crate::planner::state::Work;
use eligible::Builder;
use std::collections::BTreeMap;

impl Near {
    /// Finds all rules, and counts what is there. The work's kinds, offers, matches and bins must be complete; puts the
    /// content of each bin into it.
    pub fn build<'a>(work: &mut Work<'a>) -> (Self, Tally) {
        let mut near = Self {
            rule_of: vec![None; work.input.classes.len()],
            ..Self::default()
        };
        let mut terms = Terms::default();
        let mut own: Vec<Rules> = Vec::with_capacity(work.input.classes.len());
        for (i, class) in work.input.classes.iter().enumerate() {
            own.push(asked(&mut terms, i, class));
        }
        let carried = running_terms(work, &mut terms);
        if terms.len() == 0 {
            return (near, Tally::default());
        }
        let list = terms.list();
        near.place(work, &list);
        let mut builder = Builder {
            near: &mut near,
            masks: BTreeMap::new(),
            slots: BTreeMap::new(),
            areas: BTreeMap::new(),
        };
        for (i, (class, mut rules)) in work.input.classes.iter().zip(own).enumerate() {
            let named = terms.naming((&class.labels, &class.namespace)).to_vec();
            rules.adds.extend(&named);
            rules.adds.sort_unstable();
            rules.adds.dedup();
            let kept = named.iter().filter_map(|at| terms.keepers(*at));
            rules.limits.extend(kept.map(|counter| Limit {
                counter,
                most: None,
            }));
            let ports = class.constraints.host_ports.iter();
            let taken = ports.flat_map(|port| terms.conflicts(port));
            rules.limits.extend(taken.map(|counter| Limit {
                counter,
                most: None,
            }));
            builder.finish(work, i, class, &mut rules);
            if rules.is_empty() {
                continue;
            }
            near_rule(builder.near, i, rules);
        }
        near.slots_of = vec![Vec::new(); near.spots.len()];
        let mut at_slot: Vec<(u32, u32)> = Vec::new();
        for rules in &near.rules {
            for even in &rules.spreads {
                if matches!(near.spots[even.counter as usize], Spot::Host) {
                    let slot = u32::try_from(even.eligible).unwrap_or(u32::MAX);
                    at_slot.push((even.counter, slot));
                }
            }
        }
        at_slot.sort_unstable();
        at_slot.dedup();
        for (counter, slot) in at_slot {
            near.slots_of[counter as usize].push(slot);
        }
        let tally = near.count(work, &mut terms, &carried);
        (near, tally)
    }

    /// Spots of the counters, and the domains of every axis.
    fn place(&mut self, work: &Work<'_>, list: &[Term<'_>]) {
        let mut axes: BTreeMap<&str, usize> = BTreeMap::new();
        for term in list {
            let spot = match term {
                Term::Port(_) | Term::Class(_) => Spot::Host,
                Term::Named(HOST, _) | Term::Keeping(HOST, _) => Spot::Host,
                Term::Named(key, _) | Term::Keeping(key, _) => {
                    let axis = *axes.entry(key).or_insert_with(|| {
                        self.axes.push(Axis::new(key, &work.kinds));
                        self.axes.len() - 1
                    });
                    let at = self.flat;
                    self.flat += self.axes[axis].domains;
                    Spot::Axis(axis, at)
                }
            };
            self.spots.push(spot);
            self.terms.push(match term {
                Term::Named(axis, _) => Counted::Named((*axis).to_owned()),
                Term::Keeping(axis, _) => Counted::Keeping((*axis).to_owned()),
                Term::Port(_) => Counted::Port,
                Term::Class(_) => Counted::Class,
            });
        }
    }

    /// Counts what runs, what requests hold, and where; and the hosts of every slot.
    fn count<'a>(
        &self,
        work: &mut Work<'a>,
        terms: &mut Terms<'a>,
        carried: &BTreeMap<(usize, usize), Vec<u32>>,
    ) -> Tally {
        let input = work.input;
        let mut tally = Tally::new(self);
        let by_request: BTreeMap<&Source, usize> = input
            .classes
            .iter()
            .enumerate()
            .filter(|(i, c)| matches!(c.source, Source::Request(_)) && self.rule_of[*i].is_some())
            .map(|(i, c)| (&c.source, i))
            .collect();
        for (n, node) in input.nodes.iter().enumerate() {
            if !is_host(node.lifecycle) || work.bad_nodes.contains_key(&n) {
                continue;
            }
            let kind = work.node_kind[n];
            let mut content = Content::default();
            tally.open(self, kind, 1, true);
            for (w, work) in node.workloads.iter().enumerate() {
                let mut adds = terms.naming((&work.labels, &work.namespace)).to_vec();
                adds.extend(carried.get(&(n, w)).into_iter().flatten());
                adds.sort_unstable();
                adds.dedup();
                tally.add(self, &adds, kind, &mut content, work.count, 1, true);
            }
            for held in &node.reserved {
                let source = Source::Request(held.request.clone());
                if let Some(class) = by_request.get(&source) {
                    let adds = &self.of(*class).adds;
                    tally.add(self, adds, kind, &mut content, held.units, 1, true);
                }
            }
            if let Some(b) = work.bin_of_node.get(&n) {
                work.bins[*b].content = content;
            }
        }
        for bin in &work.bins {
            if matches!(bin.at, crate::planner::supply::At::Coming(..)) {
                tally.open(self, bin.kind, 1, true);
            }
        }
        tally
    }
}

/// A machine that a scheduler may know: a domain of its own.
fn is_host(life: Lifecycle) -> bool {
    !matches!(
        life,
        Lifecycle::Requested | Lifecycle::Launched | Lifecycle::Gone | Lifecycle::Off
    )
}

fn near_rule(near: &mut Near, class: usize, rules: Rules) {
    near.rule_of[class] = u32::try_from(near.rules.len()).ok();
    near.rules.push(rules);
}

/// The rules that a class itself states; who else keeps it away is found later.
fn asked<'a>(terms: &mut Terms<'a>, index: usize, class: &'a Class) -> Rules {
    let mut rules = Rules::default();
    let c = &class.constraints;
    let space = class.namespace.as_str();
    if c.max_per_node > 0 {
        let counter = terms.class(index);
        rules.adds.push(counter);
        rules.limits.push(Limit {
            counter,
            most: Some(c.max_per_node),
        });
    }
    for port in &c.host_ports {
        rules.adds.push(terms.port(port));
    }
    for near in &c.anti_affinity {
        let (named, keeping) = terms.away(near, space);
        rules.adds.push(keeping);
        rules.limits.push(Limit {
            counter: named,
            most: None,
        });
    }
    if !c.affinity.is_empty() {
        rules.needs = terms.fellows(&c.affinity, space);
    }
    for spread in &c.spread {
        let counter = terms.named(&spread.topology, &spread.select, space);
        if spread.hard {
            rules.spreads.push(Even {
                counter,
                skew: spread.max_skew,
                min_domains: spread.min_domains,
                own: false,
                eligible: 0,
            });
        } else {
            rules.wishes.push((counter, -1));
        }
    }
    for wish in &c.preferred_near {
        let counter = terms.named(&wish.near.topology, &wish.near.select, space);
        rules.wishes.push((counter, i64::from(wish.weight)));
    }
    rules
}

/// Counters that running work is in by what it states: whom it keeps away, its ports. By (node, workload).
fn running_terms<'a>(work: &Work<'a>, terms: &mut Terms<'a>) -> BTreeMap<(usize, usize), Vec<u32>> {
    let mut all = BTreeMap::new();
    for (n, node) in work.input.nodes.iter().enumerate() {
        for (w, work) in node.workloads.iter().enumerate() {
            if work.anti_affinity.is_empty() && work.host_ports.is_empty() {
                continue;
            }
            let away = work.anti_affinity.iter();
            let mut list: Vec<u32> = away
                .map(|near| terms.away(near, &work.namespace).1)
                .collect();
            list.extend(work.host_ports.iter().map(|port| terms.port(port)));
            all.insert((n, w), list);
        }
    }
    all
}
