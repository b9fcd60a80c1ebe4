//! Amounts, moments, spans and names in words. Used by `explain` only.

use crate::model::{Bytes, FailureKind, Mode, Resources, Source, UnixMs};

/// An amount in words: "8 GPUs, 4 CPUs, 16 GiB".
pub(super) fn amount(unit: &Resources) -> String {
    let mut parts = Vec::new();
    if unit.gpus > 0 {
        parts.push(plural(unit.gpus, "GPU"));
    }
    if unit.cpu.0 > 0 {
        let (whole, rest) = (unit.cpu.0 / 1000, unit.cpu.0 % 1000);
        let text = if rest == 0 {
            whole.to_string()
        } else {
            format!("{whole}.{rest:03}")
                .trim_end_matches('0')
                .to_owned()
        };
        parts.push(format!("{text} CPU"));
    }
    if unit.memory.0 > 0 {
        parts.push(bytes(unit.memory));
    }
    parts.extend(unit.extended.iter().map(|(name, n)| format!("{n} {name}")));
    if parts.is_empty() {
        "a node".to_owned()
    } else {
        parts.join(", ")
    }
}

pub(super) fn bytes(n: Bytes) -> String {
    const MIB: u64 = 1 << 20;
    match n.0 {
        b if b >= 1024 * MIB && b % (1024 * MIB) == 0 => format!("{} GiB", b / (1024 * MIB)),
        b if b >= MIB => format!("{} MiB", b.div_ceil(MIB)),
        b => format!("{b} bytes"),
    }
}

/// A moment in UTC; the date only when it is another day.
pub(super) fn clock(at: UnixMs, now: UnixMs) -> String {
    const DAY_MS: u64 = 86_400_000;
    let seconds = at.0 % DAY_MS / 1_000;
    let (hour, minute) = (seconds / 3_600, seconds / 60 % 60);
    let time = format!("{hour:02}:{minute:02}:{:02} UTC", seconds % 60);
    if at.0 / DAY_MS == now.0 / DAY_MS {
        return time;
    }
    let (year, month, day) = civil(at.0 / DAY_MS);
    format!("{year:04}-{month:02}-{day:02} {time}")
}

/// Year, month and day of a day since 1970 (Howard Hinnant's days-to-civil, for days not before 1970).
pub(super) fn civil(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let doe = z % 146_097;
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (
        yoe + era * 400 + u64::from(month <= 2),
        month,
        doy - (153 * mp + 2) / 5 + 1,
    )
}

pub(super) fn span(ms: u64) -> String {
    match ms / 1000 {
        s if s < 120 => format!("{s} s"),
        s if s < 7_200 => format!("{} min", s / 60),
        s => format!("{} h", s / 3_600),
    }
}

pub(super) fn plural(n: u32, word: &str) -> String {
    if n == 1 {
        format!("1 {word}")
    } else {
        format!("{n} {word}s")
    }
}

pub(super) fn source_name(source: &Source) -> String {
    match source {
        Source::Request(name) => format!("request {name}"),
        Source::Scheduler(name) => name.clone(),
    }
}

pub(super) fn names(sources: &[Source]) -> String {
    if sources.is_empty() {
        return "demand".to_owned();
    }
    let all: Vec<String> = sources.iter().map(source_name).collect();
    all.join(", ")
}

pub(super) fn listed(what: &[String]) -> String {
    if what.is_empty() {
        "something".to_owned()
    } else {
        what.join(", ")
    }
}

pub(super) fn because(why: &str) -> String {
    if why.is_empty() {
        String::new()
    } else {
        format!(": {why}")
    }
}

pub(super) fn below(minimum: u32, spare: u32) -> String {
    match (minimum, spare) {
        (0, s) => format!("{s} short of its spare"),
        (m, 0) => format!("{m} below minimum"),
        (m, s) => format!("{m} below minimum, {s} short of its spare"),
    }
}

pub(super) fn mode_text(mode: Mode) -> &'static str {
    match mode {
        Mode::Observe => "in mode observe: planned, not done",
        Mode::Grow => "in mode grow: never removes",
        Mode::Full => "in mode full",
    }
}

/// A kind of failure in words.
pub(super) fn failure_name(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Shortage => "shortage",
        FailureKind::Quota => "quota",
        FailureKind::Price => "spot price",
        FailureKind::Config => "config",
        FailureKind::Permission => "permission",
        FailureKind::Suspended => "launch suspended",
        FailureKind::Throttle => "throttled",
        FailureKind::Transient => "passing trouble",
        FailureKind::NeverJoined => "never joined",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_in_words() {
        let now = UnixMs(1_764_425_100_000); // 2025-11-29 14:05 UTC
        assert_eq!(clock(now, now), "14:05:00 UTC");
        assert_eq!(clock(UnixMs(0), now), "1970-01-01 00:00:00 UTC");
        assert_eq!(
            clock(UnixMs(951_782_400_000), now),
            "2000-02-29 00:00:00 UTC"
        );
    }
}
