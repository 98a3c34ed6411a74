//! The release before: freezes it for a run, expands the spec with it, and decides its promotion.
//!
//! A run measures the releases that were frozen when it got its nodes. They are an entry of the ledger, whose name
//! follows from the spec, so the first writer decides. The ID of the run is a hash of the expanded spec.

use std::{borrow::Cow, collections::BTreeMap};

use kube::{ResourceExt, api::ObjectMeta};

use crate::{
    api::{
        ANCHOR, BASELINE, Baseline, Budget, Candidate, Decimal, FrozenBaseline, FrozenBaselines,
        FrugalityBaseline, FrugalityBaselineSpec, FrugalityBaselineStatus, FrugalityBenchmark,
        FrugalityTrial, MAX_PREVIOUS, PROMOTED_BY, PreviousRelease, PromotedFrom, PromotionState,
    },
    plan::{
        action::BaselineWrite,
        names::{frozen_name, run_id},
    },
};

/// Whether an entry of the ledger holds the frozen releases of a run. Such an entry is not an attempt.
#[must_use]
pub fn is_frozen_entry(trial: &FrugalityTrial) -> bool {
    trial.spec.frozen.is_some()
}

/// Name of the entry that holds the frozen releases of this spec's run.
#[must_use]
pub fn entry_name(benchmark: &FrugalityBenchmark) -> String {
    frozen_name(&benchmark.name_any(), &run_id(benchmark))
}

/// The frozen releases of this spec's run. `None` if the run has not got its nodes yet.
#[must_use]
pub fn frozen<'a>(
    benchmark: &FrugalityBenchmark,
    trials: &'a [FrugalityTrial],
) -> Option<&'a FrozenBaselines> {
    benchmark.spec.baseline.as_ref()?;
    let name = entry_name(benchmark);
    let entry = trials.iter().find(|trial| trial.name_any() == name)?;
    entry.spec.frozen.as_deref()
}

/// The releases that exist now.
#[must_use]
pub fn current(
    asked: &Baseline,
    existing: &BTreeMap<String, FrugalityBaseline>,
) -> FrozenBaselines {
    let of = |name: &String| existing.get(name).map(FrozenBaseline::of);
    FrozenBaselines {
        baseline: of(&asked.name),
        anchor: asked.anchor.as_ref().and_then(of),
    }
}

/// Name of the candidate that is compared; empty if the spec names none and has several.
#[must_use]
pub fn compared<'a>(asked: &'a Baseline, candidates: &'a [Candidate]) -> &'a str {
    let releases = [BASELINE, ANCHOR];
    let mut own = candidates
        .iter()
        .map(|candidate| candidate.name.as_str())
        .filter(|name| !releases.contains(name));
    match (&asked.candidate, own.next(), own.next()) {
        (Some(name), ..) => name,
        (None, Some(only), None) => only,
        _ => "",
    }
}

/// The benchmark with the releases as candidates and with their margins as budgets. All later decisions see only
/// this benchmark. Without `spec.baseline` it is unchanged.
#[must_use]
pub fn expanded<'a>(
    benchmark: &'a FrugalityBenchmark,
    releases: &FrozenBaselines,
) -> Cow<'a, FrugalityBenchmark> {
    let Some(asked) = &benchmark.spec.baseline else {
        return Cow::Borrowed(benchmark);
    };
    let mut expanded = benchmark.clone();
    let spec = &mut expanded.spec;
    let compared = compared(asked, &benchmark.spec.candidates);
    let margins = [
        (BASELINE, &releases.baseline, Some(&asked.max_energy_ratio)),
        (
            ANCHOR,
            &releases.anchor,
            asked.anchor_max_energy_ratio.as_ref(),
        ),
    ];
    for (name, release, margin) in margins {
        let Some((release, margin)) = release.as_ref().zip(margin) else {
            continue;
        };
        spec.candidates.push(Candidate {
            name: name.to_owned(),
            ..release.candidate.clone()
        });
        spec.budgets.push(budget(compared, name, margin));
    }
    if releases.baseline.is_none() && spec.trials.control.as_deref() == Some(BASELINE) {
        spec.trials.control = None;
    }
    Cow::Owned(expanded)
}

fn budget(candidate: &str, against: &str, margin: &Decimal) -> Budget {
    Budget {
        candidate: candidate.to_owned(),
        max_joules_per_request: None,
        max_milliseconds_per_request: None,
        min_requests_per_second: None,
        max_error_ratio: None,
        max_energy_ratio: Some(margin.clone()),
        against: Some(against.to_owned()),
        max_energy_delay_joule_seconds: None,
        load_curve: None,
        at_most: None,
    }
}

/// What to do with a FrugalityBaseline after the verdict Pass.
#[derive(Clone, Debug, PartialEq)]
pub enum Promotion {
    /// Write to it. The next pass continues.
    Write(Box<BaselineWrite>),
    /// The candidate has become the baseline.
    Done,
    /// The operator writes nothing, because of this reason.
    Refused(String),
    /// Too many later promotions to know whether this run was promoted.
    Forgotten,
}

impl Promotion {
    /// The state for the status; `None` if it is not known.
    #[must_use]
    pub fn state(&self) -> Option<PromotionState> {
        match self {
            Self::Write(_) => Some(PromotionState::Pending),
            Self::Done => Some(PromotionState::Promoted),
            Self::Refused(_) => Some(PromotionState::NotPromoted),
            Self::Forgotten => None,
        }
    }
}

/// The promotion that a run's Pass asks for.
#[derive(Clone, Debug)]
pub struct PromotionRequest<'a> {
    /// Name of the FrugalityBaseline.
    pub name: &'a str,
    /// Namespace of the benchmark and of the FrugalityBaseline.
    pub namespace: Option<String>,
    /// The release that the run measured against.
    pub frozen: Option<&'a FrozenBaseline>,
    /// The candidate that passed.
    pub candidate: &'a Candidate,
    /// The run.
    pub from: PromotedFrom,
    /// Whether the status shows this promotion as done.
    pub was_promoted: bool,
}

/// Decides the next step of a promotion from the FrugalityBaseline that exists now. The spec and the annotation
/// that names the run are one write, so a restart between the writes repeats and loses nothing.
#[must_use]
pub fn promotion(request: PromotionRequest<'_>, current: Option<&FrugalityBaseline>) -> Promotion {
    let PromotionRequest {
        name,
        namespace,
        frozen,
        candidate,
        from,
        was_promoted,
    } = request;
    let token = format!("{}/{}/{}", from.uid, from.run, candidate.name);
    let annotation = || [(PROMOTED_BY.to_owned(), token.clone())].into();
    let spec = |pinned: bool| FrugalityBaselineSpec {
        candidate: Candidate {
            costs: None,
            ..candidate.clone()
        },
        pinned,
    };
    let Some(current) = current else {
        return match frozen {
            // A person has deleted the result. It stays deleted.
            _ if was_promoted => Promotion::Done,
            None => Promotion::Write(Box::new(BaselineWrite::Create(FrugalityBaseline {
                metadata: ObjectMeta {
                    name: Some(name.to_owned()),
                    namespace,
                    annotations: Some(annotation()),
                    ..ObjectMeta::default()
                },
                spec: spec(false),
                status: None,
            }))),
            Some(_) => Promotion::Refused(format!(
                "FrugalityBaseline {name} was deleted after the run began"
            )),
        };
    };
    let status = current.status.clone().unwrap_or_default();
    let is_ours = |it: &Option<PromotedFrom>| it.as_ref().is_some_and(|it| it.is_same(&from));
    if is_ours(&status.promoted_from) {
        return Promotion::Done;
    }
    if status.previous.iter().any(|it| is_ours(&it.promoted_from)) {
        // The status keeps an earlier promotion. A spec that returns to this run promotes nothing.
        return if was_promoted {
            Promotion::Done
        } else {
            Promotion::Refused(format!(
                "this run promoted it before, and FrugalityBaseline {name} now has {}. To promote it again, start another run with another number in spec.rerun",
                current.spec.candidate.server.image
            ))
        };
    }
    if current.annotations().get(PROMOTED_BY) == Some(&token) {
        return Promotion::Write(Box::new(BaselineWrite::Status(FrugalityBaseline {
            status: Some(recorded(status, frozen, from)),
            ..current.clone()
        })));
    }
    if current.spec.pinned {
        return Promotion::Refused(format!(
            "FrugalityBaseline {name} is pinned, so only people change it. Write promote: Never, or name another baseline"
        ));
    }
    let is_as_frozen = frozen.is_some_and(|frozen| {
        current.metadata.uid.as_ref() == Some(&frozen.uid)
            && current.metadata.generation == Some(frozen.generation)
    });
    if is_as_frozen && current.metadata.deletion_timestamp.is_none() {
        let mut promoted = FrugalityBaseline {
            spec: spec(false),
            ..current.clone()
        };
        promoted.annotations_mut().extend(annotation());
        return Promotion::Write(Box::new(BaselineWrite::Replace(promoted)));
    }
    if status.previous.len() >= MAX_PREVIOUS {
        return Promotion::Forgotten;
    }
    Promotion::Refused(format!(
        "FrugalityBaseline {name} has changed since the run began. It now has {}. To compare with it, start another run with another number in spec.rerun",
        current.spec.candidate.server.image
    ))
}

/// The status after a promotion: the release that the run measured against becomes the newest earlier release. Its
/// promotion is known only if that promotion wrote its image.
fn recorded(
    before: FrugalityBaselineStatus,
    frozen: Option<&FrozenBaseline>,
    from: PromotedFrom,
) -> FrugalityBaselineStatus {
    let earlier = frozen.map(|release| {
        let image = &release.candidate.server.image;
        PreviousRelease {
            image: image.clone(),
            promoted_from: before.promoted_from.filter(|it| it.image == *image),
        }
    });
    FrugalityBaselineStatus {
        promoted_from: Some(from),
        previous: earlier
            .into_iter()
            .chain(before.previous)
            .take(MAX_PREVIOUS)
            .collect(),
    }
}
