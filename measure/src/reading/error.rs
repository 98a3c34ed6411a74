//! Why a text of a meter can't be read.

use crate::exposition::ExpositionError;

/// Why a text is not a valid reading.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReadingError {
    /// The text is not in the Prometheus format.
    #[error("the meter's text cannot be read: {0}")]
    Exposition(#[from] ExpositionError),
    /// The answer does not contain the node's energy.
    #[error("the meter serves no kepler_node_cpu_joules_total for the node {node_name}")]
    NoNodeSeries {
        /// The requested node.
        node_name: String,
    },
    /// The answer does not contain the requested zone.
    #[error("the meter serves no zone {zone}; it serves {available}")]
    NoSuchZone {
        /// The requested zone.
        zone: String,
        /// The available zones, comma-separated.
        available: String,
    },
    /// No zone was requested, and no available zone is known to stand for the node.
    #[error("the zone must be named: none of {available} is known to stand for the node")]
    ZoneUndecided {
        /// The available zones, comma-separated.
        available: String,
    },
    /// One counter occurs more than once. Kepler itself adds up the sockets of one zone. These may therefore
    /// be two views of the same joules, and a sum could count them twice.
    #[error("the meter serves {series} more than once")]
    Ambiguous {
        /// The series' name and the labels of the lookup.
        series: String,
    },
    /// A value is negative, not a number, at least 2⁵³, or outside the range of its series.
    #[error("{series} is {value}, which is impossible")]
    InvalidValue {
        /// The series' name and the labels of the lookup.
        series: String,
        /// The invalid value.
        value: f64,
    },
    /// The node meter does not report its power's source.
    #[error("the node meter serves no frugality_meter_info for the node {node_name}")]
    NoMeterInfo {
        /// The requested node.
        node_name: String,
    },
    /// The node meter reports a provenance that this version does not know.
    #[error("the node meter's provenance {text:?} is unknown")]
    UnknownProvenance {
        /// The reported provenance.
        text: String,
    },
}
