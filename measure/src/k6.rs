//! k6: the options that make it run a script as a benchmark asks, and what its output `cycles` says of it
//! (`injector/k6` in this repository). Written against k6 1.8.1.
//!
//! A **cycle** is one run of the script by an **agent**, k6's virtual user. Warm-up, measured window and tail are
//! one load without a break: a cycle belongs to the part in which it ends. What was under way when the window
//! began is in it, and what is under way at its end is not, which is the same number of agents each time.

mod request;
mod result;
mod settings;

pub use request::OpenRequest;
pub use result::{
    CheckCounts, HttpRequests, K6Error, K6Output, K6Result, MOST_NAME_CHARS, OTHER_CHECKS, parse,
    result_line,
};
pub use settings::{CycleSettings, CycleSettingsError};

/// Exit code of k6 where the script could not be read, or threw outside of its cycles (`errext/exitcodes/codes.go`).
pub const SCRIPT_EXCEPTION: i32 = 107;
