//! `FrugalityBaseline`: what a pass reads, what a run freezes, and promotions that another writer overtakes.

use axum::http::Method;
use frugality_operator::{
    api::{
        FrozenBaseline, FrozenBaselines, FrugalityBaseline, FrugalityBenchmark, FrugalityTrialSpec,
        PromotedFrom, Verdict,
    },
    io::apply::Applied,
    plan::{
        action::{BaselineWrite, LedgerWrite, Plan},
        baseline::{Promotion, PromotionRequest, current, entry_name, expanded, frozen, promotion},
        names::run_id,
    },
};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    proxy::Fault,
    stage::{Stage, plan_of},
};

fn image(digit: char) -> String {
    format!("example.org/shop@sha256:{}", digit.to_string().repeat(64))
}

async fn baseline(stage: &Stage, digit: char) -> FrugalityBaseline {
    let new = json!({
        "metadata": { "name": "shop" },
        "spec": { "candidate": { "name": "old", "image": image(digit) } },
    });
    let new = serde_json::from_value(new).unwrap();
    let api = stage.api::<FrugalityBaseline>();
    api.create(&PostParams::default(), &new).await.unwrap()
}

/// A person's change.
async fn change(stage: &Stage, digit: char) {
    let patch = json!({ "spec": { "candidate": { "image": image(digit) } } });
    let api = stage.api::<FrugalityBaseline>();
    api.patch("shop", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
}

async fn stored(stage: &Stage) -> FrugalityBaseline {
    stage.api::<FrugalityBaseline>().get("shop").await.unwrap()
}

async fn compared(stage: &Stage) -> FrugalityBenchmark {
    let changes: [(&str, Value); 2] = [
        (
            "candidates",
            json!([{ "name": "new", "image": image('b') }]),
        ),
        (
            "baseline",
            json!({ "name": "shop", "maxEnergyRatio": 1.03, "promote": "OnPass" }),
        ),
    ];
    stage.benchmark("b", &changes).await
}

fn decided(
    benchmark: &FrugalityBenchmark,
    frozen: Option<&FrozenBaseline>,
    now: Option<&FrugalityBaseline>,
) -> Promotion {
    let candidate = &benchmark.spec.candidates[0];
    let request = PromotionRequest {
        name: "shop",
        namespace: benchmark.namespace(),
        frozen,
        candidate,
        from: PromotedFrom {
            benchmark: benchmark.name_any(),
            uid: benchmark.uid().unwrap(),
            run: "r1".into(),
            generation: benchmark.metadata.generation,
            candidate: Some(candidate.name.clone()),
            image: candidate.server.image.clone(),
            ledger_digest: "digest".into(),
            verdict: Verdict::Pass,
            reason: "BudgetsMet".into(),
            tries: None,
            at: "2026-01-01T00:00:00Z".into(),
        },
        was_promoted: false,
    };
    promotion(request, now)
}

#[track_caller]
fn write(promotion: Promotion) -> Box<BaselineWrite> {
    match promotion {
        Promotion::Write(write) => write,
        other => panic!("{other:?}"),
    }
}

async fn apply(
    stage: &Stage,
    benchmark: &FrugalityBenchmark,
    write: Box<BaselineWrite>,
) -> Applied {
    let plan = Plan {
        promotion: Some(write),
        ..plan_of(benchmark)
    };
    stage.apply(benchmark, plan).await.unwrap()
}

#[tokio::test]
async fn a_pass_reads_the_baselines_that_the_spec_names() {
    let stage = Stage::new().await;
    let benchmark = compared(&stage).await;
    assert!(
        stage
            .observe(&benchmark)
            .await
            .unwrap()
            .baselines
            .is_empty()
    );
    let made = baseline(&stage, 'a').await;
    let seen = stage.observe(&benchmark).await.unwrap();
    assert_eq!(seen.baselines["shop"].spec, made.spec);
    let other = stage.benchmark("other", &[]).await;
    assert!(stage.observe(&other).await.unwrap().baselines.is_empty());
    let fault = Fault::Answer(403, "refused");
    stage
        .proxy
        .fail(Method::GET, "/frugalitybaselines/shop", 1, fault);
    let error = stage.observe(&benchmark).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot read a baseline:"), "{error}");
}

/// How often a pass asked the API server whether the operator may work in the namespace.
fn rights_asked(stage: &Stage) -> usize {
    let path = "/selfsubjectaccessreviews";
    stage.proxy.asked(&Method::POST, path).len()
}

#[tokio::test]
async fn what_is_frozen_comes_back_as_it_was_while_the_baseline_changes() {
    let stage = Stage::new().await;
    let benchmark = compared(&stage).await;
    baseline(&stage, 'a').await;
    let seen = stage.observe(&benchmark).await.unwrap();
    assert_eq!(rights_asked(&stage), 1);
    let asked = benchmark.spec.baseline.as_ref().unwrap();
    let releases = current(asked, &seen.baselines);
    let entry = |releases: &FrozenBaselines| {
        let name = entry_name(&benchmark);
        let mut entry = stage.entry(&benchmark, &name);
        entry.spec = FrugalityTrialSpec {
            run: run_id(&expanded(&benchmark, releases)),
            block: 0,
            position: 0,
            attempt: 0,
            candidate: String::new(),
            frozen: Some(Box::new(releases.clone())),
            ..entry.spec
        };
        LedgerWrite::open(entry, None)
    };
    let freezing = |releases: &FrozenBaselines| Plan {
        ledger: Some(entry(releases)),
        ..plan_of(&benchmark)
    };
    let first = stage.apply(&benchmark, freezing(&releases)).await.unwrap();
    assert_eq!(first, Applied::Done);
    change(&stage, 'c').await;
    let seen = stage.observe(&benchmark).await.unwrap();
    assert_eq!(frozen(&benchmark, &seen.trials), Some(&releases));
    // The run has begun.
    assert_eq!(rights_asked(&stage), 1);
    // A second operator that saw the later release is too late.
    let later = current(asked, &seen.baselines);
    assert_ne!(later, releases);
    let second = stage.apply(&benchmark, freezing(&later)).await.unwrap();
    assert_eq!(second, Applied::Overtaken);
    let seen = stage.observe(&benchmark).await.unwrap();
    assert_eq!(frozen(&benchmark, &seen.trials), Some(&releases));
    // That nothing existed is frozen too.
    let none = FrozenBaselines::default();
    let rerun = stage.edit("b", json!({ "rerun": 2 })).await;
    let mut opening = entry(&none);
    if let LedgerWrite::Open { entry, .. } = &mut opening {
        entry.metadata.name = Some(entry_name(&rerun));
    }
    let plan = Plan {
        ledger: Some(opening),
        ..plan_of(&rerun)
    };
    stage.apply(&rerun, plan).await.unwrap();
    let seen = stage.observe(&rerun).await.unwrap();
    assert_eq!(frozen(&rerun, &seen.trials), Some(&none));
}

#[tokio::test]
async fn a_promotion_is_two_writes_and_then_done() {
    let stage = Stage::new().await;
    let benchmark = compared(&stage).await;
    let before = FrozenBaseline::of(&baseline(&stage, 'a').await);
    for _ in 0..2 {
        let now = stored(&stage).await;
        let next = write(decided(&benchmark, Some(&before), Some(&now)));
        assert_eq!(apply(&stage, &benchmark, next).await, Applied::Done);
    }
    let now = stored(&stage).await;
    assert_eq!(now.spec.candidate.server.image, image('b'));
    let status = now.status.clone().unwrap();
    assert_eq!(status.promoted_from.unwrap().run, "r1");
    assert_eq!(status.previous[0].image, image('a'));
    let next = decided(&benchmark, Some(&before), Some(&now));
    assert_eq!(next, Promotion::Done);
}

#[tokio::test]
async fn a_promotion_that_a_person_overtakes_decides_again() {
    let stage = Stage::new().await;
    let benchmark = compared(&stage).await;
    let seen = baseline(&stage, 'a').await;
    let before = FrozenBaseline::of(&seen);
    let next = write(decided(&benchmark, Some(&before), Some(&seen)));
    change(&stage, 'c').await;
    assert_eq!(apply(&stage, &benchmark, next).await, Applied::Overtaken);
    let now = stored(&stage).await;
    assert_eq!(now.spec.candidate.server.image, image('c'));
    let next = decided(&benchmark, Some(&before), Some(&now));
    assert!(matches!(next, Promotion::Refused(_)), "{next:?}");
}

#[tokio::test]
async fn the_first_release_is_created_and_only_once() {
    let stage = Stage::new().await;
    let benchmark = compared(&stage).await;
    let create = write(decided(&benchmark, None, None));
    assert_eq!(
        apply(&stage, &benchmark, create.clone()).await,
        Applied::Done
    );
    let made = stored(&stage).await;
    assert!(made.metadata.owner_references.is_none());
    assert_eq!(apply(&stage, &benchmark, create).await, Applied::Overtaken);
    // The answer may have been lost: the annotation says who made it.
    let next = decided(&benchmark, None, Some(&made));
    assert!(matches!(&*write(next), BaselineWrite::Status(_)));
    // It outlives its benchmark.
    let api = stage.api::<FrugalityBenchmark>();
    api.delete("b", &DeleteParams::default()).await.unwrap();
    assert_eq!(stored(&stage).await.spec, made.spec);
}
