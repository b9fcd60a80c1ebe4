//! Values as people write them: durations ("500ms", "10s", "8h"), sizes ("64GiB"), percent and money.
//!
//! Called by the config reader and by the CLI for its flags. Never guesses a unit.

use drover_core::model::{Bytes, Quota};
use std::time::Duration;
use toml::de::DeValue;

const SPANS: [(&str, u64); 5] = [
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

/// Number and unit apart, the product of both, or what is wrong.
fn counted(text: &str, units: &[(&str, u64)], what: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = trimmed.split_at(digits);
    let unit = unit.trim();
    let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
    if number.is_empty() {
        return Err(format!("{text:?} is no {what}: a whole number and a unit"));
    }
    if unit.is_empty() {
        return Err(format!(
            "{text:?} has no unit (units: {})",
            names.join(", ")
        ));
    }
    let (_, factor) = units
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(|| format!("{text:?} has an unknown unit (units: {})", names.join(", ")))?;
    number
        .parse::<u64>()
        .ok()
        .and_then(|count| count.checked_mul(*factor))
        .ok_or_else(|| format!("{text:?} is too large"))
}

/// A duration: a whole number and one of ms, s, m, h, d.
///
/// # Errors
/// What is wrong with it.
pub fn duration(text: &str) -> Result<Duration, String> {
    counted(text, &SPANS, "duration").map(Duration::from_millis)
}

/// A size: a whole number and one of B, KiB, MiB, GiB, TiB, KB, MB, GB, TB.
///
/// # Errors
/// What is wrong with it.
pub fn size(text: &str) -> Result<Bytes, String> {
    counted(text, &SIZES, "size").map(Bytes)
}

/// CPUs as a number with at most three decimals; thousandths.
pub(super) fn milli_cpus(value: &DeValue<'_>) -> Result<u64, String> {
    let text = match value {
        DeValue::Integer(number) => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        other => return Err(format!("is a {}", other.type_str())),
    };
    let bad = || format!("{text} is no number of CPUs");
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 3 {
        return Err(bad());
    }
    let part: u64 = format!("{part:0<3}").parse().map_err(|_| bad())?;
    whole
        .parse::<u64>()
        .ok()
        .and_then(|whole| whole.checked_mul(1_000)?.checked_add(part))
        .filter(|milli| *milli > 0)
        .ok_or_else(bad)
}

/// "10%", a whole number from 0 to 100.
///
/// # Errors
/// What is wrong with it.
pub fn percent(text: &str) -> Result<u32, String> {
    text.trim()
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<u32>().ok())
        .filter(|number| *number <= 100)
        .ok_or_else(|| format!("{text:?} is no percentage from 0% to 100%"))
}

pub(super) fn quota(value: &DeValue<'_>) -> Result<Quota, String> {
    match value {
        DeValue::String(text) => percent(text).map(Quota::Percent),
        DeValue::Integer(number) => number
            .as_str()
            .parse()
            .map(Quota::Count)
            .map_err(|_| "is out of range".to_owned()),
        other => Err(format!("is a {}", other.type_str())),
    }
}

/// USD as a number with at most six decimals that count; micro-USD. No floating point is involved.
pub(super) fn usd(value: &DeValue<'_>) -> Result<u64, String> {
    let text = match value {
        DeValue::Integer(number) => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        other => return Err(format!("is a {}", other.type_str())),
    };
    let bad = || format!("{text} is no amount of USD");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) {
        return Err(bad());
    }
    let micros: String = part.chars().chain("000000".chars()).take(6).collect();
    whole
        .parse::<u64>()
        .ok()
        .and_then(|whole| whole.checked_mul(1_000_000))
        .and_then(|whole| whole.checked_add(micros.parse().ok()?))
        .ok_or_else(bad)
}

/// Any text.
pub(crate) fn any_text(value: &DeValue<'_>) -> Result<String, String> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("is a {}", value.type_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_is_read_and_none_is_guessed() {
        for (text, ms) in [
            ("500ms", 500),
            (" 10 s", 10_000),
            ("5m", 300_000),
            ("8h", 28_800_000),
            ("2d", 172_800_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["10", "5min", "1.5h", "s", "-5s", "", "99999999999999999d"] {
            assert!(duration(text).is_err(), "{text}");
        }
        for (text, bytes) in [("64GiB", 64 << 30), ("1 TB", 1_000_000_000_000), ("0B", 0)] {
            assert_eq!(size(text), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["64", "64G", "GiB", "99999999999TiB"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert_eq!(percent("10%"), Ok(10));
        for text in ["10", "101%", "%", "-1%"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn money_is_exact() {
        let read = |text: &str| {
            let doc = format!("x = {text}");
            let table = toml::de::DeTable::parse(&doc).expect("TOML").into_inner();
            let (_, value) = table.iter().next().expect("one");
            usd(value.get_ref())
        };
        assert_eq!(read("14.4"), Ok(14_400_000));
        assert_eq!(read("500"), Ok(500_000_000));
        assert_eq!(read("0.000001"), Ok(1));
        assert_eq!(read("0.1234567"), Ok(123_456));
        for bad in ["-1.0", "nan", "inf", "1e3", "\"5\"", "true"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
