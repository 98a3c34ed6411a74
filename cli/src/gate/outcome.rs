//! What a gate decides about a benchmark. Pure.

use frugality_operator::api::{FrugalityBenchmark, FrugalityBenchmarkStatus, Reason, Verdict};

use super::images::{measured, same};

/// How a gate ends. Only [`GateOutcome::Pass`] opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateOutcome {
    /// Every budget is met, and the verdict is about the image of the release.
    Pass,
    /// At least one budget is exceeded.
    Fail,
    /// The data do not decide.
    Inconclusive,
    /// The experiment can't give a trustworthy figure.
    Invalid,
    /// Something did not work.
    Error,
    /// The benchmark had no verdict in time.
    NotEnded,
    /// Nothing was judged: no budgets, or none about the image of the release.
    NotJudged,
    /// The benchmark measures other images than the release's.
    OtherImage,
    /// The benchmark could not be read.
    Unknown,
}

impl GateOutcome {
    /// The program's exit code. Code 2 is an error of the command line.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Unknown => 1,
            Self::Fail => 10,
            Self::Inconclusive => 11,
            Self::Invalid => 12,
            Self::Error => 13,
            Self::NotEnded => 14,
            Self::NotJudged => 15,
            Self::OtherImage => 16,
        }
    }

    /// Whether the release may go on.
    #[must_use]
    pub fn is_open(self) -> bool {
        self == Self::Pass
    }
}

impl From<Verdict> for GateOutcome {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Pass,
            Verdict::Reported => Self::NotJudged,
            Verdict::Fail => Self::Fail,
            Verdict::Inconclusive => Self::Inconclusive,
            Verdict::Invalid => Self::Invalid,
            Verdict::Error => Self::Error,
        }
    }
}

/// What a gate knows about a benchmark at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GateState {
    /// There is no verdict of the current generation yet. The text says what the benchmark does.
    Waiting(String),
    /// The gate ended, for the reason in the text.
    Ended(GateOutcome, String),
}

/// Whether the candidate is a release without a baseline, for which the spec says `whenMissing`.
fn is_first_release(status: &FrugalityBenchmarkStatus, candidate: &str) -> bool {
    let columns = status.columns.as_ref();
    let reason = columns.and_then(|columns| columns.reason.as_deref());
    let compared = status.baseline.as_ref().map(|it| it.candidate.as_str());
    reason == Some(Reason::NoBaseline.as_str()) && compared == Some(candidate)
}

/// The state of a gate for the release's `images`. Without images, the gate is about whatever the benchmark measures.
#[must_use]
pub(crate) fn state(benchmark: &FrugalityBenchmark, images: &[String]) -> GateState {
    if let Some(missing) = images
        .iter()
        .find(|image| !measured(benchmark).any(|(_, other)| same(other, image)))
    {
        let others: Vec<_> = measured(benchmark).map(|(_, image)| image).collect();
        let message = format!(
            "The benchmark does not measure {missing}, but {}. Write the release's image into spec.candidates.",
            others.join(", ")
        );
        return GateState::Ended(GateOutcome::OtherImage, message);
    }
    let Some(status) = benchmark
        .current_status()
        .filter(|_| benchmark.is_complete())
    else {
        return GateState::Waiting(activity(benchmark));
    };
    let Some(verdict) = status.verdict else {
        return GateState::Waiting(activity(benchmark));
    };
    let columns = status.columns.clone().unwrap_or_default();
    let message = columns.message.unwrap_or_default();
    // Of several candidates with this image, each needs a budget.
    let is_judged = |image: &String| {
        measured(benchmark)
            .filter(|(_, other)| same(other, image))
            .all(|(candidate, _)| {
                status.budgets.iter().any(|it| it.candidate == candidate)
                    || is_first_release(status, candidate)
            })
    };
    match images.iter().find(|image| !is_judged(image)) {
        Some(image) if verdict == Verdict::Pass => GateState::Ended(
            GateOutcome::NotJudged,
            format!(
                "No budget applies to a candidate with {image}, so the Pass is not about it. Write spec.budgets for this candidate."
            ),
        ),
        _ => GateState::Ended(verdict.into(), message),
    }
}

/// What a benchmark without a verdict does, in one line.
pub(crate) fn activity(benchmark: &FrugalityBenchmark) -> String {
    let Some(status) = benchmark.current_status() else {
        return "waiting for the operator to see the benchmark".to_owned();
    };
    if status.observed_generation != benchmark.metadata.generation {
        return "waiting for the operator to see the last edit".to_owned();
    }
    let columns = status.columns.clone().unwrap_or_default();
    let trials = columns.trials.map(|trials| format!("trials {trials}"));
    let phase = status
        .phase
        .clone()
        .filter(|it| Some(it) != columns.verdict.as_ref());
    let parts = [columns.verdict, trials, phase];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
