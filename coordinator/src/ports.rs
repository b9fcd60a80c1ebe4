//! Layer 3: one narrow trait per outside system. `control` knows these and never an adapter; production, the
//! simulator and the tests differ only in what they pass.

pub mod actuate;
pub mod calls;
pub mod clock;
pub mod demand;
pub mod hooks;
pub mod link;
pub mod notices;
pub mod store;
pub mod survey;
