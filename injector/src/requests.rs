//! Load by one request that Fortio repeats: three runs of Fortio, directly after each other.

use std::{fmt::Display, process::Stdio};

use frugality_measure::figures::LoadSpan;
use frugality_measure::{
    fortio::{Amount, FortioResult, argv, parse},
    load::LoadResult,
    report::Failure,
};

use crate::{
    arguments::{RequestPlan, Run},
    load::LoadEnd,
    process::{Ended, Output, Process, Stop, Watch},
    slices::{self, SlicesPipe},
};

/// Runs Fortio for the warm-up, the measured run and the tail. It starts each process as soon as the previous one has
/// ended. It reads the previous one's output only afterwards, to keep the gap without load short.
pub(crate) fn put_on(plan: &RequestPlan, watch: &mut Watch) -> Result<LoadEnd, Failure> {
    let warm_up = match &plan.warm_up {
        Some(run) => Some((run, finish(run, plan, watch)?)),
        None => None,
    };
    if let Some(stop) = watch.stopped() {
        return Err(Failure::of(&format!("{stop} before the measured run")));
    }

    let (mut process, slices) = start_measured(plan)?;
    let warm_up = warm_up.and_then(|(run, (process, ended))| span(run, process.output(), &ended));
    let ended = wait(&plan.measured, &mut process, plan, watch)?;

    // The tail starts before the result is parsed. A tail after an invalid result does no harm.
    let whole = ended.stop.is_none() && ended.status.success();
    let tail = match &plan.tail {
        Some(run) if whole => Some((run, start(run, plan)?)),
        _ => None,
    };
    let json = process.output();
    let measured = measured(&plan.measured, &json, &ended);
    if let Ok(result) = &measured {
        say(&plan.measured, result);
    }

    let mut interrupted = ended
        .stop
        .map(|stop| format!("{}: {stop}", plan.measured.name));
    let mut tail_span = None;
    if let Some((run, mut process)) = tail {
        let ended = wait(run, &mut process, plan, watch)?;
        tail_span = span(run, process.output(), &ended);
        interrupted = ended.stop.map(|stop| format!("{}: {stop}", run.name));
    }
    let mut measured = measured?;
    let slices = slices
        .read(&mut measured, plan.measured.settings.timeout_seconds)
        .map_err(|problem| Failure::of(&problem))?;
    if interrupted.is_none() && measured.is_interrupted() {
        interrupted = Some(format!("{}: ended early", plan.measured.name));
    }
    Ok(LoadEnd {
        warm_up,
        measured: LoadResult::Fortio(measured),
        tail: tail_span,
        interrupted,
        asked_warm_up_seconds: asked_seconds(plan.warm_up.as_ref()),
        asked_tail_seconds: asked_seconds(plan.tail.as_ref()),
        slices,
        with_course: plan.with_course,
        json_line: json.stdout.lines().map(str::trim).collect(),
    })
}

/// Planned length of the warm-up or the tail, in seconds; 0 for none.
fn asked_seconds(run: Option<&Run>) -> f64 {
    match run.map(|run| run.settings.amount) {
        Some(Amount::DurationSeconds(seconds)) => seconds,
        _ => 0.0,
    }
}

fn start(run: &Run, plan: &RequestPlan) -> Result<Process, Failure> {
    spawned(run, plan, None, Stdio::null())
}

/// Starts the measured run, and returns it with the pipe for its slices.
fn start_measured(plan: &RequestPlan) -> Result<(Process, SlicesPipe), Failure> {
    let (pipe, stdin) = SlicesPipe::open()
        .map_err(|error| Failure::of(&format!("cannot open a pipe for the slices: {error}")))?;
    let process = spawned(&plan.measured, plan, Some(slices::PATH), stdin)?;
    Ok((process, pipe))
}

fn spawned(
    run: &Run,
    plan: &RequestPlan,
    slices_path: Option<&str>,
    stdin: Stdio,
) -> Result<Process, Failure> {
    let arguments = argv(&run.settings, "-", slices_path);
    Process::spawn(&plan.fortio, &arguments, stdin)
        .map_err(|error| Failure::of(&format!("cannot start {}: {error}", plan.fortio.display())))
}

fn wait(
    run: &Run,
    process: &mut Process,
    plan: &RequestPlan,
    watch: &mut Watch,
) -> Result<Ended, Failure> {
    watch
        .wait(process, run.limit, plan.grace)
        .map_err(|error| Failure::of(&format!("cannot wait for the {}: {error}", run.name)))
}

fn finish(run: &Run, plan: &RequestPlan, watch: &mut Watch) -> Result<(Process, Ended), Failure> {
    let mut process = start(run, plan)?;
    let ended = wait(run, &mut process, plan, watch)?;
    Ok((process, ended))
}

/// The measured run's result, or the reason for its absence.
fn measured(run: &Run, output: &Output, ended: &Ended) -> Result<FortioResult, Failure> {
    let failure = |problem: &dyn Display| Failure {
        error: match ended.stop {
            Some(stop) => format!("no result of the measured run ({stop}): {problem}"),
            None => format!("no result of the measured run: {problem}"),
        },
        exit_code: ended.status.code(),
        stderr_tail: output.stderr_tail.clone(),
    };
    if !ended.status.success() {
        return Err(failure(&format!("Fortio ended with {}", ended.status)));
    }
    let result = parse(&output.stdout).map_err(|error| failure(&error))?;
    run.settings
        .check_answers(&result)
        .map_err(|error| failure(&error))?;
    Ok(result)
}

/// The time span of the warm-up or the tail, if it left a result. A missing result is logged and does not end the
/// load, because the candidate may have caused it.
fn span(run: &Run, output: Output, ended: &Ended) -> Option<LoadSpan> {
    let Output {
        stdout,
        stderr_tail,
    } = output;
    if let Some(Stop::Overdue(_)) = ended.stop {
        eprintln!("{}: interrupted, because it did not end in time", run.name);
    }
    match parse(&stdout) {
        Ok(result) => {
            say(run, &result);
            Some(result.span())
        }
        Err(error) => {
            eprintln!(
                "{}: no result ({}): {error}\n{stderr_tail}",
                run.name, ended.status
            );
            None
        }
    }
}

fn say(run: &Run, result: &FortioResult) {
    eprintln!(
        "{}: {} requests in {:.3} s, {} errors",
        run.name, result.latency.count, result.duration_seconds, result.error_latency.count
    );
}
