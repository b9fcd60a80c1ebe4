//! What stands before the first run of the plan: what runs, what requests hold, what comes. Called by the replay once.

use super::Replay;
use super::asked::ask;
use crate::model::{Lifecycle, Source, Target};

impl Replay<'_, '_> {
    /// What runs, what requests hold, what comes.
    pub(super) fn begin(&mut self) {
        let (facts, input) = (self.facts, self.facts.input);
        for node in facts.nodes.values() {
            let unborn = matches!(
                node.lifecycle,
                Lifecycle::Requested | Lifecycle::Launched | Lifecycle::Gone | Lifecycle::Off
            );
            if unborn {
                continue;
            }
            let host = self.host(&facts.node_place(node), true);
            self.by_target.insert(Target::Node(node.id.clone()), host);
            for w in node.workloads.iter().filter(|w| w.count > 0) {
                let (named, _) = self.named(&w.labels, &w.namespace);
                for at in named {
                    self.count(at, w.count, host);
                }
                for near in &w.anti_affinity {
                    let key = (
                        true,
                        near.topology.as_str(),
                        vec![ask(&near.select, &w.namespace)],
                    );
                    if let Some(at) = self.index.get(&key) {
                        self.count(*at, w.count, host);
                    }
                }
                self.ports.entry(host).or_default().extend(&w.host_ports);
            }
            for held in &node.reserved {
                let source = Source::Request(held.request.clone());
                let class = input.classes.iter().position(|c| c.source == source);
                if let Some(class) = class.and_then(|c| u32::try_from(c).ok()) {
                    self.add(class, held.units, host);
                }
            }
        }
        for launch in facts.launches.values().filter(|l| l.deadline > input.now) {
            let pool = facts.pools.get(&launch.pool).copied();
            let offering = pool.and_then(|p| facts.offering(p, &launch.offering));
            let known = offering.filter(|o| o.allocatable.is_some());
            if let Some((pool, offering)) = pool.zip(known) {
                for n in 0..launch.count.min(crate::planner::offers::MAX_NODES) {
                    let host = self.host(&facts.new_place(pool, offering), true);
                    let target = Target::Coming(launch.id.clone(), n);
                    self.by_target.insert(target, host);
                }
            }
        }
    }
}
