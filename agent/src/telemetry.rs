//! Measured values of the host: pure parsers and the window that turns counters into rates, and the sampler above them.
//!
//! Used by the collector every tick. Missing is not zero: a file that is not there gives an absent value.

pub mod parse;
pub mod sampler;
pub mod window;
