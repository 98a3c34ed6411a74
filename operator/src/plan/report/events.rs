//! Events: the log of the experiment that `kubectl describe` shows. The status shows what was published, so a restarted operator
//! repeats nothing.

use crate::{
    api::{
        FrugalityBenchmark, FrugalityBenchmarkStatus, FrugalityTrial, FrugalityTrialStatus,
        Outcome, PromotionState, Reason, Verdict,
    },
    digest::hex_digest,
    load::units::Units,
    plan::{
        action::EventNote,
        names::run_id,
        report::{
            cells,
            estimate::left,
            trial::{TrialFigures, warning},
        },
    },
    text,
};
use kube::ResourceExt;
use serde_json::json;

/// States that are part of every run. Any other state means that something is wrong.
const ORDINARY: [Reason; 7] = [
    Reason::Waiting,
    Reason::Queued,
    Reason::CleaningUp,
    Reason::StartingDatabase,
    Reason::Seeding,
    Reason::Measuring,
    Reason::Suspended,
];

/// The news of a status compared with the previous status.
#[must_use]
pub fn of_status(
    before: Option<&FrugalityBenchmarkStatus>,
    now: &FrugalityBenchmarkStatus,
) -> Option<EventNote> {
    match now.verdict {
        Some(verdict) => of_verdict(before, now, verdict),
        None => of_state(before, now),
    }
}

/// The end of an attempt, with its figures in these units. An attempt that was not measured has no figures and needs no units.
#[must_use]
pub fn of_trial(
    trial: &FrugalityTrial,
    record: &FrugalityTrialStatus,
    units: Option<&Units>,
) -> Option<EventNote> {
    let outcome = record.outcome?;
    let figures = TrialFigures::of(&trial.spec, record).zip(units);
    let figures = figures.map(|(figures, units)| figures.words(units));
    let message = record.message.clone().unwrap_or_default();
    let words: Vec<String> = std::iter::once(message)
        .chain(figures.into_iter().flatten())
        .chain(warning(record))
        .collect();
    Some(EventNote {
        warning: outcome != Outcome::Measured,
        reason: record.reason.clone().unwrap_or_default(),
        note: format!(
            "block {} attempt {} {} at {}: {outcome:?}: {}",
            trial.spec.block,
            trial.spec.attempt,
            trial.spec.candidate,
            trial.spec.point,
            words.join("; ")
        ),
    })
}

fn of_state(
    before: Option<&FrugalityBenchmarkStatus>,
    now: &FrugalityBenchmarkStatus,
) -> Option<EventNote> {
    let (reason, message) = published(now)?;
    let same_run = before.filter(|before| before.run == now.run);
    let (reason_before, message_before) = same_run.and_then(published).unwrap_or_default();
    // A queued benchmark names the benchmark that it waits for. Other messages change with every step.
    let is_new =
        reason != reason_before || (reason == Reason::Queued.as_str() && message != message_before);
    let run = now.run.as_deref().unwrap_or_default();
    let time = now.columns.as_ref().and_then(|c| c.left.as_deref());
    let plan = now.progress.as_ref().map(|progress| {
        let trials = progress.trials_planned - progress.trials_done;
        left(usize::try_from(trials).unwrap_or_default(), time)
    });
    let note = match (plan, reason) {
        (Some(plan), _) if same_run.is_none() => format!("run {run}: {plan}; {message}"),
        (Some(plan), reason) if reason == Reason::Measuring.as_str() => format!(
            "{plan}, on {} with the load from {}; {message}",
            now.measured_node.as_deref().unwrap_or_default(),
            now.injector_node.as_deref().unwrap_or_default()
        ),
        _ => message.to_owned(),
    };
    is_new.then(|| EventNote {
        warning: !ORDINARY.iter().any(|it| it.as_str() == reason),
        reason: reason.to_owned(),
        note,
    })
}

fn of_verdict(
    before: Option<&FrugalityBenchmarkStatus>,
    now: &FrugalityBenchmarkStatus,
    verdict: Verdict,
) -> Option<EventNote> {
    let (reason, message) = published(now)?;
    let is_new = before.is_none_or(|before| {
        before.verdict != now.verdict
            || before.run != now.run
            || before.winner != now.winner
            || before.tie != now.tie
            || before.deciding_figure != now.deciding_figure
            || before.boundary != now.boundary
            || published(before).is_none_or(|(reason_before, _)| reason_before != reason)
    });
    is_new.then(|| EventNote {
        warning: !matches!(verdict, Verdict::Pass | Verdict::Reported),
        reason: reason.to_owned(),
        note: format!("{verdict:?}: {}{message}", winner(now).unwrap_or_default()),
    })
}

/// The end of a promotion.
#[must_use]
pub fn of_promotion(
    before: Option<&FrugalityBenchmarkStatus>,
    now: &FrugalityBenchmarkStatus,
) -> Option<EventNote> {
    let result = now.baseline.as_ref()?;
    let earlier = before.filter(|before| before.run == now.run);
    let earlier = earlier.and_then(|before| before.baseline.as_ref()?.promotion);
    if result.promotion == earlier {
        return None;
    }
    let (candidate, baseline) = (&result.candidate, &result.baseline.name);
    match result.promotion? {
        PromotionState::Pending => None,
        PromotionState::Promoted => Some(EventNote {
            warning: false,
            reason: Reason::Promoted.as_str().to_owned(),
            note: format!("{candidate} is now the candidate of FrugalityBaseline {baseline}"),
        }),
        PromotionState::NotPromoted => Some(EventNote {
            warning: true,
            reason: Reason::NotPromoted.as_str().to_owned(),
            note: format!(
                "{candidate} was not promoted: {}.",
                result.not_promoted_because.as_deref().unwrap_or_default()
            ),
        }),
    }
}

/// Winner and ratio, at the start of a message that may be cut.
fn winner(now: &FrugalityBenchmarkStatus) -> Option<String> {
    let winner = now.winner.as_deref()?;
    let ratio = now.columns.as_ref()?.ratio.as_deref()?;
    Some(format!(
        "winner {winner}, ratio {ratio}{} by {} joules, power {}. ",
        at(now, winner, ratio)?,
        now.deciding_figure?.word(),
        now.provenance.as_deref()?.to_lowercase()
    ))
}

/// The point of the winner's ratio, if there are several points. If several points have this ratio, the first of them.
fn at(now: &FrugalityBenchmarkStatus, winner: &str, ratio: &str) -> Option<String> {
    let mut comparisons = now.comparisons.iter();
    let shown =
        comparisons.find(|it| it.candidate == winner && cells::ratio(&it.ratio) == ratio)?;
    let is_elsewhere = now.results.iter().any(|it| it.point != shown.point);
    Some(text::at(&shown.point, is_elsewhere))
}

fn published(status: &FrugalityBenchmarkStatus) -> Option<(&str, &str)> {
    let columns = status.columns.as_ref()?;
    let message = columns.message.as_deref().unwrap_or_default();
    Some((columns.reason.as_deref()?, message))
}

/// Name of an event. The same words about the same run and spec have the same name, so the API server refuses a second event,
/// no matter which operator publishes it. Kubernetes' event recorder counts events of one reason together and loses their
/// words.
#[must_use]
pub fn event_name(benchmark: &FrugalityBenchmark, note: &EventNote) -> String {
    let identity = json!({
        "uid": benchmark.uid(),
        "run": run_id(benchmark),
        "generation": benchmark.metadata.generation,
        "reason": note.reason,
        "note": note.note,
    });
    let digest = hex_digest(identity.to_string().as_bytes(), 8);
    format!("{}.{digest}", benchmark.name_any())
}
