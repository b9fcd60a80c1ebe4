//! Values that the coordinator's config alone has: percent, quotas, money, CPUs, sizes as [`Bytes`]. No floating point is
//! involved.
//!
//! Called by the parts of `config`.

use drover_config::{Section, UnitError, kind};
use drover_core::model::{Bytes, Quota};
use toml::de::DeValue;

/// What a section of the coordinator's config can be asked beside what every section can.
pub(super) trait Amounts {
    /// An amount of money, as a number of USD; micro-USD.
    fn usd(&self, key: &'static str) -> Option<u64>;
    /// A number of CPUs; thousandths.
    fn cpus(&self, key: &'static str) -> Option<u64>;
    /// A number or a text in percent.
    fn quota(&self, key: &'static str) -> Option<Quota>;
}

impl Amounts for Section<'_> {
    fn usd(&self, key: &'static str) -> Option<u64> {
        self.valued(key, &format!("write USD, as in {key} = 14.4"), usd)
    }

    fn cpus(&self, key: &'static str) -> Option<u64> {
        let fix = format!("write a number, as in {key} = 4 or {key} = 0.5");
        self.valued(key, &fix, milli_cpus)
    }

    fn quota(&self, key: &'static str) -> Option<Quota> {
        let fix = format!("write {key} = \"10%\" or a number of nodes");
        self.valued(key, &fix, quota)
    }
}

/// A size: a whole number and a unit.
///
/// # Errors
/// What is wrong with it.
pub(super) fn size(text: &str) -> Result<Bytes, UnitError> {
    drover_config::size(text).map(Bytes)
}

/// CPUs as a number with at most three decimals; thousandths.
fn milli_cpus(value: &DeValue<'_>) -> Result<u64, String> {
    let text = match value {
        DeValue::Integer(number) => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        other => return Err(kind(other)),
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
pub(super) fn percent(text: &str) -> Result<u32, String> {
    text.trim()
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<u32>().ok())
        .filter(|number| *number <= 100)
        .ok_or_else(|| format!("{text:?} is no percentage from 0% to 100%"))
}

fn quota(value: &DeValue<'_>) -> Result<Quota, String> {
    match value {
        DeValue::String(text) => percent(text).map(Quota::Percent),
        DeValue::Integer(number) => number
            .as_str()
            .parse()
            .map(Quota::Count)
            .map_err(|_| "is out of range".to_owned()),
        other => Err(kind(other)),
    }
}

/// USD as a number with at most six decimals that count; micro-USD.
pub(super) fn usd(value: &DeValue<'_>) -> Result<u64, String> {
    let text = match value {
        DeValue::Integer(number) => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        other => return Err(kind(other)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_has_its_sign() {
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
