//! May a run go there, and did its units keep the spread? By what the replay has counted so far. Called by the replay for
//! each run; changes nothing.

use super::asked::Asks;
use super::{At, Domain, Host, Kind, Replay};
use crate::model::{Class, Spread};
use crate::planner::matching::{HOST, ports_conflict, words};
use std::collections::BTreeSet;

impl<'a> Replay<'_, 'a> {
    /// Why not, if a rule forbids it.
    pub(super) fn may(
        &self,
        units: u32,
        class: &Class,
        asks: &Asks<'a>,
        host: Host,
    ) -> Result<(), String> {
        for port in &class.constraints.host_ports {
            let mut taken = self.ports.get(&host).into_iter().flatten();
            if units > 1 || taken.any(|p| ports_conflict(p, port)) {
                return Err(format!("port {} of the host is taken", port.port));
            }
        }
        for (at, own) in &asks.away {
            let Some(domain) = self.domain_for(*at, host) else {
                continue;
            };
            if (*own && units > 1) || self.there(*at, domain) > 0 {
                let axis = self.axis_name(*at);
                return Err(format!("one that it keeps away is in its {axis}"));
            }
        }
        for at in &asks.kept_by {
            let domain = self.domain_for(*at, host);
            if domain.is_some_and(|domain| self.there(*at, domain) > 0) {
                let axis = self.axis_name(*at);
                return Err(format!("one in its {axis} keeps it away"));
            }
        }
        let (mut here, mut anywhere) = (true, false);
        for at in &asks.fellows {
            let Some(domain) = self.domain_for(*at, host) else {
                return Err(format!("{} is unknown there", self.axis_name(*at)));
            };
            here &= self.there(*at, domain) > 0;
            anywhere |= !self.counts[*at].here.is_empty();
        }
        if here || (!anywhere && asks.own_fellow) {
            return Ok(());
        }
        Err("no fellow is near".to_owned())
    }

    /// The domain of the host has at most `max_skew` more than the least.
    pub(super) fn level(
        &self,
        rule: &Spread,
        at: At,
        class: &Class,
        host: Host,
    ) -> Result<(), String> {
        let axis = rule.topology.as_str();
        let Some(domain) = self.domain_for(at, host) else {
            return Err(format!("{axis} is unknown there"));
        };
        let here = self.there(at, domain);
        if here <= rule.max_skew {
            return Ok(());
        }
        let counts = |kind: &Kind<'_>| {
            kind.place.allows(&class.constraints)
                || (kind.exists && kind.place.allows_but_for_taints(&class.constraints))
        };
        let eligible: Vec<bool> = self.kinds.iter().map(counts).collect();
        let domains: BTreeSet<Domain<'_>> = if axis == HOST {
            let hosts = (0..self.hosts.len()).filter(|h| eligible[self.hosts[*h]]);
            hosts.map(Domain::Host).collect()
        } else {
            let kinds = self
                .kinds
                .iter()
                .zip(&eligible)
                .filter(|(_, counts)| **counts);
            let values = kinds.filter_map(|(kind, _)| kind.values[self.counts[at].axis]);
            values.map(Domain::Value).collect()
        };
        let few = domains.len() < rule.min_domains as usize;
        let least = domains.iter().map(|d| self.there(at, *d)).min();
        let least = if few { 0 } else { least.unwrap_or(here) };
        if here > least.saturating_add(rule.max_skew) {
            let named: Vec<String> = rule.select.requirements.iter().map(words).collect();
            return Err(format!(
                "{here} with {} in its {axis}, {least} in another, at most {} more",
                named.join(" and "),
                rule.max_skew
            ));
        }
        Ok(())
    }
}
