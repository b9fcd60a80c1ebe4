//! What is on its way, in words' figures: how many nodes, and when the first is expected. Called by `why` for requests
//! that hold units on it, and by `why_fleet` for pools. Reads the run's state, decides nothing.

use super::state::Work;
use super::supply::{At, Tier};
use crate::model::{LaunchInFlight, Reason, Source, UnixMs};

/// When a launch is expected: by its offering's boot time, or, once that is over, by its deadline. Never after that: it is
/// given up then.
fn expected(work: &Work<'_>, launch: &LaunchInFlight) -> UnixMs {
    let pool = work.pool_index.get(&launch.pool);
    let boot = pool
        .and_then(|p| {
            let offerings = &work.input.pools[*p].offerings;
            offerings.iter().find(|o| o.id == launch.offering)
        })
        .map(|o| o.boot)
        .unwrap_or_default();
    let at = launch.asked.after(boot);
    if at > work.input.now {
        at.min(launch.deadline)
    } else {
        launch.deadline
    }
}

fn live<'w>(work: &'w Work<'_>) -> impl Iterator<Item = &'w LaunchInFlight> {
    let now = work.input.now;
    work.input
        .launches
        .iter()
        .filter(move |l| l.deadline > now && l.count > 0)
}

/// Units of a request that are assigned to nodes on their way; nothing when there are none.
pub(super) fn of_request(work: &Work<'_>, class: usize) -> Option<Reason> {
    let unit = &work.input.classes[class];
    let Source::Request(name) = &unit.source else {
        return None;
    };
    let (mut units, mut nodes, mut first) = (0_u32, 0_u32, None::<UnixMs>);
    for launch in live(work) {
        let held = launch.reserved.iter().filter(|(r, _)| r == name);
        let here: u32 = held.map(|(_, n)| *n).sum();
        if here == 0 {
            continue;
        }
        let offers = work.offers.iter().filter(|o| *o.id == launch.offering);
        let each = offers.map(|o| o.times(unit)).max().unwrap_or(1).max(1);
        units = units.saturating_add(here);
        nodes = nodes.saturating_add(here.div_ceil(each).min(launch.count));
        let at = expected(work, launch);
        first = Some(first.map_or(at, |f| f.min(at)));
    }
    for bin in work.bins.iter().filter(|b| b.tier == Tier::Coming) {
        let At::Node(n) = bin.at else { continue };
        let held = work.input.nodes[n].reserved.iter();
        let here: u32 = held.filter(|r| r.request == *name).map(|r| r.units).sum();
        units = units.saturating_add(here);
        nodes = nodes.saturating_add(u32::from(here > 0));
    }
    (units > 0).then_some(Reason::UnitsComing {
        units,
        nodes,
        first,
    })
}

/// Nodes of a pool that are on their way.
pub(super) fn of_pool(work: &Work<'_>, pool: usize) -> Option<Reason> {
    let id = &work.input.pools[pool].id;
    let mine = || live(work).filter(|l| l.pool == *id);
    let asked: u32 = mine().fold(0, |sum, l| sum.saturating_add(l.count));
    let joining = work.bins_of[pool]
        .iter()
        .map(|b| &work.bins[*b])
        .filter(|b| b.tier == Tier::Coming && matches!(b.at, At::Node(_)));
    let nodes = asked.saturating_add(super::report::to_u32(joining.count()));
    (nodes > 0).then(|| Reason::NodesComing {
        nodes,
        first: mine().map(|l| expected(work, l)).min(),
    })
}
