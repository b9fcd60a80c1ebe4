//! The agent against a coordinator made for tests: real TLS, gRPC, processes and files.

mod drains;
mod enrolment;
mod fake;
mod inside;
mod instance;
mod orders;
mod process;
