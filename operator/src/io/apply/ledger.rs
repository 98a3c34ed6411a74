//! Writes to the ledger: an entry, its record, its course, and its deletion.

use std::time::Duration;

use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde_json::json;

use super::answer::{ApplyError, FIELD_MANAGER, failed, overtaken_is_fine, post, refusal};
use crate::{
    api::{FrugalityTrace, FrugalityTrial, FrugalityTrialStatus},
    plan::{action::ForgottenEntry, facts::Refusal, ledger::record},
};

/// Longest wait for the answer to the course of an attempt. A pass has 30 s in all.
const TRACE_TIMEOUT: Duration = Duration::from_secs(5);

/// What came of the creation of an entry.
pub(super) enum Opening {
    /// The entry has this version.
    Created(Option<String>),
    /// An earlier pass created it and ended before it could continue, or another operator created it.
    Exists,
    /// A quota has no room, or a policy or a webhook refuses it.
    Refused(Refusal),
}

/// Creates an entry.
pub(super) async fn open(
    client: &Client,
    namespace: &str,
    trial: &FrugalityTrial,
) -> Result<Opening, ApplyError> {
    let api = Api::<FrugalityTrial>::namespaced(client.clone(), namespace);
    let source = match api.create(&post(), trial).await {
        Ok(created) => return Ok(Opening::Created(created.resource_version())),
        Err(kube::Error::Api(status)) if status.code == 409 => return Ok(Opening::Exists),
        Err(source) => source,
    };
    let refusal = match &source {
        kube::Error::Api(status) => {
            Refusal::of_entry(&trial.name_any(), status.code, &status.message)
        }
        _ => None,
    };
    match refusal {
        Some(refusal) => Ok(Opening::Refused(refusal)),
        None => Err(failed("open an entry of the ledger")(source)),
    }
}

/// Writes a record over the given version of the entry. False if the entry has changed since: an idle baseline
/// that another operator recorded must not be replaced by a later one.
pub(super) async fn write_record(
    client: &Client,
    namespace: &str,
    name: &str,
    resource_version: Option<&str>,
    status: &FrugalityTrialStatus,
) -> Result<bool, ApplyError> {
    let api = Api::<FrugalityTrial>::namespaced(client.clone(), namespace);
    let patch = json!({
        "metadata": { "resourceVersion": resource_version },
        "status": record::patch(status),
    });
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.into()),
        ..PatchParams::default()
    };
    let result = api.patch_status(name, &params, &Patch::Merge(patch)).await;
    overtaken_is_fine(result).map_err(failed("record an attempt"))
}

/// Creates the course of an attempt. A failure does not stop the pass. Returns whether the readings may be dropped: the
/// course is stored, or the API server refused it. An existing object is the course of the same attempt, because an
/// attempt ends once.
pub(super) async fn store_course(client: &Client, namespace: &str, trace: &FrugalityTrace) -> bool {
    let api = Api::<FrugalityTrace>::namespaced(client.clone(), namespace);
    let parameters = post();
    let creation = tokio::time::timeout(TRACE_TIMEOUT, api.create(&parameters, trace)).await;
    let name = trace.name_any();
    let (error, is_refused) = match creation {
        Ok(Ok(_)) => return true,
        Ok(Err(kube::Error::Api(status))) if status.code == 409 => return true,
        Ok(Err(source)) => {
            // After an upgrade the cluster may lack the definition.
            let is_unknown = matches!(&source, kube::Error::Api(status) if status.code == 404);
            let is_refused = is_unknown || refusal(&source, &name).is_some();
            (source.to_string(), is_refused)
        }
        Err(_) => {
            let silence = format!("no answer within {} s", TRACE_TIMEOUT.as_secs());
            (silence, false)
        }
    };
    tracing::warn!(error, name, is_refused, "course of the attempt not stored");
    is_refused
}

/// Deletes an entry of the ledger. False if that fails: no figure depends on it, and a later pass tries again.
pub(super) async fn forget(client: &Client, namespace: &str, entry: &ForgottenEntry) -> bool {
    let api = Api::<FrugalityTrial>::namespaced(client.clone(), namespace);
    let params = DeleteParams::background().preconditions(Preconditions {
        resource_version: None,
        uid: Some(entry.uid.clone()),
    });
    match overtaken_is_fine(api.delete(&entry.name, &params).await) {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(entry = entry.name, %error, "cannot delete an entry of the ledger");
            false
        }
    }
}
