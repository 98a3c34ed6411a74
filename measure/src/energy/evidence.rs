//! An attempt with its readings in order.

use super::{attempt::AttemptReadings, counters::Series};
use crate::void::Void;

/// An attempt with its readings in order.
pub(super) struct AttemptEvidence<'a> {
    pub(super) attempt: &'a AttemptReadings<'a>,
    pub(super) series: Series<'a>,
}

impl<'a> AttemptEvidence<'a> {
    /// Void if there are no readings.
    pub(super) fn gather(attempt: &'a AttemptReadings<'a>) -> Result<Self, Void> {
        let series = Series::over(attempt.readings, attempt.span());
        Ok(Self {
            attempt,
            series: series.ok_or(Void::MeterMissing {})?,
        })
    }

    /// Namespace, name and UID of a pod, if a reading contains them.
    pub(super) fn pod_name(&self, uid: &str) -> String {
        let mut readings = self.series.readings().iter();
        let known = readings.find_map(|reading| reading.pods.get(uid));
        known.map_or_else(
            || uid.to_owned(),
            |pod| format!("{}/{} ({uid})", pod.identity.namespace, pod.identity.name),
        )
    }
}
