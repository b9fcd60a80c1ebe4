<<<<<<< HEAD
//! Layer 4: what the ports are in production. An adapter may use ports, records, config, world and core, never
//! `control`; only `app` names adapters together.

pub mod cloud;
=======
//! Layer 4: the outside systems behind the ports. `app` picks and joins them; `control` never names one.

pub mod clock;
pub mod private_file;
pub mod store;
>>>>>>> 14ee02b (Add the durable store: SQLite with fence and guards, and its twin in memory)
