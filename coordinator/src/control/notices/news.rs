//! What is news about a node, told once: silent and back, faulty and mended, cordoned by somebody else.
//!
//! Called by the cycle. Tells, and decides nothing.

use crate::control::cycle::{Control, Round};
use crate::control::events::Happening;
use drover_core::model::Cordon;

impl Control {
    /// News about nodes: silent and back, faulty and mended, cordoned by somebody else.
    pub(in crate::control) fn watch_nodes(&mut self, round: &mut Round) {
        let mut news = Vec::new();
        for node in round.fleet.iter().filter(|node| node.joined()) {
            let (id, name) = (node.id.clone(), node.name.clone());
            // Its agent has enrolled and is about to speak for the first time.
            let record = node.record.as_ref();
            let young = node.agent.is_none()
                && record.is_some_and(|record| {
                    round.now.since(record.joined) <= self.config.control.silence
                });
            if node.unreachable {
                if !young && self.seen.settled && self.seen.unreachable.insert(id.clone()) {
                    news.push(Happening::Unreachable {
                        node: id.clone(),
                        name: name.clone(),
                    });
                }
            } else if self.seen.unreachable.remove(&id) {
                news.push(Happening::Returned {
                    node: id.clone(),
                    name: name.clone(),
                });
            }
            match (&node.faulty, self.seen.faulty.get(&id)) {
                (Some(what), told) if told != Some(what) => {
                    self.seen.faulty.insert(id.clone(), what.clone());
                    news.push(Happening::Faulty {
                        node: id.clone(),
                        name: name.clone(),
                        what: what.clone(),
                    });
                }
                (None, Some(_)) if !node.unreachable => {
                    self.seen.faulty.remove(&id);
                    news.push(Happening::Mended {
                        node: id.clone(),
                        name: name.clone(),
                    });
                }
                _ => {}
            }
            let foreign = node
                .agent
                .as_ref()
                .and_then(|agent| agent.actual.as_ref())
                .is_some_and(|actual| actual.released || !actual.foreign_cordon.is_empty());
            match &node.cordon {
                Some(Cordon::Person { who, why }) if foreign => {
                    if self.seen.foreign_cordons.insert(id.clone()) {
                        let who = format!("{who}: {why}");
                        news.push(Happening::ForeignCordon {
                            node: id,
                            name,
                            who,
                        });
                    }
                }
                _ => {
                    self.seen.foreign_cordons.remove(&id);
                }
            }
        }
        round.events.append(&mut news);
    }
}
