//! Facts: what the host is. `facts` reads them, `merge` joins what the driver names with what it named before.
//!
//! Used by the collector at the start, at its inventory interval and with every reading of the probe.

pub mod facts;
pub mod merge;
