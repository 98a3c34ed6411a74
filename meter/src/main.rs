//! `frugality-meter`: see the library, which holds all of it.

use std::process::ExitCode;

fn main() -> ExitCode {
    frugality_meter::program::main()
}
