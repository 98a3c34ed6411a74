//! Virtual nodes whose energy is known, measured through the meter's text, the checks of an attempt,
//! the ledger and the verdict.
//!
//! A case is a run of one candidate over five blocks. What the meter can do is stratified; the rest
//! (the node's power, its noise, pods, errors, clocks) is drawn. In three of ten cases one attempt is
//! disturbed in a way that must make it void.

mod attempt;
mod draw;
mod report;

use frugality_operator::{
    api::{Figure, Outcome, Verdict},
    plan::ledger::{Start, outcome_of},
};
use serde_json::json;

use crate::{Error, experiment::Experiment, parallel, random::Random};
pub use attempt::clean_attempt;
use attempt::{Trial, carry_out, stated};
pub(crate) use attempt::{clean_reading, fortio_json};
use draw::{Case, Fault, STRATA};
pub use report::Summary;

/// Section of the random numbers.
const SECTION: u64 = 1;
/// Blocks of each case: the least that is reported.
const BLOCKS: i32 = 5;

/// What was found in one case.
#[derive(Clone, Debug)]
struct Found {
    stratum: usize,
    /// Whether the meter is good enough for an error of 1 %.
    allows_one_percent: bool,
    attempts: Vec<AttemptError>,
    /// Reasons of void attempts.
    voids: Vec<String>,
    /// Attempts that had to be void, and came out measured or void for another reason; and measured
    /// ones without a figure.
    missed: Vec<String>,
    run: Option<RunError>,
    verdict: Verdict,
}

/// Errors of one measured attempt, as shares of what is true.
#[derive(Clone, Copy, Debug)]
struct AttemptError {
    gross: f64,
    net: Option<f64>,
    /// U: twice the standard uncertainty that the attempt's record states.
    stated: f64,
    /// Share of U² that is the meter's accuracy.
    meter_share: f64,
}

/// Errors of a candidate's figure.
#[derive(Clone, Copy, Debug)]
struct RunError {
    /// Against the trials' own energy, as a share.
    of_trials: f64,
    /// Whether the status' interval holds the trials' own energy per request.
    holds_trials: bool,
    /// Whether it holds the candidate's, of which the trials are a sample.
    holds_candidate: bool,
    /// Half of the interval, as a share.
    stated: f64,
    /// Whether the interval has the meter's accuracy in it: only then is it meant to hold what is true,
    /// else what this meter would show.
    covers_meter: bool,
}

/// Measures `cases` nodes.
pub fn measure(seed: u64, cases: u64) -> Result<Summary, Error> {
    let experiment = Experiment::new(&json!({
        "candidates": [{"name": "one", "image": "example.org/one:1"}],
        "request": {"path": "/"},
        "trials": {"blocks": BLOCKS, "maxAttempts": 2},
    }))?;
    let found = parallel::map(cases, |index| case(&experiment, seed, index));
    Ok(Summary::of(found.into_iter().collect::<Result<_, _>>()?))
}

fn case(experiment: &Experiment, seed: u64, index: u64) -> Result<Found, Error> {
    let mut random = Random::new(seed, SECTION, index);
    #[allow(
        clippy::cast_possible_truncation,
        reason = "below the number of the strata"
    )]
    let stratum = (index % STRATA.len() as u64) as usize;
    let case = Case::draw(stratum, &mut random);
    let mut found = Found {
        stratum,
        allows_one_percent: case.allows_one_percent(),
        attempts: Vec::new(),
        voids: Vec::new(),
        missed: Vec::new(),
        run: None,
        verdict: Verdict::Error,
    };
    let mut truths: Vec<(Start, f64)> = Vec::new();
    let ended = experiment.carry_out(seed ^ index, |start| {
        let fault = case
            .fault
            .filter(|(block, _)| *block == start.block && start.attempt == 1)
            .map(|(_, fault)| fault);
        let trial = carry_out(&case, fault, truths.len(), &mut random)?;
        truths.push((start.clone(), trial.true_gross));
        found.note(&trial, &case, fault);
        Ok(trial.status)
    })?;
    found.verdict = ended.judgement.verdict;
    let valid_truths: Vec<f64> = ended
        .entries
        .iter()
        .zip(&truths)
        .filter(|(entry, _)| outcome_of(entry) == Some(Outcome::Measured))
        .map(|(_, (_, truth))| *truth)
        .collect();
    // What the user sees, not only what was judged.
    let status = experiment.status(ended.entries);
    let figure = status
        .results
        .first()
        .and_then(|result| result.gross_joules_per_request);
    found.run = figure.map(|figure| run_error(figure, &valid_truths, case.true_gross()));
    Ok(found)
}

impl Found {
    fn note(&mut self, trial: &Trial, case: &Case, fault: Option<Fault>) {
        let reason = trial.status.reason.clone().unwrap_or_default();
        let due = case.reasons(fault);
        if due.is_some_and(|reasons| !reasons.contains(&reason.as_str())) {
            let disturbance = fault.map_or("a slow meter".to_owned(), |fault| format!("{fault:?}"));
            let meter = STRATA[self.stratum].name;
            self.missed
                .push(format!("{disturbance} gave {reason} ({meter})"));
        }
        if trial.status.outcome != Some(Outcome::Measured) {
            self.voids.push(reason);
        } else if let Some(error) = trial.error() {
            self.attempts.push(error);
        } else {
            let missed = "Measured, without gross joules per request";
            self.missed.push(missed.to_owned());
        }
    }
}

impl Trial {
    /// `None` without gross joules per request.
    fn error(&self) -> Option<AttemptError> {
        let energy = self.status.energy.as_ref()?;
        let share = |found: f64, truth: f64| found / truth - 1.0;
        Some(AttemptError {
            gross: share(energy.gross_joules_per_request?, self.true_gross),
            net: energy
                .net_joules_per_request
                .map(|net| share(net, self.true_net)),
            stated: stated(energy),
            meter_share: energy
                .meter_relative_uncertainty
                .map_or(0.0, |meter| (2.0 * meter / stated(energy)).powi(2)),
        })
    }
}

fn run_error(figure: Figure, trials: &[f64], candidate: f64) -> RunError {
    let mean = (trials.iter().map(|y| y.ln()).sum::<f64>() / trials.len() as f64).exp();
    // What decides a budget.
    let (lower, upper) = figure.bounds();
    let holds = |truth: f64| lower <= truth && truth <= upper;
    RunError {
        of_trials: figure.value / mean - 1.0,
        holds_trials: holds(mean),
        holds_candidate: holds(candidate),
        stated: (upper - lower) / 2.0 / figure.value,
        covers_meter: figure.expanded.is_some_and(|e| e.covers_meter),
    }
}
