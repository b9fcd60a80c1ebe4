//! A scripted libnvidia-ml.so: answers every NVML call the agent makes from a JSON file (see README.md).
//!
//! Loaded by `drover-agent gpu-probe` in tests and the demo, never shipped. It must not cache a script that has changed
//! on disk, and must not answer for a process that is dead.

mod abi;
mod calls;
mod device;
mod profile;
mod script;
mod system;
mod world;
