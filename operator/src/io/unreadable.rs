//! Benchmarks whose stored form this version can't read. The operator writes this into the benchmark's status,
//! because its users do not see the operator's log.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PostParams},
    core::error_boundary::InvalidObject,
};
use serde_json::json;

use crate::{
    api::{Columns, FrugalityBenchmark, FrugalityBenchmarkStatus, Reason, Verdict, condition},
    plan::report::history::with_current,
};

/// Longest error in the message.
const MAX_ERROR_CHARS: usize = 1000;

/// The status of an unreadable benchmark. The operator does not touch its objects, because their purpose is
/// unknown.
#[must_use]
pub fn status(
    error: &str,
    generation: Option<i64>,
    now: Timestamp,
    earlier: &FrugalityBenchmarkStatus,
) -> FrugalityBenchmarkStatus {
    let error: String = error.chars().take(MAX_ERROR_CHARS).collect();
    let message = format!(
        "this version of Frugality can't read the stored benchmark: {error}; correct it, or install the version whose CustomResourceDefinitions are in the cluster"
    );
    let condition = |kind: &str, status: &str| Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Reason::InvalidSpec.as_str().to_owned(),
        message: message.clone(),
        observed_generation: generation,
        last_transition_time: earlier
            .conditions
            .iter()
            .find(|c| c.type_ == kind && c.status == status)
            .map_or(Time(now), |c| c.last_transition_time.clone()),
    };
    FrugalityBenchmarkStatus {
        observed_generation: generation,
        conditions: vec![
            condition(condition::COMPLETE, "True"),
            condition(condition::SUCCEEDED, "False"),
            condition(condition::READY, "False"),
            condition(condition::STALLED, "True"),
        ],
        verdict: Some(Verdict::Invalid),
        phase: Some("Ended".into()),
        history: with_current(earlier),
        columns: Some(Columns {
            verdict: Some(format!("{:?}", Verdict::Invalid)),
            reason: Some(Reason::InvalidSpec.as_str().to_owned()),
            message: Some(message.clone()),
            ..Columns::default()
        }),
        ..FrugalityBenchmarkStatus::default()
    }
}

/// Writes the status, unless it is already there.
pub(crate) async fn report(client: &Client, invalid: &InvalidObject) -> Result<(), kube::Error> {
    let namespace = invalid.metadata.namespace.clone().unwrap_or_default();
    let name = invalid.metadata.name.clone().unwrap_or_default();
    let resource = ApiResource::erase::<FrugalityBenchmark>(&());
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &resource);
    let Some(mut stored) = api.get_opt(&name).await? else {
        return Ok(());
    };
    // The user may have corrected it in the meantime.
    if stored.metadata.generation != invalid.metadata.generation {
        return Ok(());
    }
    let reported = stored.data.get("status").cloned().unwrap_or_default();
    // An unreadable status is replaced.
    let earlier: FrugalityBenchmarkStatus = serde_json::from_value(reported).unwrap_or_default();
    let generation = stored.metadata.generation;
    let new = status(&invalid.error, generation, Timestamp::now(), &earlier);
    if new == earlier {
        return Ok(());
    }
    stored.data["status"] = json!(new);
    api.replace_status(&name, &PostParams::default(), &stored)
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_wrong_and_settles() {
        let first = status(
            "unknown field `x`",
            Some(3),
            Timestamp::UNIX_EPOCH,
            &FrugalityBenchmarkStatus::default(),
        );
        assert_eq!(first.verdict, Some(Verdict::Invalid));
        assert_eq!(first.observed_generation, Some(3));
        let complete = &first.conditions[0];
        assert_eq!(
            (complete.type_.as_str(), complete.status.as_str()),
            (condition::COMPLETE, "True")
        );
        assert!(complete.message.contains("unknown field `x`"));
        // The same error later writes nothing.
        let again = status("unknown field `x`", Some(3), Timestamp::now(), &first);
        assert_eq!(again, first);
    }
}
