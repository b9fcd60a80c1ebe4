//! Layer 4: the coordinator's heart. Observe, bookkeeping by rules, plan, check, commit, execute, publish.
//!
//! `app` builds a [`cycle::Control`] over ports and runs it with [`run`]; `serve` shows [`view::FleetView`] and passes
//! people's wishes to [`commands::Commands`]. Knows ports and core, never an adapter; the simulator and the tests pass
//! other ports and their own clock.

pub mod commands;
pub mod cycle;
pub mod events;
pub mod journal;
pub mod ledger;
pub mod orders;
pub mod view;
pub mod wake;
