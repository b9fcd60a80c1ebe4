//! Durations and sizes as people write them: a whole number and a unit ("500ms", "10s", "8h", "64GiB").
//!
//! Called by [`Section`](crate::Section), and by command lines for their flags. Never guesses a unit.

use std::time::Duration;

const DURATIONS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

const SIZES: [(&str, u64); 9] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Time.
    Duration,
    /// Bytes.
    Size,
}

impl Measure {
    fn units(self) -> &'static [(&'static str, u64)] {
        match self {
            Self::Duration => &DURATIONS,
            Self::Size => &SIZES,
        }
    }

    fn names(self) -> String {
        let names: Vec<&str> = self.units().iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Duration => "duration",
            Self::Size => "size",
        }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Duration => "10s",
            Self::Size => "64GiB",
        }
    }

    /// The unit that a number without one may have meant, and its name.
    fn likely(self) -> (&'static str, &'static str) {
        match self {
            Self::Duration => ("s", "seconds"),
            Self::Size => ("GiB", "gibibytes"),
        }
    }
}

/// Why a text is no amount of something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// No number in front.
    #[error("{text:?} is no {}: write a whole number and a unit, as in \"{}\"", .measure.noun(), .measure.example())]
    NoNumber {
        /// As written.
        text: String,
        /// What it should be.
        measure: Measure,
    },
    /// Digits without a unit.
    #[error("{number:?} has no unit: write \"{number}{}\" for {} (units: {})", .measure.likely().0, .measure.likely().1, .measure.names())]
    NoUnit {
        /// The digits.
        number: String,
        /// What it should be.
        measure: Measure,
    },
    /// A unit that is none of ours.
    #[error("{text:?} has an unknown unit (units: {})", .measure.names())]
    UnknownUnit {
        /// As written.
        text: String,
        /// What it should be.
        measure: Measure,
    },
    /// Too large.
    #[error("{0:?} is too large")]
    TooLarge(String),
}

/// A duration: a whole number and one of ms, s, m, h, d.
///
/// # Errors
/// Says what is wrong and how to write it.
pub fn duration(text: &str) -> Result<Duration, UnitError> {
    counted(text, Measure::Duration).map(Duration::from_millis)
}

/// A size: a whole number and one of B, KiB, MiB, GiB, TiB, KB, MB, GB, TB; bytes.
///
/// # Errors
/// Says what is wrong and how to write it.
pub fn size(text: &str) -> Result<u64, UnitError> {
    counted(text, Measure::Size)
}

/// Number times unit.
fn counted(text: &str, measure: Measure) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = trimmed.split_at(digits);
    let unit = unit.trim();
    let text = || text.to_owned();
    if number.is_empty() {
        let text = text();
        return Err(UnitError::NoNumber { text, measure });
    }
    if unit.is_empty() {
        let number = number.to_owned();
        return Err(UnitError::NoUnit { number, measure });
    }
    let mut units = measure.units().iter();
    let Some((_, factor)) = units.find(|(name, _)| *name == unit) else {
        let text = text();
        return Err(UnitError::UnknownUnit { text, measure });
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|count| count.checked_mul(*factor))
        .ok_or_else(|| UnitError::TooLarge(text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_of_time_is_read_and_none_is_guessed() {
        for (text, ms) in [
            ("500ms", 500),
            ("10s", 10_000),
            ("5m", 300_000),
            ("8h", 28_800_000),
            ("2d", 172_800_000),
            (" 3 s ", 3_000),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        let huge = "99999999999999999999d";
        for (text, says) in [
            (
                "10",
                "\"10\" has no unit: write \"10s\" for seconds (units: ms, s, m, h, d)",
            ),
            (
                "5min",
                "\"5min\" has an unknown unit (units: ms, s, m, h, d)",
            ),
            (
                "1.5h",
                "\"1.5h\" has an unknown unit (units: ms, s, m, h, d)",
            ),
            (
                "s",
                "\"s\" is no duration: write a whole number and a unit, as in \"10s\"",
            ),
            (
                "-5s",
                "\"-5s\" is no duration: write a whole number and a unit, as in \"10s\"",
            ),
            (
                "",
                "\"\" is no duration: write a whole number and a unit, as in \"10s\"",
            ),
            (huge, "\"99999999999999999999d\" is too large"),
            ("9999999999999d", "\"9999999999999d\" is too large"),
        ] {
            let told = duration(text).map_err(|error| error.to_string());
            assert_eq!(told, Err(says.to_owned()));
        }
    }

    #[test]
    fn each_unit_of_size_is_read_and_none_is_guessed() {
        for (text, bytes) in [
            ("0B", 0),
            ("3KiB", 3 << 10),
            ("64GiB", 64 << 30),
            ("2KB", 2_000),
            ("1 TB", 1_000_000_000_000),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        let units = "(units: B, KiB, MiB, GiB, TiB, KB, MB, GB, TB)";
        for (text, says) in [
            (
                "64",
                format!("\"64\" has no unit: write \"64GiB\" for gibibytes {units}"),
            ),
            ("64G", format!("\"64G\" has an unknown unit {units}")),
            (
                "GiB",
                "\"GiB\" is no size: write a whole number and a unit, as in \"64GiB\"".to_owned(),
            ),
            (
                "99999999999TiB",
                "\"99999999999TiB\" is too large".to_owned(),
            ),
        ] {
            let told = size(text).map_err(|error| error.to_string());
            assert_eq!(told, Err(says));
        }
    }
}
