//! Events: the log of the experiment that `kubectl describe` shows. What was told stands in the status,
//! so that an operator that was restarted repeats nothing.

use super::{EventNote, estimate::left};
use crate::api::{
    FrugalityBenchmarkStatus, FrugalityTrial, FrugalityTrialStatus, Outcome, TrialColumns, Verdict,
    reason,
};

/// States that are part of every run; any other is waited for because something is wrong.
const ORDINARY: [&str; 7] = [
    reason::WAITING,
    reason::QUEUED,
    reason::CLEANING_UP,
    reason::STARTING_DATABASE,
    reason::SEEDING,
    reason::MEASURING,
    reason::SUSPENDED,
];

/// What a status says that the one before did not.
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

/// How an attempt ended.
#[must_use]
pub fn of_trial(trial: &FrugalityTrial, record: &FrugalityTrialStatus) -> Option<EventNote> {
    let outcome = record.outcome?;
    let figures = record.columns.as_ref().map(figures).unwrap_or_default();
    Some(EventNote {
        warning: outcome != Outcome::Measured,
        reason: record.reason.clone().unwrap_or_default(),
        note: format!(
            "block {} attempt {} {} at {}: {outcome:?}: {}{figures}",
            trial.spec.block,
            trial.spec.attempt,
            trial.spec.candidate,
            trial.spec.point,
            record.message.clone().unwrap_or_default()
        ),
    })
}

fn figures(columns: &TrialColumns) -> String {
    [
        ("J/request", &columns.energy),
        ("requests/s", &columns.rate),
        ("ms/request", &columns.latency),
    ]
    .into_iter()
    .filter_map(|(unit, figure)| Some(format!("; {unit} {}", figure.as_ref()?)))
    .collect()
}

fn of_state(
    before: Option<&FrugalityBenchmarkStatus>,
    now: &FrugalityBenchmarkStatus,
) -> Option<EventNote> {
    let (reason, message) = told(now)?;
    let same_run = before.filter(|before| before.run == now.run);
    let (reason_before, message_before) = same_run.and_then(told).unwrap_or_default();
    // A queue tells for whom it waits; other messages change with every step.
    let is_new = reason != reason_before || (reason == reason::QUEUED && message != message_before);
    let run = now.run.as_deref().unwrap_or_default();
    let time = now.columns.as_ref().and_then(|c| c.left.as_deref());
    let plan = now.progress.as_ref().map(|progress| {
        let trials = progress.trials_planned - progress.trials_done;
        left(usize::try_from(trials).unwrap_or_default(), time)
    });
    let note = match (plan, reason) {
        (Some(plan), _) if same_run.is_none() => format!("run {run}: {plan}; {message}"),
        (Some(plan), reason::MEASURING) => format!(
            "{plan}, on {} with the load from {}; {message}",
            now.measured_node.as_deref().unwrap_or_default(),
            now.injector_node.as_deref().unwrap_or_default()
        ),
        _ => message.to_owned(),
    };
    is_new.then(|| EventNote {
        warning: !ORDINARY.contains(&reason),
        reason: reason.to_owned(),
        note,
    })
}

fn of_verdict(
    before: Option<&FrugalityBenchmarkStatus>,
    now: &FrugalityBenchmarkStatus,
    verdict: Verdict,
) -> Option<EventNote> {
    let (reason, message) = told(now)?;
    let is_new = before.is_none_or(|before| {
        before.verdict != now.verdict
            || before.run != now.run
            || before.winner != now.winner
            || before.deciding_figure != now.deciding_figure
            || told(before).is_none_or(|(reason_before, _)| reason_before != reason)
    });
    is_new.then(|| EventNote {
        warning: !matches!(verdict, Verdict::Pass | Verdict::Reported),
        reason: reason.to_owned(),
        note: format!("{verdict:?}: {}{message}", winner(now).unwrap_or_default()),
    })
}

/// The ratio with what it is a ratio of, before a message that may be cut short.
fn winner(now: &FrugalityBenchmarkStatus) -> Option<String> {
    Some(format!(
        "winner {}, ratio {} of {} joules, power {}; ",
        now.winner.as_deref()?,
        now.columns.as_ref()?.ratio.as_deref()?,
        now.deciding_figure?.word(),
        now.provenance.as_deref()?
    ))
}

fn told(status: &FrugalityBenchmarkStatus) -> Option<(&str, &str)> {
    let columns = status.columns.as_ref()?;
    let message = columns.message.as_deref().unwrap_or_default();
    Some((columns.reason.as_deref()?, message))
}
