//! Quantities on the command line and in tables: durations with a unit ("8h", "1h30m"), sizes ("64GiB"), CPUs ("0.5"),
//! and how ages, sizes, prices and moments are shown. Used by every noun; knows nothing of the wire.

const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// A span with a unit, in milliseconds. Parts add up: "1h30m".
///
/// # Errors
/// The text as it should be, when the unit is missing or unknown.
pub fn parse_ms(text: &str) -> Result<u64, String> {
    const FIX: &str = "write a number with a unit, like 500ms, 10s, 5m, 8h or 2d";
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(format!("empty duration; {FIX}"));
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        if number.is_empty() {
            return Err(format!("{text:?} is not a duration; {FIX}"));
        }
        let letters = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        if unit.is_empty() {
            return Err(format!("{text:?} has no unit; {FIX}"));
        }
        let Some((_, ms)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("{unit:?} is not a unit of time; {FIX}"));
        };
        let part = number.parse::<u64>().ok().and_then(|n| n.checked_mul(*ms));
        total = part
            .and_then(|part| total.checked_add(part))
            .ok_or_else(|| format!("{text:?} is too long"))?;
        rest = next;
    }
    Ok(total)
}

/// As [`parse_ms`], but not zero.
///
/// # Errors
/// As [`parse_ms`], and for zero.
pub fn parse_ms_positive(text: &str) -> Result<u64, String> {
    match parse_ms(text)? {
        0 => Err(format!("{text:?} is no time at all; give at least 1ms")),
        ms => Ok(ms),
    }
}

/// A size in bytes: "64GiB", "512MiB", "16GB".
///
/// # Errors
/// The text as it should be.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    const FIX: &str = "write a whole number with a unit, like 512MiB or 64GiB";
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale: u64 = match unit {
        "" => return Err(format!("{text:?} has no unit; {FIX}")),
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return Err(format!("{text:?} is not a size; {FIX}")),
    };
    match number
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(scale))
    {
        Some(0) => Err(format!("{text:?} is nothing; {FIX}")),
        Some(bytes) => Ok(bytes),
        None => Err(format!("{text:?} is not a size; {FIX}")),
    }
}

/// CPUs in thousandths: "4", "0.5".
///
/// # Errors
/// The text as it should be.
pub fn parse_milli_cpus(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a number of CPUs; write it like 4 or 0.5");
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if part.is_empty() || part.len() > 3 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let part: u64 = format!("{part:0<3}").parse().map_err(|_| wrong())?;
    match whole.checked_mul(1_000).map(|w| w.saturating_add(part)) {
        Some(milli) if milli > 0 => Ok(milli),
        _ => Err(wrong()),
    }
}

/// A span as kubectl shows ages: the largest unit, two where that is small ("45s", "3m10s", "12m", "5h20m", "3d").
#[must_use]
pub fn span(ms: u64) -> String {
    let s = ms / 1_000;
    let two = |big: u64, unit: &str, small: u64, small_unit: &str| {
        if small == 0 {
            format!("{big}{unit}")
        } else {
            format!("{big}{unit}{small}{small_unit}")
        }
    };
    match s {
        0..120 => format!("{s}s"),
        120..600 => two(s / 60, "m", s % 60, "s"),
        600..10_800 => format!("{}m", s / 60),
        10_800..86_400 => two(s / 3_600, "h", s % 3_600 / 60, "m"),
        86_400..691_200 => two(s / 86_400, "d", s % 86_400 / 3_600, "h"),
        _ => format!("{}d", s / 86_400),
    }
}

/// A span exactly as one writes it: "8h", "1h30m", "250ms".
#[must_use]
pub fn exact(ms: u64) -> String {
    if ms == 0 {
        return "0s".to_owned();
    }
    let mut rest = ms;
    let mut text = String::new();
    for (unit, size) in UNITS.iter().rev() {
        if rest >= *size {
            text.push_str(&format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    text
}

/// Age of a moment; "-" when it is not known.
#[must_use]
pub fn age(now_unix_ms: u64, then_unix_ms: Option<u64>) -> String {
    then_unix_ms.map_or_else(
        || "-".to_owned(),
        |then| span(now_unix_ms.saturating_sub(then)),
    )
}

/// A moment in UTC, to the second.
#[must_use]
pub fn moment(unix_ms: u64) -> String {
    i64::try_from(unix_ms / 1_000)
        .ok()
        .and_then(|s| jiff::Timestamp::from_second(s).ok())
        .map_or_else(|| "-".to_owned(), |t| t.to_string())
}

/// Bytes with one decimal in the largest unit of 1,024 that fits.
#[must_use]
pub fn bytes(n: u64) -> String {
    const NAMES: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut scale: u64 = 1;
    while unit + 1 < NAMES.len() && n / scale >= 1_024 {
        scale *= 1_024;
        unit += 1;
    }
    let tenths = (u128::from(n) * 10 + u128::from(scale) / 2) / u128::from(scale);
    if tenths.is_multiple_of(10) {
        format!("{}{}", tenths / 10, NAMES[unit])
    } else {
        format!("{}.{}{}", tenths / 10, tenths % 10, NAMES[unit])
    }
}

/// Thousandths of CPUs.
#[must_use]
pub fn cpus(milli: u64) -> String {
    if milli.is_multiple_of(1_000) {
        (milli / 1_000).to_string()
    } else {
        format!("{}.{:03}", milli / 1_000, milli % 1_000)
            .trim_end_matches('0')
            .to_owned()
    }
}

/// A price: "14.40".
#[must_use]
pub fn usd(micro: u64) -> String {
    let cents = (u128::from(micro) + 5_000) / 10_000;
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Now, milliseconds since 1970.
#[must_use]
pub fn now_unix_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        for (text, ms) in [
            ("8h", 28_800_000),
            ("1h30m", 5_400_000),
            ("500ms", 500),
            ("2d", 172_800_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_ms(text), Ok(ms), "{text}");
            assert_eq!(parse_ms(&exact(ms)), Ok(ms), "{text}");
        }
        for (text, needle) in [
            ("8", "no unit"),
            ("", "empty"),
            ("h", "not a duration"),
            ("8 h", "not a unit"),
            ("8w", "not a unit"),
            ("1h30", "no unit"),
            ("-1h", "not a duration"),
            ("99999999999999999999d", "too long"),
        ] {
            let error = parse_ms(text).expect_err(text);
            assert!(error.contains(needle), "{text}: {error}");
        }
        assert!(parse_ms_positive("0h").is_err());
    }

    #[test]
    fn sizes_and_cpus_need_sense() {
        assert_eq!(parse_bytes("64GiB"), Ok(64 << 30));
        assert_eq!(parse_bytes("16GB"), Ok(16_000_000_000));
        assert_eq!(parse_milli_cpus("4"), Ok(4_000));
        assert_eq!(parse_milli_cpus("0.5"), Ok(500));
        for text in ["64", "64G", "0GiB", "GiB", "1.5GiB", "99999999999TiB"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
        for text in ["", "0", "0.0", "1.2345", "-1", "four", "1."] {
            assert!(parse_milli_cpus(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ages_read_like_kubectls() {
        for (ms, text) in [
            (0, "0s"),
            (119_999, "119s"),
            (190_000, "3m10s"),
            (720_000, "12m"),
            (19_200_000, "5h20m"),
            (86_400_000 * 3, "3d"),
            (86_400_000 * 40, "40d"),
        ] {
            assert_eq!(span(ms), text);
        }
        assert_eq!(age(5_000, None), "-");
        assert_eq!(age(1_000, Some(9_000)), "0s");
    }

    #[test]
    fn amounts_are_short() {
        assert_eq!(bytes(1_023), "1023B");
        assert_eq!(bytes(64 << 30), "64GiB");
        assert_eq!(bytes((3 << 30) / 2), "1.5GiB");
        assert_eq!(cpus(1_500), "1.5");
        assert_eq!(cpus(12_000), "12");
        assert_eq!(usd(14_400_000), "14.40");
        assert_eq!(moment(1_700_000_000_123), "2023-11-14T22:13:20Z");
    }
}
