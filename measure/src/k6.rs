//! k6: the options to run a script as a benchmark requests, and the parser of its output `cycles`
//! (`injector/k6` in this repository). Written for k6 1.8.1.
//!
//! A **cycle** is one run of the script by an **agent**, k6's virtual user. Warm-up, measured window and tail
//! are one load without a break: a cycle belongs to the part in which it ends. A cycle that is open when the
//! window begins counts in the window. A cycle that is open when the window ends does not count. Both are the
//! same number of agents.

mod request;
mod result;
mod settings;

pub use request::OpenRequest;
pub use result::{
    CheckCounts, HttpRequests, K6Error, K6Output, K6Result, MOST_NAME_CHARS, OTHER_CHECKS, parse,
    result_line,
};
pub use settings::{CycleSettings, CycleSettingsError};

/// Exit code of k6 if the script cannot be read, or throws outside its cycles (`errext/exitcodes/codes.go`).
pub const SCRIPT_EXCEPTION: i32 = 107;
