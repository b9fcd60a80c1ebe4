//! How loudly a trouble is told that comes again with every try. Pure.
//!
//! Called by `session`. The log of a node that is refused for a week stays readable.

/// Told at least every so many times.
const AT_LEAST_EVERY: u64 = 64;

/// What to do with a trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loudness {
    /// It is new.
    Warn,
    /// It goes on; with how often it came.
    Remind(u64),
    /// It was told lately.
    Quiet,
}

/// The trouble of before, and how often it came in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repeats {
    last: String,
    times: u64,
}

impl Repeats {
    /// A trouble came: new ones loudly, the same again at 2, 4, 8, .. 64, 128, 192 times.
    pub fn came(&mut self, trouble: &str) -> Loudness {
        if self.times == 0 || self.last != trouble {
            trouble.clone_into(&mut self.last);
            self.times = 1;
            return Loudness::Warn;
        }
        self.times += 1;
        if self.times.is_power_of_two() || self.times.is_multiple_of(AT_LEAST_EVERY) {
            Loudness::Remind(self.times)
        } else {
            Loudness::Quiet
        }
    }

    /// All was well in between.
    pub fn over(&mut self) {
        self.times = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_trouble_is_warned_of_once_and_then_rarely_told() {
        let mut repeats = Repeats::default();
        let told: Vec<(u64, Loudness)> = (1..=200)
            .map(|time| (time, repeats.came("refused")))
            .filter(|(_, loudness)| *loudness != Loudness::Quiet)
            .collect();
        let mut want = vec![(1, Loudness::Warn)];
        want.extend([2, 4, 8, 16, 32, 64, 128, 192].map(|time| (time, Loudness::Remind(time))));
        assert_eq!(told, want);
        assert_eq!(repeats.came("no connection"), Loudness::Warn);
        assert_eq!(repeats.came("refused"), Loudness::Warn);
        repeats.over();
        assert_eq!(repeats.came("refused"), Loudness::Warn);
    }
}
