//! Waits for a benchmark's verdict, and opens or closes a gate. The outcome is the program's exit code.

pub mod command;
mod images;
pub mod outcome;
mod report;
mod wait;
