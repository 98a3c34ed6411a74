//! The tracer bench. A script, not a CPU, sets the node's power. The product's code computes figures from it.
//! `oracle.py`, which shares no code with the product, integrates the same script and judges the figures.
//!
//! The modules, in the order of their work on a case:
//!
//! 1. [`cases`] selects the combinations of factors;
//! 2. [`schedule`] sets the times of readings and scrapes;
//! 3. [`load`] makes the requests of each run, and Fortio's JSON for them;
//! 4. [`script`] makes the run: the power and CPU use of each actor, and their times;
//! 5. [`meter`] writes the text that a meter shows for the script;
//! 6. [`product`] calls the code under test.
//!
//! The standard output is one line of JSON per case: script, requests and the product's claims.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: it must stop at an error of the bench itself"
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

/// Nanoseconds since the start of the run, in true time. The product sees no clock with this time.
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
        let reported = writeln!(out, "{}", run(case)).and_then(|()| out.flush());
        match reported {
            // The oracle with --first stops reading after one finding.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            reported => reported?,
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
        .map(|trial| reported(trial, &product::claim(case, trial, &scrapes)))
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

/// The oracle's input for a trial: facts of the script and the servers' log, and the product's claim.
fn reported(trial: &Trial, claim: &Value) -> Value {
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
