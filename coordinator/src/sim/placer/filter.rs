//! What a job asks of a node beside room: model, pool, labels, taints. Used by the model of the default scheduler.

use crate::sim::stage::node::Node;
use drover_core::model::{Constraints, Requirement};

/// May units with these constraints go there?
pub(super) fn allows(wants: &Constraints, node: &Node) -> bool {
    let holds = |rule: &Requirement| rule.holds(node.labels.get(&rule.key).map(String::as_str));
    let model = plain(&wants.gpu_model);
    wants.unsupported.is_empty()
        && (model.is_empty() || plain(&node.gpu_model).contains(&model))
        && (wants.pools.is_empty() || wants.pools.contains(&node.pool))
        && wants.requirements.iter().all(holds)
        && (wants.any_of.is_empty() || wants.any_of.iter().any(|all| all.iter().all(holds)))
        && node.taints.iter().all(|(key, value)| {
            let accepted = wants.tolerations.get(key);
            accepted.is_some_and(|values| values.is_empty() || values.contains(value))
        })
}

/// As models are compared: without case, dashes, underscores and blanks.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '-' | '_' | ' '));
    letters.flat_map(char::to_lowercase).collect()
}
