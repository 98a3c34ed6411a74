//! The command line, and the load that it describes.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use frugality_measure::{
    batch::{NumberPattern, PatternError, Readers, WorkSource},
    fortio::{Amount, Body, FortioSettingsError, LoadSettings},
    k6::{CycleSettings, CycleSettingsError, OpenRequest},
};
use thiserror::Error;

/// Time that k6 may take in addition to the load: it starts its agents and runs the script's `setup()`, which may take
/// a minute.
const K6_PATIENCE: Duration = Duration::from_secs(120);

/// Puts load on one candidate and reports the result.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the warm-up, the measured run and the tail, one directly after another.
    Run(RunArguments),
}

#[derive(Debug, Args)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct RunArguments {
    /// URL to request; each {uuid} becomes a new UUID in every request. With --script: the target's URL
    #[arg(long)]
    url: String,
    /// Number of connections, each with one request at a time. With --script: number of agents that run the script
    #[arg(long)]
    connections: u32,
    /// Length of the load before the measured run, in seconds; 0 for none
    #[arg(long, default_value_t = 0.0)]
    warm_up_seconds: f64,
    /// Length of the measured run, in seconds
    #[arg(long, required_unless_present = "requests")]
    duration_seconds: Option<f64>,
    /// Number of requests or executions in the measured run, instead of its length
    #[arg(long, conflicts_with_all = ["duration_seconds", "script"])]
    requests: Option<u64>,
    /// Longest time, in seconds, for a measured run with --requests. The injector interrupts a longer run
    #[arg(long, default_value_t = 3600.0)]
    limit_seconds: f64,
    /// Length of the load after the measured run, in seconds; 0 for none
    #[arg(long, default_value_t = 0.0)]
    tail_seconds: f64,
    /// Requests per second over all connections, or cycles per second over all agents. Default: as many as possible
    #[arg(long)]
    rate: Option<f64>,
    /// With --rate: skip requests that are overdue, instead of sending them as soon as the connection is free
    #[arg(long, requires = "rate", conflicts_with_all = ["script", "batch", "open"])]
    skip_late: bool,
    /// Open loop: k6 sends requests at the rate without waiting for earlier answers, at most `connections` at a time
    #[arg(long, requires = "rate", conflicts_with_all = ["script", "batch", "requests", "body_file"])]
    open: bool,
    /// Status code of a success; repeatable. Only with --open, because Fortio's result contains all codes
    #[arg(long = "expected-status", value_name = "CODE", requires = "open")]
    expected_status: Vec<u16>,
    /// Limit in seconds for a connect and for an answer. With --script: for a cycle. With --batch: for an execution
    #[arg(long, default_value_t = 3.0)]
    timeout_seconds: f64,
    /// Text of the k6 script, which the agents run again and again. Each run is a cycle
    #[arg(long, conflicts_with_all = ["method", "headers", "body", "body_file"], allow_hyphen_values = true)]
    script: Option<String>,
    /// Time in seconds, at the start of the warm-up, in which the number of agents grows to its final value
    #[arg(long, default_value_t = 0.0, requires = "script")]
    ramp_up_seconds: f64,
    /// Let the target's runner execute its program, one execution after another, instead of sending requests
    #[arg(long, conflicts_with_all = ["script", "rate", "method", "headers", "body", "body_file"])]
    batch: bool,
    /// Regular expression with one group: the score in the program's output
    #[arg(long, requires = "batch", allow_hyphen_values = true)]
    score_pattern: Option<String>,
    /// Regular expression with one group: the work of an execution in the program's output
    #[arg(
        long,
        requires = "batch",
        conflicts_with = "work_amount",
        allow_hyphen_values = true
    )]
    work_pattern: Option<String>,
    /// Work of each execution, as a number
    #[arg(long, requires = "batch")]
    work_amount: Option<f64>,
    /// HTTP method. Default: GET, or POST if there is a body
    #[arg(long)]
    method: Option<String>,
    /// Header as NAME:VALUE; repeatable
    #[arg(long = "header", value_name = "NAME:VALUE", allow_hyphen_values = true)]
    headers: Vec<String>,
    /// Body of each request
    #[arg(long, conflicts_with = "body_file", allow_hyphen_values = true)]
    body: Option<String>,
    /// File with the body of each request
    #[arg(long)]
    body_file: Option<PathBuf>,
    /// Report the latency over time, even if the slices do not fit into the report
    #[arg(long)]
    course: bool,
    /// URL at which the meter reports its time
    #[arg(long)]
    pub(crate) clock_url: Option<String>,
    /// Text that Fortio copies into its result
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    labels: String,
    /// Path of the Fortio program
    #[arg(long, default_value = "/usr/bin/fortio")]
    fortio: PathBuf,
    /// Path of the k6 program that has the output `cycles`
    #[arg(long, default_value = "/usr/bin/k6")]
    k6: PathBuf,
    /// File for the report
    #[arg(long, default_value = "/dev/termination-log")]
    pub(crate) termination_log: PathBuf,
}

/// Why the arguments are invalid.
#[derive(Debug, Error)]
pub(crate) enum ArgumentError {
    #[error(transparent)]
    Settings(#[from] FortioSettingsError),
    #[error(transparent)]
    CycleSettings(#[from] CycleSettingsError),
    #[error("--{name} must be 0 or more seconds and less than a day, not {seconds}")]
    Span { name: &'static str, seconds: f64 },
    #[error("--header must be NAME:VALUE, not {0:?}")]
    Header(String),
    #[error("--body-file {0}: {1}")]
    BodyFile(PathBuf, std::io::Error),
    #[error("--duration-seconds or --requests must be given")]
    NoAmount,
    #[error("--{name}: {source}")]
    Pattern {
        name: &'static str,
        source: PatternError,
    },
    #[error("--work-amount must be above 0, not {0}")]
    WorkAmount(f64),
    #[error("with --batch, --connections must be 1, not {0}: the runner executes one at a time")]
    ExecutionsAtOnce(u32),
    #[error("--timeout-seconds must be more than 0 and less than a day, not {0}")]
    Timeout(f64),
    #[error(
        "--rate must be a number of cycles per second from 0.01 to 1000000 with at most two decimals, not {0}"
    )]
    CycleRate(f64),
}

/// The load, by its kind.
#[derive(Debug)]
pub(crate) enum LoadPlan {
    /// One request, repeated.
    Requests(Box<RequestPlan>),
    /// A script, repeated.
    Cycles(CyclePlan),
    /// A program, repeated.
    Executions(ExecutionPlan),
}

/// Executions of a program, one after another.
#[derive(Debug)]
pub(crate) struct ExecutionPlan {
    /// URL of the runner.
    pub(crate) url: String,
    pub(crate) warm_up_seconds: f64,
    /// New executions begin until this amount is reached. The last one still runs to its end.
    pub(crate) amount: Amount,
    pub(crate) tail_seconds: f64,
    /// Longest time of one execution. The runner kills a longer one.
    pub(crate) timeout: Duration,
    /// Longest time of a measured run that is given as a number of executions. The injector ends a longer run.
    pub(crate) limit: Duration,
    pub(crate) readers: Readers,
    pub(crate) with_course: bool,
}

/// One load of k6.
#[derive(Debug)]
pub(crate) struct CyclePlan {
    pub(crate) k6: PathBuf,
    pub(crate) script: String,
    pub(crate) settings: CycleSettings,
    pub(crate) with_course: bool,
    /// Longest time of k6. The injector interrupts k6 after it.
    pub(crate) limit: Duration,
}

/// The runs of Fortio. They differ in their amount only.
#[derive(Debug)]
pub(crate) struct RequestPlan {
    pub(crate) fortio: PathBuf,
    pub(crate) warm_up: Option<Run>,
    pub(crate) measured: Run,
    pub(crate) tail: Option<Run>,
    pub(crate) with_course: bool,
    /// Time that an interrupted Fortio gets to write its result. After it the injector kills Fortio.
    pub(crate) grace: Duration,
}

/// One run of Fortio.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) name: &'static str,
    pub(crate) settings: LoadSettings,
    /// Longest time of this run. The injector interrupts Fortio after it.
    pub(crate) limit: Duration,
}

impl RunArguments {
    /// Checks the arguments as far as possible before any load.
    pub(crate) fn plan(&self) -> Result<LoadPlan, ArgumentError> {
        if self.batch {
            return Ok(LoadPlan::Executions(self.execution_plan()?));
        }
        if self.open {
            return Ok(LoadPlan::Cycles(
                self.cycle_plan(&self.open_request()?.script())?,
            ));
        }
        Ok(match &self.script {
            None => LoadPlan::Requests(Box::new(self.request_plan()?)),
            Some(script) => LoadPlan::Cycles(self.cycle_plan(script)?),
        })
    }

    fn open_request(&self) -> Result<OpenRequest, ArgumentError> {
        let settings = self.load_settings(self.amount()?)?;
        Ok(OpenRequest {
            method: settings.method,
            headers: settings.headers,
            body: self.body.clone(),
            expected_status: self.expected_status.clone(),
            timeout_seconds: self.timeout_seconds,
        })
    }

    fn cycle_plan(&self, script: &str) -> Result<CyclePlan, ArgumentError> {
        let settings = CycleSettings {
            url: self.url.clone(),
            agents: self.connections,
            rate: self.rate.map(cycle_rate).transpose()?,
            warm_up_seconds: self.warm_up_seconds,
            ramp_up_seconds: self.ramp_up_seconds,
            duration_seconds: self.duration_seconds.ok_or(ArgumentError::NoAmount)?,
            tail_seconds: self.tail_seconds,
            timeout_seconds: self.timeout_seconds,
        };
        settings.check()?;
        Ok(CyclePlan {
            k6: self.k6.clone(),
            script: script.to_owned(),
            limit: Duration::from_secs_f64(settings.load_seconds()) + K6_PATIENCE,
            settings,
            with_course: self.course,
        })
    }

    fn execution_plan(&self) -> Result<ExecutionPlan, ArgumentError> {
        if self.connections != 1 {
            return Err(ArgumentError::ExecutionsAtOnce(self.connections));
        }
        let pattern = |name, text: &Option<String>| {
            let read = text.as_deref().map(NumberPattern::new).transpose();
            read.map_err(|source| ArgumentError::Pattern { name, source })
        };
        let work = match self.work_amount {
            Some(amount) if amount > 0.0 && amount.is_finite() => Some(WorkSource::Amount(amount)),
            Some(amount) => return Err(ArgumentError::WorkAmount(amount)),
            None => pattern("work-pattern", &self.work_pattern)?.map(WorkSource::Printed),
        };
        let timeout_seconds = self.timeout_seconds;
        if !(timeout_seconds > 0.0 && timeout_seconds < 86_400.0) {
            return Err(ArgumentError::Timeout(timeout_seconds));
        }
        Ok(ExecutionPlan {
            url: self.url.clone(),
            warm_up_seconds: span("warm-up-seconds", self.warm_up_seconds)?,
            amount: self.amount()?,
            tail_seconds: span("tail-seconds", self.tail_seconds)?,
            timeout: Duration::from_secs_f64(timeout_seconds),
            limit: Duration::from_secs_f64(span("limit-seconds", self.limit_seconds)?),
            readers: Readers {
                score: pattern("score-pattern", &self.score_pattern)?,
                work,
            },
            with_course: self.course,
        })
    }

    fn amount(&self) -> Result<Amount, ArgumentError> {
        match (self.duration_seconds, self.requests) {
            (Some(seconds), _) => Ok(Amount::DurationSeconds(span("duration-seconds", seconds)?)),
            (None, Some(requests)) => Ok(Amount::Requests(requests)),
            (None, None) => Err(ArgumentError::NoAmount),
        }
    }

    fn load_settings(&self, amount: Amount) -> Result<LoadSettings, ArgumentError> {
        let settings = LoadSettings {
            url: self.url.clone(),
            connections: self.connections,
            amount,
            rate: self.rate,
            catch_up: !self.skip_late,
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
        Ok(settings)
    }

    fn request_plan(&self) -> Result<RequestPlan, ArgumentError> {
        let amount = self.amount()?;
        let settings = self.load_settings(amount)?;
        let limit_seconds = span("limit-seconds", self.limit_seconds)?;
        // A request may connect and wait, and then repeat both. The uncounted request before the run may do so too.
        let patience = Duration::from_secs_f64(4.0 * self.timeout_seconds + 10.0);
        let run = |name, amount| {
            let settings = LoadSettings {
                amount,
                ..settings.clone()
            };
            // At a rate, whole rounds of the connections may take longer.
            let scheduled = settings.schedule().map_or(0.0, |schedule| schedule.seconds);
            let limit = match amount {
                Amount::DurationSeconds(seconds) => {
                    Duration::from_secs_f64(seconds.max(scheduled)) + patience
                }
                Amount::Requests(_) => Duration::from_secs_f64(limit_seconds),
            };
            Run {
                name,
                settings,
                limit,
            }
        };
        let beside = |name, seconds: f64| {
            (seconds > 0.0).then(|| run(name, Amount::DurationSeconds(seconds)))
        };
        Ok(RequestPlan {
            fortio: self.fortio.clone(),
            warm_up: beside("warm-up", span("warm-up-seconds", self.warm_up_seconds)?),
            measured: run("measured run", amount),
            tail: beside("tail", span("tail-seconds", self.tail_seconds)?),
            with_course: self.course,
            // Fortio waits for open requests, but by default a pod must end within 30 s.
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

/// k6 gets the rate in hundredths.
fn cycle_rate(rate: f64) -> Result<f64, ArgumentError> {
    let hundredths = rate * 100.0;
    let is_possible =
        (0.01..=1e6).contains(&rate) && (hundredths - hundredths.round()).abs() < 1e-6;
    is_possible
        .then_some(rate)
        .ok_or(ArgumentError::CycleRate(rate))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn plan(words: &str) -> RequestPlan {
        let words = format!("injector run --url http://server {words}");
        let Command::Run(arguments) = Cli::try_parse_from(words.split(' ')).unwrap().command;
        arguments.request_plan().unwrap()
    }

    #[test]
    fn the_limit_of_a_load_covers_whole_rounds_of_its_connections() {
        let long = plan("--connections 100 --rate 2.4 --duration-seconds 100 --timeout-seconds 3");
        // 3 on each connection.
        let seconds = Duration::from_secs_f64(300.0 / 2.4);
        assert_eq!(long.measured.limit, seconds + Duration::from_secs(22));
        let rare = plan(
            "--connections 4 --rate 0.05 --duration-seconds 60 --tail-seconds 1.4 --timeout-seconds 3",
        );
        let two = Duration::from_secs(40 + 22);
        assert_eq!(rare.tail.unwrap().limit, two);
    }
}
