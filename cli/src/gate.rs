//! Waits for a benchmark's verdict, and opens or closes a gate. The outcome is the program's exit code, or the answer of a
//! server that Flagger asks.

mod answer;
pub mod command;
mod flagger;
mod images;
pub mod outcome;
pub(crate) mod report;
pub mod serve;
mod wait;

pub(crate) use images::is_fixed;
