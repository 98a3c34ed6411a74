//! What people see of a run under way. Pure: from the benchmark, its ledger and the time to lines.

use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrial, FrugalityTrialStatus, Outcome, Progress, Reason},
    load::LoadKind,
    plan::report::{
        estimate::about,
        running::{RunningFigures, running},
        trial::{TrialFigures, warning},
    },
};
use jiff::Timestamp;

use crate::{
    gate::{outcome::activity, report::on_one_line},
    summarize::outdated,
    table::{Table, TableStyle, dash},
};

/// What a reader of the figures must know.
const CAVEAT: &str = "Figures so far, of valid trials only. They decide nothing: the result may withhold them. [ ] are 95 % t-intervals over trials, without the meter's accuracy.";

/// One moment of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchView {
    /// What the benchmark does, in one line that changes only with the benchmark.
    pub state: String,
    /// Valid trials and planned trials, if they are known.
    pub trials: Option<(u64, u64)>,
    /// Time left by the operator's estimate, counted down: `about 9 min left`.
    pub left: Option<String>,
    /// What happens now, the last attempts and the figures so far.
    pub lines: Vec<String>,
}

/// The view of a benchmark at a time. `trials` may have entries of other benchmarks and other runs.
#[must_use]
pub fn view(
    benchmark: &FrugalityBenchmark,
    trials: &[FrugalityTrial],
    now: Timestamp,
) -> WatchView {
    if outdated(benchmark).is_some() {
        // Progress and message describe the run before the edit.
        return WatchView {
            state: activity(benchmark),
            trials: None,
            left: None,
            lines: Vec::new(),
        };
    }
    let status = benchmark.current_status();
    let progress = status.and_then(|status| status.progress.as_ref());
    let columns = status.and_then(|status| status.columns.as_ref());
    let message = columns.and_then(|columns| columns.message.as_deref());
    let current = progress.and_then(|progress| progress.current.as_deref());
    let own = of_run(benchmark, trials);
    let mut lines: Vec<String> = current
        .map(|current| format!("now: {current}"))
        .into_iter()
        .chain(message.map(str::to_owned))
        .collect();
    if let Some(voids) = progress.map(|it| it.void_attempts).filter(|it| *it > 0) {
        let last = own.iter().rev().find_map(|it| void(it));
        let why = last.map(|why| format!("; the last: {why}"));
        let plural = if voids == 1 { "" } else { "s" };
        lines.push(format!(
            "{voids} void attempt{plural}{}",
            why.unwrap_or_default()
        ));
    }
    lines.extend(figures(&running(benchmark, trials)));
    WatchView {
        state: on_one_line(&state(benchmark)),
        trials: progress.map(|it| (count(it.trials_done), count(it.trials_planned))),
        left: progress.and_then(|it| left(it, now)),
        lines: lines.iter().map(|line| on_one_line(line)).collect(),
    }
}

/// What the benchmark does. While it measures, its attempts say more than the message.
fn state(benchmark: &FrugalityBenchmark) -> String {
    let activity = activity(benchmark);
    let columns = benchmark
        .current_status()
        .and_then(|it| it.columns.as_ref());
    let is_measuring = |reason: &&String| reason.as_str() == Reason::Measuring.as_str();
    let reason = columns.and_then(|it| it.reason.as_ref());
    let message = columns.and_then(|it| it.message.as_ref());
    match message.filter(|_| reason.as_ref().is_none_or(|it| !is_measuring(it))) {
        Some(message) => format!("{activity}: {message}"),
        None => activity,
    }
}

/// The attempts of the current run that have an outcome, oldest first: name of the entry, and one line.
#[must_use]
pub fn attempts(
    benchmark: &FrugalityBenchmark,
    trials: &[FrugalityTrial],
) -> Vec<(String, String)> {
    let Some(kind) = LoadKind::of(&benchmark.spec) else {
        return Vec::new();
    };
    let units = kind.rules().units(&benchmark.spec);
    let line = |trial: &&FrugalityTrial| {
        let status = trial.status.as_ref()?;
        let (spec, name) = (&trial.spec, trial.metadata.name.clone()?);
        let what = match status.outcome? {
            Outcome::Measured => {
                let figures = TrialFigures::of(spec, status);
                let figures = figures.map_or_else(String::new, |it| it.words(&units).join(", "));
                std::iter::once(figures)
                    .chain(warning(status))
                    .collect::<Vec<_>>()
                    .join("; ")
            }
            Outcome::Void => format!("void, {}", why(status)),
            Outcome::Failed => format!("failed, {}", why(status)),
        };
        let (block, candidate) = (spec.block, &spec.candidate);
        let place = match (block, candidate.as_str()) {
            (0, _) | (_, "") => "preparation".to_owned(),
            _ => format!("block {block}, {candidate} at {}", spec.point),
        };
        Some((name, on_one_line(&format!("{place}: {what}"))))
    };
    of_run(benchmark, trials).iter().filter_map(line).collect()
}

/// The entries of the benchmark's current run, by the time of their creation.
fn of_run<'a>(
    benchmark: &FrugalityBenchmark,
    trials: &'a [FrugalityTrial],
) -> Vec<&'a FrugalityTrial> {
    let run = benchmark.current_status().and_then(|it| it.run.as_deref());
    let is_own = |trial: &&FrugalityTrial| {
        Some(trial.spec.run.as_str()) == run && trial.spec.frozen.is_none()
    };
    let mut own: Vec<_> = trials.iter().filter(is_own).collect();
    own.sort_by_key(|trial| {
        let created = trial.metadata.creation_timestamp.as_ref().map(|it| it.0);
        (
            created,
            trial.spec.block,
            trial.spec.attempt,
            trial.spec.position,
        )
    });
    own
}

/// Why an attempt is void.
fn void(trial: &FrugalityTrial) -> Option<String> {
    let status = trial.status.as_ref()?;
    (status.outcome == Some(Outcome::Void)).then(|| why(status))
}

fn why(status: &FrugalityTrialStatus) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}: {}", text(&status.reason), text(&status.message))
}

fn figures(figures: &[RunningFigures]) -> Vec<String> {
    let known = |text: &Option<String>| text.clone().unwrap_or_else(dash);
    let has_several_points = figures.iter().any(|it| it.point != figures[0].point);
    let mut table = Table::of(figures);
    if has_several_points {
        table = table.text("POINT", |it| it.point.clone());
    }
    let table = table
        .text("CANDIDATE", |it| it.candidate.clone())
        .right("TRIALS", |it| it.trials.to_string())
        .right("RATE", move |it| known(&it.rate))
        .right("TIME", move |it| known(&it.time))
        .right("ENERGY", move |it| known(&it.energy));
    let Some(text) = table.print(TableStyle::default()) else {
        return Vec::new();
    };
    let lines = text.lines().map(str::to_owned);
    lines.chain([CAVEAT.to_owned()]).collect()
}

/// The time until the estimated end; without it, the estimate before the run has its nodes.
fn left(progress: &Progress, now: Timestamp) -> Option<String> {
    let end: Option<Timestamp> = progress
        .estimated_end
        .as_ref()
        .and_then(|it| it.parse().ok());
    match (end, progress.remaining_seconds) {
        (Some(end), _) => {
            let seconds = end.duration_since(now).as_secs_f64();
            Some(if seconds > 0.0 {
                format!("{} left", about(seconds))
            } else {
                "longer than estimated".to_owned()
            })
        }
        (None, Some(seconds)) => Some(format!("{} of measuring left", about(seconds as f64))),
        (None, None) => None,
    }
}

fn count(number: i32) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
