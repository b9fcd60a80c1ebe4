//! The public traces and the types that they are replayed on.

use super::Result;
use drover_core::model::{Bytes, MilliCpu, Resources};
use std::collections::BTreeMap;
use std::path::Path;

/// One job. Times in seconds.
pub(crate) struct Job {
    pub(crate) submit: u64,
    pub(crate) seconds: u64,
    /// One unit; whole nodes come as a gang.
    pub(crate) unit: Resources,
    /// Whole nodes that it takes beside the unit; then `unit` may be nothing.
    pub(crate) nodes: u32,
}

impl Job {
    /// In all.
    pub(crate) fn gpus(&self) -> u32 {
        self.nodes * 8 + self.unit.gpus
    }
}

/// One instance type.
pub(crate) struct Type {
    pub(crate) name: String,
    pub(crate) size: Resources,
    /// Micro-USD per hour.
    pub(crate) price: u64,
}

fn amount(cores: u64, gib: u64, gpus: u32) -> Resources {
    Resources {
        cpu: MilliCpu(cores * 1_000),
        memory: Bytes(gib << 30),
        gpus,
        gpu_milli: 0,
        extended: BTreeMap::new(),
    }
}

pub(crate) fn eight_gpus() -> Vec<Type> {
    vec![Type {
        name: "node8".to_owned(),
        size: amount(0, 0, 8),
        price: 1_000_000,
    }]
}

pub(crate) fn p3_c7i_r7i() -> Vec<Type> {
    let mut all = Vec::new();
    for (name, cores, gib, gpus) in [
        ("p3.2xlarge", 8, 61, 1),
        ("p3.8xlarge", 32, 244, 4),
        ("p3.16xlarge", 64, 488, 8),
    ] {
        all.push(Type {
            name: name.to_owned(),
            size: amount(cores, gib, gpus),
            price: 3_060_000 * u64::from(gpus),
        });
    }
    let sizes = [
        ("large", 2),
        ("xlarge", 4),
        ("2xlarge", 8),
        ("4xlarge", 16),
        ("8xlarge", 32),
        ("12xlarge", 48),
        ("16xlarge", 64),
        ("24xlarge", 96),
        ("48xlarge", 192),
    ];
    for (family, per_two, gib) in [("c7i", 89_250, 2), ("r7i", 132_300, 8)] {
        for (size, cores) in sizes {
            all.push(Type {
                name: format!("{family}.{size}"),
                size: amount(cores, cores * gib, 0),
                price: per_two * cores / 2,
            });
        }
    }
    all
}

/// Lines after the head, as cells.
fn rows(path: &Path) -> Result<Vec<Vec<String>>> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let cells = |line: &str| line.split(',').map(|c| c.trim().to_owned()).collect();
    Ok(text.lines().skip(1).map(cells).collect())
}

/// A whole number, also as `1.0`; an empty cell is none.
fn number(row: &[String], at: usize) -> Result<u64> {
    let text = row.get(at).ok_or("a row is too short")?;
    let whole = text.split('.').next().unwrap_or_default();
    if whole.is_empty() {
        return Ok(0);
    }
    whole.parse().map_err(|e| format!("{text}: {e}").into())
}

pub(crate) fn philly(path: &Path) -> Result<Vec<Job>> {
    let read = |row: &Vec<String>| -> Result<Job> {
        let gpus = u32::try_from(number(row, 2)?)?;
        Ok(Job {
            submit: number(row, 1)?,
            seconds: number(row, 3)?,
            unit: amount(0, 0, gpus % 8),
            nodes: gpus / 8,
        })
    };
    rows(path)?.iter().map(read).collect()
}

/// Without the failed pods and those that fit no type; whole GPUs, cores and GiB.
pub(crate) fn openb(path: &Path, types: &[Type]) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for row in rows(path)?
        .iter()
        .filter(|row| row.get(7).is_none_or(|phase| phase != "Failed"))
    {
        let (made, gone) = (number(row, 8)?, number(row, 9)?);
        let unit = amount(
            number(row, 1)?.div_ceil(1_000),
            number(row, 2)?.div_ceil(1_024),
            u32::try_from(number(row, 3)?)?,
        );
        if types.iter().any(|t| unit.fits(&t.size)) {
            jobs.push(Job {
                submit: made,
                seconds: gone.saturating_sub(made),
                unit,
                nodes: 0,
            });
        }
    }
    jobs.sort_by_key(|job| job.submit);
    Ok(jobs)
}
