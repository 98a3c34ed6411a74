//! The time that a run still takes, from its attempts so far. Before the first attempt, from its settings.

use frugality_measure::fortio::{Amount, Schedule};
use jiff::Timestamp;

pub use crate::plan::settings::SettingsError;

use crate::{
    api::{FrozenBaseline, FrozenBaselines, FrugalityBenchmark, FrugalityTrial, Outcome},
    plan::{
        baseline::{compared, expanded},
        ledger::{Ledger, Part, finished_at, outcome_of},
        protocol::{LONGEST_EDGE_SECONDS, SETTLE_SECONDS, settle_seconds, tail_seconds},
        settings::Settings,
    },
    time::unix_seconds,
};

/// Interval of a usual meter that reads its sensor itself. With the chart's 0.5 s, tail and settling are each 0.4 s longer.
const USUAL_INTERVAL_SECONDS: f64 = 0.1;
/// Start of the pods and of the injector, before the first attempt shows it.
const START_SECONDS: f64 = 3.0;
/// From an attempt's end to the start of the next attempt. The old pods are removed first.
const TURNAROUND_SECONDS: f64 = 3.0;
/// The same with a database. The attempt itself then ends with the removal of its pods.
const TURNAROUND_WITH_DATABASE_SECONDS: f64 = 1.5;
/// Check of the database before the load, count and restore after it. PostgreSQL takes 0.7 s of this with 10,000 contacts. The
/// rest is the start and the end of pods.
const DATABASE_WORK_SECONDS: f64 = 7.0;
/// Start and seed of a database. On the cluster in a box it is about 35 s. An image that must be pulled takes minutes.
const DATABASE_SECONDS: f64 = 60.0;

/// The rest of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Most trials left. A look may end the run earlier.
    pub trials: usize,
    /// Their time, from the start of the current attempt. `None` if it is not known.
    pub seconds: Option<f64>,
}

impl Estimate {
    /// Estimates the rest of a run. The whole block of a void attempt is measured again.
    #[must_use]
    pub fn of(settings: &Settings, ledger: &Ledger<'_>, has_database: bool) -> Self {
        let valid = ledger.valid().concat();
        let trials_of = |point: &str, entrant: &str| {
            let is_meant =
                |e: &&&FrugalityTrial| e.spec.candidate == entrant && e.spec.point == point;
            settings
                .blocks
                .saturating_sub(valid.iter().filter(is_meant).count())
        };
        let entrants = settings.entrants();
        let before = if has_database && !ledger.is_begun() {
            DATABASE_SECONDS
        } else {
            0.0
        };
        let parts = settings.points.iter().zip(ledger.parts(settings));
        let tried = parts
            .filter(|(_, part)| *part != Part::LeftOut)
            .map(|(point, _)| point);
        let left: Vec<(usize, Option<f64>)> = tried
            .flat_map(|point| {
                entrants
                    .iter()
                    .map(move |entrant| (point.name.as_str(), *entrant))
            })
            .map(|(point, entrant)| {
                let trials = trials_of(point, entrant);
                let each = attempt_seconds(settings, ledger, has_database, point, entrant);
                (trials, each.map(|seconds| trials as f64 * seconds))
            })
            .collect();
        let seconds: Option<f64> = left.iter().map(|(_, seconds)| *seconds).sum();
        Self {
            trials: left.iter().map(|(trials, _)| trials).sum(),
            seconds: seconds.map(|seconds| before + seconds),
        }
    }

    /// The end of the last trial in Unix seconds, for a run that got its nodes at `turn_unix_seconds`. It depends only on the
    /// ledger, so the status does not change in every pass.
    #[must_use]
    pub fn end_unix_seconds(self, ledger: &Ledger<'_>, turn_unix_seconds: f64) -> Option<f64> {
        let begun = |entry: &&FrugalityTrial| entry.spec.block > 0 && outcome_of(entry).is_none();
        let entries = || ledger.entries().iter().copied();
        let from = match entries().find(begun).and_then(created) {
            Some(opened) => unix_seconds(opened),
            None => ledger.last_finished().map_or(turn_unix_seconds, |last| {
                unix_seconds(last).max(turn_unix_seconds)
            }),
        };
        Some(from + self.seconds?)
    }
}

/// A whole run, estimated from its spec alone. Void attempts and time in the queue add to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// Number of candidates in each block. It includes the control, and the releases of `spec.baseline`.
    pub entrants: usize,
    /// Number of points; 1 without a sweep.
    pub points: usize,
    /// Most blocks at each point.
    pub blocks: usize,
    /// The run with all blocks.
    pub whole: Estimate,
    /// Number of blocks at the first look, and the run up to this look. `None` if there is one look, after all blocks.
    pub first_look: Option<(usize, Estimate)>,
    /// Length of one attempt in seconds, with the time to the next attempt. `None` if it is not known.
    pub attempt_seconds: Option<f64>,
    /// Whether the estimate includes start and seed of a database.
    pub has_database: bool,
    /// `spec.deadline` in seconds.
    pub deadline_seconds: f64,
}

impl Forecast {
    /// Estimates a run that has not begun. The releases of `spec.baseline` are assumed to exist, because the spec does
    /// not say whether they do.
    pub fn of(benchmark: &FrugalityBenchmark) -> Result<Self, SettingsError> {
        let benchmark = expanded(benchmark, &assumed(benchmark));
        let settings = Settings::parse(&benchmark.spec)?;
        let has_database = benchmark.spec.database.is_some();
        let ledger = Ledger::of("", &[]);
        let of = |settings: &Settings| Estimate::of(settings, &ledger, has_database);
        let first_look = match settings.looks.as_slice() {
            [first, _, ..] => {
                let blocks = first.blocks;
                let until = Settings {
                    blocks,
                    ..settings.clone()
                };
                Some((blocks, of(&until)))
            }
            _ => None,
        };
        Ok(Self {
            entrants: settings.entrants().len(),
            points: settings.points.len(),
            blocks: settings.blocks,
            whole: of(&settings),
            first_look,
            attempt_seconds: planned_seconds(&settings, has_database),
            has_database,
            deadline_seconds: settings.deadline_seconds,
        })
    }
}

/// Releases in the place of those that a spec names: copies of the candidate that is compared with them.
fn assumed(benchmark: &FrugalityBenchmark) -> FrozenBaselines {
    let Some(asked) = &benchmark.spec.baseline else {
        return FrozenBaselines::default();
    };
    let candidates = &benchmark.spec.candidates;
    let compared = compared(asked, candidates);
    let release = candidates
        .iter()
        .find(|candidate| candidate.name == compared)
        .map(|candidate| FrozenBaseline {
            name: String::new(),
            uid: String::new(),
            generation: 0,
            candidate: candidate.clone(),
        });
    FrozenBaselines {
        anchor: release.clone().filter(|_| asked.anchor.is_some()),
        baseline: release,
    }
}

impl std::fmt::Display for Estimate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&left(self.trials, self.seconds.map(about).as_deref()))
    }
}

/// The rest of a run for people.
#[must_use]
pub fn left(trials: usize, time: Option<&str>) -> String {
    let unit = if trials == 1 { "trial" } else { "trials" };
    match time {
        Some(time) => format!("{trials} {unit}, {time}"),
        None => format!("{trials} {unit}"),
    }
}

/// A length of time for people.
#[must_use]
pub fn about(seconds: f64) -> String {
    let minutes = seconds / 60.0;
    if seconds < 90.0 {
        format!("about {:.0} s", (seconds / 10.0).ceil() * 10.0)
    } else if minutes < 90.0 {
        format!("about {minutes:.0} min")
    } else {
        format!("about {:.1} h", minutes / 60.0)
    }
}

/// A length of time for a cell: `~25m`.
#[must_use]
pub fn briefly(seconds: f64) -> String {
    let text = about(seconds);
    let text = text.trim_start_matches("about ").replace("min", "m");
    format!("~{}", text.replace(' ', ""))
}

/// An attempt of this entrant with the time to the next attempt. It is the mean of the entrant's attempts at this point, else
/// at all points, else of all entrants' attempts. Before the first attempt it follows from the settings.
fn attempt_seconds(
    settings: &Settings,
    ledger: &Ledger<'_>,
    has_database: bool,
    point: &str,
    entrant: &str,
) -> Option<f64> {
    let taken = |is_meant: &dyn Fn(&FrugalityTrial) -> bool| {
        let entries = ledger.entries().iter().copied();
        let lengths: Vec<f64> = entries
            .filter(|entry| outcome_of(entry) == Some(Outcome::Measured) && is_meant(entry))
            .filter_map(length_seconds)
            .collect();
        (!lengths.is_empty()).then(|| lengths.iter().sum::<f64>() / lengths.len() as f64)
    };
    taken(&|entry| entry.spec.candidate == entrant && entry.spec.point == point)
        .or_else(|| taken(&|entry| entry.spec.candidate == entrant))
        .or_else(|| taken(&|_| true))
        .map(|length| length + turnaround_seconds(has_database))
        .or_else(|| planned_seconds(settings, has_database))
}

fn turnaround_seconds(has_database: bool) -> f64 {
    if has_database {
        TURNAROUND_WITH_DATABASE_SECONDS
    } else {
        TURNAROUND_SECONDS
    }
}

fn length_seconds(entry: &FrugalityTrial) -> Option<f64> {
    // The start is by the API server's clock, the end by the operator's clock.
    Some((unix_seconds(finished_at(entry)?) - unix_seconds(created(entry)?)).max(0.0))
}

fn created(entry: &FrugalityTrial) -> Option<Timestamp> {
    Some(entry.metadata.creation_timestamp.as_ref()?.0)
}

/// By the settings. `None` for a number of requests at the greatest rate, because their time is not known.
fn planned_seconds(settings: &Settings, has_database: bool) -> Option<f64> {
    let mut points = settings.points.iter();
    let sends_rounds = points.any(|point| !settings.is_sent_by_k6_at(point));
    let window = match (settings.amount, settings.rate) {
        (amount @ Amount::DurationSeconds(seconds), Some(rate)) if sends_rounds => {
            // Fortio sends whole rounds of the connections.
            let connections = settings.points.iter().map(|it| it.connections);
            let longest = connections.map(|it| Schedule::new(rate, it.max(1), amount).seconds);
            longest.fold(seconds, f64::max)
        }
        (Amount::DurationSeconds(seconds), _) => seconds,
        (Amount::Requests(requests), Some(rate)) => requests as f64 / rate,
        (Amount::Requests(_), None) => return None,
    };
    let tail = if settings.kind.rules().has_short_units() {
        tail_seconds(Some(USUAL_INTERVAL_SECONDS))
    } else {
        LONGEST_EDGE_SECONDS
    };
    let edges = SETTLE_SECONDS + tail + settle_seconds(Some(USUAL_INTERVAL_SECONDS));
    let pods = START_SECONDS + turnaround_seconds(has_database);
    let database = if has_database {
        DATABASE_WORK_SECONDS
    } else {
        0.0
    };
    let idle = 2.0 * settings.idle_seconds;
    Some(pods + database + edges + idle + settings.warm_up_seconds + window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_short() {
        for (seconds, text) in [
            (1.0, "about 10 s"),
            (61.0, "about 70 s"),
            (90.0, "about 2 min"),
            (530.0, "about 9 min"),
            (5400.0, "about 1.5 h"),
            (100_000.0, "about 27.8 h"),
        ] {
            assert_eq!(about(seconds), text);
            let short = text.replace("about ", "~").replace("min", "m");
            assert_eq!(briefly(seconds), short.replace(' ', ""));
        }
        let shown = |trials, seconds| Estimate { trials, seconds }.to_string();
        assert_eq!(shown(10, Some(530.0)), "10 trials, about 9 min");
        assert_eq!(shown(1, None), "1 trial");
    }
}
