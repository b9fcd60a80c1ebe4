//! Rules between units, checked by doing what a scheduler does: the plan's runs are replayed in their order, and each must
//! be allowed by what runs and what was placed before it (I5). Affinity, anti-affinity in both directions, host ports,
//! spread. Counts anew, in its own way; called by `runs` only.
//!
//! Spread over a label is looked at when all consecutive runs of a class are placed: then some order of its units kept the
//! skew at every step. Hosts are born when the first run goes to them.

use super::facts::Facts;
use crate::model::{Class, HostPort, Lifecycle, Near, Run, Selector, Source, Spread, Target};
use crate::planner::matching::{HOST, Place, ports_conflict, selects, words};
use std::collections::{BTreeMap, BTreeSet};

/// A node that exists, comes or is asked for.
type Host = usize;

/// A selector asked from a namespace, or several that all must name a unit.
type Whom<'a> = Vec<(&'a Selector, &'a str)>;

/// Units that a question is about, per host; a domain is summed up when somebody asks.
#[derive(Default)]
struct Count {
    on_host: BTreeMap<Host, u32>,
    /// Per topology that somebody asked about, per domain.
    in_domain: BTreeMap<String, BTreeMap<String, u32>>,
}

/// What has been placed so far.
pub(super) struct Replay<'f, 'a> {
    facts: &'f Facts<'a>,
    places: Vec<Place<'a>>,
    exists: Vec<bool>,
    by_target: BTreeMap<Target, Host>,
    /// Whom rules name, and how many of them are where.
    named: BTreeMap<Whom<'a>, Count>,
    /// Units that keep others away: by (topology, whom).
    keepers: BTreeMap<(&'a str, Whom<'a>), Count>,
    ports: BTreeMap<Host, Vec<&'a HostPort>>,
    /// Questions that name the units of each (labels, namespace).
    answers: BTreeMap<(&'a BTreeMap<String, String>, &'a str), Vec<Whom<'a>>>,
    /// The class whose runs are being placed, and where they went.
    batch: Option<(u32, BTreeSet<Host>)>,
    /// Nothing states a rule.
    idle: bool,
}

fn ask<'a>(select: &'a Selector, from: &'a str) -> (&'a Selector, &'a str) {
    let own = !select.everywhere && select.namespaces.is_empty();
    (select, if own { from } else { "" })
}

/// A fellow is named by all selectors of an affinity.
fn fellows<'a>(near: &'a [Near], from: &'a str) -> Whom<'a> {
    let all: BTreeSet<_> = near.iter().map(|n| ask(&n.select, from)).collect();
    all.into_iter().collect()
}

impl<'f, 'a> Replay<'f, 'a> {
    pub fn new(facts: &'f Facts<'a>) -> Self {
        let mut replay = Self {
            facts,
            places: Vec::new(),
            exists: Vec::new(),
            by_target: BTreeMap::new(),
            named: BTreeMap::new(),
            keepers: BTreeMap::new(),
            ports: BTreeMap::new(),
            answers: BTreeMap::new(),
            batch: None,
            idle: false,
        };
        let input = facts.input;
        for class in &input.classes {
            let (c, from) = (&class.constraints, class.namespace.as_str());
            for near in &c.anti_affinity {
                replay.question(vec![ask(&near.select, from)]);
            }
            if !c.affinity.is_empty() {
                replay.question(fellows(&c.affinity, from));
            }
            for spread in c.spread.iter().filter(|s| s.hard) {
                replay.question(vec![ask(&spread.select, from)]);
            }
        }
        let rules = |c: &Class| !c.constraints.host_ports.is_empty();
        let work = input.nodes.iter().flat_map(|n| &n.workloads);
        let mut work = work.map(|w| w.anti_affinity.is_empty() && w.host_ports.is_empty());
        if replay.named.is_empty() && !input.classes.iter().any(rules) && work.all(|free| free) {
            replay.idle = true;
            return replay;
        }
        for node in facts.nodes.values() {
            let unborn = matches!(
                node.lifecycle,
                Lifecycle::Requested | Lifecycle::Launched | Lifecycle::Gone | Lifecycle::Off
            );
            if unborn {
                continue;
            }
            let host = replay.host(facts.node_place(node), true);
            replay.by_target.insert(Target::Node(node.id.clone()), host);
            for w in node.workloads.iter().filter(|w| w.count > 0) {
                replay.count(&w.labels, &w.namespace, w.count, host);
                replay.keep(&w.anti_affinity, &w.namespace, w.count, host);
                replay.ports.entry(host).or_default().extend(&w.host_ports);
            }
            for held in &node.reserved {
                let source = Source::Request(held.request.clone());
                if let Some(class) = input.classes.iter().find(|c| c.source == source) {
                    replay.add(class, held.units, host);
                }
            }
        }
        for launch in facts.launches.values().filter(|l| l.deadline > input.now) {
            let pool = facts.pools.get(&launch.pool).copied();
            let offering = pool.and_then(|p| facts.offering(p, &launch.offering));
            let known = offering.filter(|o| o.allocatable.is_some());
            if let Some((pool, offering)) = pool.zip(known) {
                for n in 0..launch.count.min(crate::planner::offers::MAX_NODES) {
                    let host = replay.host(facts.new_place(pool, offering), true);
                    let target = Target::Coming(launch.id.clone(), n);
                    replay.by_target.insert(target, host);
                }
            }
        }
        replay
    }

    fn question(&mut self, whom: Whom<'a>) {
        self.named.entry(whom).or_default();
    }

    fn host(&mut self, place: Place<'a>, exists: bool) -> Host {
        self.places.push(place);
        self.exists.push(exists);
        self.places.len() - 1
    }

    /// Value of a topology's label on a host; on each host another for the host itself.
    fn domain(&self, topology: &str, host: Host) -> Option<String> {
        if topology == HOST {
            return Some(host.to_string());
        }
        self.places[host].label(topology).map(str::to_owned)
    }

    fn add(&mut self, class: &'a Class, units: u32, host: Host) {
        let c = &class.constraints;
        self.count(&class.labels, &class.namespace, units, host);
        self.keep(&c.anti_affinity, &class.namespace, units, host);
        self.ports.entry(host).or_default().extend(&c.host_ports);
    }

    /// Units with these labels are there from now on.
    fn count(&mut self, labels: &'a BTreeMap<String, String>, space: &'a str, n: u32, host: Host) {
        if n == 0 {
            return;
        }
        let named = &self.named;
        let whoms = self.answers.entry((labels, space)).or_insert_with(|| {
            let all =
                |whom: &&Whom<'a>| whom.iter().all(|(s, from)| selects(s, from, labels, space));
            named.keys().filter(all).cloned().collect()
        });
        let place = &self.places[host];
        for whom in whoms {
            if let Some(count) = self.named.get_mut(whom) {
                count.add(place, host, n);
            }
        }
    }

    fn keep(&mut self, away: &'a [Near], from: &'a str, n: u32, host: Host) {
        for near in away.iter().filter(|_| n > 0) {
            let key = (near.topology.as_str(), vec![ask(&near.select, from)]);
            let count = self.keepers.entry(key).or_default();
            count.add(&self.places[host], host, n);
        }
    }

    /// Places a run; why not, if a rule forbids it.
    pub fn place(&mut self, run: &Run, class: &'a Class, place: &Place<'a>) -> Result<(), String> {
        if self.idle {
            return Ok(());
        }
        let host = match self.by_target.get(&run.target) {
            Some(host) => *host,
            None => {
                let host = self.host(place.clone(), false);
                self.by_target.insert(run.target.clone(), host);
                host
            }
        };
        let verdict = self.may(run.count, class, host);
        if verdict.is_ok() {
            self.add(class, run.count, host);
            let spread = class.constraints.spread.iter();
            for rule in spread.filter(|s| s.hard && s.topology == HOST) {
                self.level(rule, class, host)?;
            }
            match &mut self.batch {
                Some((at, hosts)) if *at == run.class => drop(hosts.insert(host)),
                _ => self.batch = Some((run.class, BTreeSet::from([host]))),
            }
        }
        verdict
    }

    fn may(&mut self, units: u32, class: &'a Class, host: Host) -> Result<(), String> {
        let (c, from) = (&class.constraints, class.namespace.as_str());
        let is_named = |whom: &Whom<'_>| {
            let named =
                |(s, from): &(&Selector, &str)| selects(s, from, &class.labels, &class.namespace);
            whom.iter().all(named)
        };
        for port in &c.host_ports {
            let taken = self.ports.get(&host).into_iter().flatten();
            if units > 1 || taken.into_iter().any(|p| ports_conflict(p, port)) {
                return Err(format!("port {} of the host is taken", port.port));
            }
        }
        for near in &c.anti_affinity {
            let whom = vec![ask(&near.select, from)];
            let Some(domain) = self.domain(&near.topology, host) else {
                continue;
            };
            let own = is_named(&whom) && units > 1;
            if own || self.there(&near.topology, &domain, &whom) > 0 {
                return Err(format!(
                    "one that it keeps away is in {} {domain}",
                    near.topology
                ));
            }
        }
        let mut keepers: Vec<(&str, Whom<'a>)> = Vec::new();
        for (topology, whom) in self.keepers.keys() {
            if is_named(whom) {
                keepers.push((topology, whom.clone()));
            }
        }
        for key in keepers {
            let Some(domain) = self.domain(key.0, host) else {
                continue;
            };
            let places = &self.places;
            let count = self.keepers.get_mut(&key);
            if count.is_some_and(|count| count.in_domain(places, key.0, &domain) > 0) {
                return Err(format!("one in {} {domain} keeps it away", key.0));
            }
        }
        if c.affinity.is_empty() {
            return Ok(());
        }
        let whom = fellows(&c.affinity, from);
        let mut here = true;
        let mut anywhere = false;
        for near in &c.affinity {
            let Some(domain) = self.domain(&near.topology, host) else {
                return Err(format!("{} is unknown there", near.topology));
            };
            here &= self.there(&near.topology, &domain, &whom) > 0;
            let hosts = &self.named[&whom].on_host;
            anywhere |= hosts
                .keys()
                .any(|h| self.domain(&near.topology, *h).is_some());
        }
        if here || (!anywhere && is_named(&whom)) {
            return Ok(());
        }
        Err("no fellow is near".to_owned())
    }

    fn there(&mut self, topology: &str, domain: &str, whom: &Whom<'a>) -> u32 {
        let places = &self.places;
        let count = self.named.get_mut(whom);
        count.map_or(0, |count| count.in_domain(places, topology, domain))
    }

    /// A run of another class follows, or none: the spread of the one before must hold.
    pub fn end_of_batch(&mut self, next: Option<u32>) -> Result<(), (u32, String)> {
        if self.batch.as_ref().is_none_or(|(at, _)| Some(*at) == next) {
            return Ok(());
        }
        let Some((at, hosts)) = self.batch.take() else {
            return Ok(());
        };
        let Some(class) = self.facts.input.classes.get(at as usize) else {
            return Ok(());
        };
        let spread = class.constraints.spread.iter();
        for rule in spread.filter(|s| s.hard && s.topology != HOST) {
            for host in &hosts {
                self.level(rule, class, *host).map_err(|why| (at, why))?;
            }
        }
        Ok(())
    }

    /// The domain of the host has at most `max_skew` more than the least.
    fn level(&mut self, rule: &'a Spread, class: &'a Class, host: Host) -> Result<(), String> {
        let whom = vec![ask(&rule.select, &class.namespace)];
        let axis = rule.topology.as_str();
        let Some(domain) = self.domain(axis, host) else {
            return Err(format!("{axis} is unknown there"));
        };
        let here = self.there(axis, &domain, &whom);
        if here <= rule.max_skew {
            return Ok(());
        }
        let mut domains: BTreeSet<String> = BTreeSet::new();
        for other in 0..self.places.len() {
            let place = &self.places[other];
            let counts = if self.exists[other] {
                place.allows_but_for_taints(&class.constraints)
            } else {
                place.allows(&class.constraints)
            };
            if counts {
                domains.extend(self.domain(axis, other));
            }
        }
        let few = domains.len() < rule.min_domains as usize;
        let each = domains.iter().map(|d| self.there(axis, d, &whom));
        let least = if few { 0 } else { each.min().unwrap_or(here) };
        if here > least.saturating_add(rule.max_skew) {
            let named: Vec<String> = rule.select.requirements.iter().map(words).collect();
            let named = named.join(" and ");
            return Err(format!(
                "{here} with {named} in {axis} {domain}, {least} in another, at most {} more",
                rule.max_skew
            ));
        }
        Ok(())
    }
}

impl Count {
    fn add(&mut self, place: &Place<'_>, host: Host, units: u32) {
        *self.on_host.entry(host).or_insert(0) += units;
        for (topology, domains) in &mut self.in_domain {
            if let Some(value) = place.label(topology) {
                *domains.entry(value.to_owned()).or_insert(0) += units;
            }
        }
    }

    fn in_domain(&mut self, places: &[Place<'_>], topology: &str, domain: &str) -> u32 {
        if topology == HOST {
            let host = domain.parse().ok();
            return host
                .and_then(|h: Host| self.on_host.get(&h).copied())
                .unwrap_or(0);
        }
        if !self.in_domain.contains_key(topology) {
            let mut domains: BTreeMap<String, u32> = BTreeMap::new();
            for (host, units) in &self.on_host {
                if let Some(value) = places[*host].label(topology) {
                    *domains.entry(value.to_owned()).or_insert(0) += units;
                }
            }
            self.in_domain.insert(topology.to_owned(), domains);
        }
        self.in_domain[topology].get(domain).copied().unwrap_or(0)
    }
}
