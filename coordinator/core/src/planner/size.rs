//! Amounts as numbers: what the run compares and subtracts, without maps or names. Built once per run from
//! `model::Resources`; used by bins, groups and packings. Only extended resources that somebody asks for are kept.

use crate::model::{PlanInput, Resources};
use std::collections::BTreeMap;

/// Extended resources kept in place; further ones on the heap.
const FEW: usize = 3;

/// Thousandths of a whole GPU.
const WHOLE: u32 = 1_000;

/// An amount of everything that classes ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Size {
    /// Milli-CPU.
    pub cpu: u64,
    /// Bytes.
    pub memory: u64,
    /// Whole GPUs.
    pub gpus: u32,
    /// Of a unit: thousandths of one GPU. Of room: 0.
    pub milli: u32,
    few: [u64; FEW],
    more: Box<[u64]>,
}

/// Names of extended resources that some unit asks for, by index.
#[derive(Debug, Default)]
pub(super) struct Names<'a>(BTreeMap<&'a str, usize>);

impl<'a> Names<'a> {
    /// Of all units that wait, and of headroom.
    pub fn new(input: &'a PlanInput) -> Self {
        let units = input.classes.iter().map(|c| &c.unit);
        let kept = input.policy.headroom.iter().map(|h| &h.unit);
        Self::of(units.chain(kept))
    }

    fn of(units: impl Iterator<Item = &'a Resources>) -> Self {
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, amount) in units.flat_map(|unit| &unit.extended) {
            if *amount > 0 {
                let next = names.len();
                names.entry(name).or_insert(next);
            }
        }
        Self(names)
    }

    /// The same amount as numbers; what nobody asks for is left out.
    pub fn size(&self, of: &Resources) -> Size {
        let mut size = Size {
            cpu: of.cpu.0,
            memory: of.memory.0,
            gpus: of.gpus,
            milli: of.gpu_milli,
            few: [0; FEW],
            more: vec![0; self.0.len().saturating_sub(FEW)].into(),
        };
        for (name, amount) in &of.extended {
            match self.0.get(name.as_str()) {
                Some(at) if *at < FEW => size.few[*at] = *amount,
                Some(at) => size.more[*at - FEW] = *amount,
                None => {}
            }
        }
        size
    }
}

impl Size {
    /// A part of one GPU and nothing else.
    pub fn share(milli: u32) -> Self {
        Self {
            milli,
            ..Self::default()
        }
    }

    /// Nothing at all.
    pub fn is_zero(&self) -> bool {
        self.cpu == 0
            && self.memory == 0
            && self.gpus == 0
            && self.milli == 0
            && !self.has_extended()
    }

    /// Of extended resources as well.
    fn has_extended(&self) -> bool {
        self.few != [0; FEW] || self.more.iter().any(|n| *n > 0)
    }

    /// Each extended resource with what another amount has of it.
    fn extended<'s>(&'s self, free: &'s Self) -> impl Iterator<Item = (u64, u64)> + 's {
        let few = self.few.iter().zip(&free.few);
        let more = self.more.iter().zip(&free.more);
        few.chain(more).map(|(want, have)| (*want, *have))
    }

    /// One fits, as far as GPUs do not matter.
    fn fits_beside_gpus(&self, free: &Self) -> bool {
        self.cpu <= free.cpu
            && self.memory <= free.memory
            && (!self.has_extended() || self.extended(free).all(|(want, have)| want <= have))
    }

    /// How many times this fits into an amount with whole GPUs only; `u32::MAX` when this is nothing.
    pub fn times(&self, free: &Self) -> u32 {
        self.times_with(free, &[])
    }

    /// The same, with the free thousandths of GPUs that are used in part.
    pub fn times_with(&self, free: &Self, shares: &[u32]) -> u32 {
        if self.gpus > free.gpus || !self.fits_beside_gpus(free) {
            return 0;
        }
        let mut most = u64::from(u32::MAX);
        let mut bound = |want: u64, have: u64| {
            if let Some(times) = have.checked_div(want) {
                most = most.min(times);
            }
        };
        bound(self.cpu, free.cpu);
        bound(self.memory, free.memory);
        bound(u64::from(self.gpus), u64::from(free.gpus));
        if self.has_extended() {
            for (want, have) in self.extended(free) {
                bound(want, have);
            }
        }
        if self.milli > 0 {
            let of = |share: u32| u64::from(share / self.milli);
            let parts: u64 = shares.iter().map(|share| of(*share)).sum();
            most = most.min(u64::from(free.gpus) * of(WHOLE) + parts);
        }
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    /// One fits into an amount with whole GPUs only.
    pub fn fits(&self, free: &Self) -> bool {
        let gpus = self.gpus.max(u32::from(self.milli > 0));
        gpus <= free.gpus && self.milli <= WHOLE && self.fits_beside_gpus(free)
    }

    /// What is left of each; at least zero.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut more = self.more.clone();
        for (have, want) in more.iter_mut().zip(&other.more) {
            *have = have.saturating_sub(*want);
        }
        Self {
            cpu: self.cpu.saturating_sub(other.cpu),
            memory: self.memory.saturating_sub(other.memory),
            gpus: self.gpus.saturating_sub(other.gpus),
            milli: self.milli,
            few: std::array::from_fn(|at| self.few[at].saturating_sub(other.few[at])),
            more,
        }
    }

    /// Takes off so many times another amount, shares of GPUs aside; at least zero is left.
    fn take(&mut self, unit: &Self, times: u32) {
        let n = u64::from(times);
        self.cpu = self.cpu.saturating_sub(unit.cpu.saturating_mul(n));
        self.memory = self.memory.saturating_sub(unit.memory.saturating_mul(n));
        self.gpus = self.gpus.saturating_sub(unit.gpus.saturating_mul(times));
        if !unit.has_extended() {
            return;
        }
        let mine = self.few.iter_mut().chain(&mut self.more);
        for (have, want) in mine.zip(unit.few.iter().chain(&unit.more)) {
            *have = have.saturating_sub(want.saturating_mul(n));
        }
    }
}

/// Free room of a node: amounts, and the free thousandths of each GPU that is used in part, smallest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Free {
    pub size: Size,
    pub shares: Vec<u32>,
}

impl Free {
    /// Whole GPUs only.
    pub const fn whole(size: Size) -> Self {
        Self {
            size,
            shares: Vec::new(),
        }
    }

    /// Units that fit.
    pub fn times(&self, unit: &Size) -> u32 {
        unit.times_with(&self.size, &self.shares)
    }

    /// The part of one GPU that a share would be taken from; none for other units, and where nothing is large enough.
    pub fn smallest_for(&self, unit: &Size) -> Option<u32> {
        if unit.milli == 0 {
            return None;
        }
        let at = self.shares.partition_point(|share| *share < unit.milli);
        let part = self.shares.get(at).copied();
        part.or_else(|| (self.size.gpus > 0).then_some(WHOLE))
    }

    /// Largest part of one GPU that a unit could have, in thousandths.
    pub fn largest_share(&self) -> u32 {
        let parts = self.shares.last().copied().unwrap_or(0);
        if self.size.gpus > 0 { WHOLE } else { parts }
    }

    /// Takes room for units: each share from the smallest part that is enough, else from a whole GPU.
    pub fn take(&mut self, unit: &Size, units: u32) {
        self.size.take(unit, units);
        if unit.milli == 0 {
            return;
        }
        for _ in 0..units {
            let at = self.shares.partition_point(|share| *share < unit.milli);
            let part = if at < self.shares.len() {
                self.shares.remove(at)
            } else if self.size.gpus > 0 {
                self.size.gpus -= 1;
                WHOLE
            } else {
                return;
            };
            let left = part.saturating_sub(unit.milli);
            if left > 0 {
                let at = self.shares.partition_point(|share| *share < left);
                self.shares.insert(at, left);
            }
        }
    }

    /// Takes back room of whole GPUs.
    pub fn give(&mut self, more: &Self) {
        let (have, back) = (&mut self.size, &more.size);
        have.cpu = have.cpu.saturating_add(back.cpu);
        have.memory = have.memory.saturating_add(back.memory);
        have.gpus = have.gpus.saturating_add(back.gpus);
        let mine = have.few.iter_mut().chain(&mut have.more);
        for (have, back) in mine.zip(back.few.iter().chain(&back.more)) {
            *have = have.saturating_add(*back);
        }
    }

    /// No room at all.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(milli: u32) -> Size {
        Size::share(milli)
    }

    #[test]
    fn a_share_takes_the_smallest_part_that_is_enough() {
        let two = Size {
            gpus: 2,
            ..Size::default()
        };
        let mut free = Free {
            size: two,
            shares: vec![200, 600],
        };
        assert_eq!(free.times(&share(500)), 1 + 2 * 2);
        free.take(&share(150), 1);
        assert_eq!(free.shares, [50, 600]);
        free.take(&share(500), 1);
        assert_eq!(free.shares, [50, 100]);
        free.take(&share(500), 1);
        assert_eq!(
            (free.size.gpus, free.shares.as_slice()),
            (1, [50, 100, 500].as_slice())
        );
        free.take(&share(500), 2);
        assert_eq!(
            (free.size.gpus, free.shares.as_slice()),
            (0, [50, 100, 500].as_slice())
        );
        assert_eq!(free.times(&share(900)), 0);
    }

    #[test]
    fn more_names_than_few_count_too() {
        let mut unit = Resources::default();
        for name in ["a", "b", "c", "d", "e"] {
            unit.extended.insert(name.to_owned(), 2);
        }
        let names = Names::of([&unit].into_iter());
        let one = names.size(&unit);
        let mut node = unit.scaled(3);
        assert_eq!(one.times(&names.size(&node)), 3);
        node.extended.insert("e".to_owned(), 3);
        assert_eq!(one.times(&names.size(&node)), 1);
        node.extended.remove("a");
        assert_eq!(one.times(&names.size(&node)), 0);
    }
}
