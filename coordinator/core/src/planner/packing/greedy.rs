//! Greedy packing: whole nodes at the best price for what they carry, the largest unit first. Only for classes that no
//! rule between units touches.

use super::open::per_unit;
use super::{Context, Packing, fits_new, may_open};
use crate::planner::size::Free;

/// Tier, price per value, rank, index: less is better.
type OfferKey = (u8, Ratio, u32, usize);

impl Context<'_, '_> {
    /// Value of one unit per entry: the least it can cost.
    fn values(&self) -> Vec<u128> {
        let least = |class: usize, paid: bool| {
            self.twins
                .iter()
                .map(|twins| &self.work.offers[twins.offers[0]])
                .filter(|o| (!paid || o.tier == 2) && may_open(self.work, class, o))
                .filter_map(|o| {
                    let times = fits_new(self.work, class, o);
                    per_unit(o.price, times)
                })
                .min()
        };
        let value = |class: usize| least(class, true).or_else(|| least(class, false));
        let each = self.order.iter().map(|c| value(*c).unwrap_or(0).max(1));
        each.collect()
    }

    /// Fills open nodes, then opens the best node for each leading unit in turn.
    pub fn greedy(&self, mut p: Packing) -> Packing {
        for i in 0..self.order.len() {
            self.fill(&mut p, i, None, u32::MAX);
        }
        let values = self.values();
        for lead in 0..self.order.len() {
            while p.left[lead] > 0 {
                let mut best: Option<(OfferKey, Vec<(usize, u32)>)> = None;
                for twins in &self.twins {
                    let Some(o) = self.first_of(&p, twins) else {
                        continue;
                    };
                    let offer = &self.work.offers[o];
                    let Some((value, placed)) = self.pattern(&p, &values, lead, o) else {
                        continue;
                    };
                    let ratio = Ratio {
                        price: u128::from(offer.price.max(1)),
                        value,
                    };
                    let key = (offer.tier, ratio, self.rank(o), o);
                    if best.as_ref().is_none_or(|(have, _)| key < *have) {
                        best = Some((key, placed));
                    }
                }
                let Some(((.., offer), placed)) = best else {
                    break;
                };
                let mut nodes = p.ledger.room(&self.work.offers, offer);
                for (i, units) in &placed {
                    nodes = nodes.min(p.left[*i] / units);
                }
                self.open(&mut p, offer, nodes.max(1), &placed);
            }
        }
        p
    }

    /// What one node of the offer would carry, led by entry `lead`, and its value.
    fn pattern(
        &self,
        p: &Packing,
        values: &[u128],
        lead: usize,
        at: usize,
    ) -> Option<(u128, Vec<(usize, u32)>)> {
        let offer = &self.work.offers[at];
        offer.alloc.as_ref()?;
        let mut free = Free::whole(offer.size.clone());
        let mut placed = Vec::new();
        let mut value: u128 = 0;
        for (i, &class) in self.order.iter().enumerate().skip(lead) {
            let allowed = if i == lead {
                may_open(self.work, class, offer)
            } else {
                self.work.matches(class, offer.kind)
                    && self.work.in_time(class, offer.boot)
                    && !self.work.kept_out_of_new(class, at)
            };
            if p.left[i] == 0 || !allowed {
                continue;
            }
            let whole = self.work.input.classes[class].whole_node;
            let fits = if whole {
                u32::from(i == lead && self.work.units[class].fits(&offer.size))
            } else {
                free.times(&self.work.units[class])
            };
            let n = fits.min(p.left[i]);
            if n == 0 {
                if i == lead {
                    return None;
                }
                continue;
            }
            value = value.saturating_add(values[i].saturating_mul(u128::from(n)));
            placed.push((i, n));
            if whole {
                break;
            }
            free.take(&self.work.units[class], n);
        }
        (!placed.is_empty()).then_some((value.max(1), placed))
    }
}

/// Price per value, compared without dividing.
#[derive(Debug, Clone, Copy)]
struct Ratio {
    price: u128,
    value: u128,
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Ratio {}
impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // price < 2^64 and value < 2^128: compared as price / value with a common shift against overflow.
        let bits = self.value.max(other.value).checked_ilog2().unwrap_or(0);
        let shift = bits.saturating_sub(62);
        let left = self.price.saturating_mul(other.value >> shift);
        let right = other.price.saturating_mul(self.value >> shift);
        left.cmp(&right)
    }
}
