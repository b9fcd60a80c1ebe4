//! Reasons as text: the only place. Used by the CLI, the dashboard, events and logs. `now` turns moments into words.

mod reasons;
mod stops;
mod words;

pub use reasons::render;
pub use stops::render_stop;

use crate::model::{Action, Class, ClassOutcome, Emptying, PoolOutcome, Reason, UnixMs};

/// One action with its reason.
#[must_use]
pub fn render_action(action: &Action, now: UnixMs) -> String {
    match action {
        Action::Uncordon { node, reason } => format!("uncordon {node}: {}", render(reason, now)),
        Action::Launch {
            pool,
            offering,
            count,
            reason,
            ..
        } => {
            format!(
                "launch {count} in {pool} ({offering}): {}",
                render(reason, now)
            )
        }
        Action::Release { request, reason } => {
            format!("release {request}: {}", render(reason, now))
        }
        Action::Drain { node, reason, how } => {
            let also = match how {
                Emptying::Wait => "",
                Emptying::Evict => " and move its work",
            };
            format!("drain {node}{also}: {}", render(reason, now))
        }
        Action::Leave { node, reason } => format!("remove {node}: {}", render(reason, now)),
    }
}

/// A class on one line: "needs 8 GPUs on one node; 2 of 3 placed; p3-usw2 is out of capacity until 14:05:00 UTC".
#[must_use]
pub fn class_summary(class: &Class, outcome: &ClassOutcome, now: UnixMs) -> String {
    let placed = outcome.fitted + outcome.coming + outcome.grown;
    let total = placed + outcome.unplaced;
    let mut parts = vec![render(&Reason::needs(class), now)];
    if total > 0 {
        parts.push(format!("{placed} of {total} placed"));
    }
    if outcome.impossible {
        parts.push("can never be served as it is".to_owned());
    }
    let known = |r: &&Reason| !matches!(r, Reason::Needs { .. });
    let reasons = outcome.reasons.iter().filter(known);
    parts.extend(reasons.map(|r| render(r, now)));
    parts.join("; ")
}

/// A pool on one line.
#[must_use]
pub fn pool_summary(outcome: &PoolOutcome, now: UnixMs) -> String {
    let all: Vec<String> = outcome.reasons.iter().map(|r| render(r, now)).collect();
    all.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FailureKind;

    #[test]
    fn a_shortage_in_words_a_researcher_understands() {
        let reason = Reason::OutOfCapacity {
            offering: "p3-usw2".into(),
            failure: FailureKind::Shortage,
            next_probe: UnixMs(1_764_425_100_000),
            message: "no sufficient capacity".to_owned(),
        };
        assert_eq!(
            render(&reason, UnixMs(1_764_425_000_000)),
            "p3-usw2 is out of capacity until 14:05:00 UTC (shortage: no sufficient capacity)"
        );
    }
}
