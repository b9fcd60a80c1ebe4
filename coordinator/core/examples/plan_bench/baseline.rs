//! First fit decreasing as anybody would write it, to compare with: each pod, the largest first, goes to the first open
//! node that takes it, else to a new one of the type that is cheapest per pod, in the first zone that its rules allow (of
//! a spread: the emptiest). One pod at a time. Used by the cases; shares nothing with the planner.

use super::rules::{Placed, decreasing};
use drover_core::model::{MicroUsd, Offering, PlanInput};

/// What it came to.
pub(crate) struct Plain {
    pub(crate) cost: MicroUsd,
    pub(crate) nodes: u32,
}

pub(crate) fn first_fit_decreasing(input: &PlanInput) -> Result<Plain, String> {
    let mut placed = Placed::new(input);
    let mut plain = Plain {
        cost: MicroUsd(0),
        nodes: 0,
    };
    for class in decreasing(input) {
        // Nodes are never emptied: what refused one pod of a class for want of room refuses the next.
        let mut from = 0;
        let settled = input.classes[class].constraints.spread.is_empty();
        for _ in 0..input.classes[class].count {
            let first = (from..placed.nodes.len()).find(|n| placed.refuses(class, *n).is_none());
            let node = match first {
                Some(node) => node,
                None => {
                    let offering = cheapest(input, &placed, class).ok_or("nothing to open")?;
                    let size = offering.allocatable.as_ref().ok_or("an unknown type")?;
                    plain.cost = plain.cost.plus(offering.price);
                    plain.nodes += 1;
                    placed.open(&offering.zone, size)
                }
            };
            if settled {
                from = node;
            }
            placed.put(class, node);
        }
    }
    Ok(plain)
}

fn cheapest<'a>(input: &'a PlanInput, placed: &Placed<'_>, class: usize) -> Option<&'a Offering> {
    let unit = &input.classes[class].unit;
    let alone = !input.classes[class].constraints.anti_affinity.is_empty();
    let offerings = input.pools.iter().flat_map(|pool| &pool.offerings);
    let open = offerings.filter(|o| placed.rules_refuse(class, &o.zone, None).is_none());
    let per_pod = open.filter_map(|offering| {
        let fits = unit.times(offering.allocatable.as_ref()?);
        let pods = if alone { fits.min(1) } else { fits };
        let price = (u128::from(offering.price.0) << 32).checked_div(u128::from(pods))?;
        Some((price, offering))
    });
    per_pod
        .min_by_key(|(price, _)| *price)
        .map(|(_, offering)| offering)
}
