//! Facts of the objects that a benchmark has made.

use crate::{
    api::{LABEL_RUN, LABEL_TRIAL},
    io::observe::reading::{ObserveError, created, list},
    plan::{
        database::cloud_native_pg,
        facts::{
            Child, ChildKind,
            addresses::{Endpoints, SERVICE_NAME_LABEL, ServiceFacts},
        },
    },
};

use std::collections::BTreeSet;

use k8s_openapi::api::{
    apps::v1::Deployment, batch::v1::Job, core::v1::Service, discovery::v1::EndpointSlice,
    events::v1::Event,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams},
};

/// Complete Jobs, because their conditions show whether they can still make a pod.
pub(super) async fn jobs(
    client: &Client,
    namespace: &str,
    params: &ListParams,
) -> Result<Vec<Child>, ObserveError> {
    let api = Api::<Job>::namespaced(client.clone(), namespace);
    let jobs = list("children", &api, params).await?;
    Ok(jobs.iter().map(job).collect())
}

pub(super) fn job(object: &Job) -> Child {
    let conditions = object.status.iter().filter_map(|it| it.conditions.as_ref());
    let is_end = |type_: &str| matches!(type_, "Complete" | "Failed");
    Child {
        ended: conditions
            .flatten()
            .any(|it| is_end(&it.type_) && it.status == "True"),
        ..child(object, ChildKind::Job)
    }
}

pub(super) async fn deployments(
    client: &Client,
    namespace: &str,
    params: &ListParams,
) -> Result<Vec<Deployment>, ObserveError> {
    let api = Api::<Deployment>::namespaced(client.clone(), namespace);
    list("children", &api, params).await
}

/// The condition comes from the ReplicaSet and goes when a pod could be created.
pub(super) fn deployment(object: &Deployment) -> Child {
    let status = object.status.as_ref();
    let mut conditions = status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let refused = conditions.find(|it| it.type_ == "ReplicaFailure" && it.status == "True");
    Child {
        pods_refused: refused.map(|condition| {
            let reason = condition.reason.as_deref().unwrap_or("ReplicaFailure");
            let message = condition.message.as_deref().unwrap_or_default();
            format!("{reason}: {message}")
        }),
        ..child(object, ChildKind::Deployment)
    }
}

/// Why the last try to create a Job's pod failed, by the Job controller's events. A Job has no condition for this.
pub(super) async fn refused_pod(
    client: &Client,
    namespace: &str,
    job_uid: &str,
) -> Result<Option<String>, ObserveError> {
    let api = Api::<Event>::namespaced(client.clone(), namespace);
    let of_job = format!("regarding.uid={job_uid},reason=FailedCreate");
    let events = list("events", &api, &ListParams::default().fields(&of_job)).await?;
    let at = |event: &Event| {
        let series = event.series.as_ref().map(|it| it.last_observed_time.0);
        let last = event.deprecated_last_timestamp.as_ref().map(|it| it.0);
        let first = event.event_time.as_ref().map(|it| it.0);
        series.max(last).max(first)
    };
    let newest = events.into_iter().max_by_key(at);
    Ok(newest.map(|event| {
        let reason = event.reason.unwrap_or_default();
        format!("{reason}: {}", event.note.unwrap_or_default())
    }))
}

/// Complete Services, because their specs show which pods answer.
pub(super) async fn services(
    client: &Client,
    namespace: &str,
    params: &ListParams,
) -> Result<Vec<Child>, ObserveError> {
    let api = Api::<Service>::namespaced(client.clone(), namespace);
    let services = list("services", &api, params).await?;
    let facts = |service: &Service| Child {
        service: Some(ServiceFacts::of(service)),
        ..child(service, ChildKind::Service)
    };
    Ok(services.iter().map(facts).collect())
}

/// Names of the Services that get a run's requests and queries.
pub(crate) fn services_of(children: &[Child]) -> BTreeSet<String> {
    let name = |child: &Child| match child.kind {
        ChildKind::Service => Some(child.name.clone()),
        ChildKind::Cluster => Some(format!("{}-rw", child.name)),
        _ => None,
    };
    children.iter().filter_map(name).collect()
}

/// Every slice of addresses that names one of these Services, by any author, because all its addresses get
/// requests.
pub(super) async fn endpoints(
    client: &Client,
    namespace: &str,
    services: &BTreeSet<String>,
) -> Result<Vec<Endpoints>, ObserveError> {
    if services.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = services.iter().map(String::as_str).collect();
    let api = Api::<EndpointSlice>::namespaced(client.clone(), namespace);
    let of_them = format!("{SERVICE_NAME_LABEL} in ({})", names.join(","));
    let slices = list(
        "endpoint slices",
        &api,
        &ListParams::default().labels(&of_them),
    )
    .await?;
    Ok(slices.iter().map(Endpoints::of).collect())
}

/// `None` if the cluster does not know CloudNativePG.
pub(super) async fn clusters(
    client: &Client,
    namespace: &str,
    params: &ListParams,
) -> Result<Option<Vec<DynamicObject>>, ObserveError> {
    let api = Api::<DynamicObject>::namespaced_with(
        client.clone(),
        namespace,
        &cloud_native_pg::api_resource(),
    );
    match api.list(params).await {
        Ok(list) => Ok(Some(list.items)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(source) => Err(ObserveError {
            what: "CloudNativePG clusters",
            source,
        }),
    }
}

pub(super) fn child<K: ResourceExt>(object: &K, kind: ChildKind) -> Child {
    let label = |key: &str| object.labels().get(key).cloned();
    Child {
        kind,
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        run: label(LABEL_RUN).unwrap_or_default(),
        trial: label(LABEL_TRIAL),
        created_unix_seconds: created(object),
        deleting: object.meta().deletion_timestamp.is_some(),
        pods_refused: None,
        generation: object.meta().generation,
        ended: false,
        service: None,
    }
}
