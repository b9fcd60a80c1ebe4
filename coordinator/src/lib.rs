//! Drover's coordinator and admin CLI, as a library so that tests, the simulator and the binary share it.
//!
//! Layers (a file may use only lower numbers; a tidy test reads `use` lines and enforces it):
//! core/model 0, core/rules 1, core/planner 2, config, files, world, ports and records 3, control and adapters 4,
//! serve, sim and cli 5, app 6, main 7.

pub mod adapters;
pub mod app;
pub mod cli;
pub mod config;
pub mod control;
pub mod files;
pub mod ports;
pub mod records;
pub mod serve;
pub mod sim;
pub mod world;
