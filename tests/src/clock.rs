//! A wall clock that a test sets, for the processes that it is given to. Time goes on; only the reading is shifted.

use crate::programs;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A file that says by how much a clock is wrong.
#[derive(Debug, Clone)]
pub struct Clock {
    file: PathBuf,
}

impl Clock {
    /// A right clock; `name` is the file's.
    pub fn new(dir: &Path, name: &str) -> Self {
        let clock = Self {
            file: dir.join(name),
        };
        clock.set(0);
        clock
    }

    /// Sets it ahead of the true time.
    pub fn ahead(&self, by: Duration) {
        self.set(i64::try_from(by.as_secs()).expect("a time that a clock can show"));
    }

    /// Sets it behind the true time.
    pub fn behind(&self, by: Duration) {
        self.set(-i64::try_from(by.as_secs()).expect("a time that a clock can show"));
    }

    fn set(&self, seconds: i64) {
        // By rename: the clock is read at any moment.
        let new = self.file.with_extension("new");
        fs::write(&new, seconds.to_string()).expect("the clock can be written");
        fs::rename(new, &self.file).expect("the clock can be set");
    }

    /// A program and its children have this clock.
    pub fn give_to(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", programs::clock_shift())
            .env("DROVER_CLOCK_SHIFT", &self.file);
    }
}

/// So many hours.
#[must_use]
pub const fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3_600)
}
