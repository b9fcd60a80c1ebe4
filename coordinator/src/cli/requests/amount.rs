//! From the flags of `requests create` to a request: totals are cut into equal units. Pure; used by `requests`.

use crate::cli::duration;
use clap::{Args, ValueEnum};
use drover_proto::{limits, v1};

/// Ask for capacity.
///
/// Totals (--gpus, --cpus, --memory) are cut into equal units, each of which fits on one node: --units many, or as
/// many as --gpus-per-unit, --cpus-per-unit or --memory-per-unit make; without these one GPU is one unit, and CPUs and
/// memory alone are one unit. --nodes asks for whole nodes.
#[derive(Debug, Clone, Default, Args)]
#[command(group(clap::ArgGroup::new("amount").required(true).multiple(true).args(["gpus", "nodes", "cpus_milli", "memory_bytes", "units"])))]
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
    /// CPUs of one unit.
    #[arg(long = "cpus-per-unit", value_name = "CPUS", value_parser = duration::parse_milli_cpus)]
    pub cpus_milli_per_unit: Option<u64>,
    /// Memory of one unit.
    #[arg(long = "memory-per-unit", value_name = "SIZE", value_parser = duration::parse_bytes)]
    pub memory_bytes_per_unit: Option<u64>,
    /// GPU model, like titan-x; any without it.
    #[arg(long, value_name = "MODEL", default_value = "")]
    pub gpu_model: String,
    /// How long it is held once served; until cancelled without it.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration::parse_ms_positive)]
    pub for_ms: Option<u64>,
    /// All at once, or nothing.
    #[arg(long)]
    pub gang: bool,
    /// Least useful amount of a gang, counted as it was asked (GPUs, nodes or units); all without it.
    #[arg(long, requires = "gang")]
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
    /// Label that a node must carry (may be repeated).
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// How long a gang may hold part of what it needs (the config's).
    #[arg(long = "hold", value_name = "DURATION", requires = "gang", value_parser = duration::parse_ms_positive)]
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

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is not a label; write key=value")),
    }
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
        if self.nodes.is_none() && gpus_per_unit == 0 && cpus == 0 && memory == 0 {
            return Err(
                "a unit is nothing; say --gpus-per-unit, --cpus-per-unit or --memory-per-unit"
                    .to_owned(),
            );
        }
        if !self.gpu_model.is_empty() && gpus_per_unit == 0 && self.nodes.is_none() {
            return Err(
                "--gpu-model without GPUs; say --gpus or --gpus-per-unit as well".to_owned(),
            );
        }
        Ok(v1::RequestSpec {
            name: self.name.clone(),
            units,
            gpus_per_unit,
            milli_cpus_per_unit: cpus,
            memory_bytes_per_unit: memory,
            whole_nodes: self.nodes.is_some(),
            gpu_model: self.gpu_model.clone(),
            duration_ms: self.for_ms.unwrap_or(0),
            gang: self.gang,
            min_units: self.least(units, gpus_per_unit)?,
            locality: self.locality.wire().to_owned(),
            priority: self.priority,
            pools: self.pools.clone(),
            labels: self.labels.iter().cloned().collect(),
            hold_ms: self.hold_ms.unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert!(s.whole_nodes);
        assert_eq!((s.units, s.gpus_per_unit, s.priority), (4, 0, -5));
        assert_eq!(s.labels.len(), 2);
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
            ("--gpus 4 --min 4", "--gang"),
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
            ("--gpus 4 --label x", "key=value"),
            ("--gpus 4 --locality moon", "possible values"),
        ] {
            let error = spec(line).expect_err(line);
            assert!(error.contains(needle), "{line}: {error}");
        }
    }
}
