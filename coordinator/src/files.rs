//! Layer 3: files of a person's or the coordinator's own, as they lie on disk. Used by the adapters, the CLI and `app`.

pub mod contexts;
pub mod private;
