//! Asks the API server what the operator may do.

use crate::{api::GROUP, io::observe::reading::ObserveError};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::{Api, Client, api::PostParams};

/// Whether the operator may run benchmarks in a namespace: whether it may write the ledger there. The chart binds
/// this right and all others that a run needs with one role.
pub(super) async fn may_run_in(client: &Client, namespace: &str) -> Result<bool, ObserveError> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(namespace.to_owned()),
                verb: Some("create".into()),
                group: Some(GROUP.into()),
                resource: Some("frugalitytrials".into()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = Api::<SelfSubjectAccessReview>::all(client.clone())
        .create(&PostParams::default(), &review)
        .await;
    match answer {
        Ok(review) => Ok(review.status.is_some_and(|status| status.allowed)),
        Err(source) => Err(ObserveError {
            what: "the operator's rights in the namespace",
            source,
        }),
    }
}
