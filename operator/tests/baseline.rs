//! The release before: frozen for a run, measured in the same blocks, and replaced by a release that passed.
//!
//! In the world, the candidate `rust` needs about a third of the energy of every other candidate.

use std::collections::BTreeSet;

use crate::common::{
    T0,
    attempt::changed,
    edited,
    expected::status,
    of_yaml, run_of, two,
    world::{Fault, World},
};
use frugality_measure::reading::Provenance;
use frugality_operator::{
    api::{
        BaselineResult, BudgetOutcome, FrozenBaseline, FrozenBaselines, FrugalityBaseline,
        FrugalityBaselineSpec, FrugalityBaselineStatus, FrugalityBenchmark, MAX_PREVIOUS,
        PROMOTED_BY, PreviousRelease, PromotedFrom, PromotionState, Reason, Verdict,
    },
    plan::{
        action::BaselineWrite,
        baseline::{Promotion, PromotionRequest, expanded, is_frozen_entry, promotion},
        facts::{Observed, Refusal},
        names::run_id,
        settings::{Settings, SettingsError},
    },
};
use kube::ResourceExt;
use serde_json::{Value, json};

/// An image with a digest of one repeated digit.
fn image(digit: char) -> String {
    format!("example.org/shop@sha256:{}", digit.to_string().repeat(64))
}

fn release(digit: char) -> Value {
    json!({ "candidate": { "name": "baseline", "image": image(digit) } })
}

/// A new release `rust` that is compared with the FrugalityBaseline `shop`.
fn compared(changes: &[(&str, Value)]) -> FrugalityBenchmark {
    let baseline = json!({ "name": "shop", "maxEnergyRatio": 1.03, "promote": "OnPass" });
    let mut all = vec![
        (
            "/candidates",
            json!([{ "name": "rust", "image": image('b') }]),
        ),
        ("/baseline", baseline),
    ];
    all.extend(changes.iter().cloned());
    edited(&two(), &all)
}

/// A world in which `shop` has the image of `a`s.
fn world(changes: &[(&str, Value)]) -> World {
    let mut world = World::new([compared(changes)]);
    world.set_baseline("shop", &release('a'));
    world
}

/// Until the entry exists, nothing is fixed.
#[test]
fn a_refused_entry_of_the_releases_is_in_the_status() {
    let refused = |observed: &mut Observed| {
        observed.refused = Some(Refusal {
            reason: Reason::QuotaExceeded,
            message: "no room for entries".to_owned(),
            is_entry: true,
        });
    };
    let mut world = world(&[]);
    let freezing = loop {
        let slot = world.wait();
        let plan = changed(&world, refused);
        if plan.opened().is_some() {
            break plan;
        }
        world.pass(slot);
    };
    let columns = freezing.status.columns.as_ref().unwrap();
    assert_eq!(columns.reason.as_deref(), Some("QuotaExceeded"));
    assert!(freezing.requeue_seconds >= 5.0);
}

fn reported(world: &World) -> &BaselineResult {
    status(world, 0).baseline.as_ref().unwrap()
}

fn reason(world: &World) -> &str {
    &status(world, 0).conditions[0].reason
}

/// Runs to the end, and lets the operator look a few times more.
fn run_to_rest(world: &mut World) {
    world.run_to_end();
    for _ in 0..5 {
        world.wait();
        world.pass(0);
    }
}

fn entrants(world: &World, run: &str) -> BTreeSet<String> {
    let trials = world.slots[0].trials.iter();
    trials
        .filter(|trial| trial.spec.run == run && !is_frozen_entry(trial))
        .map(|trial| trial.spec.candidate.clone())
        .collect()
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn events(world: &World, reason: Reason) -> Vec<&str> {
    let events = world.slots[0].events.iter();
    events
        .filter(|(_, note)| note.reason == reason.as_str())
        .map(|(_, note)| note.note.as_str())
        .collect()
}

// ---- a whole run ----------------------------------------------------------------------------------

#[test]
fn the_release_before_is_measured_in_every_block_and_decides() {
    let mut world = world(&[]);
    run_to_rest(&mut world);
    let status = status(&world, 0);
    assert_eq!(
        (status.verdict, reason(&world)),
        (Some(Verdict::Pass), "BudgetsMet")
    );
    let run = status.run.clone().unwrap();
    assert_eq!(entrants(&world, &run), names(&["baseline", "rust"]));
    let result = &status.budgets[0];
    assert_eq!(
        (
            result.candidate.as_str(),
            result.against.as_deref(),
            result.outcome
        ),
        ("rust", Some("baseline"), BudgetOutcome::Met)
    );
    let reported = reported(&world);
    assert_eq!(reported.candidate, "rust");
    assert_eq!(reported.baseline.name, "shop");
    assert_eq!(reported.baseline.image, Some(image('a')));
    assert_eq!(reported.baseline.energy_ratio, result.figure);
    assert_eq!(reported.baseline.max_energy_ratio, Some(1.03));
    assert_eq!(reported.anchor, None);
}

#[test]
fn a_release_that_needs_more_than_the_margin_fails_and_is_not_promoted() {
    let baseline = json!({ "name": "shop", "maxEnergyRatio": 0.2, "promote": "OnPass" });
    let mut world = world(&[("/baseline", baseline)]);
    run_to_rest(&mut world);
    assert_eq!(status(&world, 0).verdict, Some(Verdict::Fail));
    assert_eq!(reported(&world).promotion, None);
    assert_eq!(
        world.baselines["shop"].spec.candidate.server.image,
        image('a')
    );
}

#[test]
fn an_undecided_run_is_not_promoted() {
    // The ratio itself: the interval contains it.
    let mut first = world(&[]);
    run_to_rest(&mut first);
    let ratio = reported(&first).baseline.energy_ratio.unwrap().value;
    let baseline = json!({ "name": "shop", "maxEnergyRatio": ratio, "promote": "OnPass" });
    let mut world = world(&[("/baseline", baseline)]);
    run_to_rest(&mut world);
    assert_eq!(
        (status(&world, 0).verdict, reason(&world)),
        (Some(Verdict::Inconclusive), "BudgetWithinUncertainty")
    );
    assert_eq!(
        world.baselines["shop"].spec.candidate.server.image,
        image('a')
    );
}

#[test]
fn other_budgets_decide_too() {
    let budgets = json!([{ "candidate": "rust", "maxJoulesPerRequest": 0.000_001 }]);
    let mut world = world(&[("/budgets", budgets)]);
    run_to_rest(&mut world);
    let status = status(&world, 0);
    assert_eq!(status.verdict, Some(Verdict::Fail));
    assert_eq!(status.budgets.len(), 2);
    assert_eq!(
        world.baselines["shop"].spec.candidate.server.image,
        image('a')
    );
}

#[test]
fn without_promotion_the_baseline_stays() {
    let baseline = json!({ "name": "shop", "maxEnergyRatio": 1.03 });
    let mut world = world(&[("/baseline", baseline)]);
    let before = world.baselines["shop"].clone();
    run_to_rest(&mut world);
    assert_eq!(status(&world, 0).verdict, Some(Verdict::Pass));
    assert_eq!(world.baselines["shop"], before);
    assert_eq!(reported(&world).promotion, None);
}

#[test]
fn modelled_power_decides_nothing_unless_allowed_and_the_first_release_is_no_exception() {
    for with_baseline in [true, false] {
        let mut world = World::new([compared(&[])]);
        if with_baseline {
            world.set_baseline("shop", &release('a'));
        }
        world.manner.meter = Some(Provenance::Modelled);
        world.run_to_end();
        assert_eq!(
            (status(&world, 0).verdict, reason(&world)),
            (Some(Verdict::Invalid), "ModelledPowerNotAllowed"),
            "{with_baseline}"
        );
    }
}

// ---- what a run freezes ---------------------------------------------------------------------------

#[test]
fn a_baseline_that_changes_meanwhile_changes_no_run_and_is_not_overwritten() {
    let mut world = world(&[]);
    world.run_until("an attempt", |world| {
        world.slots[0].trials.iter().any(|it| !is_frozen_entry(it))
    });
    let run = status(&world, 0).run.clone();
    world.set_baseline("shop", &release('c'));
    run_to_rest(&mut world);
    let reported = reported(&world);
    assert_eq!(reported.baseline.image, Some(image('a')));
    assert_eq!(reported.promotion, Some(PromotionState::NotPromoted));
    let why = reported.not_promoted_because.as_deref().unwrap();
    assert!(
        why.contains(&image('c')) && why.contains("spec.rerun"),
        "{why}"
    );
    assert_eq!(events(&world, Reason::NotPromoted).len(), 1);
    let status = status(&world, 0);
    assert_eq!((status.verdict, &status.run), (Some(Verdict::Pass), &run));
    let runs: BTreeSet<_> = world.slots[0]
        .trials
        .iter()
        .map(|it| &it.spec.run)
        .collect();
    assert_eq!(runs.len(), 1);
    assert_eq!(
        world.baselines["shop"].spec.candidate.server.image,
        image('c')
    );
}

#[test]
fn a_baseline_that_changes_in_the_queue_is_the_one_that_is_measured() {
    let mut first = two();
    first.metadata.name = Some("first".into());
    first.metadata.uid = Some("first-uid".into());
    let mut later = compared(&[]);
    later.metadata.creation_timestamp = frugality_operator::time::timestamp(T0 + 5.0)
        .map(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time);
    let mut world = World::new([later, first]);
    world.set_baseline("shop", &release('a'));
    world.run_until("the queue", |world| {
        let reported = world.slots[0].benchmark.current_status();
        reported.is_some_and(|reported| reported.phase.as_deref() == Some("Queued"))
            && world.slots[1].trials.len() > 2
    });
    assert!(world.slots[0].trials.is_empty());
    world.set_baseline("shop", &release('c'));
    world.run_to_end();
    assert_eq!(reported(&world).baseline.image, Some(image('c')));
    assert_eq!(reported(&world).promotion, Some(PromotionState::Promoted));
}

#[test]
fn the_image_of_the_release_before_is_part_of_the_run() {
    let benchmark = compared(&[]);
    let with = |digit: char| {
        let candidate = serde_json::from_value(release(digit)["candidate"].clone()).unwrap();
        let frozen = FrozenBaseline {
            name: "shop".into(),
            uid: "u".into(),
            generation: 1,
            candidate,
        };
        let releases = FrozenBaselines {
            baseline: Some(frozen),
            anchor: None,
        };
        run_id(&expanded(&benchmark, &releases))
    };
    assert_ne!(with('a'), with('c'));
    assert_eq!(with('a'), with('a'));
    assert_ne!(with('a'), run_of(&benchmark));
    // A margin is judged on the same trials.
    let margin = edited(&benchmark, &[("/baseline/maxEnergyRatio", json!(1.2))]);
    assert_eq!(run_of(&margin), run_of(&benchmark));
    let other = edited(&benchmark, &[("/baseline/name", json!("till"))]);
    assert_ne!(run_of(&other), run_of(&benchmark));
}

#[test]
fn an_edit_of_the_margin_judges_the_same_trials_against_the_same_release() {
    let mut world = world(&[("/baseline/promote", json!("Never"))]);
    run_to_rest(&mut world);
    let before = world.slots[0].trials.len();
    world.set_baseline("shop", &release('c'));
    world.edit(0, &[("/baseline/maxEnergyRatio", json!(0.2))]);
    run_to_rest(&mut world);
    assert_eq!(status(&world, 0).verdict, Some(Verdict::Fail));
    assert_eq!(world.slots[0].trials.len(), before);
    assert_eq!(reported(&world).baseline.image, Some(image('a')));
}

#[test]
fn an_image_of_the_release_before_that_cannot_be_pulled_is_an_error() {
    let mut world = world(&[]);
    world.run_until("an attempt of the baseline", |world| {
        let mut trials = world.slots[0].trials.iter();
        trials.any(|trial| trial.spec.candidate == "baseline")
    });
    let why = ("ImagePullBackOff".to_owned(), "not found".to_owned());
    world.manner.server_waiting = Some(why);
    world.manner.server_ready = None;
    world.run_to_end();
    assert_eq!(
        (status(&world, 0).verdict, reason(&world)),
        (Some(Verdict::Error), "ImagePullFailed")
    );
}

// ---- no baseline ----------------------------------------------------------------------------------

/// A whole run without a FrugalityBaseline, with this `whenMissing`.
fn first_release(missing: &str, verdict: Verdict) -> World {
    let baseline = json!({
        "name": "shop", "maxEnergyRatio": 1.03, "promote": "OnPass", "whenMissing": missing,
    });
    let mut world = World::new([compared(&[("/baseline", baseline)])]);
    run_to_rest(&mut world);
    let status = status(&world, 0);
    assert_eq!(
        (status.verdict, reason(&world)),
        (Some(verdict), "NoBaseline")
    );
    assert!(status.results[0].gross_joules_per_request.is_some());
    assert_eq!(reported(&world).baseline.image, None);
    let run = status.run.clone().unwrap();
    assert_eq!(entrants(&world, &run), names(&["rust"]));
    world
}

#[test]
fn without_a_baseline_a_run_is_inconclusive_and_promotes_nothing() {
    let world = first_release("Inconclusive", Verdict::Inconclusive);
    assert!(world.baselines.is_empty());
}

#[test]
fn without_a_baseline_a_run_passes_if_the_spec_says_so_and_makes_the_baseline() {
    let world = first_release("Pass", Verdict::Pass);
    let made = &world.baselines["shop"];
    assert_eq!(made.spec.candidate.server.image, image('b'));
    assert!(!made.spec.pinned);
    let made = made.status.as_ref().unwrap();
    assert_eq!(made.promoted_from.as_ref().unwrap().reason, "NoBaseline");
    assert_eq!(made.previous, []);
}

#[test]
fn without_a_baseline_other_budgets_still_decide() {
    let changes = |most: f64| {
        [
            ("/baseline/whenMissing", json!("Pass")),
            (
                "/budgets",
                json!([{ "candidate": "rust", "maxJoulesPerRequest": most }]),
            ),
        ]
    };
    for (most, verdict, why) in [
        (0.000_001, Verdict::Fail, "BudgetExceeded"),
        (1.0, Verdict::Pass, "NoBaseline"),
    ] {
        let mut world = World::new([compared(&changes(most))]);
        run_to_rest(&mut world);
        assert_eq!(
            (status(&world, 0).verdict, reason(&world)),
            (Some(verdict), why)
        );
        assert_eq!(world.baselines.is_empty(), verdict == Verdict::Fail);
    }
}

#[test]
fn a_baseline_that_is_made_after_the_run_began_needs_another_run() {
    let baseline = json!({
        "name": "shop", "maxEnergyRatio": 1.03, "promote": "OnPass", "whenMissing": "Pass",
    });
    let mut world = World::new([compared(&[("/baseline", baseline)])]);
    world.run_until("an attempt", |world| {
        world.slots[0].trials.iter().any(|it| !is_frozen_entry(it))
    });
    world.set_baseline("shop", &release('a'));
    run_to_rest(&mut world);
    assert_eq!(reason(&world), "NoBaseline");
    assert_eq!(
        reported(&world).promotion,
        Some(PromotionState::NotPromoted)
    );
    assert_eq!(
        world.baselines["shop"].spec.candidate.server.image,
        image('a')
    );
    world.run_again(0, 2);
    run_to_rest(&mut world);
    assert_eq!(reason(&world), "BudgetsMet");
    assert_eq!(reported(&world).promotion, Some(PromotionState::Promoted));
}

#[test]
fn the_control_may_be_the_release_before_and_is_left_out_without_it() {
    for (with, entrants_count) in [(true, 3), (false, 1)] {
        let changes = [
            ("/trials/control", json!("baseline")),
            ("/baseline/whenMissing", json!("Pass")),
        ];
        let mut world = World::new([compared(&changes)]);
        if with {
            world.set_baseline("shop", &release('a'));
        }
        world.run_to_end();
        let run = status(&world, 0).run.clone().unwrap();
        assert_eq!(entrants(&world, &run).len(), entrants_count);
        assert_eq!(status(&world, 0).noise_floor.is_some(), with);
    }
}

// ---- the anchor -----------------------------------------------------------------------------------

#[test]
fn the_anchor_is_in_the_same_blocks_with_its_own_margin() {
    let baseline = json!({
        "name": "shop", "maxEnergyRatio": 1.03,
        "anchor": "shop-2026", "anchorMaxEnergyRatio": 0.2,
    });
    let mut world = world(&[("/baseline", baseline)]);
    world.set_baseline("shop-2026", &release('d'));
    run_to_rest(&mut world);
    let status = status(&world, 0);
    let run = status.run.clone().unwrap();
    assert_eq!(
        entrants(&world, &run),
        names(&["anchor", "baseline", "rust"])
    );
    assert_eq!(status.verdict, Some(Verdict::Fail));
    let reported = reported(&world);
    let anchor = reported.anchor.as_ref().unwrap();
    assert_eq!(anchor.image, Some(image('d')));
    assert_eq!(anchor.max_energy_ratio, Some(0.2));
    assert!(anchor.energy_ratio.is_some() && reported.baseline.energy_ratio.is_some());
    let outcomes: Vec<_> = status.budgets.iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, [BudgetOutcome::Met, BudgetOutcome::Exceeded]);
}

#[test]
fn a_run_does_not_begin_without_its_anchor() {
    let baseline = json!({
        "name": "shop", "maxEnergyRatio": 1.03, "whenMissing": "Pass",
        "anchor": "shop-2026", "anchorMaxEnergyRatio": 1.1,
    });
    let mut world = world(&[("/baseline", baseline)]);
    world.run_to_end();
    assert_eq!(
        (status(&world, 0).verdict, reason(&world)),
        (Some(Verdict::Invalid), "NoAnchor")
    );
    assert!(world.slots[0].trials.is_empty());
    world.set_baseline("shop-2026", &release('d'));
    world.run_until("the verdict", |world| {
        status(world, 0).verdict == Some(Verdict::Pass)
    });
}

// ---- promotion ------------------------------------------------------------------------------------

#[test]
fn a_pass_makes_the_release_the_new_baseline_and_the_next_run_measures_against_it() {
    let mut world = world(&[]);
    run_to_rest(&mut world);
    let first = status(&world, 0).run.clone().unwrap();
    let digest = status(&world, 0).ledger_digest.clone().unwrap();
    assert_eq!(reported(&world).promotion, Some(PromotionState::Promoted));
    assert_eq!(events(&world, Reason::Promoted).len(), 1);
    assert_eq!(events(&world, Reason::NotPromoted).len(), 0);
    let baseline = &world.baselines["shop"];
    assert_eq!(baseline.spec.candidate.server.image, image('b'));
    let made = baseline.status.clone().unwrap();
    let from = made.promoted_from.unwrap();
    assert_eq!(
        (from.benchmark.as_str(), from.uid.as_str()),
        ("two", "two-uid")
    );
    assert_eq!((&from.run, &from.ledger_digest), (&first, &digest));
    assert_eq!((from.image, from.verdict), (image('b'), Verdict::Pass));
    assert_eq!((from.tries, from.generation), (None, Some(2)));
    let earlier = PreviousRelease {
        image: image('a'),
        promoted_from: None,
    };
    assert_eq!(made.previous, [earlier]);

    let next = [("/candidates/0/image", json!(image('e')))];
    world.edit(0, &next);
    run_to_rest(&mut world);
    assert_eq!(reported(&world).baseline.image, Some(image('b')));
    let made = world.baselines["shop"].status.clone().unwrap();
    let images: Vec<_> = made.previous.iter().map(|it| it.image.clone()).collect();
    assert_eq!(images, [image('b'), image('a')]);
    let earlier = made.previous[0].promoted_from.as_ref().unwrap();
    assert_eq!(earlier.run, first);
}

/// Git is set back to the release before, whose run has ended with Pass.
#[test]
fn a_release_that_was_replaced_is_not_reported_as_promoted() {
    let mut world = world(&[]);
    run_to_rest(&mut world);
    for digit in ['e', 'b'] {
        world.edit(0, &[("/candidates/0/image", json!(image(digit)))]);
        run_to_rest(&mut world);
    }
    let baseline = &world.baselines["shop"];
    assert_eq!(baseline.spec.candidate.server.image, image('e'));
    assert_eq!(
        reported(&world).promotion,
        Some(PromotionState::NotPromoted)
    );
    let why = reported(&world).not_promoted_because.as_deref().unwrap();
    let expected = format!("FrugalityBaseline shop now has {}", image('e'));
    assert!(why.contains(&expected), "{why}");
    assert_eq!(events(&world, Reason::Promoted).len(), 2);
}

#[test]
fn a_ratio_of_a_release_with_itself_is_noted() {
    let same = |digit: char| {
        let mut world = World::new([compared(&[])]);
        world.set_baseline("shop", &release(digit));
        run_to_rest(&mut world);
        let notes = &status(&world, 0).notes;
        notes.iter().any(|it| {
            it.starts_with("rust and baseline have the same image and settings, so their ratio")
        })
    };
    assert!(same('b'));
    assert!(!same('a'));
}

#[test]
fn an_edit_after_the_promotion_promotes_nothing_again() {
    let mut world = world(&[]);
    run_to_rest(&mut world);
    let after = world.baselines["shop"].clone();
    world.edit(0, &[("/baseline/maxEnergyRatio", json!(1.2))]);
    run_to_rest(&mut world);
    assert_eq!(world.baselines["shop"], after);
    assert_eq!(reported(&world).promotion, Some(PromotionState::Promoted));
}

#[test]
fn another_candidate_of_the_same_run_is_not_shown_as_promoted() {
    let mut world = world(&[]);
    run_to_rest(&mut world);
    let after = world.baselines["shop"].clone();
    let from = after
        .status
        .as_ref()
        .unwrap()
        .promoted_from
        .as_ref()
        .unwrap();
    let candidate = from.candidate.clone().unwrap();
    let other = PromotedFrom {
        candidate: Some("other".into()),
        ..from.clone()
    };
    let earlier_version = PromotedFrom {
        candidate: None,
        ..from.clone()
    };
    assert_eq!(candidate, reported(&world).candidate);
    assert!(from.is_same(from) && from.is_same(&earlier_version));
    assert!(!from.is_same(&other));
    // The token names the other candidate, so the other candidate's promotion wrote it.
    let mut written = baseline('a', 3);
    written
        .annotations_mut()
        .insert(PROMOTED_BY.into(), "two-uid/r1/other".into());
    let frozen = FrozenBaseline {
        generation: 2,
        ..FrozenBaseline::of(&written)
    };
    let decided = decided(Some(&frozen), Some(&written));
    assert!(matches!(decided, Promotion::Refused(_)), "{decided:?}");
}

#[test]
fn a_promoted_baseline_that_a_person_deleted_stays_deleted() {
    for frozen in [true, false] {
        let mut world = world(&[("/baseline/whenMissing", json!("Pass"))]);
        if !frozen {
            world.baselines.remove("shop");
        }
        run_to_rest(&mut world);
        assert_eq!(reported(&world).promotion, Some(PromotionState::Promoted));
        world.baselines.remove("shop").unwrap();
        world.edit(0, &[("/baseline/maxEnergyRatio", json!(1.2))]);
        run_to_rest(&mut world);
        assert_eq!(reported(&world).promotion, Some(PromotionState::Promoted));
        assert!(world.baselines.is_empty());
    }
}

#[test]
fn a_pinned_baseline_is_not_promoted() {
    let mut world = World::new([compared(&[])]);
    let mut spec = release('a');
    spec["pinned"] = json!(true);
    world.set_baseline("shop", &spec);
    run_to_rest(&mut world);
    assert_eq!(
        reported(&world).promotion,
        Some(PromotionState::NotPromoted)
    );
    let why = reported(&world).not_promoted_because.as_deref().unwrap();
    assert!(why.contains("is pinned"), "{why}");
    assert_eq!(
        world.baselines["shop"].spec.candidate.server.image,
        image('a')
    );
}

#[test]
fn a_change_between_the_decision_and_the_write_wins() {
    let mut world = world(&[]);
    let plan = loop {
        let slot = world.wait();
        let plan = world.plan(slot);
        if plan.promotion.is_some() {
            break plan;
        }
        world.apply(slot, &plan, usize::MAX);
    };
    world.set_baseline("shop", &release('c'));
    world.apply(0, &plan, usize::MAX);
    assert_eq!(
        world.baselines["shop"].spec.candidate.server.image,
        image('c')
    );
    run_to_rest(&mut world);
    assert_eq!(
        reported(&world).promotion,
        Some(PromotionState::NotPromoted)
    );
    assert_eq!(
        world.baselines["shop"].spec.candidate.server.image,
        image('c')
    );
    assert_eq!(world.baselines["shop"].status, None);
}

#[test]
fn a_death_of_the_operator_at_any_write_promotes_once() {
    promotes_once_despite(Fault::Dies);
}

#[test]
fn a_write_that_looks_failed_promotes_once() {
    promotes_once_despite(Fault::LooksFailed);
}

/// For every write of the passes that freeze, judge and promote.
fn promotes_once_despite(fault: Fault) {
    let mut world = world(&[]);
    let mut seen = 0;
    loop {
        let before = world.clone();
        let slot = world.wait();
        let plan = world.pass(slot);
        let is_of_interest = plan.promotion.is_some()
            || plan.opened().is_some_and(is_frozen_entry)
            || plan.status.verdict.is_some();
        for write in before.writes + 1..=world.writes {
            if !is_of_interest {
                continue;
            }
            seen += 1;
            let mut disturbed = before.clone();
            disturbed.fault = Some((write, fault));
            run_to_rest(&mut disturbed);
            assert_eq!(
                reported(&disturbed).promotion,
                Some(PromotionState::Promoted)
            );
            let baseline = &disturbed.baselines["shop"];
            assert_eq!(baseline.spec.candidate.server.image, image('b'));
            assert_eq!(baseline.status.as_ref().unwrap().previous.len(), 1);
        }
        if reported(&world).promotion == Some(PromotionState::Promoted) && world.is_over() {
            break;
        }
    }
    assert!(seen > 5, "{seen}");
}

fn from(run: &str, digit: char) -> PromotedFrom {
    PromotedFrom {
        benchmark: "two".into(),
        uid: "two-uid".into(),
        run: run.into(),
        generation: Some(1),
        candidate: Some("new".into()),
        image: image(digit),
        ledger_digest: "d".into(),
        verdict: Verdict::Pass,
        reason: "BudgetsMet".into(),
        tries: None,
        at: "2026-01-01T00:00:00Z".into(),
    }
}

fn baseline(digit: char, generation: i64) -> FrugalityBaseline {
    let spec: FrugalityBaselineSpec = serde_json::from_value(release(digit)).unwrap();
    let mut baseline = FrugalityBaseline::new("shop", spec);
    baseline.metadata.uid = Some("u".into());
    baseline.metadata.generation = Some(generation);
    baseline.metadata.resource_version = Some("7".into());
    baseline
}

#[track_caller]
fn decided(frozen: Option<&FrozenBaseline>, current: Option<&FrugalityBaseline>) -> Promotion {
    decided_after(false, frozen, current)
}

fn decided_after(
    was_promoted: bool,
    frozen: Option<&FrozenBaseline>,
    current: Option<&FrugalityBaseline>,
) -> Promotion {
    let request = PromotionRequest {
        name: "shop",
        namespace: Some("shop".into()),
        frozen,
        candidate: &serde_json::from_value(json!({ "name": "new", "image": image('b') })).unwrap(),
        from: from("r1", 'b'),
        was_promoted,
    };
    promotion(request, current)
}

#[test]
fn a_promotion_keeps_the_version_that_it_was_decided_on() {
    let current = baseline('a', 3);
    let frozen = FrozenBaseline::of(&current);
    let Promotion::Write(write) = decided(Some(&frozen), Some(&current)) else {
        panic!("no write");
    };
    let BaselineWrite::Replace(new) = *write else {
        panic!("{write:?}");
    };
    assert_eq!(new.metadata.resource_version.as_deref(), Some("7"));
    assert_eq!(new.annotations()[PROMOTED_BY], "two-uid/r1/new");
    assert_eq!(new.spec.candidate.name, "new");
}

#[test]
fn a_deleted_or_replaced_baseline_is_not_written() {
    let current = baseline('a', 3);
    let frozen = FrozenBaseline::of(&current);
    let is_refused = |it: Promotion| matches!(it, Promotion::Refused(_));
    assert!(is_refused(decided(Some(&frozen), None)));
    let mut other = current.clone();
    other.metadata.uid = Some("another".into());
    assert!(is_refused(decided(Some(&frozen), Some(&other))));
    assert!(is_refused(decided(Some(&frozen), Some(&baseline('a', 4)))));
    assert!(is_refused(decided(None, Some(&current))));
}

#[test]
fn the_last_ten_releases_are_kept_and_an_older_run_claims_nothing() {
    let earlier = |index: usize| PreviousRelease {
        image: image('f'),
        promoted_from: Some(from(&format!("e{index}"), 'f')),
    };
    let mut current = baseline('a', 3);
    current
        .annotations_mut()
        .insert(PROMOTED_BY.into(), "two-uid/r1/new".into());
    current.status = Some(FrugalityBaselineStatus {
        promoted_from: None,
        previous: (0..MAX_PREVIOUS).map(earlier).collect(),
    });
    let frozen = FrozenBaseline::of(&current);
    let Promotion::Write(write) = decided(Some(&frozen), Some(&current)) else {
        panic!("no write");
    };
    let BaselineWrite::Status(new) = *write else {
        panic!("{write:?}");
    };
    let made = new.status.unwrap();
    assert_eq!(made.previous.len(), MAX_PREVIOUS);
    assert_eq!(made.previous[0].image, image('a'));
    assert_eq!(made.previous[9], earlier(8));
    // The run is one of the earlier ones, or perhaps an even older one.
    let mut later = current.clone();
    later.annotations_mut().clear();
    later.metadata.generation = Some(9);
    assert_eq!(decided(Some(&frozen), Some(&later)), Promotion::Forgotten);
    let mut previous = later.status.clone().unwrap();
    previous.previous[4].promoted_from = Some(from("r1", 'b'));
    later.status = Some(previous);
    assert_eq!(
        decided_after(true, Some(&frozen), Some(&later)),
        Promotion::Done
    );
    let Promotion::Refused(why) = decided(Some(&frozen), Some(&later)) else {
        panic!("not refused");
    };
    assert!(why.starts_with("this run promoted it before"), "{why}");
}

#[test]
fn a_release_that_a_person_wrote_is_not_credited_to_an_earlier_promotion() {
    let mut current = baseline('a', 3);
    current
        .annotations_mut()
        .insert(PROMOTED_BY.into(), "two-uid/r1/new".into());
    current.status = Some(FrugalityBaselineStatus {
        promoted_from: Some(from("r0", '9')),
        previous: Vec::new(),
    });
    let frozen = FrozenBaseline::of(&current);
    let Promotion::Write(write) = decided(Some(&frozen), Some(&current)) else {
        panic!("no write");
    };
    let BaselineWrite::Status(new) = *write else {
        panic!("{write:?}");
    };
    assert_eq!(new.status.unwrap().previous[0].promoted_from, None);
}

#[test]
fn a_second_try_says_so_in_the_baseline() {
    let mut world = world(&[("/baseline/promote", json!("Never"))]);
    run_to_rest(&mut world);
    world.run_again(0, 2);
    world.edit(0, &[("/baseline/promote", json!("OnPass"))]);
    run_to_rest(&mut world);
    let made = world.baselines["shop"].status.clone().unwrap();
    assert_eq!(made.promoted_from.unwrap().tries, Some(2));
}

// ---- what admission refuses -----------------------------------------------------------------------

#[test]
fn a_stored_spec_that_admission_would_refuse_is_invalid() {
    let parsed = |changes: &[(&str, Value)]| {
        let candidate = serde_json::from_value(release('a')["candidate"].clone()).unwrap();
        let frozen = FrozenBaseline {
            name: "shop".into(),
            uid: "u".into(),
            generation: 1,
            candidate,
        };
        let releases = FrozenBaselines {
            baseline: Some(frozen),
            anchor: None,
        };
        Settings::parse(&expanded(&compared(changes), &releases).spec).map(|_| ())
    };
    assert_eq!(parsed(&[]), Ok(()));
    assert_eq!(
        parsed(&[("/candidates/0/name", json!("baseline"))]),
        Err(SettingsError::ReleaseName("baseline"))
    );
    let selector = json!({ "kubernetes.io/hostname": "pi-1" });
    let without_database = ("/database", Value::Null);
    let own = ("/candidates/0/measuredNodeSelector", selector);
    assert_eq!(
        parsed(&[own, without_database, ("/request/path", json!("/"))]),
        Err(SettingsError::ReleaseOnOneNode)
    );
    assert!(parsed(&[("/baseline/candidate", json!("other"))]).is_err());
}

#[test]
fn a_baseline_of_yaml_needs_little() {
    let benchmark = of_yaml(
        "apiVersion: frugality.dev/v1alpha1
kind: FrugalityBenchmark
metadata: {name: shop}
spec:
  candidates: [{name: new, image: example.org/shop:1}]
  request: {path: /}
  baseline: {name: shop, maxEnergyRatio: 1.03}
",
    );
    let asked = benchmark.spec.baseline.unwrap();
    let text = serde_json::to_value(asked).unwrap();
    assert_eq!(
        text,
        json!({"name": "shop", "maxEnergyRatio": 1.03, "whenMissing": "Inconclusive", "promote": "Never"})
    );
}
