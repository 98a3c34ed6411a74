//! Where a run runs, and when it may: its nodes and its place in the queue for them.

pub mod nodes;
pub mod queue;
pub mod reservations;
