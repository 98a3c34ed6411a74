//! The course of an attempt: created once, never changed, and no condition of anything else.

use axum::http::Method;
use frugality_measure::{
    energy::{PhaseName, TracePhase},
    reading::Provenance,
    slices::{MOST_SLICES, Slices},
};
use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrace, FrugalityTraceSpec, FrugalityTrial, Outcome},
    io::apply::Applied,
    plan::action::{EventNote, LedgerWrite, Plan},
};
use k8s_openapi::api::core::v1::Event;
use kube::{
    Api, Resource, ResourceExt,
    api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{
    proxy::Fault,
    stage::{Stage, plan_of},
};

/// The largest course.
fn phases() -> Vec<TracePhase> {
    let names = [
        PhaseName::IdleBefore,
        PhaseName::WarmUp,
        PhaseName::Window,
        PhaseName::Tail,
        PhaseName::IdleAfter,
    ];
    let phase = |(index, phase)| TracePhase {
        phase,
        start_unix_seconds: 1_795_236_900.25 + 20.0 * f64::from(index),
        end_unix_seconds: 1_795_236_920.25 + 20.0 * f64::from(index),
        points: 20,
        node_millijoules: Some(vec![Some(5123); 20]),
        node_cpu_microseconds: Some(vec![Some(1_234_567); 20]),
        candidate_cpu_microseconds: Some([vec![Some(1_034_567); 19], vec![None]].concat()),
        database_cpu_microseconds: None,
        candidate_working_set_kibibytes: Some(vec![Some(65_536); 20]),
        database_working_set_kibibytes: None,
        temperature_millicelsius: Some(vec![Some(-1250); 20]),
        frequency_megahertz: Some(vec![Some(1500); 20]),
    };
    (0..).zip(names).map(phase).collect()
}

fn slices() -> Slices {
    Slices {
        slice_seconds: 0.625,
        whole_seconds: 19.98,
        successes: vec![123_456; MOST_SLICES],
        errors: vec![12; MOST_SLICES],
        mean_nanoseconds: vec![Some(12_345_678); MOST_SLICES],
        p99_nanoseconds: [vec![Some(123_400_000); MOST_SLICES - 1], vec![None]].concat(),
    }
}

fn trace(trial: &FrugalityTrial) -> FrugalityTrace {
    FrugalityTrace {
        metadata: ObjectMeta {
            name: Some(trial.name_any()),
            namespace: trial.namespace(),
            owner_references: Some(vec![trial.owner_ref(&()).unwrap()]),
            ..ObjectMeta::default()
        },
        spec: FrugalityTraceSpec {
            benchmark: trial.spec.benchmark.clone(),
            run: trial.spec.run.clone(),
            point: trial.spec.point.clone(),
            block: trial.spec.block,
            attempt: trial.spec.attempt,
            candidate: trial.spec.candidate.clone(),
            provenance: Provenance::Modelled,
            phases: phases(),
            slices: Some(slices()),
        },
    }
}

/// A stage with an open attempt, and a plan that ends it.
async fn ending() -> (Stage, FrugalityBenchmark, Plan) {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let opening = stage.opening(&benchmark, "attempt");
    stage.apply(&benchmark, opening).await.unwrap();
    let entry: FrugalityTrial = stage.api().get("attempt").await.unwrap();
    let mut record = entry.status.clone().unwrap_or_default();
    record.outcome = Some(Outcome::Void);
    record.reason = Some("Tested".into());
    let plan = Plan {
        trace: Some(Box::new(trace(&entry))),
        ledger: Some(LedgerWrite::record(&entry, record)),
        events: vec![EventNote {
            warning: true,
            reason: "Tested".into(),
            note: "ended".into(),
        }],
        ..plan_of(&benchmark)
    };
    (stage, benchmark, plan)
}

#[tokio::test]
async fn an_attempt_that_ends_has_its_course_once_and_not_even_an_administrator_changes_it() {
    let (stage, benchmark, plan) = ending().await;
    let expected = plan.trace.clone().unwrap();
    stage.proxy.forget();
    let applied = stage.apply(&benchmark, plan).await.unwrap();
    assert_eq!(applied, Applied::Done);
    let writes = stage.proxy.writes();
    assert_eq!(writes[0], "PATCH frugalitytrials/attempt/status");
    assert_eq!(writes.last().unwrap(), "POST frugalitytraces");
    let api: Api<FrugalityTrace> = stage.api();
    let stored = api.get("attempt").await.unwrap();
    assert_eq!(stored.spec, expected.spec);
    assert_eq!(stored.owner_references()[0].kind, "FrugalityTrial");

    // As after a crash between the write and its answer.
    let again = Plan {
        trace: Some(expected),
        ..plan_of(&benchmark)
    };
    let applied = stage.apply(&benchmark, again).await.unwrap();
    assert_eq!(applied, Applied::Done);
    let version = api.get("attempt").await.unwrap().resource_version();
    assert_eq!(version, stored.resource_version());

    let forged = Patch::Merge(json!({ "spec": { "candidate": "forged" } }));
    let error = api
        .patch("attempt", &PatchParams::default(), &forged)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("can't be rewritten"), "{error}");
}

#[tokio::test]
async fn a_course_that_cannot_be_stored_leaves_everything_else_as_it_was() {
    for (code, message) in [
        (403, "forbidden"),
        (404, "the server could not find the requested resource"),
        (422, "spec is invalid"),
        (500, "etcd is down"),
    ] {
        let (stage, benchmark, plan) = ending().await;
        stage.proxy.fail(
            Method::POST,
            "/frugalitytraces",
            1,
            Fault::Answer(code, message),
        );
        let applied = stage.apply(&benchmark, plan).await.unwrap();
        assert_eq!(applied, Applied::Done, "{code}");
        assert!(stage.proxy.is_through(), "{code}");
        let entry: FrugalityTrial = stage.api().get("attempt").await.unwrap();
        assert_eq!(entry.status.unwrap().outcome, Some(Outcome::Void));
        let events: Api<Event> = stage.api();
        let events = events.list(&ListParams::default()).await.unwrap();
        assert_eq!(events.items.len(), 1, "{code}");
    }
}

#[tokio::test]
async fn a_course_is_bounded() {
    let (stage, _, plan) = ending().await;
    let api: Api<FrugalityTrace> = stage.api();
    let good = *plan.trace.unwrap();
    let create = |change: &dyn Fn(&mut FrugalityTraceSpec)| {
        let (api, mut trace) = (api.clone(), good.clone());
        change(&mut trace.spec);
        async move { api.create(&PostParams::default(), &trace).await }
    };
    let long = create(&|spec| spec.phases[0].node_millijoules = Some(vec![Some(1); 101])).await;
    assert!(long.unwrap_err().to_string().contains("Too many"));
    let many = create(&|spec| spec.phases.push(spec.phases[0].clone())).await;
    assert!(many.unwrap_err().to_string().contains("Too many"));
    let slices = create(&|spec| spec.slices.as_mut().unwrap().successes.push(1)).await;
    assert!(slices.unwrap_err().to_string().contains("Too many"));
    create(&|_| {}).await.unwrap();
}
