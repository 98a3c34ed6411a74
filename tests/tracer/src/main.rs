//! The tracer bench: power that a script gives, not a CPU, goes through the product's own code, and
//! `oracle.py`, which shares no code with it, integrates the same script and judges the figures.
//!
//! One run of a case, module by module:
//!
//! 1. [`cases`] says which factors are tried together;
//! 2. [`schedule`] says when the meter is read and when it is scraped;
//! 3. [`load`] has the requests of each run, and what Fortio would say of them;
//! 4. [`script`] puts the run together: who adds how many watts and uses how much CPU, and when;
//! 5. [`meter`] shows of it what a meter shows, as text;
//! 6. [`product`] is the code under test.
//!
//! One line of JSON a case goes to the standard output: script, requests and the product's claims.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: where the bench itself is wrong it must stop"
)]

mod cases;
mod load;
mod meter;
mod product;
mod schedule;
mod script;

use std::io::{self, BufWriter, Write};

use serde_json::{Value, json};

use crate::{
    cases::{Case, Edges, Meter},
    schedule::Schedule,
    script::{CPUS, Script, Trial},
};

/// Nanoseconds since the beginning of the run, in true time: no clock that the product sees.
type Time = i64;

const SECOND: Time = 1_000_000_000;
const MILLISECOND: Time = 1_000_000;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let cases = match arguments.as_slice() {
        [] => cases::short(),
        [whole] if whole == "--whole" => cases::whole(),
        _ => {
            eprintln!("usage: frugality-tracer [--whole]");
            std::process::exit(2);
        }
    };
    let mut out = BufWriter::new(io::stdout().lock());
    for case in &cases {
        let told = writeln!(out, "{}", run(case)).and_then(|()| out.flush());
        match told {
            // Whoever looks for one finding only listens no longer than that.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            told => told?,
        }
    }
    Ok(())
}

/// One case from script to claims.
fn run(case: &Case) -> Value {
    let schedule = Schedule::of(case);
    let script = Script::of(case, &schedule);
    let scrapes = meter::scrapes(case, &script, &schedule);
    let trials: Vec<Value> = script
        .trials
        .iter()
        .map(|trial| told(trial, &product::claim(case, trial, &scrapes)))
        .collect();
    let acts: Vec<Value> = script
        .acts
        .iter()
        .map(|act| json!([act.what, act.from, act.to, act.milliwatts, act.nanocpus]))
        .collect();
    json!({
        "case": case.name(),
        "meter": match case.meter { Meter::Own => "frugality-meter", Meter::Kepler => "kepler" },
        "interval_milliseconds": case.interval_milliseconds,
        "edges": match case.edges { Edges::Tight => "tight", Edges::Wide => "wide" },
        "trouble": case.trouble.map(cases::Trouble::name),
        "cpus": CPUS,
        "acts": acts,
        "trials": trials,
    })
}

/// What the oracle is told of a trial: facts of the script and the servers' logs, and the claim.
fn told(trial: &Trial, claim: &Value) -> Value {
    let log = |run: &load::Run| -> Vec<Value> {
        run.requests
            .iter()
            .map(|one| {
                json!([
                    one.sent,
                    one.latency,
                    one.code,
                    one.server_cpu,
                    one.database_cpu
                ])
            })
            .collect()
    };
    json!({
        "candidate": trial.candidate.name,
        "candidate_pods": trial.candidate_pods,
        "database_pods": trial.database_pods,
        "injector_pods": trial.injector_pods,
        "expected_status": script::EXPECTED_STATUS,
        "idle_before": trial.idle_before,
        "settle": script::SETTLE,
        "idle_length": trial.idle_before[1] - trial.idle_before[0],
        "is_troubled": trial.is_troubled,
        "measured": log(&trial.measured),
        "tail": log(&trial.tail),
        "claim": claim,
    })
}
