//! Data of the meter reader: one session for each trial, and one for each node before any trial.

use std::sync::Arc;

use frugality_measure::reading::Reading;

use crate::api::Reason;

/// Prefix of the names of sessions that read a meter before any trial exists.
const PREFLIGHT: &str = "preflight/";

/// Name of the session that reads the meter of a node before any trial exists. No trial has such a name.
#[must_use]
pub fn preflight(node: &str) -> String {
    format!("{PREFLIGHT}{node}")
}

/// Whether a session reads a meter before any trial exists.
#[must_use]
pub fn is_preflight(session: &str) -> bool {
    session.starts_with(PREFLIGHT)
}

/// The meter reader's data for one trial.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// Readings so far, in the order of scraping.
    pub readings: Arc<Vec<Reading>>,
    /// When the reader started, in Unix seconds of the operator's clock.
    pub started_unix_seconds: f64,
    /// Why the newest scrape failed, if it failed.
    pub last_error: Option<String>,
    /// What was missing when the meter last answered without power metrics; `None` if that never happened.
    pub without_power: Option<String>,
    /// Whether the reader has seen the trial's injector Job.
    pub injector_seen: bool,
    /// When the operator first saw that the check of the trial's database has ended, in Unix seconds of the operator's
    /// clock. The check's node may have another clock.
    pub check_ended_unix_seconds: Option<f64>,
}

impl Session {
    /// Why the newest scrape gave no reading, as reason code and message; `None` if it gave one.
    #[must_use]
    pub fn no_reading(&self) -> Option<(Reason, &str)> {
        let error = self.last_error.as_deref()?;
        let reason = if self.without_power.as_deref() == Some(error) {
            Reason::NoPowerMetrics
        } else {
            Reason::MeterMissing
        };
        Some((reason, error))
    }
}
