//! Where wire types stop: each field from outside is checked here, and an error names it.

pub mod agents;
pub mod calls;
pub mod groups;
pub mod limits;
pub mod nodes;
mod places;
pub mod pools;
pub mod records;
pub mod requests;
