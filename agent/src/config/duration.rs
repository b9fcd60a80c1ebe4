//! Durations as people write them: a whole number and a unit ("500ms", "10s", "5m", "8h", "2d").
//!
//! Called by the config reader and the CLI. Never guesses a unit.

use std::time::Duration;

/// Units, longest names first so that "ms" is not read as "m".
const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Digits without a unit.
    #[error("{0:?} has no unit: write \"{0}s\" for seconds (units: ms, s, m, h, d)")]
    NoUnit(String),
    /// A unit that is none of ours.
    #[error("{0:?} has an unknown unit: use ms, s, m, h or d")]
    UnknownUnit(String),
    /// No number in front.
    #[error("{0:?} is no duration: write a whole number and a unit, as in \"10s\"")]
    NoNumber(String),
    /// Too large.
    #[error("{0:?} is too long")]
    TooLong(String),
}

/// Reads one duration.
///
/// # Errors
/// Says what is wrong and how to write it.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let trimmed = text.trim();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = trimmed.split_at(digits);
    if number.is_empty() {
        return Err(DurationError::NoNumber(text.to_owned()));
    }
    let unit = unit.trim();
    if unit.is_empty() {
        return Err(DurationError::NoUnit(number.to_owned()));
    }
    let (_, unit_ms) = UNITS
        .into_iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(|| DurationError::UnknownUnit(text.to_owned()))?;
    number
        .parse::<u64>()
        .ok()
        .and_then(|count| count.checked_mul(unit_ms))
        .map(Duration::from_millis)
        .ok_or_else(|| DurationError::TooLong(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_unit_and_refuses_the_rest() {
        for (text, ms) in [
            ("500ms", 500),
            ("10s", 10_000),
            ("5m", 300_000),
            ("8h", 28_800_000),
            ("2d", 172_800_000),
            (" 3 s ", 3_000),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(parse("10"), Err(DurationError::NoUnit("10".into())));
        assert_eq!(
            parse("5min"),
            Err(DurationError::UnknownUnit("5min".into()))
        );
        assert_eq!(
            parse("1.5h"),
            Err(DurationError::UnknownUnit("1.5h".into()))
        );
        assert_eq!(parse("s"), Err(DurationError::NoNumber("s".into())));
        assert_eq!(parse("-5s"), Err(DurationError::NoNumber("-5s".into())));
        assert_eq!(parse(""), Err(DurationError::NoNumber(String::new())));
        let huge = "99999999999999999999d";
        assert_eq!(parse(huge), Err(DurationError::TooLong(huge.into())));
    }
}
