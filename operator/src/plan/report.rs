//! What people read of a run: conditions, columns, messages, events and estimates.

pub mod cells;
mod columns;
pub mod estimate;
pub mod events;
pub mod history;
pub mod running;
pub mod status;
pub mod trial;
