//! Which units with GPUs came since a source was last read: what `rules::learn` learns from.
//!
//! Called while demand is read; `learning` takes what was found and keeps what comes of it. Who waited at the last
//! reading is not durable: after a restart what waits is counted once more, little among the arrivals of days.

use super::seen::Seen;
use crate::ports::demand::DemandReading;
use drover_core::model::Class;
use std::collections::{BTreeMap, BTreeSet};

/// Who waits with GPUs, per source, in its last good reading; and who came and was not learnt from yet.
#[derive(Debug, Default)]
pub struct Arrivals {
    waiting: BTreeMap<String, BTreeSet<String>>,
    /// Units by class.
    pub came: Vec<(Class, u32)>,
}

impl Seen {
    /// Counts the units of a good reading that were not there in the one before.
    pub(super) fn arrivals(&mut self, source: &str, reading: &DemandReading) {
        let before = self.arrivals.waiting.remove(source).unwrap_or_default();
        let mut here = BTreeSet::new();
        for (class, members) in reading.classes.iter().zip(&reading.members) {
            if class.unit.gpus == 0 && class.unit.gpu_milli == 0 {
                continue;
            }
            let fresh = members.0.iter().filter(|name| !before.contains(*name));
            let fresh = u32::try_from(fresh.count()).unwrap_or(u32::MAX);
            // A request is one member with many units.
            let each = u32::try_from(members.0.len()).is_ok_and(|n| n >= class.count);
            let units = match fresh {
                0 => 0,
                fresh if each => fresh,
                _ => class.count,
            };
            if units > 0 {
                self.arrivals.came.push((class.clone(), units));
            }
            here.extend(members.0.iter().cloned());
        }
        self.arrivals.waiting.insert(source.to_owned(), here);
    }
}
