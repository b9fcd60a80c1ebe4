//! Where ids, tokens and jitter come from: the system's randomness, or a seed where runs must be alike.
//!
//! Owned by `Control`; shared with what it makes. Must not be used for secrets.

use crate::world::generator::Generator;
use std::sync::atomic::{AtomicU64, Ordering};

/// The dice.
#[derive(Debug, Default)]
pub(super) struct Chance {
    /// Draws so far and the seed; absent: the system's.
    seeded: Option<(u64, AtomicU64)>,
}

impl Chance {
    /// Alike for a seed.
    pub(super) const fn seeded(seed: u64) -> Self {
        Self {
            seeded: Some((seed, AtomicU64::new(0))),
        }
    }

    /// 64 bits.
    pub(super) fn next(&self) -> u64 {
        match &self.seeded {
            None => rand::random(),
            Some((seed, draws)) => {
                let draw = draws.fetch_add(1, Ordering::SeqCst);
                Generator::new(seed ^ draw.wrapping_mul(0x9E37_79B9_7F4A_7C15)).next()
            }
        }
    }

    /// From 0 to `most`.
    pub(super) fn upto(&self, most: u32) -> u32 {
        let spread = u128::from(most) + 1;
        u32::try_from((u128::from(self.next()) * spread) >> 64).unwrap_or(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_again_and_nothing_twice() {
        let draw = |seed| {
            let chance = Chance::seeded(seed);
            (0..1_000).map(|_| chance.next()).collect::<Vec<_>>()
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
        let unique: std::collections::BTreeSet<u64> = draw(3).into_iter().collect();
        assert_eq!(unique.len(), 1_000);
        let chance = Chance::default();
        assert!((0..100).all(|_| chance.upto(3) <= 3));
    }
}
