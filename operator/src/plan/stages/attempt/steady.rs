//! The part of a long load whose readings the reader may summarize.

use std::{collections::BTreeSet, sync::Arc};

use frugality_measure::reading::Steady;

use super::step::{OpenAttempt, last_reading};
use crate::{api::Role, plan::objects::INJECTOR_CONTAINER};

/// From the warm-up's latest expected end to the stretch, in seconds. An injector compares clocks and prepares its script before
/// the load. `setup()` of a k6 script has a minute by default. An attempt that waits for more than five minutes is void.
const AFTER_WARM_UP_SECONDS: f64 = 300.0;
/// From the stretch to the newest reading, in seconds, without the requests that are still open. The operator sees
/// the injector's end within seconds, or later if the API server is away.
const BEFORE_NOW_SECONDS: f64 = 120.0;

impl OpenAttempt<'_> {
    /// The stretch of the load so far in which the measured window neither begins nor ends. `None` unless the injector
    /// runs.
    pub(in crate::plan) fn steady(&self) -> Option<Steady> {
        let injectors = self.pods(Role::Injector);
        let injector = injectors.first().filter(|pod| {
            !pod.deleting && !pod.ended && !pod.terminated.contains_key(INJECTOR_CONTAINER)
        })?;
        let settings = self.builder.settings;
        let started = injector.started_unix_seconds? + self.readings_ahead_of_cluster_seconds();
        let open_requests_seconds = 3.0 * settings.timeout_seconds;
        let status = self.trial.status.as_ref()?;
        let of_status = [&status.candidate_pods, &status.database_pods]
            .map(|pods| pods.iter().cloned().collect::<BTreeSet<_>>());
        // The last execution or cycle of a warm-up is not cut off.
        let warm_up_seconds = settings.warm_up_seconds + settings.timeout_seconds;
        Some(Steady {
            from_unix_seconds: started + warm_up_seconds + AFTER_WARM_UP_SECONDS,
            to_unix_seconds: last_reading(self.session()?)?
                - BEFORE_NOW_SECONDS
                - open_requests_seconds,
            groups: of_status
                .into_iter()
                .chain(self.workloads().into_values())
                .filter(|pods| !pods.is_empty())
                .map(Arc::new)
                .collect(),
        })
    }
}
