//! Checks that an attempt's requests reach its own pods only: its objects are unchanged, and no other pods are
//! behind its Services.

use crate::{
    api::{FrugalityTrialStatus, LABEL_ROLE, LABEL_WORKLOAD, Reason, Role},
    digest::hex_digest,
    plan::{
        action::ChildObject,
        database,
        facts::{
            Child, ChildKind, PodFacts,
            addresses::{Endpoints, ServiceFacts},
            contents::{contents_of, difference, limits_difference},
        },
        placement::nodes,
    },
};
use std::collections::BTreeSet;

use frugality_measure::energy::Window;
use kube::ResourceExt;

use super::step::OpenAttempt;

/// Key of the generation of CloudNativePG's Cluster in the restored database's state.
pub(super) const CLUSTER_GENERATION: &str = "clusterGeneration";

impl OpenAttempt<'_> {
    /// Why requests may have reached another server, or why pods may differ from the spec: reason code and message.
    pub(super) fn diverted(
        &self,
        status: &FrugalityTrialStatus,
        idle_before: Window,
    ) -> Option<(Reason, String)> {
        self.path_objects()
            .iter()
            .find_map(|object| self.changed_object(object))
            .or_else(|| self.changed_pod())
            .or_else(|| self.database_edited(status))
            .or_else(|| self.foreign_endpoint())
            .or_else(|| self.endpoints_changed(status, idle_before))
    }

    /// The objects that requests and queries pass through, as the operator made them.
    fn path_objects(&self) -> Vec<ChildObject> {
        let on = nodes::selector(self.measured);
        let mut made = self
            .builder
            .servers(self.candidate, self.name(), self.point.replicas, &on);
        if let Some(database) = &self.builder.benchmark.spec.database {
            made.extend(database::of(database).query_path(&self.builder, database, &on));
        }
        made
    }

    fn changed_object(&self, object: &ChildObject) -> Option<(Reason, String)> {
        let name = object.name();
        let mut children = self.observed.children.iter();
        let is_it = |child: &&Child| child.kind == object.kind() && child.name == name;
        let child = children.find(is_it);
        match object {
            ChildObject::Service(made) => {
                let difference = match child.map(|child| &child.service) {
                    Some(Some(now)) => now.difference(&ServiceFacts::of(made))?,
                    _ => "it was deleted".to_owned(),
                };
                let message = format!("the Service {name} was changed from outside: {difference}");
                Some((Reason::ServiceChanged, message))
            }
            ChildObject::Deployment(_) => {
                let times = child?.generation.filter(|times| *times > 1)?;
                let message = format!(
                    "the Deployment {name} was changed from outside: its generation is {times} instead of 1"
                );
                Some((Reason::DeploymentChanged, message))
            }
            _ => None,
        }
    }

    /// A pod that differs from its template. A user can change the image of a pod, and a ReplicaSet adopts any pod
    /// with its labels.
    fn changed_pod(&self) -> Option<(Reason, String)> {
        let objects = self.path_objects().into_iter().chain(self.prepare());
        let objects = objects.chain([self.injector()]);
        objects.filter_map(ChildObject::into_pod).find_map(|made| {
            let label = |key: &str| made.metadata.as_ref()?.labels.as_ref()?.get(key).cloned();
            let (role, workload) = (label(LABEL_ROLE), label(LABEL_WORKLOAD));
            let contents = contents_of(made.spec.as_ref()?);
            let mut pods = self.observed.pods.iter().filter(|pod| {
                let is_of_attempt = pod.trial.as_deref() == Some(self.name());
                let is_of_run = pod.trial.is_none() && pod.run == self.trial.spec.run;
                (is_of_attempt || is_of_run)
                    && Some(&pod.role) == role.as_ref()
                    && pod.workload == workload
            });
            // The injector's resources come from the chart. They are compared with the resources in earlier trials.
            let is_measured = [Role::Candidate, Role::Database].map(Role::as_str);
            let is_measured = is_measured.contains(&role.as_deref().unwrap_or_default());
            let (pod, what) = pods.find_map(|pod| {
                let what = difference(&pod.contents, &contents).or_else(|| {
                    let of_limits = || limits_difference(&pod.contents, &contents);
                    is_measured.then(of_limits).flatten()
                })?;
                Some((pod, what))
            })?;
            let message = format!(
                "the pod {} is not as the operator made it: {what}. A user or an admission webhook changed it.",
                pod.name
            );
            Some((Reason::PodChanged, message))
        })
    }

    /// Whether the spec of CloudNativePG's Cluster changed after the attempt was opened.
    fn database_edited(&self, status: &FrugalityTrialStatus) -> Option<(Reason, String)> {
        let before = status.restored.as_ref()?.state.get(CLUSTER_GENERATION)?;
        let now = self.cluster_generation();
        (now.as_ref() != Some(before)).then(|| {
            let message = now.as_deref().map_or_else(
                || "the database's Cluster does not exist any more".to_owned(),
                |now| {
                    format!(
                        "the database's Cluster was changed from outside: its generation is {now} instead of {before}"
                    )
                },
            );
            (Reason::DataChanged, message)
        })
    }

    /// Generation of CloudNativePG's Cluster, if it exists. CloudNativePG writes defaults into the spec, so the
    /// first value can be above 1.
    pub(super) fn cluster_generation(&self) -> Option<String> {
        let mut children = self.observed.children.iter();
        let cluster = children.find(|child| child.kind == ChildKind::Cluster)?;
        Some(cluster.generation?.to_string())
    }

    /// Services of the attempt, each with its pods' role.
    fn services(&self) -> Vec<(String, Role)> {
        let made = self.path_objects().into_iter();
        let services = made.filter_map(|object| match object {
            ChildObject::Service(service) => Some(service.name_any()),
            _ => None,
        });
        let host = self.builder.database_host();
        let mut services: Vec<(String, Role)> = services
            .filter(|name| *name != host)
            .map(|name| (name, Role::Candidate))
            .collect();
        if self.builder.benchmark.spec.database.is_some() {
            services.push((host, Role::Database));
        }
        services
    }

    fn endpoints(&self) -> impl Iterator<Item = (&Endpoints, Role)> {
        let services = self.services();
        self.observed.endpoints.iter().filter_map(move |slice| {
            let mut services = services.iter();
            let (_, role) = services.find(|(name, _)| *name == slice.service)?;
            Some((slice, *role))
        })
    }

    fn foreign_endpoint(&self) -> Option<(Reason, String)> {
        let uids = |role| -> BTreeSet<String> {
            let pods = self.pods(role).into_iter();
            pods.map(|pod| pod.uid).collect()
        };
        let (candidate, database) = (uids(Role::Candidate), uids(Role::Database));
        self.endpoints().find_map(|(slice, role)| {
            let own = match role {
                Role::Database => &database,
                _ => &candidate,
            };
            let is_own = |uid: &Option<String>| uid.as_ref().is_some_and(|uid| own.contains(uid));
            let foreign = slice.behind.iter().find(|it| !is_own(&it.pod_uid))?;
            let message = format!(
                "the Service {1} also sends requests to {0}, which is not a pod of the {2}",
                foreign.name,
                slice.service,
                role.as_str()
            );
            Some((Reason::ForeignEndpoint, message))
        })
    }

    /// A digest of the versions of all slices. It changes with every change of an address, even if the change was
    /// reverted.
    pub(super) fn endpoints_version(&self) -> Option<String> {
        let mut versions: Vec<&str> = self
            .endpoints()
            .map(|(slice, _)| slice.version.as_str())
            .collect();
        versions.sort_unstable();
        (!versions.is_empty()).then(|| hex_digest(versions.join(" ").as_bytes(), 8))
    }

    /// An address that appeared and disappeared between two passes: a client that connected to it may still send
    /// requests there. A pod that restarted or was unready also changes addresses. That change comes from the
    /// candidate and does not count here.
    fn endpoints_changed(
        &self,
        status: &FrugalityTrialStatus,
        idle_before: Window,
    ) -> Option<(Reason, String)> {
        let before = status.endpoints.as_ref()?;
        let start = self.on_nodes_clock(idle_before.start_unix_seconds);
        let has_changed = |pod: &PodFacts| {
            let ready_since = pod.ready_since_unix_seconds;
            pod.started_unix_seconds > Some(start) || ready_since.is_none_or(|since| since > start)
        };
        let mut own = [self.pods(Role::Candidate), self.pods(Role::Database)]
            .concat()
            .into_iter();
        if self.endpoints_version().as_ref() == Some(before) || own.any(|pod| has_changed(&pod)) {
            return None;
        }
        let message = "the addresses behind the attempt's Services changed after the idle baseline, but its pods did not change";
        Some((Reason::ForeignEndpoint, message.to_owned()))
    }
}
