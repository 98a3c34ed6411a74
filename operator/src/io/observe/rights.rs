//! Asks the API server what the operator may do.

use crate::{
    api::{FrugalityBenchmark, FrugalityTrial, GROUP},
    io::observe::reading::ObserveError,
    plan::{baseline::frozen, names::run_id},
};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::{Api, Client, ResourceExt, api::PostParams};

/// Whether the operator has no right to run this benchmark in its namespace. For a run that has begun or is suspended, it
/// asks only if the rights are `in_doubt`, because the question would be one more request in each pass.
pub(super) async fn is_forbidden(
    client: &Client,
    benchmark: &FrugalityBenchmark,
    trials: &[FrugalityTrial],
    in_doubt: bool,
) -> Result<bool, ObserveError> {
    let run = run_id(benchmark);
    // With spec.baseline, the run's ID is that of the expanded spec, and its first entry has the frozen releases.
    let has_begun =
        frozen(benchmark, trials).is_some() || trials.iter().any(|trial| trial.spec.run == run);
    if !in_doubt && (benchmark.spec.suspend || has_begun) {
        return Ok(false);
    }
    let namespace = benchmark.namespace().unwrap_or_default();
    Ok(!may_run_in(client, &namespace).await?)
}

/// Whether the operator may write the ledger in a namespace. The chart binds this right and all others that a run
/// needs with one role.
async fn may_run_in(client: &Client, namespace: &str) -> Result<bool, ObserveError> {
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
