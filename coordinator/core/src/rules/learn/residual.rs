//! What the rest of a shared GPU is worth, given how often shares of each size come: prices of a cutting-stock problem.
//! Called by `learn`. Integers only; changes nothing.
//!
//! The dual of the fractional cutting-stock problem by multiplicative weights (Plotkin, Shmoys, Tardos 1995): each size
//! has a price that falls as more of it is cut; the pattern of the best total price on one GPU (an unbounded knapsack
//! over hundredths) is cut next; the prices with the tightest lower bound on the number of GPUs are kept.

use std::collections::BTreeMap;

/// Sizes in hundredths of a GPU.
const WHOLE: usize = 100;
/// Patterns cut: 100 leaves 6 % more GPUs behind on the openb trace, 1,000 no fewer.
const ROUNDS: u64 = 400;
/// Of the demand that is cut in all, in percent: enough for the prices to settle.
const CUT_PCT: u64 = 130;
/// How fast a price falls: by 2^-17 when all of the size's demand is cut.
const FALL: u64 = 17;
/// Most units of one size that count: far above what is remembered, and no product overflows.
const OFTEN: u64 = 1 << 30;
/// 2^(20 - k/16).
const POWERS: [u64; 16] = [
    1_048_576, 1_004_120, 961_548, 920_782, 881_744, 844_361, 808_563, 774_283, 741_455, 710_020,
    679_917, 651_091, 623_487, 597_053, 571_740, 547_500,
];

/// Thousandths of a whole GPU by hundredths left: 101 values that never fall; none when no shares came.
pub(super) fn values(shares: &BTreeMap<u32, u64>) -> Vec<u32> {
    let sizes: Vec<(usize, u64)> = shares
        .iter()
        .map(|(size, often)| (*size as usize, (*often).min(OFTEN)))
        .filter(|(size, often)| (1..WHOLE).contains(size) && *often > 0)
        .collect();
    if sizes.is_empty() {
        return Vec::new();
    }
    let load: u64 = sizes.iter().map(|(size, often)| *size as u64 * often).sum();
    // Thousandths of a pattern per round.
    let step = (load * CUT_PCT / 10 / ROUNDS).max(1);
    let mut cut = [0_u64; WHOLE];
    let mut best = (0_u64, Vec::new());
    for _ in 0..ROUNDS {
        let prices: Vec<(usize, u64)> = sizes
            .iter()
            .map(|(size, often)| (*size, price(cut[*size], *often)))
            .collect();
        let (value, pick) = knapsack(&prices);
        let whole = u128::from(value[WHOLE].max(1));
        let share = |amount: u64, of: u128| {
            u64::try_from(u128::from(amount) * of / whole).unwrap_or(u64::MAX)
        };
        let bound = sizes.iter().zip(&prices).fold(0_u64, |sum, (size, price)| {
            sum.saturating_add(size.1.saturating_mul(share(price.1, 1_000_000)))
        });
        if bound > best.0 {
            let values = value
                .iter()
                .map(|v| u32::try_from(share(*v, 1_000)).unwrap_or(u32::MAX));
            best = (bound, values.collect());
        }
        let mut left = WHOLE;
        while left > 0 {
            if pick[left] == 0 {
                left -= 1;
            } else {
                cut[pick[left]] += step;
                left -= pick[left];
            }
        }
    }
    best.1
}

/// Price of one unit of a size of which `cut` thousandths of a unit are made, `often` are wanted.
fn price(cut: u64, often: u64) -> u64 {
    let sixteenths = cut.saturating_mul(FALL * 16) / often.saturating_mul(1_000);
    let (shift, part) = (sixteenths / 16, sixteenths % 16);
    if shift >= 50 {
        return 0;
    }
    let part = POWERS[usize::try_from(part).unwrap_or(0)];
    ((part << 30) >> shift) / often
}

/// The most that a rest of each size can earn, and the size to cut from it first (0: nothing, go one down).
fn knapsack(prices: &[(usize, u64)]) -> ([u64; WHOLE + 1], [usize; WHOLE + 1]) {
    let mut value = [0_u64; WHOLE + 1];
    let mut pick = [0_usize; WHOLE + 1];
    for left in 1..=WHOLE {
        value[left] = value[left - 1];
        for (size, price) in prices {
            if *size <= left && value[left - size] + price > value[left] {
                value[left] = value[left - size] + price;
                pick[left] = *size;
            }
        }
    }
    (value, pick)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sizes: &[(u32, u64)]) -> Vec<u32> {
        values(&sizes.iter().copied().collect())
    }

    #[test]
    fn rests_are_worth_what_can_be_cut_from_them() {
        assert_eq!(of(&[]), Vec::<u32>::new(), "no shares: nothing to say");
        let halves = of(&[(50, 40)]);
        for (left, worth) in [(0, 0), (49, 0), (50, 500), (99, 500), (100, 1_000)] {
            assert_eq!(halves[left], worth, "{left} of halves");
        }
        let thirds = of(&[(33, 7)]);
        for (left, worth) in [(32, 0), (33, 333), (65, 333), (66, 666), (99, 1_000)] {
            assert_eq!(thirds[left], worth, "{left} of thirds");
        }
        // A share of 0.6 leaves 0.4, and 0.4 comes as often: both are worth their size, near enough.
        let pair = of(&[(60, 50), (40, 50)]);
        assert_eq!(pair[39], 0);
        assert!((300..=600).contains(&pair[40]), "{}", pair[40]);
        assert!((400..=700).contains(&pair[60]), "{}", pair[60]);
        // With 0.4 rare, what 0.6 leaves is worth little.
        let lone = of(&[(60, 99), (40, 1)]);
        assert!(lone[40] < pair[40] && lone[60] > pair[60]);
    }

    #[test]
    fn values_never_fall_and_no_count_overflows() {
        for often in [1, 1_000, 100_000, 10_000_000] {
            let values = of(&[(5, often), (25, 1), (46, often / 3 + 1), (99, often)]);
            assert_eq!(values.len(), 101);
            assert!(values.windows(2).all(|w| w[0] <= w[1]), "{values:?}");
            assert_eq!((values[0], values[100]), (0, 1_000));
        }
    }
}
