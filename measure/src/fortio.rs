//! Fortio: the arguments that make it put a load on, what its JSON says, and the figures that may be
//! taken from it. Written against Fortio 1.68.2.
//!
//! What needs care, and is taken care of here:
//!
//! - Fortio's histogram, mean and rate include the requests that failed;
//! - what it counts as success is fixed (2xx and 418) and need not be what a benchmark expects;
//! - a run in which every request fails exits with 0, and so does an interrupted one;
//! - durations of type `Duration` are whole nanoseconds, histograms are seconds.

mod figures;
mod result;
mod settings;

pub use figures::figures;
pub use result::{FortioError, FortioResult, ResponseSizes, is_success, parse};
pub use settings::{Amount, Body, LoadSettings, SettingsError, argv};
