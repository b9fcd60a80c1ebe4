//! What the rules between units count: each distinct (topology, whom) is one counter, and each class and each kind of
//! running work is matched against it once. Used by `near` while it is built; decides nothing.

use crate::model::{HostPort, Near, Operator, Selector};
use crate::planner::matching::{ports_conflict, selects};
use std::collections::BTreeMap;

/// Whom selectors name: all of them must, each asked from a namespace (empty where that does not matter).
pub(super) type Whom<'a> = Vec<(&'a Selector, &'a str)>;

/// What one counter counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Term<'a> {
    /// Units named, per domain of a topology.
    Named(&'a str, Whom<'a>),
    /// Units that keep those away, per domain.
    Keeping(&'a str, Whom<'a>),
    /// Units that take a port of the host.
    Port(&'a HostPort),
    /// Units of a class with a limit per node.
    Class(usize),
}

/// Labels and namespace of units.
pub(super) type Who<'a> = (&'a BTreeMap<String, String>, &'a str);

/// All counters of a run.
#[derive(Default)]
pub(super) struct Terms<'a> {
    index: BTreeMap<Term<'a>, u32>,
    /// Per label and value that a selector asks for: the counters that only such units can be in.
    by_label: BTreeMap<(&'a str, &'a str), Vec<u32>>,
    /// Counters whose selectors ask for no value.
    any_label: Vec<u32>,
    named: Vec<Option<Whom<'a>>>,
    ports: Vec<(u32, &'a HostPort)>,
    /// Per counter of named units, the one of those that keep them away.
    keeping: Vec<Option<u32>>,
    found: BTreeMap<Who<'a>, Vec<u32>>,
}

/// A selector, asked from a namespace.
fn one<'a>(select: &'a Selector, asked_from: &'a str) -> (&'a Selector, &'a str) {
    let own = !select.everywhere && select.namespaces.is_empty();
    (select, if own { asked_from } else { "" })
}

impl<'a> Terms<'a> {
    /// How many counters there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Every counter, by number.
    pub fn list(&self) -> Vec<Term<'a>> {
        let mut all: Vec<_> = self.index.iter().map(|(t, i)| (*i, t.clone())).collect();
        all.sort_by_key(|(i, _)| *i);
        all.into_iter().map(|(_, term)| term).collect()
    }

    fn intern(&mut self, term: Term<'a>) -> u32 {
        if let Some(at) = self.index.get(&term) {
            return *at;
        }
        let at = u32::try_from(self.index.len()).unwrap_or(u32::MAX);
        let named = match &term {
            Term::Named(_, whom) => Some(whom.clone()),
            Term::Port(port) => {
                self.ports.push((at, port));
                None
            }
            Term::Keeping(..) | Term::Class(_) => None,
        };
        if let Some(whom) = &named {
            let mut rules = whom.iter().flat_map(|(s, _)| &s.requirements);
            match rules.find(|r| r.op == Operator::In) {
                Some(rule) => {
                    for value in &rule.any_of {
                        let key = (rule.key.as_str(), value.as_str());
                        self.by_label.entry(key).or_default().push(at);
                    }
                }
                None => self.any_label.push(at),
            }
        }
        self.named.push(named);
        self.keeping.push(None);
        self.index.insert(term, at);
        at
    }

    /// Counter of units that one selector names.
    pub fn named(&mut self, topology: &'a str, select: &'a Selector, asked_from: &'a str) -> u32 {
        self.intern(Term::Named(topology, vec![one(select, asked_from)]))
    }

    /// Counters of an affinity, one per topology: a fellow is a unit that all of its selectors name, as in Kubernetes.
    pub fn fellows(&mut self, near: &'a [Near], asked_from: &'a str) -> Vec<u32> {
        let each = near.iter().map(|n| one(&n.select, asked_from));
        let mut whom: Whom<'a> = each.collect();
        whom.sort();
        whom.dedup();
        let each = near.iter().map(|n| n.topology.as_str());
        let mut axes: Vec<&str> = each.collect();
        axes.sort_unstable();
        axes.dedup();
        axes.into_iter()
            .map(|axis| self.intern(Term::Named(axis, whom.clone())))
            .collect()
    }

    /// Counters of an anti-affinity: those kept away, and those who keep them away.
    pub fn away(&mut self, near: &'a Near, asked_from: &'a str) -> (u32, u32) {
        let whom = vec![one(&near.select, asked_from)];
        let named = self.intern(Term::Named(&near.topology, whom.clone()));
        let keeping = self.intern(Term::Keeping(&near.topology, whom));
        self.keeping[named as usize] = Some(keeping);
        (named, keeping)
    }

    /// Counter of a port.
    pub fn port(&mut self, port: &'a HostPort) -> u32 {
        self.intern(Term::Port(port))
    }

    /// Counter of a class with a limit per node.
    pub fn class(&mut self, class: usize) -> u32 {
        self.intern(Term::Class(class))
    }

    /// Ports that conflict with one.
    pub fn conflicts(&self, port: &HostPort) -> impl Iterator<Item = u32> + '_ {
        let port = port.clone();
        let all = self.ports.iter();
        all.filter(move |(_, p)| ports_conflict(p, &port))
            .map(|(at, _)| *at)
    }

    /// Who keeps away the units of a counter, if anybody does.
    pub fn keepers(&self, named: u32) -> Option<u32> {
        self.keeping[named as usize]
    }

    /// Counters that units with these labels are in.
    pub fn naming(&mut self, who: Who<'a>) -> &[u32] {
        self.found.entry(who).or_insert_with(|| {
            let each = who.0.iter();
            let asked = each.filter_map(|(k, v)| self.by_label.get(&(k.as_str(), v.as_str())));
            let asked = asked.flatten().chain(&self.any_label).copied();
            let holds = |at: &u32| {
                let whom = self.named[*at as usize].as_ref();
                whom.is_some_and(|whom| whom.iter().all(|(s, from)| selects(s, from, who.0, who.1)))
            };
            let mut all: Vec<u32> = asked.filter(holds).collect();
            all.sort_unstable();
            all.dedup();
            all
        })
    }
}
