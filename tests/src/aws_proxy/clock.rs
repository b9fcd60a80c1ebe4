//! Times as AWS writes them.
//!
//! Used by everything in the proxy that dates what it says.

use std::time::{SystemTime, UNIX_EPOCH};

/// The present, milliseconds since 1970.
pub(super) fn now_unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// `2026-01-02T03:04:05Z`, as activities' causes and events have it.
pub(super) fn seconds(unix_ms: u64) -> String {
    let text = rfc3339(unix_ms);
    format!("{}Z", text.split('.').next().unwrap_or_default())
}

/// `2026-01-02T03:04:05.678Z`; the civil date by Howard Hinnant's algorithm (days_from_civil, inverted).
pub(super) fn rfc3339(unix_ms: u64) -> String {
    let (days, of_day) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}.{:03}Z",
        of_day / 1_000 % 60,
        of_day % 1_000
    )
}

#[cfg(test)]
mod tests {
    use super::{rfc3339, seconds};

    #[test]
    fn times_are_written_as_aws_writes_them() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(seconds(1_999), "1970-01-01T00:00:01Z");
        assert_eq!(rfc3339(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(rfc3339(1_796_083_199_999), "2026-11-30T23:59:59.999Z");
    }
}
