//! Whole stories through `control::cycle` over ports of glass: agents, a cloud and a clock that the test holds in its
//! hands, on the store in memory. What is simulated and what is production differs only in the ports.

mod adoption;
mod cases;
mod commands;
mod crash;
mod dead;
mod gone;
mod grow;
mod holds;
mod hooks;
mod metrics;
mod moving;
mod notices;
mod policy;
mod probes;
mod rig;
mod safety;
mod shrink;
mod ties;
mod truth;
mod words;
