//! Trouble that a person should know, with since when.

use super::advice::{unknown_type, unreadable};
use super::pools::{tell_missed, unlike};
use super::strays::ORPHANED;
use crate::control::cycle::{Control, Round};
use crate::control::events::Happening;
use crate::control::guard::since;
use crate::control::view::{Alarm, foreign_clock};
use drover_core::model::Stop;
use drover_core::planner::render_stop;
use std::collections::BTreeSet;

impl Control {
    pub(super) fn alarms(&mut self, round: &mut Round) -> Vec<Alarm> {
        let mut found: Vec<(&'static str, String, String)> = Vec::new();
        for site in self.seen.silent_sites.keys() {
            let text = format!("every node of site {site} is silent");
            found.push(("site_silent", site.0.clone(), text));
        }
        for held in round.ledger.approvals.values() {
            let approval = &held.value;
            if approval.approved.is_none() {
                let text = format!(
                    "{}: `drover approve {}` allows it",
                    approval.message, approval.id
                );
                found.push(("breaker_open", approval.pool.0.clone(), text));
            }
        }
        // The fleet's freeze once, under no subject; a pool's own under its name.
        for held in round.ledger.freezes.values() {
            let freeze = &held.value;
            let pool = freeze.pool.as_ref().map(|pool| pool.0.clone());
            let text = match freeze.reason.as_str() {
                "" => format!("frozen by {}", freeze.by),
                why => format!("frozen by {}: {why}", freeze.by),
            };
            found.push(("frozen", pool.unwrap_or_default(), text));
        }
        if let Some(why) = &self.seen.refused_config {
            let text = format!("the config file was refused, the last good one is in force: {why}");
            found.push(("config_refused", String::new(), text));
        }
        for what in &self.seen.undiscovered {
            found.push(("discovery_trouble", String::new(), what.clone()));
        }
        if let Some((_, drift)) = self.seen.drifted {
            let text = format!(
                "wall and monotonic clock drifted apart by {} s: nothing is removed",
                drift.0 / 1_000
            );
            found.push(("clock_drift", String::new(), text));
        }
        for pool in &self.config.pools {
            for stop in self.stops(round, pool) {
                if matches!(
                    stop,
                    Stop::NeverJoined { .. } | Stop::Failed { .. } | Stop::NotOurs { .. }
                ) {
                    let text = self.stopped(round, pool, &stop);
                    found.push(("pool_stopped", pool.name.0.clone(), text));
                }
            }
            let tagged = round.readings.get(&pool.name).into_iter();
            for stop in tagged.flat_map(|reading| &reading.stops) {
                if matches!(stop, Stop::Frozen { .. }) {
                    found.push(("frozen", pool.name.0.clone(), render_stop(stop)));
                }
            }
            let reading = round.readings.get(&pool.name);
            if let Some(text) = reading.and_then(|reading| unknown_type(pool, reading)) {
                found.push(("unknown_type", pool.name.0.clone(), text));
            }
            let missed = self.missed(round, &pool.name);
            if !missed.is_empty() {
                found.push(("never_joined", pool.name.0.clone(), tell_missed(&missed)));
            }
            if let Some(text) = unlike(round, &pool.name) {
                found.push(("template_mismatch", pool.name.0.clone(), text));
            }
            if let Some(text) = self.silent(round, &pool.name).told() {
                let known = ("silent_and_empty", pool.name.0.clone());
                if !self.seen.alarms.contains_key(&known) {
                    let (pool, message) = (pool.name.clone(), text.clone());
                    round.events.push(Happening::Silent { pool, message });
                }
                found.push((known.0, known.1, text));
            }
            let error = self
                .pools
                .watch(&pool.name)
                .filter(|watch| watch.gone.is_none() || reading.is_none())
                .and_then(|watch| watch.error.as_ref());
            if let Some(error) = error {
                let text = unreadable(pool, self.mode(round, &pool.name), error);
                found.push(("pool_unreadable", pool.name.0.clone(), text));
            }
        }
        for (source, (why, _)) in &self.seen.doubtful {
            let text = format!("{why}: shrinking holds");
            found.push(("source_shrunk", source.clone(), text));
        }
        for node in round.fleet.iter().filter(|node| node.joined()) {
            if let Some(why) = node.quarantine() {
                let text = format!(
                    "{}: {why}; `drover nodes readmit {}` lets it enrol once more",
                    node.name, node.id
                );
                found.push(("node_quarantined", node.id.0.clone(), text));
            }
            if let Some(what) = &node.faulty {
                found.push((
                    "node_faulty",
                    node.id.0.clone(),
                    format!("{}: {what}", node.name),
                ));
            }
            for notice in &node.notices {
                found.push((
                    notice.kind.word(),
                    node.id.0.clone(),
                    format!("{}: {}", node.name, notice.message),
                ));
            }
            if let Some(why) = node.agent.as_deref().and_then(foreign_clock) {
                let text = format!("{}: {why}", node.name);
                found.push(("node_clock", node.id.0.clone(), text));
            }
        }
        for pool in self.orphans(round) {
            if self.seen.orphaned.insert(pool.clone()) {
                round
                    .events
                    .push(Happening::PoolOrphaned { pool: pool.clone() });
            }
            let text = ORPHANED.to_owned();
            found.push(("pool_orphaned", pool.0, text));
        }
        if self.config.pools.is_empty() {
            let text = "the config names no pool of Drover's own".to_owned();
            found.push(("no_pools", String::new(), text));
        }
        for key in &round.ledger.unreadable {
            let text = format!("the record {key} cannot be understood: never touched");
            found.push(("record_unreadable", key.clone(), text));
        }
        let keys: BTreeSet<(&'static str, String)> = found
            .iter()
            .map(|(kind, subject, _)| (*kind, subject.clone()))
            .collect();
        self.seen.alarms.retain(|key, _| keys.contains(key));
        found
            .into_iter()
            .map(|(kind, subject, message)| Alarm {
                since: since(&mut self.seen.alarms, kind, &subject, round.now),
                kind,
                subject,
                message,
            })
            .collect()
    }
}
