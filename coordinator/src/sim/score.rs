//! The score of a run.
use super::bounds::usd_hours;
use super::history::History;
use drover_core::model::Millis;
/// What all nodes cost, USD.
#[must_use]
pub fn cost(history: &History) -> f64 {
    history
        .nodes
        .iter()
        .map(|node| {
            usd_hours(
                node.price.0,
                Millis(
                    node.ended
                        .unwrap_or(history.end)
                        .0
                        .saturating_sub(node.launched.0),
                ),
            )
        })
        .sum()
}
