//! A change of a pod starts a pass over its benchmark: the next step of an attempt usually waits for a pod.

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Resource, ResourceExt,
    api::ObjectMeta,
    runtime::reflector::{ObjectRef, Store},
};
use serde::Deserialize;

use crate::{api::LABEL_BENCHMARK_UID, io::known::KnownBenchmark};

/// A pod of a benchmark, without its spec and its status.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = Pod)]
pub(crate) struct ChangedPod {
    metadata: ObjectMeta,
}

impl ChangedPod {
    /// The benchmark that the pod belongs to.
    pub(crate) fn benchmark(
        &self,
        known: &Store<KnownBenchmark>,
    ) -> Option<ObjectRef<KnownBenchmark>> {
        let uid = self.labels().get(LABEL_BENCHMARK_UID)?;
        let is_its = |it: &KnownBenchmark| {
            it.uid().as_ref() == Some(uid) && it.namespace() == self.namespace()
        };
        let benchmark = known.find(is_its)?;
        Some(ObjectRef::from_obj(&*benchmark))
    }
}
