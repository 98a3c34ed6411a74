//! Prints the product's results for scripted trials and for k6's output, one line of JSON per case.
//! `tests/tracer/referee.py` reads them. It shares no code with the product, and computes the same results from the
//! text of docs/measurement.md.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use frugality_accuracy::{
    Error, energy,
    experiment::{Experiment, record},
    random::Random,
};
use frugality_measure::{
    k6::{CycleSettings, parse},
    load::LoadResult,
};
use frugality_operator::{
    api::{FrugalityTrial, FrugalityTrialStatus, Outcome},
    plan::ledger::{Start, outcome_of},
};
use serde_json::{Value, json};

/// Seed of the scripts.
const SEED: u64 = 20_261_124;
/// True joules per request of the first candidate.
const JOULES: f64 = 0.01;
/// Number of runs of each kind whose result is near a limit of the decision.
const CLOSE_RUNS: u32 = 12;
/// k6's real output: name, text, requested rate, and the number of dropped cycles to write into the text.
const K6_OUTPUTS: [(&str, &str, Option<f64>, u64); 4] = [
    (
        "agents",
        include_str!("../../../../measure/tests/data/k6/agents.json"),
        None,
        0,
    ),
    (
        "failing",
        include_str!("../../../../measure/tests/data/k6/failing.json"),
        None,
        0,
    ),
    (
        "rate",
        include_str!("../../../../measure/tests/data/k6/rate.json"),
        Some(100.0),
        0,
    ),
    (
        "dropped",
        include_str!("../../../../measure/tests/data/k6/rate.json"),
        Some(100.0),
        7,
    ),
];
const K6_AGENTS: u32 = 4;
const K6_SECONDS: f64 = 2.0;

/// A run with scripted trials.
struct Script {
    name: String,
    /// Candidates after the first, with the ratio of their joules to the first candidate's.
    others: &'static [(&'static str, f64)],
    /// Standard deviations in logarithms: of a single trial, and of the deviation that all trials of a block share.
    /// Third, the AR(1) coefficient of the first deviation.
    noise: (f64, f64, f64),
    trials: Value,
    energy: Value,
    budgets: Value,
    /// Share of void attempts.
    voids: f64,
    /// Relative standard uncertainty that the meter states.
    meter: Option<f64>,
    /// Runs of the same measurement before this one.
    earlier: usize,
}

impl Script {
    fn of(name: &'static str, others: &'static [(&'static str, f64)]) -> Self {
        Self {
            name: name.to_owned(),
            others,
            noise: (0.03, 0.0, 0.0),
            trials: json!({"blocks": 10, "maxAttempts": 10}),
            energy: json!({}),
            budgets: json!([]),
            voids: 0.0,
            meter: None,
            earlier: 0,
        }
    }
}

fn near(value: f64) -> String {
    format!("{value:.6}")
}

/// Runs with results near a limit of the decision. Some differ by more than the interval but less than the noise
/// floor. Some break a budget at the error of one budget, but not at the error of four.
fn close(number: u32) -> [Script; 2] {
    [
        Script {
            name: format!("noise floor {number}"),
            trials: json!({"blocks": 10, "maxAttempts": 10, "control": "first"}),
            noise: (0.01, 0.03, 0.0),
            ..Script::of("", &[("second", 1.014)])
        },
        Script {
            name: format!("one limit of four {number}"),
            noise: (0.01, 0.0, 0.0),
            budgets: json!([
                {"candidate": "first", "maxJoulesPerRequest": near(0.9905 * JOULES)},
                {"candidate": "second", "maxJoulesPerRequest": near(2.0 * JOULES)},
                {"candidate": "second", "maxErrorRatio": "0.5"},
                {"candidate": "first", "maxErrorRatio": "0.5"},
            ]),
            ..Script::of("", &[("second", 1.2)])
        },
    ]
}

fn scripts() -> Vec<Script> {
    let mut scripts = vec![
        Script::of("two", &[("second", 1.2)]),
        Script::of("equal", &[("second", 1.0)]),
        Script::of("three", &[("second", 1.1), ("third", 1.2)]),
        Script {
            noise: (0.004, 0.1, 0.0),
            ..Script::of("blocks differ", &[("second", 1.02)])
        },
        Script {
            voids: 0.2,
            ..Script::of("void attempts", &[("second", 1.2)])
        },
        Script {
            energy: json!({"tieWithin": "0.05"}),
            noise: (0.01, 0.0, 0.0),
            ..Script::of("tie", &[("second", 1.0)])
        },
        Script {
            meter: Some(0.02),
            ..Script::of("meter", &[("second", 1.2)])
        },
        Script {
            noise: (0.05, 0.0, 0.9),
            trials: json!({"blocks": 20, "maxAttempts": 10}),
            ..Script::of("correlated", &[("second", 1.3)])
        },
        Script {
            earlier: 2,
            ..Script::of("third try", &[("second", 1.05)])
        },
        Script {
            trials: json!({"looks": [10, 15, 20], "blocks": 20, "maxAttempts": 10}),
            ..Script::of("looks", &[("second", 1.04)])
        },
        Script {
            meter: Some(0.01),
            budgets: json!([
                {"candidate": "first", "maxJoulesPerRequest": near(1.01 * JOULES), "maxErrorRatio": "0.5"},
                {"candidate": "second", "maxJoulesPerRequest": near(1.1 * JOULES)},
                {"candidate": "first", "against": "second", "maxEnergyRatio": "0.9"},
            ]),
            ..Script::of("budgets", &[("second", 1.2)])
        },
    ];
    scripts.extend((1..=CLOSE_RUNS).flat_map(close));
    scripts
}

fn main() -> ExitCode {
    match lines() {
        Ok(lines) => {
            let mut out = io::stdout().lock();
            for line in lines {
                match writeln!(out, "{line}") {
                    Ok(()) => {}
                    // With --first, the referee stops reading at its first finding.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
                    Err(error) => {
                        eprintln!("{error}");
                        return ExitCode::from(2);
                    }
                }
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn lines() -> Result<Vec<Value>, Error> {
    let pattern = FrugalityTrialStatus {
        fortio: None,
        ..energy::clean_attempt()?
    };
    let scripts = scripts();
    let mut lines = Vec::new();
    for (number, script) in (0..).zip(&scripts) {
        lines.push(reported(script, number, &pattern)?);
    }
    for output in K6_OUTPUTS {
        lines.push(k6(output)?);
    }
    Ok(lines)
}

fn reported(script: &Script, number: u64, pattern: &FrugalityTrialStatus) -> Result<Value, Error> {
    let names = || std::iter::once("first").chain(script.others.iter().map(|(name, _)| *name));
    let candidates: Vec<Value> = names()
        .map(|name| json!({"name": name, "image": format!("example.org/{name}:1")}))
        .collect();
    let experiment = Experiment::new(&json!({
        "candidates": candidates,
        "request": {"path": "/"},
        "trials": script.trials,
        "energy": script.energy,
        "budgets": script.budgets,
    }))?;
    let settings = experiment.settings();
    let mut entries: Vec<FrugalityTrial> = Vec::new();
    let mut attempts = Vec::new();
    let mut claim = Value::Null;
    for run in 0..=script.earlier {
        let mut random = Random::new(SEED, number, run as u64);
        let mut block = (0, 0.0);
        let mut remembered = 0.0;
        attempts.clear();
        let order = random.bits();
        let ended = experiment.carry_out_after(&entries, order, |start| {
            let (own, shared, memory) = script.noise;
            if block.0 != start.block {
                block = (start.block, shared * random.normal());
            }
            remembered = memory * remembered + (1.0 - memory * memory).sqrt() * random.normal();
            let name = settings.candidate_of(&start.candidate);
            let mut others = script.others.iter();
            let times = others
                .find(|(other, _)| *other == name)
                .map_or(1.0, |it| it.1);
            let joules = JOULES * times * (block.1 + own * remembered).exp();
            let is_void = random.chance(script.voids);
            attempts.push(attempt(start, joules, is_void));
            if is_void {
                let message = "the readings were interrupted".to_owned();
                return Ok(record(Outcome::Void, "ReadingsInterrupted", message));
            }
            Ok(measured(pattern, joules, script.meter))
        })?;
        let void = ended
            .entries
            .iter()
            .filter(|e| outcome_of(e) == Some(Outcome::Void));
        claim = json!({
            "verdict": ended.judgement.verdict,
            "reason": ended.judgement.reason,
            "void_attempts": void.count(),
        });
        if let Some(figures) = &ended.judgement.figures {
            claim["results"] = json!(figures.results);
            claim["comparisons"] = json!(figures.comparisons);
            claim["budgets"] = json!(figures.budgets);
            claim["winner"] = json!(figures.winner);
            claim["tie"] = json!(figures.tie);
            claim["look"] = json!(figures.look);
            claim["noise_floor"] = json!(figures.noise_floor);
            claim["notes"] = json!(figures.notes);
            claim["tries"] = json!(figures.tries);
        }
        entries = ended.entries;
    }
    Ok(json!({
        "case": script.name,
        "candidates": settings.candidates,
        "entrants": settings.entrants(),
        "control": settings.control.as_ref().map(|control| &control.hidden),
        "trials": script.trials,
        "tie_within": settings.tie_within,
        "budgets": script.budgets,
        "meter": script.meter,
        "try": script.earlier + 1,
        "attempts": attempts,
        "claim": claim,
    }))
}

fn attempt(start: &Start, joules: f64, is_void: bool) -> Value {
    json!({
        "block": start.block,
        "attempt": start.attempt,
        "position": start.position,
        "candidate": start.candidate,
        "joules": joules,
        "void": is_void,
    })
}

fn measured(
    pattern: &FrugalityTrialStatus,
    joules: f64,
    meter: Option<f64>,
) -> FrugalityTrialStatus {
    let mut status = pattern.clone();
    if let Some(energy) = &mut status.energy {
        let requests = status.requests.as_ref().map_or(0, |it| it.successes);
        energy.node_joules = joules * requests as f64;
        energy.gross_joules_per_request = Some(joules);
        energy.meter_relative_uncertainty = meter;
        energy.node_joules_relative_uncertainty = 0.0;
    }
    status
}

fn k6((name, text, rate, dropped): (&str, &str, Option<f64>, u64)) -> Result<Value, Error> {
    let mut raw: Value = serde_json::from_str(text)?;
    raw["droppedCycles"] = json!(dropped);
    let settings = CycleSettings {
        url: "http://server:8080".to_owned(),
        agents: K6_AGENTS,
        rate,
        warm_up_seconds: 1.0,
        ramp_up_seconds: 0.0,
        duration_seconds: K6_SECONDS,
        tail_seconds: 1.0,
        timeout_seconds: 3.0,
    };
    let output =
        parse(&raw.to_string(), &settings).map_err(|error| Error::Unexpected(error.to_string()))?;
    let figures = LoadResult::K6(output.measured).figures(&[]);
    Ok(json!({
        "case": format!("k6 {name}"),
        "k6": raw,
        "agents": K6_AGENTS,
        "rate": rate,
        "claim": figures,
    }))
}
