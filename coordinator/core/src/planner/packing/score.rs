//! How packings compare. Called by `grow`, which takes the better one; changes none.

use super::{Context, Packing};
use std::cmp::Reverse;

/// Field order is the order of importance.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::planner) struct Score {
    left: Vec<u32>,
    cost: u64,
    nodes: u32,
    hole: Reverse<(u32, u64, u64)>,
}

impl Context<'_, '_> {
    /// Less is better: who stays without (largest first), cost, nodes, then the larger hole.
    pub fn score(&self, p: &Packing) -> Score {
        let mut score = Score {
            left: p.left.clone(),
            ..Score::default()
        };
        let mut hole = (0, 0, 0);
        for group in p.opened_groups() {
            let price = self.work.offers[group.offer].price;
            score.cost = score
                .cost
                .saturating_add(price.saturating_mul(u64::from(group.nodes)));
            score.nodes = score.nodes.saturating_add(group.nodes);
            let free = &group.free.size;
            hole = hole.max((free.gpus, free.cpu, free.memory));
        }
        score.hole = Reverse(hole);
        score
    }
}
