//! Fortio: its arguments for a load, the parser of its JSON, and the figures of a result. Written for Fortio
//! 1.68.2.
//!
//! This module handles these properties of Fortio:
//!
//! - Fortio's histogram, mean and rate include the requests that failed;
//! - its definition of success is fixed (2xx and 418) and may differ from the benchmark's;
//! - a run in which every request fails exits with 0, and so does an interrupted run;
//! - durations of type `Duration` are whole nanoseconds, histograms are in seconds.

mod figures;
mod result;
mod settings;

pub use figures::figures;
pub use result::{FortioError, FortioResult, ResponseSizes, is_success, parse};
pub use settings::{Amount, Body, FortioSettingsError, LoadSettings, Schedule, argv};
