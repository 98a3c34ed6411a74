//! The injector of one trial. Fortio repeats one request, in three processes directly after each other: warm-up,
//! measured run and tail. k6 repeats a script, in one process. The runner in the candidate's pod executes a program
//! that runs to completion, once per POST of the injector.
//!
//! - standard output: the load generator's whole JSON of the measured run, in one line;
//! - standard error: progress messages;
//! - termination message: the report for the operator ([`frugality_measure::report`]).
//!
//! Every answer of the target, and a missing answer, is an outcome and not an error of the injector. Exit codes:
//! 0: the load is complete; 1: there is no measured run; 2: the arguments are wrong; 3: there is a measured run but the
//! load was interrupted. The injector writes a termination message unless it cannot read the command line.

mod arguments;
mod cgroup;
mod clock;
mod cpu;
mod cycles;
mod executions;
mod kinds;
mod load;
mod process;
mod requests;
mod slices;

use std::{
    fs::File,
    io::{self, Write},
    process::ExitCode,
    time::Duration,
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
    // Opened before any load, because a report that the injector cannot write would waste the trial.
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

/// Applies the load. Returns the termination message and the exit code.
fn report(arguments: &RunArguments) -> (String, u8) {
    let plan = match arguments.plan() {
        Ok(plan) => plan,
        Err(error) => return failed(&Failure::of(&error), WRONG_ARGUMENTS),
    };
    let mut watch = match Watch::start() {
        Ok(watch) => watch,
        Err(error) => return failed(&Failure::of(&error), NO_MEASURED_RUN),
    };
    let clock = compare_clocks(arguments, clock::NEW_POD_PATIENCE);
    let cpu = Sampler::start();
    let outcome = match kinds::put_on(&plan, &mut watch) {
        Ok(outcome) => outcome,
        Err(failure) => return failed(&failure, NO_MEASURED_RUN),
    };
    let report = outcome.report(clock, compare_clocks(arguments, Duration::ZERO), cpu);
    if let Err(error) = writeln!(io::stdout(), "{}", outcome.json_line) {
        eprintln!("cannot print the measured run's JSON: {error}");
    }
    match report.encode() {
        Ok(message) if report.interrupted.is_some() => (message, INTERRUPTED),
        Ok(message) => (message, 0),
        Err(error) => failed(&Failure::of(&error), NO_MEASURED_RUN),
    }
}

/// Offset of the meter's clock from this one. `None` without a `--clock-url` or a valid answer.
fn compare_clocks(arguments: &RunArguments, patience: Duration) -> Option<ClockOffset> {
    match clock::compare(arguments.clock_url.as_deref()?, patience) {
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
