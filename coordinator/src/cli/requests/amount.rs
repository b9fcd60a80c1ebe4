//! From the flags of `requests create` to a request: totals are cut into equal units. Pure; used by `requests`.

mod flags;

use crate::cli::duration;
use drover_proto::{limits, v1};
pub use flags::{Create, Deadline, Locality};

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
        if self.gpu_model.is_some() && no_gpu {
            return Err(
                "--gpu-model without GPUs; say --gpus or --gpus-per-unit as well".to_owned(),
            );
        }
        let gang = self.gang || self.min.is_some();
        if self.hold_ms.is_some() && !gang {
            return Err("--hold is for gangs; say --gang or --min as well".to_owned());
        }
        if let (Some(Deadline::In(most)), Some(wait)) = (self.deadline, self.max_wait_ms)
            && wait > most
        {
            return Err(format!(
                "--max-wait {} is longer than --deadline {}: it would be useless before new nodes are asked for; shorten \
                 --max-wait",
                duration::exact(wait),
                duration::exact(most)
            ));
        }
        let (at, span) = match self.deadline {
            Some(Deadline::At(at)) => (Some(at), 0),
            Some(Deadline::In(span)) => (None, span),
            None => (None, 0),
        };
        let mut spec = v1::RequestSpec {
            name: self.name.clone().unwrap_or_default(),
            units,
            gpus_per_unit,
            milli_cpus_per_unit: cpus,
            memory_bytes_per_unit: memory,
            whole_nodes: self.nodes.is_some(),
            gpu_model: self.gpu_model.clone().unwrap_or_default(),
            duration_ms: self.for_ms.unwrap_or(0),
            gang,
            min_units: self.least(units, gpus_per_unit)?,
            locality: self.locality.wire().to_owned(),
            priority: self.priority,
            pools: self.pools.clone(),
            hold_ms: self.hold_ms.unwrap_or(0),
            team: self.team.clone().unwrap_or_default(),
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
mod tests;
