//! Layer 4: the coordinator's heart. Observe, bookkeeping by rules, plan, check, commit, execute, publish.
//!
//! `app` builds a [`cycle::Control`] over ports and runs it with [`run::run`]; `serve` shows [`view::FleetView`] and
//! passes people's wishes to [`commands::Commands`]. Knows ports and core, never an adapter; the simulator and the tests
//! pass other ports and their own clock.

mod adoptions;
mod arrivals;
mod background;
mod breaker;
mod chance;
pub mod commands;
pub mod cycle;
mod dead;
mod deeds;
mod drains;
mod due;
pub mod events;
mod execute;
pub mod explain;
mod failures;
pub mod fleet;
mod gone;
mod guard;
mod holds;
mod hooks;
mod idle;
mod input;
pub mod journal;
mod launches;
mod learning;
pub mod ledger;
mod notices;
pub mod observe;
pub mod orders;
pub mod pace;
mod parts;
pub mod plans;
mod publish;
mod replace;
mod requests;
pub mod run;
mod seen;
pub mod settings;
pub mod tally;
#[cfg(test)]
mod testing;
pub mod tx;
mod upkeep;
pub mod view;
pub mod wake;
