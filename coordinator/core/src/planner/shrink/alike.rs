//! Places that look alike in all that work may have asked for. Used by `elsewhere`: what running work asked for is not
//! known to the planner, so it goes only where whatever runs on its node may run.

use crate::model::NodeInput;
use std::collections::BTreeMap;

/// Labels that differ from node to node without meaning anything for work that did not ask for one machine.
const OF_ONE_NODE: [&str; 3] = [
    "kubernetes.io/hostname",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
];

/// What a place has that work may have asked for. What the work of a node asked for itself is not known here.
pub(super) struct Alike<'a> {
    pub zone: &'a str,
    pub gpu_model: &'a str,
    pub labels: &'a BTreeMap<String, String>,
    pub taints: &'a BTreeMap<String, String>,
}

impl Alike<'_> {
    /// Whatever runs on the node may run here too.
    pub fn takes_from(&self, node: &NodeInput) -> bool {
        self.zone == node.zone
            && (node.used.gpus == 0 || self.gpu_model == node.gpu_model)
            && self
                .taints
                .iter()
                .all(|(k, v)| node.taints.get(k) == Some(v))
            && node
                .labels
                .iter()
                .all(|(k, v)| OF_ONE_NODE.contains(&k.as_str()) || self.labels.get(k) == Some(v))
    }
}
