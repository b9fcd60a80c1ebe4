//! Rules between units, checked by doing what a scheduler does: the plan's runs are replayed in their order, and each must
//! be allowed by what runs and what was placed before it (I5). Affinity, anti-affinity in both directions, host ports,
//! spread. Counts anew, in its own way; called by `runs` only.
//!
//! Spread over a label is looked at when all consecutive runs of a class are placed: then some order of its units kept the
//! skew at every step. Hosts are born when the first run goes to them.
//!
//! Here is what stands where; what stood there before is in `begin`, what classes ask in `asked`, whether a run may go
//! there in `may`.

mod asked;
mod begin;
mod may;

use super::facts::Facts;
use super::taken::Taken;
use crate::model::{Class, HostPort, Run, Target};
use crate::planner::matching::{HOST, Place};
use asked::{Asks, Named, Whom, ask, fellows};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A node that exists, comes or is asked for.
type Host = usize;

/// Where units are counted together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Domain<'a> {
    Host(Host),
    Value(&'a str),
}

/// Something that is counted: units that somebody names, or units that keep somebody away, over one topology.
struct Count<'a> {
    axis: Axis,
    here: BTreeMap<Domain<'a>, u32>,
}

/// A topology, by its place in the list.
type Axis = usize;

/// Nodes of one place, those that exist apart from new ones.
struct Kind<'a> {
    place: Place<'a>,
    exists: bool,
    /// Value of each topology's label.
    values: Vec<Option<&'a str>>,
}

/// A count, by its place in the list.
type At = usize;

/// What has been placed so far.
pub(super) struct Replay<'f, 'a> {
    facts: &'f Facts<'a>,
    kinds: Vec<Kind<'a>>,
    /// Of new nodes, and of those that exist.
    kind_index: [BTreeMap<Place<'a>, usize>; 2],
    /// Per host, its kind.
    hosts: Vec<usize>,
    by_target: BTreeMap<Target, Host>,
    /// Counts by what they count: (those who keep away, topology, whom).
    index: BTreeMap<(bool, &'a str, Whom<'a>), At>,
    counts: Vec<Count<'a>>,
    axes: Vec<&'a str>,
    /// By class, as far as known.
    asks: Vec<Option<Rc<Asks<'a>>>>,
    /// Counts that units with these labels are in, and those that keep them away.
    names: BTreeMap<(&'a BTreeMap<String, String>, &'a str), Named>,
    ports: BTreeMap<Host, Vec<&'a HostPort>>,
    /// The class whose runs are being placed, and where they went.
    batch: Option<(u32, BTreeSet<Host>)>,
}

impl<'f, 'a> Replay<'f, 'a> {
    pub fn new(facts: &'f Facts<'a>) -> Self {
        let mut replay = Self {
            facts,
            kinds: Vec::new(),
            kind_index: [BTreeMap::new(), BTreeMap::new()],
            hosts: Vec::new(),
            by_target: BTreeMap::new(),
            index: BTreeMap::new(),
            counts: Vec::new(),
            axes: Vec::new(),
            asks: vec![None; facts.input.classes.len()],
            names: BTreeMap::new(),
            ports: BTreeMap::new(),
            batch: None,
        };
        let input = facts.input;
        let mut asked = BTreeSet::new();
        for class in &input.classes {
            let (c, from) = (&class.constraints, class.namespace.as_str());
            for near in &c.anti_affinity {
                let whom = vec![ask(&near.select, from)];
                asked.insert((false, near.topology.as_str(), whom.clone()));
                asked.insert((true, near.topology.as_str(), whom));
            }
            for near in &c.affinity {
                asked.insert((false, &near.topology, fellows(&c.affinity, from)));
            }
            for spread in c.spread.iter().filter(|s| s.hard) {
                asked.insert((false, &spread.topology, vec![ask(&spread.select, from)]));
            }
        }
        for w in input.nodes.iter().flat_map(|n| &n.workloads) {
            for near in &w.anti_affinity {
                let whom = vec![ask(&near.select, &w.namespace)];
                asked.insert((true, &near.topology, whom));
            }
        }
        let axes: BTreeSet<&str> = asked.iter().map(|(_, axis, _)| *axis).collect();
        replay.axes = axes.into_iter().collect();
        let axis_of = |axis: &str| replay.axes.binary_search(&axis).unwrap_or_default();
        let counts = asked.iter().map(|(_, axis, _)| Count {
            axis: axis_of(axis),
            here: BTreeMap::new(),
        });
        replay.counts = counts.collect();
        replay.index = asked.into_iter().enumerate().map(|(i, q)| (q, i)).collect();
        let ports = |c: &Class| !c.constraints.host_ports.is_empty();
        if !replay.index.is_empty() || input.classes.iter().any(ports) {
            replay.begin();
        }
        replay
    }

    fn host(&mut self, place: &Place<'a>, exists: bool) -> Host {
        let next = self.kinds.len();
        let index = &mut self.kind_index[usize::from(exists)];
        let kind = match index.get(place) {
            Some(kind) => *kind,
            None => {
                let values = self.axes.iter().map(|axis| place.label(axis));
                self.kinds.push(Kind {
                    values: values.collect(),
                    place: place.clone(),
                    exists,
                });
                index.insert(place.clone(), next);
                next
            }
        };
        self.hosts.push(kind);
        self.hosts.len() - 1
    }

    fn domain(&self, axis: Axis, host: Host) -> Option<Domain<'a>> {
        if self.axes[axis] == HOST {
            return Some(Domain::Host(host));
        }
        self.kinds[self.hosts[host]].values[axis].map(Domain::Value)
    }

    /// Where the host is, as far as a count goes.
    fn domain_for(&self, at: At, host: Host) -> Option<Domain<'a>> {
        self.domain(self.counts[at].axis, host)
    }

    fn axis_name(&self, at: At) -> &'a str {
        self.axes[self.counts[at].axis]
    }

    fn count(&mut self, at: At, units: u32, host: Host) {
        if let Some(domain) = self.domain_for(at, host) {
            let sum = self.counts[at].here.entry(domain).or_insert(0);
            *sum = sum.saturating_add(units);
        }
    }

    fn there(&self, at: At, domain: Domain<'_>) -> u32 {
        self.counts[at].here.get(&domain).copied().unwrap_or(0)
    }

    fn add(&mut self, class: u32, units: u32, host: Host) {
        if units == 0 {
            return;
        }
        for at in &self.asks(class).counted {
            self.count(*at, units, host);
        }
        if let Some(class) = self.facts.input.classes.get(class as usize) {
            let ports = &class.constraints.host_ports;
            if !ports.is_empty() {
                self.ports.entry(host).or_default().extend(ports);
            }
        }
    }

    /// Places a run; why not, if a rule forbids it.
    pub fn place(&mut self, run: &Run, class: &'a Class, to: &mut Taken<'a>) -> Result<(), String> {
        if self.index.is_empty() && class.constraints.host_ports.is_empty() {
            return Ok(());
        }
        let known = to.host.or_else(|| self.by_target.get(&run.target).copied());
        let host = known.unwrap_or_else(|| self.host(&to.place, false));
        to.host = Some(host);
        let asks = self.asks(run.class);
        self.may(run.count, class, &asks, host)?;
        self.add(run.class, run.count, host);
        for (rule, at) in asks.spread.iter().filter(|(s, _)| s.topology == HOST) {
            self.level(rule, *at, class, host)?;
        }
        match &mut self.batch {
            Some((of, hosts)) if *of == run.class => drop(hosts.insert(host)),
            _ => self.batch = Some((run.class, BTreeSet::from([host]))),
        }
        Ok(())
    }

    /// A run of another class follows, or none: the spread of the one before must hold.
    pub fn end_of_batch(&mut self, next: Option<u32>) -> Result<(), (u32, String)> {
        if self.batch.as_ref().is_none_or(|(at, _)| Some(*at) == next) {
            return Ok(());
        }
        let Some((of, hosts)) = self.batch.take() else {
            return Ok(());
        };
        let Some(class) = self.facts.input.classes.get(of as usize) else {
            return Ok(());
        };
        let asks = self.asks(of);
        for (rule, at) in asks.spread.iter().filter(|(s, _)| s.topology != HOST) {
            for host in &hosts {
                let level = self.level(rule, *at, class, *host);
                level.map_err(|why| (of, why))?;
            }
        }
        Ok(())
    }
}
