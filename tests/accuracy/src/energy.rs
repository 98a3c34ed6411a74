//! Measures virtual nodes of known energy through the meter's text, the checks of an attempt, the ledger and the
//! verdict.
//!
//! A case is a run of one candidate over five blocks. Cases are stratified by the kind of meter. The node's power, its
//! noise, pods, errors and clocks are drawn at random. In three of ten cases, a disturbance must make one attempt void.

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

/// Section of the random numbers ([`Random::new`]).
const SECTION: u64 = 1;
/// Blocks of each case: the minimum for a reported figure.
const BLOCKS: i32 = 5;

/// The results of one case.
#[derive(Clone, Debug)]
struct Found {
    stratum: usize,
    /// Whether the meter's accuracy allows an error of at most 1 %.
    allows_one_percent: bool,
    attempts: Vec<AttemptError>,
    /// Reasons of void attempts.
    voids: Vec<String>,
    /// Attempts that should be void but were measured or void for another reason, and measured attempts without a
    /// figure.
    missed: Vec<String>,
    run: Option<RunError>,
    verdict: Verdict,
}

/// Errors of one measured attempt, relative to the true value.
#[derive(Clone, Copy, Debug)]
struct AttemptError {
    gross: f64,
    net: Option<f64>,
    /// U: twice the relative standard uncertainty that the attempt's record states.
    stated: f64,
    /// Share of U² that the meter's accuracy contributes.
    meter_share: f64,
}

/// Errors of a candidate's figure.
#[derive(Clone, Copy, Debug)]
struct RunError {
    /// Error against the trials' own true energy, as a share.
    of_trials: f64,
    /// Whether the interval in the status contains the trials' own true energy per request.
    holds_trials: bool,
    /// Whether the interval contains the candidate's true energy. The trials are a sample of it.
    holds_candidate: bool,
    /// Half of the interval's width, as a share of the figure.
    stated: f64,
    /// Whether the interval includes the meter's accuracy. Only then should it contain the true value. Otherwise it
    /// should contain the value that this meter would show.
    covers_meter: bool,
}

/// Measures `cases` virtual nodes.
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
        reason = "below the number of strata"
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
    // From the status, because the user sees the status and not the judgement.
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
    /// `None` if the attempt has no gross joules per request.
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
    // The operator compares these bounds with a budget.
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
