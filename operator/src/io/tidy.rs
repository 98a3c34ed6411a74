//! Removes from time to time what deleted benchmarks have left: memory, metrics and locks.

use std::{collections::HashSet, sync::Arc, time::Duration};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, ResourceExt, api::ListParams};
use tracing::{info, warn};

use crate::{
    api::{FrugalityBenchmark, LABEL_LOCK, LOCK_OF_NODE},
    io::{apply::only, memory::Memory, metrics::Metrics, observe::lock},
};

/// Time between two clean-ups after deleted benchmarks.
const TIDY_INTERVAL: Duration = Duration::from_secs(300);

/// The clean-up, and what it cleans.
pub(crate) struct Tidy {
    pub(crate) client: Client,
    /// Namespace of the locks.
    pub(crate) namespace: String,
    pub(crate) memory: Arc<Memory>,
    pub(crate) metrics: Metrics,
}

impl Tidy {
    /// Cleans up until the task is aborted.
    pub(crate) async fn run(self) {
        let mut ticks = tokio::time::interval(TIDY_INTERVAL);
        loop {
            ticks.tick().await;
            if let Err(error) = self.once().await {
                warn!(%error, "cannot remove the locks of deleted benchmarks");
            }
        }
    }

    async fn once(&self) -> Result<(), kube::Error> {
        // Locks first: the holder of a lock in this list exists before the second list is made, or is gone.
        let leases = Api::<Lease>::namespaced(self.client.clone(), &self.namespace);
        let locks = ListParams::default().labels(&format!("{LABEL_LOCK}={LOCK_OF_NODE}"));
        let locks = leases.list(&locks).await?;
        let benchmarks = Api::<FrugalityBenchmark>::all(self.client.clone());
        let benchmarks = benchmarks.list_metadata(&ListParams::default()).await?;
        let uids = benchmarks.items.iter().filter_map(ResourceExt::uid);
        let uids: HashSet<String> = uids.collect();
        self.memory.keep(&uids);
        self.metrics.keep(&uids);
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
