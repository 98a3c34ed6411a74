//! Removes from time to time what deleted benchmarks have left: memory, metrics and locks.

use std::{collections::HashSet, sync::Arc, time::Duration};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, ResourceExt, api::ListParams};
use tracing::{info, warn};

use crate::{
    api::{FrugalityBenchmark, LABEL_LOCK, LOCK_OF_NODE},
    io::{
        apply::only,
        memory::Memory,
        metrics::Metrics,
        observe::{each_metadata, lock},
        pods::PodStages,
        reader::Reader,
    },
};

/// Time between two clean-ups after deleted benchmarks.
const TIDY_INTERVAL: Duration = Duration::from_secs(300);
/// Longest time of a clean-up. A longer one hangs, and would be the last.
const TIDY_TIMEOUT: Duration = Duration::from_secs(60);

/// The clean-up, and what it cleans.
pub(crate) struct Tidy {
    pub(crate) client: Client,
    /// Namespace of the locks.
    pub(crate) namespace: String,
    pub(crate) memory: Arc<Memory>,
    pub(crate) metrics: Metrics,
    pub(crate) stages: Arc<PodStages>,
    pub(crate) reader: Reader,
}

impl Tidy {
    /// Cleans up until the task is aborted.
    pub(crate) async fn run(self) {
        let mut ticks = tokio::time::interval(TIDY_INTERVAL);
        loop {
            ticks.tick().await;
            match tokio::time::timeout(TIDY_TIMEOUT, self.once()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => warn!(%error, "cannot remove the locks of deleted benchmarks"),
                Err(_) => warn!("the clean-up after deleted benchmarks took too long"),
            }
        }
    }

    async fn once(&self) -> Result<(), kube::Error> {
        // Locks first: the holder of a lock in this list exists before the second list is made, or is gone.
        let leases = Api::<Lease>::namespaced(self.client.clone(), &self.namespace);
        let locks = ListParams::default().labels(&format!("{LABEL_LOCK}={LOCK_OF_NODE}"));
        let locks = leases.list(&locks).await?;
        let benchmarks = Api::<FrugalityBenchmark>::all(self.client.clone());
        let mut uids = HashSet::new();
        each_metadata(&benchmarks, |meta| uids.extend(meta.uid())).await?;
        self.memory.keep(&uids);
        self.metrics.keep(&uids);
        self.stages.keep(&uids);
        self.reader.keep_benchmarks(&uids);
        for lease in &locks.items {
            let holder = lock(lease).holder;
            if holder.is_some_and(|(uid, _)| uids.contains(&uid)) {
                continue;
            }
            let version = lease.resource_version().unwrap_or_default();
            match leases.delete(&lease.name_any(), &only(version)).await {
                Ok(_) => info!(
                    lock = lease.name_any(),
                    "lock deleted, because its holder no longer exists"
                ),
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use axum::Router;

    use super::*;

    /// For example if the API server's machine lost its power after the request.
    #[tokio::test(start_paused = true)]
    async fn a_clean_up_without_an_answer_is_given_up_and_the_next_ones_are_in_time() {
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = requests.clone();
        let service = Router::new().fallback(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            pending::<()>()
        });
        let tidy = Tidy {
            client: Client::new(service, "frugality-system"),
            namespace: "frugality-system".into(),
            memory: Arc::default(),
            metrics: Metrics::default(),
            stages: Arc::default(),
            reader: Reader::new(0).unwrap(),
        };
        let ended = tokio::time::timeout(TIDY_INTERVAL * 2 + TIDY_TIMEOUT, tidy.run()).await;
        assert!(ended.is_err());
        assert_eq!(requests.load(Ordering::Relaxed), 3);
    }
}
