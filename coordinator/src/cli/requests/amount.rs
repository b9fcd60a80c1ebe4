//! From the flags of `requests create` to a request: totals are cut into equal units. Pure; used by `requests`.

use super::place::Place;
use crate::cli::duration;
use clap::{Args, ValueEnum};
use drover_proto::{limits, v1};

/// Ask for capacity.
///
/// Totals (--gpus, --cpus, --memory) are cut into equal units, each of which fits on one node: --units many, or as
/// many as --gpus-per-unit, --cpus-per-unit or --memory-per-unit make; without these one GPU is one unit, and CPUs and
/// memory alone are one unit. --nodes asks for whole nodes.
#[derive(Debug, Clone, Default, Args)]
#[command(group(clap::ArgGroup::new("amount").required(true).multiple(true).args(["gpus", "nodes", "cpus_milli", "memory_bytes", "units", "gpu_milli"])))]
pub struct Create {
    /// GPUs in all.
    #[arg(long, conflicts_with = "nodes")]
    pub gpus: Option<u32>,
    /// Whole nodes.
    #[arg(long, conflicts_with_all = ["cpus_milli", "memory_bytes", "units"])]
    pub nodes: Option<u32>,
    /// CPUs in all.
    #[arg(long = "cpus", value_name = "CPUS", value_parser = duration::parse_milli_cpus)]
    pub cpus_milli: Option<u64>,
    /// Memory in all, like 64GiB.
    #[arg(long = "memory", value_name = "SIZE", value_parser = duration::parse_bytes)]
    pub memory_bytes: Option<u64>,
    /// Units.
    #[arg(long)]
    pub units: Option<u32>,
    /// GPUs of one unit (of one node at least, with --nodes).
    #[arg(long)]
    pub gpus_per_unit: Option<u32>,
    /// Thousandths of one GPU that a unit shares with others, 1 to 999. Sharing is counted, not enforced.
    #[arg(long, value_name = "THOUSANDTHS", conflicts_with_all = ["gpus", "nodes", "gpus_per_unit"], value_parser = clap::value_parser!(u32).range(1..=999))]
    pub gpu_milli: Option<u32>,
    /// CPUs of one unit.
    #[arg(long = "cpus-per-unit", value_name = "CPUS", value_parser = duration::parse_milli_cpus)]
    pub cpus_milli_per_unit: Option<u64>,
    /// Memory of one unit.
    #[arg(long = "memory-per-unit", value_name = "SIZE", value_parser = duration::parse_bytes)]
    pub memory_bytes_per_unit: Option<u64>,
    /// GPU model, like titan-x; any without it.
    #[arg(long, value_name = "MODEL", default_value = "")]
    pub gpu_model: String,
    /// How long it is held once served; until cancelled without it. It is also the run time that plans count on: capacity
    /// that is given back soon is waited for, where `--max-wait` allows it.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration::parse_ms_positive)]
    pub for_ms: Option<u64>,
    /// May wait so long for capacity that others give back before new nodes are asked for.
    #[arg(long = "max-wait", value_name = "DURATION", value_parser = duration::parse_ms_positive)]
    pub max_wait_ms: Option<u64>,
    /// Useless when it has not started by then: a span from now on, like 2h, or a moment, like 2026-05-01T18:00:00Z.
    #[arg(long, value_name = "DURATION|MOMENT", value_parser = deadline)]
    pub deadline: Option<Deadline>,
    /// Whose budget pays.
    #[arg(long, value_name = "TEAM", default_value = "")]
    pub team: String,
    /// All at once, or nothing.
    #[arg(long)]
    pub gang: bool,
    /// Least useful amount, counted as it was asked (GPUs, nodes or units): a gang that is elastic above it; all of a gang
    /// without it.
    #[arg(long)]
    pub min: Option<u32>,
    /// How near the units must be.
    #[arg(long, value_enum, default_value_t)]
    pub locality: Locality,
    /// Its name; one is made without it.
    #[arg(long, default_value = "")]
    pub name: String,
    /// Higher goes first.
    #[arg(long, default_value_t, allow_negative_numbers = true)]
    pub priority: i32,
    /// Only this pool (may be repeated).
    #[arg(long = "pool", value_name = "POOL")]
    pub pools: Vec<String>,
    /// Where units may go.
    #[command(flatten)]
    pub place: Place,
    /// How long a gang may hold part of what it needs (the config's).
    #[arg(long = "hold", value_name = "DURATION", value_parser = duration::parse_ms_positive)]
    pub hold_ms: Option<u64>,
    /// Wait until its nodes are ready, as `requests wait` does.
    #[arg(long)]
    pub wait: bool,
}

/// How near the units of a request must be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Locality {
    /// Anywhere.
    #[default]
    Any,
    /// On one node.
    Node,
    /// In one pool.
    Pool,
    /// In one zone.
    Zone,
    /// In one site.
    Site,
}

impl Locality {
    const fn wire(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Node => "node",
            Self::Pool => "pool",
            Self::Zone => "zone",
            Self::Site => "site",
        }
    }
}

/// A moment, or a span from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// Milliseconds since 1970.
    At(u64),
    /// Milliseconds from now on, by the coordinator's clock.
    In(u64),
}

fn deadline(text: &str) -> Result<Deadline, String> {
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        return u64::try_from(moment.as_millisecond())
            .map(Deadline::At)
            .map_err(|_| format!("{text:?} is before 1970"));
    }
    duration::parse_ms_positive(text)
        .map(Deadline::In)
        .map_err(|why| format!("{why}, or a moment like 2026-05-01T18:00:00Z"))
}

/// `total` cut by `part`, or why not.
fn cut(what: &str, total: u64, part: u64) -> Result<u32, String> {
    if part == 0 {
        return Err(format!("--{what}-per-unit is 0; give at least 1"));
    }
    if !total.is_multiple_of(part) {
        return Err(format!(
            "--{what} cannot be cut into equal units of --{what}-per-unit; ask for a multiple of it"
        ));
    }
    u32::try_from(total / part).map_err(|_| format!("--{what} makes too many units"))
}

/// Amount of one unit, from the total and what was said of a unit.
fn each(what: &str, total: Option<u64>, part: Option<u64>, units: u32) -> Result<u64, String> {
    match (total, part) {
        (None, part) => Ok(part.unwrap_or(0)),
        (Some(total), Some(part)) if part.checked_mul(u64::from(units)) == Some(total) => Ok(part),
        (Some(_), Some(_)) => Err(format!(
            "--{what} is not {units} times --{what}-per-unit; leave one of them out"
        )),
        (Some(total), None) if total.is_multiple_of(u64::from(units)) => {
            Ok(total / u64::from(units))
        }
        (Some(_), None) => Err(format!(
            "--{what} cannot be cut into {units} equal units; ask for a multiple of {units}, or say --{what}-per-unit"
        )),
    }
}

impl Create {
    /// Number of units.
    fn count(&self) -> Result<u32, String> {
        if let Some(units) = self.nodes.or(self.units) {
            return Ok(units);
        }
        if let Some(gpus) = self.gpus {
            return cut("gpus", gpus.into(), self.gpus_per_unit.unwrap_or(1).into());
        }
        if let (Some(total), Some(part)) = (self.cpus_milli, self.cpus_milli_per_unit) {
            return cut("cpus", total, part);
        }
        if let (Some(total), Some(part)) = (self.memory_bytes, self.memory_bytes_per_unit) {
            return cut("memory", total, part);
        }
        Ok(1)
    }

    /// The least of a gang in units; 0 for all.
    fn least(&self, units: u32, gpus_per_unit: u32) -> Result<u32, String> {
        let Some(min) = self.min else { return Ok(0) };
        let least = if self.gpus.is_some() && gpus_per_unit > 0 {
            if !min.is_multiple_of(gpus_per_unit) {
                return Err(format!(
                    "--min {min} is in GPUs, as --gpus is, and must be a multiple of the {gpus_per_unit} GPUs of a unit"
                ));
            }
            min / gpus_per_unit
        } else {
            min
        };
        if least == 0 || least > units {
            return Err(format!(
                "--min {min} must be at least 1 and at most what is asked for"
            ));
        }
        Ok(least)
    }

    /// The request.
    ///
    /// # Errors
    /// What does not fit together, and the fix.
    pub fn spec(&self) -> Result<v1::RequestSpec, String> {
        let units = self.count()?;
        if units == 0 {
            return Err("0 units were asked for; ask for at least 1".to_owned());
        }
        if units > limits::REQUEST_UNITS {
            return Err(format!(
                "{units} units are more than one request may have ({}); make units larger or ask twice",
                limits::REQUEST_UNITS
            ));
        }
        let gpus = each(
            "gpus",
            self.gpus.map(Into::into),
            self.gpus_per_unit.map(Into::into),
            units,
        )?;
        let gpus_per_unit = u32::try_from(gpus).map_err(|_| "--gpus is too many".to_owned())?;
        let cpus = each("cpus", self.cpus_milli, self.cpus_milli_per_unit, units)?;
        let memory = each(
            "memory",
            self.memory_bytes,
            self.memory_bytes_per_unit,
            units,
        )?;
        let no_gpu = self.nodes.is_none() && gpus_per_unit == 0 && self.gpu_milli.is_none();
        if no_gpu && cpus == 0 && memory == 0 {
            return Err(
                "a unit is nothing; say --gpus-per-unit, --gpu-milli, --cpus-per-unit or --memory-per-unit"
                    .to_owned(),
            );
        }
        if !self.gpu_model.is_empty() && no_gpu {
            return Err(
                "--gpu-model without GPUs; say --gpus or --gpus-per-unit as well".to_owned(),
            );
        }
        let gang = self.gang || self.min.is_some();
        if self.hold_ms.is_some() && !gang {
            return Err("--hold is for gangs; say --gang or --min as well".to_owned());
        }
        let (at, span) = match self.deadline {
            Some(Deadline::At(at)) => (Some(at), 0),
            Some(Deadline::In(span)) => (None, span),
            None => (None, 0),
        };
        let mut spec = v1::RequestSpec {
            name: self.name.clone(),
            units,
            gpus_per_unit,
            milli_cpus_per_unit: cpus,
            memory_bytes_per_unit: memory,
            whole_nodes: self.nodes.is_some(),
            gpu_model: self.gpu_model.clone(),
            duration_ms: self.for_ms.unwrap_or(0),
            gang,
            min_units: self.least(units, gpus_per_unit)?,
            locality: self.locality.wire().to_owned(),
            priority: self.priority,
            pools: self.pools.clone(),
            hold_ms: self.hold_ms.unwrap_or(0),
            team: self.team.clone(),
            max_wait_ms: self.max_wait_ms.unwrap_or(0),
            deadline_unix_ms: at,
            deadline_in_ms: span,
            gpu_milli_per_unit: self.gpu_milli.unwrap_or(0),
            ..v1::RequestSpec::default()
        };
        self.place.put(&mut spec);
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::requests::place::{spread_shown, toleration_shown};
    use clap::{CommandFactory as _, FromArgMatches as _, Parser};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        create: Create,
    }

    fn spec(line: &str) -> Result<v1::RequestSpec, String> {
        let words = ["create"].into_iter().chain(line.split_whitespace());
        let matches = Line::command()
            .try_get_matches_from(words)
            .map_err(|e| e.to_string())?;
        Line::from_arg_matches(&matches)
            .map_err(|e| e.to_string())?
            .create
            .spec()
    }

    #[test]
    fn the_fields_own_request() {
        let s = spec("--gpus 60 --gpu-model titan-x --for 8h --gang --min 60 --locality site")
            .expect("spec");
        assert_eq!((s.units, s.gpus_per_unit, s.min_units), (60, 1, 60));
        assert_eq!(
            (s.duration_ms, s.locality.as_str(), s.gang),
            (28_800_000, "site", true)
        );
        let s = spec("--gpus 1600 --gpus-per-unit 16 --gang --min 800").expect("spec");
        assert_eq!((s.units, s.gpus_per_unit, s.min_units), (100, 16, 50));
    }

    #[test]
    fn totals_are_cut_into_equal_units() {
        for (line, units, gpus, cpus, memory) in [
            (
                "--gpus 60 --cpus 120 --memory 600GiB",
                60,
                1,
                2_000,
                10 << 30,
            ),
            ("--gpus 8 --units 2", 2, 4, 0, 0),
            ("--cpus 32", 1, 0, 32_000, 0),
            ("--cpus 32 --cpus-per-unit 8", 4, 0, 8_000, 0),
            ("--cpus 8 --memory 64GiB", 1, 0, 8_000, 64 << 30),
            ("--memory 64GiB --memory-per-unit 16GiB", 4, 0, 0, 16 << 30),
            ("--units 3 --cpus-per-unit 0.5", 3, 0, 500, 0),
            ("--gpus 4 --cpus-per-unit 2", 4, 1, 2_000, 0),
        ] {
            let s = spec(line).expect(line);
            let got = (
                s.units,
                s.gpus_per_unit,
                s.milli_cpus_per_unit,
                s.memory_bytes_per_unit,
            );
            assert_eq!(got, (units, gpus, cpus, memory), "{line}");
            assert!(!s.whole_nodes, "{line}");
        }
        let s = spec("--nodes 4 --gpu-model k80 --priority -5 -l a=b --label c=").expect("nodes");
        assert!(s.whole_nodes && !s.gang);
        assert_eq!((s.units, s.gpus_per_unit, s.priority), (4, 0, -5));
        assert_eq!(s.labels.len(), 2);
    }

    #[test]
    fn what_and_where_is_said_in_full() {
        let s = spec(
            "--gpu-milli 250 --units 4 --team vision --max-wait 10m --deadline 2h --min 2 \
             --label disk=ssd,gen>4 --label !slow -l disk=ssd|nvme --preferred-label 50:rack=r1 \
             --preferred-label fast --toleration dedicated=ml --toleration gpu --spread zone:2:soft \
             --spread example.org/rack",
        )
        .expect("spec");
        assert_eq!(
            (s.units, s.gpu_milli_per_unit, s.gpus_per_unit),
            (4, 250, 0)
        );
        assert!(s.gang, "--min makes an elastic gang");
        assert_eq!((s.min_units, s.team.as_str()), (2, "vision"));
        assert_eq!((s.max_wait_ms, s.deadline_in_ms), (600_000, 7_200_000));
        assert_eq!(s.labels["disk"], "ssd");
        let rules: Vec<&str> = s.label_rules.iter().map(|rule| rule.op.as_str()).collect();
        assert_eq!(rules, ["above", "absent", "in"]);
        let weights: Vec<u32> = s.preferred.iter().map(|wish| wish.weight).collect();
        assert_eq!(weights, [50, 1]);
        let shown: Vec<String> = s.tolerations.iter().map(toleration_shown).collect();
        assert_eq!(shown, ["dedicated=ml", "gpu"]);
        let shown: Vec<String> = s.spread.iter().map(spread_shown).collect();
        assert_eq!(shown, ["zone:2:soft", "example.org/rack"]);
        let s = spec("--gpus 1 --deadline 2026-05-01T18:00:00Z").expect("spec");
        assert_eq!(s.deadline_unix_ms, Some(1_777_658_400_000));
    }

    #[test]
    fn nonsense_is_told_with_the_fix() {
        for (line, needle) in [
            ("", "required"),
            ("--gpus 0", "at least 1"),
            ("--gpus 10 --gpus-per-unit 4", "multiple"),
            ("--gpus 10 --gpus-per-unit 0", "at least 1"),
            (
                "--gpus 10 --units 5 --gpus-per-unit 3",
                "leave one of them out",
            ),
            ("--gpus 10 --units 3", "multiple of 3"),
            ("--units 5", "a unit is nothing"),
            ("--gpus 4 --nodes 2", "cannot be used with"),
            ("--gpus 4 --hold 5m", "--gang"),
            ("--gpus 4 --gpu-milli 500", "cannot be used with"),
            ("--gpu-milli 1000", "1..=999"),
            ("--gpus 4 --deadline tomorrow", "a moment like"),
            ("--gpus 4 --max-wait 5", "no unit"),
            ("--gpus 4 --label gen>x", "no whole number"),
            ("--gpus 4 --preferred-label 0:a=b", "from 1 to 100"),
            ("--gpus 4 --toleration =x", "no taint"),
            ("--gpus 4 --spread zone:0", "no skew"),
            ("--gpus 4 --spread :2", "no topology"),
            ("--gpus 4 --gang --min 5", "at most"),
            ("--gpus 4 --gang --min 0", "at least 1"),
            (
                "--gpus 32 --gpus-per-unit 16 --gang --min 8",
                "multiple of the 16",
            ),
            ("--gpus 4 --for 8", "no unit"),
            ("--gpus 4 --for 0s", "no time"),
            ("--memory 64", "no unit"),
            ("--cpus 4 --gpu-model k80", "without GPUs"),
            ("--gpus 200000", "more than one request"),
            ("--gpus 4 --label =x", "key=value"),
            ("--gpus 4 --locality moon", "possible values"),
        ] {
            let error = spec(line).expect_err(line);
            assert!(error.contains(needle), "{line}: {error}");
        }
    }
}
