//! Sources of demand that fail or shrink. Called when one was read.

use crate::control::cycle::{Control, Round};
use crate::control::events::Happening;
use crate::ports::demand::DemandReading;
use drover_core::model::Millis;
use drover_core::rules::idle::lost_half;

/// A source that shrank must say the same for this long.
const CONFIRM: Millis = Millis(60_000);

impl Control {
    /// A source that fails, or that loses half of what it reported a cycle ago, holds shrinking until it is confirmed.
    /// Drover's own requests are exact and need no confirming.
    pub(in crate::control) fn guard_source(
        &mut self,
        round: &mut Round,
        name: &str,
        reading: Result<&DemandReading, &str>,
        left: u64,
    ) {
        match reading {
            Err(message) => {
                let why = format!("source {name} cannot be read");
                let news = self
                    .seen
                    .doubtful
                    .insert(name.to_owned(), (why, round.mono))
                    .is_none();
                if news {
                    round.events.push(Happening::SourceFailed {
                        source: name.to_owned(),
                        message: message.to_owned(),
                    });
                }
            }
            Ok(reading) => {
                let units = reading
                    .classes
                    .iter()
                    .fold(0_u32, |sum, class| sum.saturating_add(class.count));
                let before = self.seen.units.insert(name.to_owned(), units);
                let left_before = self.seen.left.insert(name.to_owned(), left);
                let gone = left.saturating_sub(left_before.unwrap_or(left));
                let gone = u32::try_from(gone).unwrap_or(u32::MAX);
                let shrank = name != crate::ports::demand::REQUESTS
                    && before.is_some_and(|before| lost_half(before, units.saturating_add(gone)));
                if shrank {
                    let before = before.unwrap_or_default();
                    let why = format!("source {name} fell from {before} to {units} units");
                    self.seen
                        .doubtful
                        .insert(name.to_owned(), (why, round.mono));
                    round.events.push(Happening::SourceShrunk {
                        source: name.to_owned(),
                        before,
                        now: units,
                    });
                    return;
                }
                let failed = self
                    .seen
                    .doubtful
                    .get(name)
                    .is_some_and(|(why, _)| why.ends_with("cannot be read"));
                let confirmed =
                    self.seen.doubtful.get(name).is_some_and(|(_, since)| {
                        round.mono.0.saturating_sub(since.0) >= CONFIRM.0
                    });
                if failed || confirmed {
                    self.seen.doubtful.remove(name);
                    round.events.push(Happening::SourceBack {
                        source: name.to_owned(),
                    });
                }
            }
        }
    }
}
