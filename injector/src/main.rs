//! The injector of one trial. One request is sent again and again by Fortio: warm-up, measured run and tail as three
//! processes back to back. A script is run again and again by k6, in one process. A program that runs to completion is
//! executed by the runner in the candidate's pod, each time it is asked to.
//!
//! - standard output: the load generator's whole JSON of the measured run, one line;
//! - standard error: progress, for people;
//! - termination message: the report for the operator ([`frugality_measure::report`]).
//!
//! What the target answers, and whether it answers at all, is an outcome and never an error here. Exit
//! codes: 0 the load was whole, 1 there is no measured run, 2 the arguments are wrong, 3 there is a
//! measured run but the load was interrupted. All but a command line that cannot be read leave a
//! termination message.

mod access_log;
mod arguments;
mod cgroup;
mod clock;
mod cpu;
mod cycles;
mod executions;
mod load;
mod process;
mod requests;

use std::{
    fs::File,
    io::{self, Write},
    process::ExitCode,
};

use arguments::{Cli, Command, RunArguments};
use clap::Parser;
use cpu::Sampler;
use frugality_measure::report::{ClockOffset, Failure};
use process::Watch;

const NO_MEASURED_RUN: u8 = 1;
const WRONG_ARGUMENTS: u8 = 2;
const INTERRUPTED: u8 = 3;

fn main() -> ExitCode {
    let Cli {
        command: Command::Run(arguments),
    } = Cli::parse();
    // Opened before any load: a report that nobody can read would waste the trial.
    let path = &arguments.termination_log;
    let mut log = match File::create(path) {
        Ok(log) => log,
        Err(error) => {
            eprintln!(
                "error: cannot write the report to {}: {error}",
                path.display()
            );
            return ExitCode::from(WRONG_ARGUMENTS);
        }
    };
    let (message, code) = report(&arguments);
    if let Err(error) = log.write_all(message.as_bytes()) {
        eprintln!(
            "error: cannot write the report to {}: {error}",
            path.display()
        );
        return ExitCode::from(NO_MEASURED_RUN);
    }
    ExitCode::from(code)
}

/// Puts the load on and says what to leave behind: the termination message and the exit code.
fn report(arguments: &RunArguments) -> (String, u8) {
    let plan = match arguments.plan() {
        Ok(plan) => plan,
        Err(error) => return failed(&Failure::of(&error), WRONG_ARGUMENTS),
    };
    let mut watch = match Watch::start() {
        Ok(watch) => watch,
        Err(error) => return failed(&Failure::of(&error), NO_MEASURED_RUN),
    };
    let clock = compare_clocks(arguments);
    let cpu = Sampler::start();
    let outcome = match load::put_on(&plan, &mut watch) {
        Ok(outcome) => outcome,
        Err(failure) => return failed(&failure, NO_MEASURED_RUN),
    };
    let report = outcome.report(clock, compare_clocks(arguments), cpu);
    if let Err(error) = writeln!(io::stdout(), "{}", outcome.json_line) {
        eprintln!("the measured run's JSON could not be printed: {error}");
    }
    match report.encode() {
        Ok(message) if report.interrupted.is_some() => (message, INTERRUPTED),
        Ok(message) => (message, 0),
        Err(error) => failed(&Failure::of(&error), NO_MEASURED_RUN),
    }
}

/// How far the meter's clock is from this one; `None` where there is no meter to ask, or no answer.
fn compare_clocks(arguments: &RunArguments) -> Option<ClockOffset> {
    match clock::compare(arguments.clock_url.as_deref()?) {
        Ok(offset) => {
            eprintln!(
                "clock: the meter's is {:+.6} s from this one, ± {:.6} s",
                offset.offset_seconds, offset.uncertainty_seconds
            );
            Some(offset)
        }
        Err(error) => {
            eprintln!("clock: not compared: {error}");
            None
        }
    }
}

fn failed(failure: &Failure, code: u8) -> (String, u8) {
    eprintln!("error: {}", failure.error);
    (failure.encode(), code)
}
