//! What stops a pool, and why its nodes serve nobody, in words. Used by `explain`.

use super::words::{are, because, failure_name, plural};
use crate::model::{Away, PoolId, Stop};

/// What stops a pool.
#[must_use]
pub fn render_stop(stop: &Stop) -> String {
    match stop {
        Stop::Frozen { by, why } => format!("frozen by {by}{}", because(why)),
        Stop::Paused { by, why } => format!("paused by {by}{}", because(why)),
        Stop::NeverJoined { misses } => {
            format!("stopped: {misses} launches in a row never joined or were never ready")
        }
        Stop::Failed { failure, why } => {
            format!("stopped: {}{}", failure_name(*failure), because(why))
        }
        Stop::SiteSilent => {
            "its whole site is silent: nothing is bought and nothing removed".to_owned()
        }
        Stop::Stale {
            may_grow: true,
            why,
        } => format!("no removal on old data{}", because(why)),
        Stop::Stale {
            may_grow: false,
            why,
        } => format!("could not be read{}", because(why)),
        Stop::NoRemoval { why } => format!("no removal{}", because(why)),
        Stop::NotOurs { why } => format!("not ours{}", because(why)),
    }
}

/// "1 node of rack is cordoned by admin/root".
pub(super) fn nodes_away(pool: &PoolId, n: u32, away: &Away) -> String {
    let is = are(n);
    let have = if n == 1 { "has" } else { "have" };
    let (what, state) = match away {
        Away::Cordoned { who } => ("node", format!("{is} cordoned by {who}")),
        Away::Unreachable => ("node", format!("{is} unreachable")),
        Away::Faulty => ("node", format!("{is} faulty")),
        Away::Draining { who: None } => ("node", format!("{is} draining or drained")),
        Away::Draining { who: Some(who) } => {
            ("node", format!("{is} draining or drained for {who}"))
        }
        Away::Off => ("host", format!("{is} off")),
        Away::NotJoined => ("host", format!("{have} not joined")),
    };
    format!("{} of {pool} {state}", plural(n, what))
}
