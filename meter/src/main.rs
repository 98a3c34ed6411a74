//! `frugality-meter`: the library holds the whole program.

use std::process::ExitCode;

fn main() -> ExitCode {
    frugality_meter::program::main()
}
