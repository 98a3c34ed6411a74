//! The command line, and the three runs it asks for.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use frugality_measure::fortio::{Amount, Body, LoadSettings, SettingsError};
use thiserror::Error;

/// Puts a load on one candidate and reports what came of it.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Warm-up, measured run and tail, back to back.
    Run(RunArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// What to request; each {uuid} in it is fresh for every request
    #[arg(long)]
    url: String,
    /// Connections, each with one request at a time
    #[arg(long)]
    connections: u32,
    /// Length of the load before the measured run, 0 for none
    #[arg(long, default_value_t = 0.0)]
    warm_up_seconds: f64,
    /// Length of the measured run
    #[arg(long, required_unless_present = "requests")]
    duration_seconds: Option<f64>,
    /// Number of requests of the measured run, instead of its length
    #[arg(long, conflicts_with = "duration_seconds")]
    requests: Option<u64>,
    /// Longest that a measured run given in requests may take; then it is interrupted
    #[arg(long, default_value_t = 3600.0)]
    limit_seconds: f64,
    /// Length of the load after the measured run, 0 for none
    #[arg(long, default_value_t = 0.0)]
    tail_seconds: f64,
    /// Requests per second over all connections; as many as possible if not given
    #[arg(long)]
    rate: Option<f64>,
    /// Time to connect, and to answer
    #[arg(long, default_value_t = 3.0)]
    timeout_seconds: f64,
    /// HTTP method; GET, or POST with a body, if not given
    #[arg(long)]
    method: Option<String>,
    /// Header as NAME:VALUE, can be repeated
    #[arg(long = "header", value_name = "NAME:VALUE", allow_hyphen_values = true)]
    headers: Vec<String>,
    /// Body of each request
    #[arg(long, conflicts_with = "body_file", allow_hyphen_values = true)]
    body: Option<String>,
    /// File with the body of each request
    #[arg(long)]
    body_file: Option<PathBuf>,
    /// Where the meter says its time
    #[arg(long)]
    pub(crate) clock_url: Option<String>,
    /// Text for Fortio to copy to its result
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    labels: String,
    /// The Fortio program
    #[arg(long, default_value = "/usr/bin/fortio")]
    fortio: PathBuf,
    /// Where the report goes
    #[arg(long, default_value = "/dev/termination-log")]
    pub(crate) termination_log: PathBuf,
}

/// Why the arguments ask for nothing that can be done.
#[derive(Debug, Error)]
pub(crate) enum ArgumentError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("--{name} must be 0 or more seconds and less than a day, not {seconds}")]
    Span { name: &'static str, seconds: f64 },
    #[error("--header must be NAME:VALUE, not {0:?}")]
    Header(String),
    #[error("--body-file {0}: {1}")]
    BodyFile(PathBuf, std::io::Error),
    #[error("--duration-seconds or --requests must be given")]
    NoAmount,
}

/// The runs to make. Each differs from the others in its amount only.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) fortio: PathBuf,
    pub(crate) warm_up: Option<Run>,
    pub(crate) measured: Run,
    pub(crate) tail: Option<Run>,
    /// How long an interrupted Fortio is given to write its result, before it is killed.
    pub(crate) grace: Duration,
}

/// One run of Fortio.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) name: &'static str,
    pub(crate) settings: LoadSettings,
    /// When it is interrupted, should it not have ended by then.
    pub(crate) limit: Duration,
}

impl RunArguments {
    /// Checks everything that can be checked before any load.
    pub(crate) fn plan(&self) -> Result<Plan, ArgumentError> {
        let amount = match (self.duration_seconds, self.requests) {
            (Some(seconds), _) => Amount::DurationSeconds(seconds),
            (None, Some(requests)) => Amount::Requests(requests),
            (None, None) => return Err(ArgumentError::NoAmount),
        };
        let settings = LoadSettings {
            url: self.url.clone(),
            connections: self.connections,
            amount,
            rate: self.rate,
            timeout_seconds: self.timeout_seconds,
            method: self
                .method
                .clone()
                .unwrap_or_else(|| self.natural_method().to_owned()),
            headers: self
                .headers
                .iter()
                .map(|text| header(text))
                .collect::<Result<_, _>>()?,
            body: self.request_body()?,
            labels: self.labels.clone(),
        };
        settings.check()?;
        let limit_seconds = span("limit-seconds", self.limit_seconds)?;
        // A request may connect, wait, and once more do both; so may the uncounted one before the run.
        let patience = Duration::from_secs_f64(4.0 * self.timeout_seconds + 10.0);
        let run = |name, amount| Run {
            name,
            limit: match amount {
                Amount::DurationSeconds(seconds) => Duration::from_secs_f64(seconds) + patience,
                Amount::Requests(_) => Duration::from_secs_f64(limit_seconds),
            },
            settings: LoadSettings {
                amount,
                ..settings.clone()
            },
        };
        let beside = |name, seconds: f64| {
            (seconds > 0.0).then(|| run(name, Amount::DurationSeconds(seconds)))
        };
        Ok(Plan {
            fortio: self.fortio.clone(),
            warm_up: beside("warm-up", span("warm-up-seconds", self.warm_up_seconds)?),
            measured: run("measured run", amount),
            tail: beside("tail", span("tail-seconds", self.tail_seconds)?),
            // Requests under way are waited for, but a pod is given 30 s to end by default.
            grace: Duration::from_secs_f64((2.0 * self.timeout_seconds + 2.0).min(20.0)),
        })
    }

    fn natural_method(&self) -> &'static str {
        if self.body.is_some() || self.body_file.is_some() {
            "POST"
        } else {
            "GET"
        }
    }

    fn request_body(&self) -> Result<Option<Body>, ArgumentError> {
        if let Some(path) = &self.body_file {
            let missing = |error| ArgumentError::BodyFile(path.clone(), error);
            std::fs::File::open(path).map_err(missing)?;
            return Ok(Some(Body::File(path.to_string_lossy().into_owned())));
        }
        Ok(self.body.clone().map(Body::Text))
    }
}

fn header(text: &str) -> Result<(String, String), ArgumentError> {
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| ArgumentError::Header(text.to_owned()))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn span(name: &'static str, seconds: f64) -> Result<f64, ArgumentError> {
    if (0.0..86_400.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(ArgumentError::Span { name, seconds })
    }
}
