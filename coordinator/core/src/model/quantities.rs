//! Quantities with their unit in the type; integers only, so that plans are the same on every machine.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// Nothing.
            pub const ZERO: Self = Self(0);
            /// Sum, at most the largest value.
            #[must_use]
            pub const fn plus(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
            /// Difference, at least zero.
            #[must_use]
            pub const fn minus(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }
    };
}

quantity!(
    /// Thousandths of a CPU.
    MilliCpu
);
quantity!(
    /// Bytes.
    Bytes
);
quantity!(
    /// Millionths of a US dollar (per hour where it is a price).
    MicroUsd
);
quantity!(
    /// Milliseconds since 1970 (wall clock of the coordinator).
    UnixMs
);
quantity!(
    /// A span in milliseconds.
    Millis
);

impl UnixMs {
    /// This moment and a span.
    #[must_use]
    pub const fn after(self, span: Millis) -> Self {
        Self(self.0.saturating_add(span.0))
    }
    /// Time passed since an earlier moment; zero if it is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}

impl Millis {
    /// Whole seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000))
    }
    /// Whole minutes.
    #[must_use]
    pub const fn minutes(minutes: u64) -> Self {
        Self(minutes.saturating_mul(60_000))
    }
}

impl fmt::Display for MicroUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:02} USD",
            self.0 / 1_000_000,
            self.0 % 1_000_000 / 10_000
        )
    }
}

/// An amount of everything a unit of demand can want or a node can offer.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// CPU.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub cpu: MilliCpu,
    /// Memory.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub memory: Bytes,
    /// Whole GPUs.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub gpus: u32,
    /// Of a unit: thousandths of one GPU that it shares with others (1 to 999; never beside whole GPUs). Of a node: 0,
    /// since its shared GPUs are listed one by one.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub gpu_milli: u32,
    /// Anything else by name (ephemeral storage, pods, shares).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extended: BTreeMap<String, u64>,
}

impl Resources {
    /// True when this fits into `free`. A share of a GPU needs a whole one there: shared ones are listed apart.
    #[must_use]
    pub fn fits(&self, free: &Self) -> bool {
        let gpus = self.gpus.max(u32::from(self.gpu_milli > 0));
        self.cpu <= free.cpu
            && self.memory <= free.memory
            && gpus <= free.gpus
            && self
                .extended
                .iter()
                .all(|(name, amount)| *amount <= free.extended.get(name).copied().unwrap_or(0))
    }

    /// How many times this fits into `free`, of which every GPU is whole; `u32::MAX` when this is nothing.
    #[must_use]
    pub fn times(&self, free: &Self) -> u32 {
        let mut most = u64::from(u32::MAX);
        let mut bound = |want: u64, have: u64| {
            if let Some(times) = have.checked_div(want) {
                most = most.min(times);
            }
        };
        bound(self.cpu.0, free.cpu.0);
        bound(self.memory.0, free.memory.0);
        bound(u64::from(self.gpus), u64::from(free.gpus));
        for (name, amount) in &self.extended {
            bound(*amount, free.extended.get(name).copied().unwrap_or(0));
        }
        if let Some(shares) = 1_000_u32.checked_div(self.gpu_milli) {
            most = most.min(u64::from(shares).saturating_mul(u64::from(free.gpus)));
        }
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    /// Sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.cpu = sum.cpu.plus(other.cpu);
        sum.memory = sum.memory.plus(other.memory);
        sum.gpus = sum.gpus.saturating_add(other.gpus);
        sum.gpu_milli = sum.gpu_milli.saturating_add(other.gpu_milli);
        for (name, amount) in &other.extended {
            let slot = sum.extended.entry(name.clone()).or_default();
            *slot = slot.saturating_add(*amount);
        }
        sum
    }

    /// What is left after `other`, each at least zero.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.cpu = rest.cpu.minus(other.cpu);
        rest.memory = rest.memory.minus(other.memory);
        rest.gpus = rest.gpus.saturating_sub(other.gpus);
        rest.gpu_milli = rest.gpu_milli.saturating_sub(other.gpu_milli);
        for (name, amount) in &other.extended {
            if let Some(slot) = rest.extended.get_mut(name) {
                *slot = slot.saturating_sub(*amount);
            }
        }
        rest
    }

    /// Takes off so many times another amount, each at least zero.
    pub fn take(&mut self, unit: &Self, times: u32) {
        let n = u64::from(times);
        self.cpu.0 = self.cpu.0.saturating_sub(unit.cpu.0.saturating_mul(n));
        self.memory.0 = self
            .memory
            .0
            .saturating_sub(unit.memory.0.saturating_mul(n));
        self.gpus = self.gpus.saturating_sub(unit.gpus.saturating_mul(times));
        for (name, amount) in &unit.extended {
            if let Some(slot) = self.extended.get_mut(name) {
                *slot = slot.saturating_sub(amount.saturating_mul(n));
            }
        }
    }

    /// `count` times this.
    #[must_use]
    pub fn scaled(&self, count: u32) -> Self {
        let n = u64::from(count);
        Self {
            cpu: MilliCpu(self.cpu.0.saturating_mul(n)),
            memory: Bytes(self.memory.0.saturating_mul(n)),
            gpus: self.gpus.saturating_mul(count),
            gpu_milli: self.gpu_milli.saturating_mul(count),
            extended: self
                .extended
                .iter()
                .map(|(k, v)| (k.clone(), v.saturating_mul(n)))
                .collect(),
        }
    }

    /// True when every amount is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.cpu.0 == 0
            && self.memory.0 == 0
            && self.gpus == 0
            && self.gpu_milli == 0
            && self.extended.values().all(|v| *v == 0)
    }
}
