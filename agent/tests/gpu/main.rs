//! The observing half of the agent against the real probe child and the scripted NVML library.

mod bed;
mod driver;
mod hang;
mod lost;
mod memory;
mod processes;
mod release;
