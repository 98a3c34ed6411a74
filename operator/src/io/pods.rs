//! A pod that reaches another stage starts a pass over its benchmark: the next step of an attempt usually waits for a pod.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};
use kube::{
    Resource, ResourceExt,
    api::ObjectMeta,
    runtime::reflector::{ObjectRef, Store},
};
use serde::Deserialize;

use crate::{
    api::LABEL_BENCHMARK_UID,
    io::{
        known::KnownBenchmark,
        observe::{containers, evicted, has_ended, ready_since, waiting},
    },
};

/// A pod of a benchmark, without its spec.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = Pod)]
pub(crate) struct ChangedPod {
    metadata: ObjectMeta,
    #[serde(default)]
    status: PodStatus,
}

impl ChangedPod {
    /// The benchmark that the pod belongs to.
    fn benchmark(&self, known: &Store<KnownBenchmark>) -> Option<ObjectRef<KnownBenchmark>> {
        let uid = self.labels().get(LABEL_BENCHMARK_UID)?;
        let is_its = |it: &KnownBenchmark| {
            it.uid().as_ref() == Some(uid) && it.namespace() == self.namespace()
        };
        let benchmark = known.find(is_its)?;
        Some(ObjectRef::from_obj(&*benchmark))
    }

    fn stage(&self) -> PodStage {
        let containers = || containers(&self.status);
        let ends = |container: &ContainerStatus| {
            let state = container.state.as_ref();
            let has_ended = state.is_some_and(|state| state.terminated.is_some());
            container.restart_count + i32::from(has_ended)
        };
        PodStage {
            ready: ready_since(&self.status).is_some(),
            over: has_ended(&self.status) || evicted(&self.status).is_some(),
            ends: containers().map(ends).sum(),
            waiting: containers().find_map(waiting).map(|(reason, _)| reason),
        }
    }

    /// Whether the pod may have gone: the watch does not say which change is the last one.
    fn may_have_gone(&self) -> bool {
        let mut states = containers(&self.status).filter_map(|it| it.state.as_ref());
        self.metadata.deletion_timestamp.is_some() && states.all(|state| state.running.is_none())
    }
}

/// What a step may wait for in a pod.
#[derive(Debug, Default, PartialEq, Eq)]
struct PodStage {
    ready: bool,
    /// The pod has ended, or the cluster has evicted it.
    over: bool,
    /// How often its containers have ended.
    ends: i32,
    /// Why a container can't start.
    waiting: Option<String>,
}

/// The stages of the pods, by UID. A pod changes four or more times before it is ready, and no step waits for most of
/// these changes. A pass over such a change would delay the pass over the next one.
///
/// A pod whose removal the watch does not show starts no pass, for example a running pod that is deleted by force. Each
/// step therefore looks again after some seconds.
#[derive(Debug, Default)]
pub(crate) struct PodStages {
    by_uid: Mutex<HashMap<String, LastSeen>>,
}

#[derive(Debug)]
struct LastSeen {
    benchmark_uid: Option<String>,
    stage: PodStage,
}

impl PodStages {
    /// The benchmark that gets a pass because of this change of a pod.
    pub(crate) fn benchmark(
        &self,
        pod: &ChangedPod,
        known: &Store<KnownBenchmark>,
    ) -> Option<ObjectRef<KnownBenchmark>> {
        if self.advance(pod) {
            pod.benchmark(known)
        } else {
            None
        }
    }

    /// Whether the pod has reached another stage, or may have gone.
    fn advance(&self, pod: &ChangedPod) -> bool {
        let uid = pod.uid().unwrap_or_default();
        let mut by_uid = self.by_uid.lock().unwrap_or_else(PoisonError::into_inner);
        if pod.may_have_gone() {
            by_uid.remove(&uid);
            return true;
        }
        let stage = pod.stage();
        let before = by_uid.get(&uid).map(|it| &it.stage);
        let is_new = before.unwrap_or(&PodStage::default()) != &stage;
        let benchmark_uid = pod.labels().get(LABEL_BENCHMARK_UID).cloned();
        by_uid.insert(
            uid,
            LastSeen {
                benchmark_uid,
                stage,
            },
        );
        is_new
    }

    /// Forgets the pods of all benchmarks except these.
    pub(crate) fn keep(&self, benchmark_uids: &HashSet<String>) {
        let mut by_uid = self.by_uid.lock().unwrap_or_else(PoisonError::into_inner);
        by_uid.retain(|_, it| {
            let uid = it.benchmark_uid.as_ref();
            uid.is_some_and(|uid| benchmark_uids.contains(uid))
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(uid: &str, deleted: bool, status: &Value) -> ChangedPod {
        let mut metadata = json!({"name": "shop-0", "uid": uid});
        if deleted {
            metadata["deletionTimestamp"] = "2026-11-29T12:00:00Z".into();
        }
        serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
    }

    fn status(ready: bool, state: &Value) -> Value {
        json!({
            "phase": "Running",
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "Ready", "status": if ready { "True" } else { "False" }, "lastTransitionTime": "2026-11-29T12:00:00Z"},
            ],
            "containerStatuses": [
                {"name": "server", "image": "", "imageID": "", "ready": ready, "restartCount": 0, "state": state},
            ],
        })
    }

    #[test]
    fn pods_of_deleted_benchmarks_are_forgotten() {
        let stages = PodStages::default();
        for (uid, benchmark) in [("a", "here"), ("b", "gone")] {
            let mut pod = pod(uid, false, &status(true, &json!({"running": {}})));
            let label = (LABEL_BENCHMARK_UID.to_owned(), benchmark.to_owned());
            pod.metadata.labels = Some([label].into());
            stages.advance(&pod);
        }
        stages.keep(&HashSet::from(["here".to_owned()]));
        let left: Vec<_> = stages.by_uid.lock().unwrap().keys().cloned().collect();
        assert_eq!(left, ["a"]);
    }

    fn starts_passes(changes: &[ChangedPod]) -> Vec<bool> {
        let stages = PodStages::default();
        changes.iter().map(|pod| stages.advance(pod)).collect()
    }

    #[test]
    fn only_changes_that_a_step_may_wait_for_start_a_pass() {
        let scheduled = json!({"conditions": [{"type": "PodScheduled", "status": "True"}]});
        let creating = json!({"waiting": {"reason": "ContainerCreating"}});
        let running = json!({"running": {"startedAt": "2026-11-29T12:00:00Z"}});
        let ended = json!({"terminated": {"exitCode": 0}});
        let changes = [
            pod("a", false, &json!({"phase": "Pending"})),
            pod("a", false, &scheduled),
            pod("a", false, &status(false, &creating)),
            pod("a", false, &status(false, &running)),
            pod("a", false, &status(true, &running)),
            pod("a", false, &status(true, &running)),
            pod("a", true, &status(true, &running)),
            pod("a", true, &status(false, &ended)),
            pod("a", true, &status(false, &ended)),
        ];
        assert_eq!(
            starts_passes(&changes),
            [false, false, false, false, true, false, false, true, true],
            "ready, then ended, then gone"
        );
    }

    #[test]
    fn failures_and_ends_start_a_pass() {
        let crashed = json!({"terminated": {"exitCode": 1}});
        let without_image = json!({"waiting": {"reason": "ErrImagePull"}});
        for (what, change) in [
            ("image", status(false, &without_image)),
            ("crash", status(false, &crashed)),
            ("eviction", json!({"phase": "Failed", "reason": "Evicted"})),
        ] {
            assert_eq!(starts_passes(&[pod("a", false, &change)]), [true], "{what}");
        }
    }

    #[test]
    fn pods_that_have_gone_are_forgotten() {
        let stages = PodStages::default();
        let running = status(true, &json!({"running": {}}));
        let ended = status(false, &json!({"terminated": {"exitCode": 0}}));
        for pod in [
            pod("a", false, &running),
            pod("b", false, &running),
            pod("a", true, &running),
            pod("a", true, &ended),
        ] {
            stages.advance(&pod);
        }
        let left: Vec<_> = stages.by_uid.lock().unwrap().keys().cloned().collect();
        assert_eq!(left, ["b"]);
    }
}
