//! Reads a config file key by key and collects every problem with its line and the fix, so that one run tells them all.
//!
//! Called by whoever has a config file: the agent, the coordinator, the simulator and the simulated cloud. Knows TOML and
//! units, not what the keys mean; takes no default and decides nothing.

mod file;
mod lines;
mod nearest;
mod section;
mod units;

pub use file::{FileError, Problem, load};
pub use lines::line_of;
pub use nearest::nearest;
pub use section::{At, Section, any_text, kind, read};
pub use units::{Measure, UnitError, duration, size};

#[cfg(test)]
mod tests;
