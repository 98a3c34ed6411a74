//! Load by a program that runs to completion: the runner in the candidate's pod executes it once per POST.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use frugality_measure::figures::LoadSpan;
use frugality_measure::{
    batch::{EXECUTIONS_PATH, Execution, ExecutionOutcome as Executed, ExecutionsResult},
    fortio::Amount,
    load::LoadResult,
    report::Failure,
    slices::SliceRecorder,
};
use thiserror::Error;

use crate::{
    arguments::ExecutionPlan,
    load::LoadEnd,
    process::{Stop, Watch},
};

/// Time between two checks for a signal to the injector during an execution.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// Shortest time from the start of a failed execution to the next start, until a first execution has succeeded.
/// Without it the injector would repeat an immediate failure a thousand times per second.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// Longest answer of the runner: the program's output plus JSON names, quotes and escapes.
const ANSWER_LIMIT_BYTES: u64 = 1 << 20;

/// Why an execution has no outcome.
#[derive(Debug, Error)]
enum Missing {
    #[error(transparent)]
    Failed(#[from] frugality_measure::batch::ExecutionError),
    #[error("did not end within {} s, and was killed", .0.as_secs_f64())]
    Overdue(Duration),
    #[error("{0}")]
    Refused(String),
    #[error("no answer from the runner: {0}")]
    NoAnswer(ureq::Error),
    #[error("invalid answer from the runner: {0}")]
    NotAnAnswer(#[from] serde_json::Error),
    #[error("{0}")]
    Stopped(Stop),
}

/// Lets the runner execute the program for the warm-up, the measured run and the tail. Warm-up and measured run
/// consist of whole executions. The tail only keeps the load on, so the injector cuts off its last execution.
pub(crate) fn put_on(plan: &ExecutionPlan, watch: &mut Watch) -> Result<LoadEnd, Failure> {
    let mut runner = Runner { plan, watch };
    let warm_up = (plan.warm_up_seconds > 0.0).then(|| {
        runner.executions(
            "warm-up",
            Amount::DurationSeconds(plan.warm_up_seconds),
            None,
        )
    });
    if let Some(stop) = runner.watch.stopped() {
        return Err(Failure::of(&format!("{stop} before the measured run")));
    }
    let mut slices = SliceRecorder::default();
    let (measured, interrupted) = runner.executions("measured run", plan.amount, Some(&mut slices));
    let tail = (plan.tail_seconds > 0.0 && interrupted.is_none()).then(|| runner.tail());
    let slices = slices.slices(measured.duration_seconds);
    if measured.all_executions() == 0 {
        let why = interrupted.unwrap_or_default();
        return Err(Failure::of(&format!("no execution has ended: {why}")));
    }
    let reported = interrupted.map(|why| format!("measured run: {why}"));
    let json_line = serde_json::to_string(&measured).unwrap_or_default();
    Ok(LoadEnd {
        warm_up: warm_up.map(|(result, _)| result.span()),
        measured: LoadResult::Batch(measured),
        tail,
        interrupted: reported
            .or_else(|| runner.watch.stopped().map(|stop| format!("tail: {stop}"))),
        asked_warm_up_seconds: plan.warm_up_seconds,
        asked_tail_seconds: plan.tail_seconds,
        slices,
        with_course: plan.with_course,
        json_line,
    })
}

struct Runner<'a> {
    plan: &'a ExecutionPlan,
    watch: &'a mut Watch,
}

impl Runner<'_> {
    /// Runs at least one whole execution, one after another. The second value is the reason if they ended before the
    /// amount.
    fn executions(
        &mut self,
        name: &str,
        amount: Amount,
        mut slices: Option<&mut SliceRecorder>,
    ) -> (ExecutionsResult, Option<String>) {
        let mut result = ExecutionsResult::starting(now());
        let start = Instant::now();
        let is_enough = |result: &ExecutionsResult| match amount {
            Amount::DurationSeconds(seconds) => start.elapsed().as_secs_f64() >= seconds,
            Amount::Requests(count) => result.all_executions() >= count,
        };
        let mut given_up = None;
        loop {
            let begun = Instant::now();
            let at_seconds = start.elapsed().as_secs_f64();
            let outcome = self.execution(self.plan.timeout);
            let taken = begun.elapsed();
            match outcome {
                Ok(executed) => {
                    eprintln!("{name}: {}", reported(&executed));
                    result.add(&executed);
                    if let Some(slices) = &mut slices {
                        slices.add(at_seconds, executed.duration_seconds);
                    }
                }
                Err(Missing::Stopped(stop)) => {
                    given_up = Some(stop.to_string());
                    break;
                }
                Err(why) => {
                    eprintln!("{name}: an execution failed: {why}");
                    result.add_failure(taken.as_secs_f64(), why.to_string());
                    if let Some(slices) = &mut slices {
                        slices.add_error(at_seconds, taken.as_secs_f64());
                    }
                }
            }
            result.duration_seconds = start.elapsed().as_secs_f64();
            if is_enough(&result) {
                break;
            }
            if start.elapsed() > self.plan.limit && matches!(amount, Amount::Requests(_)) {
                given_up = Some(Stop::Overdue(self.plan.limit).to_string());
                break;
            }
            if result.executions.count == 0 {
                thread::sleep(FAILURE_PAUSE.saturating_sub(taken));
            }
        }
        (result, given_up)
    }

    /// Executions until the end of the tail. The last one is cut off.
    fn tail(&mut self) -> LoadSpan {
        let (start_unix_seconds, start) = (now(), Instant::now());
        let length = Duration::from_secs_f64(self.plan.tail_seconds);
        let left = || length.saturating_sub(start.elapsed());
        let (mut requests, mut errors) = (0, 0);
        while !left().is_zero() {
            match self.execution(left()) {
                Ok(_) => requests += 1,
                Err(Missing::Overdue(_)) => {}
                Err(Missing::Stopped(_)) => break,
                Err(_) => {
                    requests += 1;
                    errors += 1;
                    thread::sleep(left().min(FAILURE_PAUSE));
                }
            }
        }
        LoadSpan {
            start_unix_seconds,
            duration_seconds: start.elapsed().as_secs_f64(),
            requests,
            errors,
        }
    }

    /// One execution. At the limit the injector closes the connection, and the runner kills the program.
    fn execution(&mut self, limit: Duration) -> Result<Executed, Missing> {
        let url = format!("{}{EXECUTIONS_PATH}", self.plan.url);
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || sender.send(post(&url, limit)));
        let answer = loop {
            match answers.recv_timeout(SIGNAL_INTERVAL) {
                Ok(answer) => break answer,
                Err(RecvTimeoutError::Disconnected) => {
                    break Err(Missing::Refused("the client thread ended".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(stop) = self.watch.stopped() {
                        return Err(Missing::Stopped(stop));
                    }
                }
            }
        };
        Ok(self.plan.readers.read(&answer?)?)
    }
}

fn post(url: &str, limit: Duration) -> Result<Execution, Missing> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(limit))
        .http_status_as_error(false)
        .proxy(None)
        .build()
        .into();
    let asked = |error| match error {
        ureq::Error::Timeout(_) => Missing::Overdue(limit),
        error => Missing::NoAnswer(error),
    };
    let mut response = agent.post(url).send_empty().map_err(asked)?;
    let text = response
        .body_mut()
        .with_config()
        .limit(ANSWER_LIMIT_BYTES)
        .read_to_string()
        .map_err(asked)?;
    if response.status() != 200 {
        return Err(Missing::Refused(text.trim().to_owned()));
    }
    Ok(serde_json::from_str(&text)?)
}

fn reported(executed: &Executed) -> String {
    let reported = |name, number: Option<f64>| {
        let text = number.map(|number| format!(", {name} {number}"));
        text.unwrap_or_default()
    };
    format!(
        "an execution in {:.3} s{}{}",
        executed.duration_seconds,
        reported("score", executed.score),
        reported("work", executed.work)
    )
}

/// Current time in Unix seconds. 0 if the clock is before 1970: the operator rejects such a window.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}
