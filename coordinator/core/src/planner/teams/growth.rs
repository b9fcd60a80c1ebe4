//! Growth within the limits of teams: packs, looks what each team would use then, and asks for less until no team goes
//! beyond. Called by `plan` in place of `grow` for single classes.

use super::{Use, affordable};
use crate::model::{Budget, Reason};
use crate::planner::grow;
use crate::planner::packing::Packing;
use crate::planner::state::Work;
use std::collections::BTreeMap;

/// Rounds of packing at most: each asks for less, the last for what is surely within the limits.
const ROUNDS: u32 = 4;

/// Grows for the classes in `order` (largest first), as far as their teams may pay; `waits`: units per entry that wait
/// for running work instead.
pub(in crate::planner) fn grow(work: &mut Work<'_>, order: &[usize], waits: &[u32], would: bool) {
    let open: Vec<u32> = order.iter().map(|c| work.open[*c]).collect();
    let wanted: Vec<u32> = open.iter().zip(waits).map(|(n, w)| n - w.min(n)).collect();
    let limited = (0..order.len()).any(|i| wanted[i] > 0 && work.team(order[i]).is_some());
    let (packing, asked) = if would || !limited {
        (pack(work, order, wanted.clone(), would), wanted.clone())
    } else {
        // Nothing is asked for while there is room on what exists, though the team may not pay for that.
        let room = |class: usize| {
            let mut bins = work.bins.iter().enumerate().filter(|(_, bin)| !bin.would);
            bins.any(|(b, _)| work.room(class, b) > 0 && !work.kept_out(class, b))
        };
        let pays = |i: usize| work.team(order[i]).is_none() || !room(order[i]);
        let most = |i: usize| if pays(i) { wanted[i] } else { 0 };
        let most: Vec<u32> = (0..order.len()).map(most).collect();
        within(work, order, &most)
    };
    for (i, class) in order.iter().enumerate() {
        if !would {
            work.book_packing(*class, &packing);
        }
        if asked[i] < wanted[i]
            && let Some(reason) = budget_reason(work, *class)
        {
            work.hold_back(*class, reason);
        }
    }
    grow::commit(work, order, packing);
    // What was not asked for is open as before.
    for (i, class) in order.iter().enumerate() {
        work.open[*class] += open[i] - asked[i];
    }
}

fn pack(work: &Work<'_>, order: &[usize], left: Vec<u32>, would: bool) -> Packing {
    let offers = work.offers_of_mode(would);
    grow::attempt(work, order, left, &work.ledger, &offers)
}

/// A packing in which no team goes beyond its limits, and the units that were asked for.
fn within(work: &Work<'_>, order: &[usize], wanted: &[u32]) -> (Packing, Vec<u32>) {
    let suits = |class: usize| {
        let unit = &work.input.classes[class];
        let open = work.offers.iter().enumerate().filter(|(_, o)| !o.would);
        open.filter(move |(o, offer)| {
            work.matches(class, offer.kind)
                && offer.times(unit) > 0
                && (work.ledger.room(&work.offers, *o) > 0 || !work.groups.of(*o).is_empty())
        })
        .map(move |(o, _)| work.share_of_new(class, o))
    };
    let mut each: Vec<Use> = order
        .iter()
        .map(|c| {
            suits(*c)
                .min_by_key(|u| (u.cost, u.milli))
                .unwrap_or_default()
        })
        .collect();
    for round in 1.. {
        let asked = cap(work, order, wanted, &each);
        let packing = pack(work, order, asked.clone(), false);
        let mut more: BTreeMap<&str, (Use, &Budget)> = BTreeMap::new();
        for class in order {
            if let Some((team, limit)) = work.team(*class) {
                let slot = more.entry(team).or_insert((Use::default(), limit));
                slot.0 = slot.0.plus(work.share_of_packing(*class, &packing));
            }
        }
        let over = |team: &str, (sum, limit): &(Use, &Budget)| {
            work.teams.used(team).beyond(*sum, limit).is_some()
        };
        if round == ROUNDS || !more.iter().any(|(team, sum)| over(team, sum)) {
            return (packing, asked);
        }
        for (i, class) in order.iter().enumerate() {
            each[i] = if round + 1 == ROUNDS {
                suits(*class).fold(Use::default(), Use::max)
            } else {
                let groups = packing.groups.iter().filter(|g| g.units(*class) > 0);
                let shares = groups.map(|g| work.share_of_new(*class, g.offer));
                shares.fold(each[i], Use::max)
            };
        }
    }
    (
        pack(work, order, vec![0; order.len()], false),
        vec![0; order.len()],
    )
}

/// Units per entry that the teams may pay for, at this use for each: the oldest first.
fn cap(work: &Work<'_>, order: &[usize], wanted: &[u32], each: &[Use]) -> Vec<u32> {
    let mut asked = wanted.to_vec();
    let mut used: BTreeMap<&str, Use> = BTreeMap::new();
    let mut by_age: Vec<usize> = (0..order.len()).collect();
    by_age.sort_by_key(|i| (work.input.classes[order[*i]].submitted, order[*i]));
    for i in by_age {
        if let Some((team, limit)) = work.team(order[i]) {
            let sum = used.entry(team).or_insert_with(|| work.teams.used(team));
            asked[i] = asked[i].min(affordable(*sum, each[i], limit));
            *sum = sum.plus(each[i].times(asked[i]));
        }
    }
    asked
}

/// Why one unit more may not be asked for.
fn budget_reason(work: &Work<'_>, class: usize) -> Option<Reason> {
    let (team, limit) = work.team(class)?;
    let unit = &work.input.classes[class].unit;
    let milli = u128::from(unit.gpus) * 1_000 + u128::from(unit.gpu_milli);
    let more = Use { cost: 0, milli };
    let gpus = work.teams.used(team).beyond(more, limit);
    Some(Reason::TeamBudget {
        team: team.to_owned(),
        what: gpus.unwrap_or("USD/h").to_owned(),
    })
}
