//! The readings around a window's ends, for the record.

use serde::{Deserialize, Serialize};

/// The node's counter at one reading.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReadingMark {
    /// The time of the counter's value, in Unix seconds.
    pub at_unix_seconds: f64,
    /// The node's energy counter, in joules.
    pub node_joules: f64,
}

/// The readings around a window's ends: for each end, the last reading before it and the first reading after
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Bracket {
    /// Around the beginning.
    pub start: [ReadingMark; 2],
    /// Around the end.
    pub end: [ReadingMark; 2],
}

/// The brackets of an attempt's three windows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Brackets {
    /// Of the idle baseline before the load.
    pub idle_before: Bracket,
    /// Of the measured window.
    pub measured: Bracket,
    /// Of the idle baseline after the load.
    pub idle_after: Bracket,
}
