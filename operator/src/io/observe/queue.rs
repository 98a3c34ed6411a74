//! Facts of the other benchmarks and of the nodes' locks.

use crate::{
    api::FrugalityBenchmark,
    io::observe::reading::{ObserveError, each_metadata},
    plan::facts::{ForeignPod, Lock, Peer},
    time::unix_seconds,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, ResourceExt,
    core::{DeserializeGuard, PartialObjectMeta},
};

pub(crate) fn lock(lease: &Lease) -> Lock {
    let spec = lease.spec.as_ref();
    Lock {
        name: lease.name_any(),
        holder: spec
            .and_then(|spec| spec.holder_identity.as_deref())
            .and_then(|holder| holder.split_once(' '))
            .map(|(uid, name)| (uid.to_owned(), name.to_owned())),
        acquired_unix_seconds: spec
            .and_then(|spec| spec.acquire_time.as_ref())
            .map(|time| unix_seconds(time.0)),
        resource_version: lease.resource_version().unwrap_or_default(),
    }
}

/// A stored benchmark, readable or not, as the others see it.
pub(crate) fn peer(guard: &DeserializeGuard<FrugalityBenchmark>) -> Arc<Peer> {
    let readable = guard.0.as_ref().map(Peer::of);
    Arc::new(readable.unwrap_or_else(|_| Peer::unreadable(guard)))
}

/// Benchmarks that hold a lock and are missing in the list. The list may be older than the lock, so the operator
/// gets each by name. A lock is free only if its holder is gone.
pub(super) async fn unlisted_holders(
    client: &Client,
    locks: &[Lock],
    own_uid: &str,
    listed: &[Arc<Peer>],
) -> Result<Vec<Arc<Peer>>, ObserveError> {
    let is_unlisted =
        |uid: &&String| uid.as_str() != own_uid && listed.iter().all(|peer| peer.uid != **uid);
    let holders: BTreeMap<&String, &String> = locks
        .iter()
        .filter_map(|lock| lock.holder.as_ref().map(|(uid, name)| (uid, name)))
        .filter(|(uid, _)| is_unlisted(uid))
        .collect();
    let mut found = Vec::new();
    for (uid, name) in holders {
        let Some((namespace, name)) = name.split_once('/') else {
            continue;
        };
        let api =
            Api::<DeserializeGuard<FrugalityBenchmark>>::namespaced(client.clone(), namespace);
        let holder = api.get_opt(name).await.map_err(|source| ObserveError {
            what: "the holder of a lock",
            source,
        })?;
        found.extend(
            holder
                .filter(|it| it.uid().as_ref() == Some(uid))
                .map(|it| peer(&it)),
        );
    }
    Ok(found)
}

/// Benchmarks whose pods exist and that are missing in the list, which may be older than the pods. The pods of such a
/// benchmark can spoil an attempt. Any user can label pods with an invented UID, so the operator reads metadata only.
pub(super) async fn unlisted_owners(
    client: &Client,
    pods: &[ForeignPod],
    listed: &[Arc<Peer>],
) -> Result<Vec<Arc<Peer>>, ObserveError> {
    let is_unlisted = |pod: &&ForeignPod| listed.iter().all(|peer| peer.uid != pod.benchmark_uid);
    let unlisted: Vec<&ForeignPod> = pods.iter().filter(is_unlisted).collect();
    let namespaces: BTreeSet<&str> = unlisted
        .iter()
        .filter_map(|pod| Some(pod.name.split_once('/')?.0))
        .collect();
    let mut found = Vec::new();
    for namespace in namespaces {
        let api = Api::<FrugalityBenchmark>::namespaced(client.clone(), namespace);
        let take = |meta: PartialObjectMeta<FrugalityBenchmark>| {
            let uid = meta.uid().unwrap_or_default();
            if unlisted.iter().any(|pod| pod.benchmark_uid == uid) {
                found.push(Arc::new(Peer::unreadable(&meta)));
            }
        };
        each_metadata(&api, take)
            .await
            .map_err(|source| ObserveError {
                what: "benchmarks",
                source,
            })?;
    }
    Ok(found)
}
