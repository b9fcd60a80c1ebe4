//! Disruption budgets of a pool, the `[[pool.disruption]]` tables: how many nodes may go at once, for which strategies of
//! removal, in which hours of the week.
//!
//! Read by `config::pools`; `control::input` expands the windows before the planner is called, which knows no calendar.
//! The calendar itself is cronexpr's and jiff's.

use super::values::Amounts as _;
use super::{DAY, SECOND, millis};
use cronexpr::{Crontab, MakeTimestamp};
use drover_config::Section;
use drover_core::model::{Disruption, Millis, Quota, UnixMs};
use std::collections::BTreeSet;

/// Strategies of removal that a budget can name.
const STRATEGIES: [&str; 5] = ["faulty", "expired", "empty", "surplus", "replaceable"];

/// Short forms of schedules, as Karpenter's budgets and cron know them.
const SHORT: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// One budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisruptionBudget {
    /// What people call it; unique in its pool.
    pub name: String,
    /// Most nodes from draining to leaving at once.
    pub most: Quota,
    /// For these strategies; empty: for all.
    pub strategies: BTreeSet<String>,
    /// When it holds; absent: always.
    pub window: Option<Window>,
}

impl DisruptionBudget {
    /// As the planner takes it, when it is in force.
    #[must_use]
    pub fn in_force(&self, now: UnixMs) -> Option<Disruption> {
        let until = match &self.window {
            Some(window) => Some(window.open_until(now)?),
            None => None,
        };
        Some(Disruption {
            most: self.most,
            strategies: self.strategies.clone(),
            until,
            name: self.name.clone(),
        })
    }
}

/// Hours that come again and again: each begins when the schedule says so and lasts as long as the others.
#[derive(Debug, Clone)]
pub struct Window {
    /// Schedule and time zone, as written.
    text: String,
    lasts: Millis,
    begins: Crontab,
}

impl PartialEq for Window {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, self.lasts) == (&other.text, other.lasts)
    }
}

impl Eq for Window {}

impl Window {
    /// From a cron schedule of five fields (or @daily and its like), an IANA time zone and how long it lasts.
    ///
    /// # Errors
    /// The schedule is none, or the time zone is not known here.
    pub fn new(schedule: &str, zone: &str, lasts: Millis) -> Result<Self, String> {
        let fields = SHORT
            .iter()
            .find(|(short, _)| *short == schedule.trim())
            .map_or(schedule, |(_, fields)| fields);
        let count = fields.split_whitespace().count();
        if count != 5 {
            return Err(format!("{schedule:?} has {count} fields and not 5"));
        }
        let text = format!("{fields} {zone}");
        let begins = cronexpr::parse_crontab(&text).map_err(|error| {
            let why = error.to_string();
            let last = why.lines().rfind(|line| !line.trim().is_empty());
            let why = last.unwrap_or(&why).trim_matches([' ', '^', '|']);
            format!("{text:?} is no schedule: {why}")
        })?;
        Ok(Self {
            text,
            lasts,
            begins,
        })
    }

    /// When the open window closes; absent while none is open. Of windows that overlap the last one counts.
    #[must_use]
    pub fn open_until(&self, now: UnixMs) -> Option<UnixMs> {
        // The first beginning after a moment, if it is not after now.
        let begun_after = |moment: UnixMs| {
            let at = MakeTimestamp::from_millisecond(i64::try_from(moment.0).ok()?).ok()?;
            let next = self.begins.find_next(at).ok()?.timestamp();
            let next = UnixMs(u64::try_from(next.as_millisecond()).ok()?);
            (next <= now).then_some(next)
        };
        // A beginning at the very moment of `now - lasts` has just closed.
        let mut begun = begun_after(UnixMs(now.0.saturating_sub(self.lasts.0)))?;
        // The latest beginning up to now, by halves: at most one a minute.
        let (mut low, mut high) = (begun, now);
        while high.0 - low.0 > 1 {
            let middle = UnixMs(low.0 + (high.0 - low.0) / 2);
            match begun_after(middle) {
                Some(later) => {
                    begun = later;
                    low = later;
                }
                None => high = middle,
            }
        }
        Some(begun.after(self.lasts))
    }
}

pub(super) fn read(sections: Vec<Section<'_>>) -> Vec<DisruptionBudget> {
    let mut names = BTreeSet::new();
    sections
        .into_iter()
        .filter_map(|section| {
            let budget = budget(&section, &mut names);
            section.finish();
            budget
        })
        .collect()
}

fn budget(section: &Section<'_>, names: &mut BTreeSet<String>) -> Option<DisruptionBudget> {
    let name = section.text("name", "write name = \"working-hours\"");
    section.require("name", "write name = \"working-hours\": reasons name it");
    if let Some(at) = &name
        && !names.insert(at.value.clone())
    {
        let message = format!("{:?} is the name of an earlier budget", at.value);
        let fix = "give each budget of a pool its own name";
        section.report(at.offset, "name", &message, fix);
    }
    let most = section.quota("nodes");
    let fix = "write nodes = \"10%\", a number, or 0 for none at all";
    section.require("nodes", fix);
    let fix = format!(
        "leave reasons out, or name some of {}",
        STRATEGIES.join(", ")
    );
    let reasons = section.texts("reasons", &fix).unwrap_or_default();
    for at in &reasons {
        if !STRATEGIES.contains(&at.value.as_str()) {
            let message = format!("{:?} is no strategy of removal", at.value);
            section.report(at.offset, "reasons", &message, &fix);
        }
    }
    Some(DisruptionBudget {
        name: name?.value,
        most: most?,
        strategies: reasons.into_iter().map(|at| at.value).collect(),
        window: window(section),
    })
}

fn window(section: &Section<'_>) -> Option<Window> {
    let schedule = section.text("schedule", "write schedule = \"0 9 * * 1-5\"");
    let lasts = section.duration("duration", SECOND * 60..=DAY * 31, "8h");
    let zone = section.text("time_zone", "write time_zone = \"Europe/Berlin\"");
    for (key, other, fix) in [
        (
            "schedule",
            "duration",
            "write duration = \"8h\" beside schedule",
        ),
        (
            "duration",
            "schedule",
            "write schedule = \"0 9 * * 1-5\" beside duration",
        ),
        (
            "time_zone",
            "schedule",
            "write schedule = \"0 9 * * 1-5\" beside time_zone",
        ),
    ] {
        if section.has(key) && !section.has(other) {
            let message = format!("stands without {other}");
            section.report(section.offset(), key, &message, fix);
        }
    }
    let (schedule, lasts) = (schedule?, lasts?);
    let (zone, at) = zone.map_or_else(
        || ("UTC".to_owned(), section.offset()),
        |at| (at.value, at.offset),
    );
    if jiff::tz::TimeZone::get(&zone).is_err() {
        let message = format!("{zone:?} is not in this machine's time zone database");
        let fix = "write a name such as \"UTC\" or \"Europe/Berlin\"; tzdata must be installed";
        section.report(at, "time_zone", &message, fix);
        return None;
    }
    match Window::new(&schedule.value, &zone, millis(lasts)) {
        Ok(window) => Some(window),
        Err(message) => {
            let fix = "write minute, hour, day, month and weekday, as in \"0 9 * * 1-5\"";
            section.report(schedule.offset, "schedule", &message, fix);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> UnixMs {
        let moment: jiff::Timestamp = text.parse().expect("a moment");
        UnixMs(u64::try_from(moment.as_millisecond()).expect("after 1970"))
    }

    #[test]
    fn windows_open_and_close_by_the_calendar_of_their_zone() {
        let hours = |schedule: &str, zone: &str, hours: u64| {
            Window::new(schedule, zone, Millis::minutes(60 * hours)).expect("a window")
        };
        let work = hours("0 9 * * 1-5", "Europe/Berlin", 8);
        for (now, until) in [
            // Winter: 9 o'clock in Berlin is 8 o'clock in UTC. 2026-01-05 is a Monday.
            ("2026-01-05T07:59:59Z", None),
            ("2026-01-05T08:00:00Z", Some("2026-01-05T16:00:00Z")),
            ("2026-01-05T15:59:59Z", Some("2026-01-05T16:00:00Z")),
            ("2026-01-05T16:00:00Z", None),
            // Summer: one hour earlier.
            ("2026-07-06T07:00:00Z", Some("2026-07-06T15:00:00Z")),
            ("2026-07-06T15:00:00Z", None),
            // A Saturday.
            ("2026-01-10T10:00:00Z", None),
        ] {
            assert_eq!(work.open_until(at(now)), until.map(at), "{now}");
        }
        // Over midnight, and over the turn of the year.
        let night = hours("0 22 31 12 *", "UTC", 10);
        assert_eq!(
            night.open_until(at("2027-01-01T03:00:00Z")),
            Some(at("2027-01-01T08:00:00Z"))
        );
        // Windows that overlap: the latest one says when it closes.
        let often = hours("*/7 * * * *", "UTC", 24);
        assert_eq!(
            often.open_until(at("2026-05-01T12:34:00Z")),
            Some(at("2026-05-02T12:28:00Z"))
        );
        let daily = hours("@daily", "UTC", 1);
        assert_eq!(daily.open_until(at("2026-05-01T01:00:00Z")), None);
    }

    #[test]
    fn a_budget_holds_only_while_its_window_is_open() {
        let budget = DisruptionBudget {
            name: "nights".to_owned(),
            most: Quota::Count(0),
            strategies: ["empty".to_owned()].into(),
            window: Some(Window::new("0 20 * * *", "UTC", Millis::minutes(600)).expect("window")),
        };
        assert_eq!(budget.in_force(at("2026-05-01T12:00:00Z")), None);
        let found = budget.in_force(at("2026-05-01T23:00:00Z")).expect("open");
        assert_eq!(found.until, Some(at("2026-05-02T06:00:00Z")));
        assert_eq!(
            (found.most, found.name.as_str()),
            (Quota::Count(0), "nights")
        );
        let always = DisruptionBudget {
            window: None,
            ..budget
        };
        assert_eq!(always.in_force(UnixMs(0)).expect("always").until, None);
    }

    #[test]
    fn what_is_no_schedule_is_said() {
        for (schedule, needle) in [
            ("0 9 * *", "4 fields"),
            ("0 9 * * 1-5 UTC", "6 fields"),
            ("61 9 * * *", "no schedule"),
            ("0 9 * * MONDAYS", "no schedule"),
            ("@often", "1 fields"),
        ] {
            let error = Window::new(schedule, "UTC", Millis::minutes(1)).expect_err(schedule);
            assert!(error.contains(needle), "{schedule}: {error}");
        }
    }
}
