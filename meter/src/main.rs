//! `frugality-meter`: the library holds the whole program.

use std::process::ExitCode;

/// musl's own allocator gives freed pages back to the kernel, and each reading asks for them again.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    frugality_meter::program::main()
}
