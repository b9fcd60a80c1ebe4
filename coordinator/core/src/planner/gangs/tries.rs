//! One way to place a gang: how good it is, whether its team may pay, and taking it. Called by the other parts of `gangs`.

use super::Round;
use super::domain::Domain;
use super::ways::Ask;
use crate::model::Reason;
use crate::planner::grow::{self, Packing};
use crate::planner::state::Work;
use crate::planner::supply::Tier;
use crate::planner::teams::Use;
use std::collections::BTreeSet;

/// Where its units go.
pub(super) struct Try {
    pub domain: Domain,
    pub fits: Vec<(usize, u32)>,
    pub fitted: u32,
    pub packing: Option<Packing>,
    pub placed: u32,
}

impl Try {
    /// All of it is on nodes that take work or that we cordoned ourselves.
    pub fn confirmed(&self, work: &Work<'_>) -> bool {
        let there = |(b, _): &(usize, u32)| work.bins[*b].tier != Tier::Coming;
        self.placed == self.fitted && self.fits.iter().all(there)
    }
}

/// Less is better: units short, cost, new nodes, existing nodes used late.
pub(super) fn rating(work: &Work<'_>, t: &Try, want: u32) -> (u32, u64, u32, usize) {
    let (cost, nodes) = t.packing.as_ref().map_or((0, 0), |p| p.opened(work));
    let short = want - t.placed.min(want);
    (short, cost, nodes, late(work, &t.fits))
}

/// How late in the order of use (I12) the last of these nodes stands.
fn late(work: &Work<'_>, fits: &[(usize, u32)]) -> usize {
    let tiers = fits.iter().map(|(b, _)| work.bins[*b].tier as usize);
    tiers.max().unwrap_or(0)
}

/// The best way that its team may pay for; an error when there would be one otherwise.
pub(super) fn afford<'a>(
    work: &Work<'a>,
    round: &Round<'a>,
    kind: usize,
    ask: Ask<'_>,
    home: &BTreeSet<Domain>,
) -> Result<Option<Try>, Reason> {
    let whole = |ask: Ask<'_>| {
        let ways = round.ways(work, kind, ask, home);
        ways.and_then(|ways| ways.whole(ask.need, |_| true))
    };
    let best = whole(ask);
    let over = |t: &Try| (!ask.would).then(|| too_dear(work, ask.class, t)).flatten();
    let Some(reason) = best.as_ref().and_then(over) else {
        return Ok(best);
    };
    // On what exists it costs nothing more.
    let mut none = ask.ledger.clone();
    none.nodes = 0;
    let free = whole(Ask {
        ledger: &none,
        ..ask
    });
    match free.filter(|t| over(t).is_none()) {
        Some(t) => Ok(Some(t)),
        None => Err(reason),
    }
}

/// The limit of its team that new units of the gang would go beyond.
pub(super) fn too_dear(work: &Work<'_>, class: usize, t: &Try) -> Option<Reason> {
    work.team(class)?;
    let new = work.share_of_packing(class, t.packing.as_ref()?);
    let fits = t.fits.iter().fold(Use::default(), |sum, (b, n)| {
        sum.plus(work.share_of_bin(class, &work.bins[*b]).times(*n))
    });
    work.over_budget(class, fits, new)
}

/// Takes it; returns where.
pub(super) fn apply(work: &mut Work<'_>, round: &mut Round<'_>, class: usize, t: Try) -> Domain {
    // The packing was made for what is there after those that fit.
    let since = work.step;
    for (b, n) in &t.fits {
        work.take(class, *b, *n, false);
        round.log.took(*b);
    }
    work.forget_full(t.fits.len());
    work.open[class] -= t.fitted;
    if let Some(mut packing) = t.packing {
        packing.delay(since, work.step - since);
        let rest = work.open[class];
        for group in packing.groups.iter().filter(|g| g.units(class) > 0) {
            round.log.grew(group.offer);
        }
        if !round.would {
            work.book_packing(class, &packing);
        }
        grow::commit(work, &[class], packing);
        work.open[class] = rest - (t.placed - t.fitted);
    }
    t.domain
}
