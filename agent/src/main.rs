//! The node agent's binary: hands over to the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    drover_agent::cli::main()
}
