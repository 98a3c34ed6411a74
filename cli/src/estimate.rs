//! How long a benchmark will take, from its file alone.

use std::{fmt::Write as _, path::PathBuf};

use frugality_operator::plan::report::estimate::{Estimate, Forecast, about};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::{
    input::{InputError, InputSource},
    manifest::{Checked, ManifestError, benchmarks},
};

/// Help below the options.
pub const HELP: &str = "\
The estimate is the operator's own, before the first trial. It leaves out void attempts, which are measured again, the pull
of images, and the time in the queue of the node. The command does not contact the cluster. It does not check names of nodes
and Secrets.

Exit codes:
  0  the estimate is printed
  1  the file can't be read, or the benchmark would be refused
  2  the command line is wrong

Examples:
  kubectl frugality estimate -f benchmark.yaml
  kubectl frugality run you/shop:1.2 --dry-run=client -o yaml | kubectl frugality estimate -f -";

/// The options of `kubectl frugality estimate`.
#[derive(Clone, Debug, clap::Args)]
pub struct EstimateOptions {
    /// File with benchmarks as YAML or JSON, - for standard input.
    #[arg(long, short, value_name = "FILE")]
    filename: PathBuf,
    /// Form of the result.
    #[arg(long, short, value_enum, default_value_t = Form::Text)]
    output: Form,
}

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// A few lines per benchmark.
    Text,
    /// A JSON array. Times are in seconds.
    Json,
}

/// Why there is no estimate.
#[derive(Debug, thiserror::Error)]
pub enum EstimateError {
    /// The file can't be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// It has no benchmark that could run.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// No JSON.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl EstimateOptions {
    /// The estimates as text.
    pub fn run(&self) -> Result<String, EstimateError> {
        let source = InputSource {
            filename: Some(self.filename.clone()),
            ..InputSource::default()
        };
        let checked = benchmarks(&source.read("fb NAME")?)?;
        Ok(match self.output {
            Form::Text => checked.iter().map(of).collect::<Vec<_>>().join("\n"),
            Form::Json => {
                let all: Vec<_> = checked.iter().map(as_json).collect();
                serde_json::to_string_pretty(&all)? + "\n"
            }
        })
    }
}

fn of(checked: &Checked) -> String {
    text(&checked.benchmark.name_any(), &checked.forecast)
}

/// The estimate in a few lines.
#[must_use]
pub fn text(name: &str, forecast: &Forecast) -> String {
    let mut text = format!("{name}: {}\n", forecast.whole);
    // Writing to a String does not fail.
    let _ = writeln!(text, "  {}", size(forecast));
    if let Some((blocks, estimate)) = &forecast.first_look {
        let _ = writeln!(
            text,
            "  If the look after {blocks} blocks decides: {estimate}."
        );
    }
    if forecast.whole.seconds.is_none() {
        text += "  The time of a number of requests or executions is not known before the first trial.\n";
    }
    if forecast.has_database {
        text += "  This includes about a minute for the start and the rows of the database.\n";
    }
    let deadline = about(forecast.deadline_seconds);
    if is_too_long(forecast) {
        let _ = writeln!(
            text,
            "  Warning: spec.deadline ends the run after {deadline}. Write a longer deadline, or fewer blocks."
        );
    } else if exceeds(forecast.whole, forecast) {
        let _ = writeln!(
            text,
            "  Warning: if no earlier look decides, spec.deadline ends the run after {deadline}. Write a longer deadline."
        );
    }
    text
}

/// Candidates × points × blocks, and the length of a trial.
fn size(forecast: &Forecast) -> String {
    let count = |number: usize, one: &str| {
        let plural = if number == 1 { "" } else { "s" };
        format!("{number} {one}{plural}")
    };
    let points = (forecast.points > 1).then(|| count(forecast.points, "point"));
    let factors: Vec<_> = std::iter::once(count(forecast.entrants, "candidate"))
        .chain(points)
        .chain([count(forecast.blocks, "block")])
        .collect();
    let each = forecast
        .attempt_seconds
        .map(|seconds| format!(", about {seconds:.0} s per trial"))
        .unwrap_or_default();
    format!("{}{each}.", factors.join(" × "))
}

fn is_too_long(forecast: &Forecast) -> bool {
    exceeds(
        forecast.first_look.map_or(forecast.whole, |(_, it)| it),
        forecast,
    )
}

fn exceeds(estimate: Estimate, forecast: &Forecast) -> bool {
    let seconds = estimate.seconds;
    seconds.is_some_and(|seconds| seconds > forecast.deadline_seconds)
}

fn as_json(checked: &Checked) -> Value {
    let Checked {
        benchmark,
        forecast,
    } = checked;
    let of = |estimate: &Estimate| json!({"trials": estimate.trials, "seconds": estimate.seconds});
    json!({
        "name": benchmark.name_any(),
        "candidates": forecast.entrants,
        "points": forecast.points,
        "blocks": forecast.blocks,
        "run": of(&forecast.whole),
        "firstLook": forecast.first_look.map(|(blocks, it)| json!({"blocks": blocks, "run": of(&it)})),
        "secondsPerTrial": forecast.attempt_seconds,
        "deadlineSeconds": forecast.deadline_seconds,
    })
}
