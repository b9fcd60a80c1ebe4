//! Amounts, moments, spans and names in words. Used by `explain` only.

use crate::model::{Bytes, FailureKind, Locality, Mode, Resources, Source, UnixMs};

/// An amount in words: "8 GPUs, 4 CPUs, 16 GiB".
pub(super) fn amount(unit: &Resources) -> String {
    let mut parts = Vec::new();
    if unit.gpus > 0 {
        parts.push(plural(unit.gpus, "GPU"));
    }
    if unit.gpu_milli > 0 {
        parts.push(format!("{} of a GPU", thousandths(unit.gpu_milli.into())));
    }
    if unit.cpu.0 > 0 {
        parts.push(cpus(unit.cpu.0));
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

/// What is wanted and what a node has of it: "8 GPUs wanted, a node has 4".
pub(super) fn lacks(wanted: &Resources, has: &Resources) -> String {
    let mut parts = Vec::new();
    let mut say =
        |want: String, has: String| parts.push(format!("{want} wanted, a node has {has}"));
    let none = |n: u64| {
        if n == 0 {
            "none".to_owned()
        } else {
            n.to_string()
        }
    };
    if wanted.gpus > 0 {
        say(plural(wanted.gpus, "GPU"), none(has.gpus.into()));
    }
    if wanted.gpu_milli > 0 {
        let share = thousandths(wanted.gpu_milli.into());
        say(format!("{share} of a GPU"), none(has.gpus.into()));
    }
    if wanted.cpu.0 > 0 {
        say(cpus(wanted.cpu.0), thousandths(has.cpu.0));
    }
    if wanted.memory.0 > 0 {
        say(bytes(wanted.memory), bytes(has.memory));
    }
    for (name, amount) in &wanted.extended {
        let have = has.extended.get(name).copied().unwrap_or(0);
        say(format!("{amount} {name}"), none(have));
    }
    if parts.is_empty() {
        "its nodes are too small".to_owned()
    } else {
        parts.join(", ")
    }
}

fn cpus(milli: u64) -> String {
    match milli {
        1_000 => "1 CPU".to_owned(),
        n => format!("{} CPUs", thousandths(n)),
    }
}

/// "0.5" of 500.
fn thousandths(n: u64) -> String {
    let (whole, rest) = (n / 1_000, n % 1_000);
    if rest == 0 {
        return whole.to_string();
    }
    let text = format!("{whole}.{rest:03}");
    text.trim_end_matches('0').to_owned()
}

/// What a class asks: "needs 8 GPUs on one node", "needs 2 to 4 times 8 GPUs at once in one zone".
pub(super) fn needs(
    unit: &Resources,
    whole_node: bool,
    gang: Option<(u32, u32)>,
    locality: Locality,
) -> String {
    let each = match (whole_node, unit.is_zero()) {
        (true, true) => "a whole node".to_owned(),
        (true, false) => format!("a whole node with {}", amount(unit)),
        (false, _) => amount(unit),
    };
    let together = match locality {
        Locality::Any => "",
        Locality::Site => " in one site",
        Locality::Zone => " in one zone",
        Locality::Pool => " in one pool",
        Locality::Node => " on one node",
    };
    match gang {
        Some((min, most)) if min < most => {
            format!("needs {min} to {most} times {each} at once{together}")
        }
        Some((min, _)) if min > 1 => format!("needs {min} times {each} at once{together}"),
        _ if unit.gpus > 1 && !whole_node => format!("needs {each} on one node"),
        _ => format!("needs {each}"),
    }
}

pub(super) fn are(n: u32) -> &'static str {
    if n == 1 { "is" } else { "are" }
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

/// What a failed offering is like, and how it failed.
pub(super) fn failed(kind: FailureKind) -> (&'static str, &'static str) {
    let what = match kind {
        FailureKind::Shortage | FailureKind::Price => "is out of capacity",
        FailureKind::Quota => "is at a limit of the account",
        FailureKind::Config | FailureKind::Permission | FailureKind::Suspended => "cannot launch",
        FailureKind::Throttle | FailureKind::Transient => "is left alone",
        FailureKind::NeverJoined => "is not tried",
    };
    (what, failure_name(kind))
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
