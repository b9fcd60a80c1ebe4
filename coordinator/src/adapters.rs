//! Layer 4: what the ports are in production. An adapter may use ports, records, config, world and core, never
//! `control`; only `app` names adapters together.

pub mod actuate;
pub mod backup;
pub mod ca;
pub mod clock;
pub mod cloud;
pub mod context;
pub mod demand;
pub mod instance_identity;
pub mod link;
pub mod notices;
pub mod store;
pub mod tokens;
