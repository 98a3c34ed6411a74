//! What all cases together show.

use std::{collections::BTreeMap, fmt::Write as _};

use frugality_operator::api::Verdict;

use super::{AttemptError, Found, draw::STRATA};
use crate::table::{Table, percent};

/// The greatest error that 95 % of attempts may have where the meter allows it.
pub(super) const MAX_ERROR: f64 = 0.01;
/// The least share of errors that U must hold.
pub(super) const MIN_COVERAGE: f64 = 0.95;

/// The section's findings.
#[derive(Clone, Debug)]
pub struct Summary {
    found: Vec<Found>,
}

impl Summary {
    pub(super) fn of(found: Vec<Found>) -> Self {
        Self { found }
    }

    fn attempts(&self, chosen: impl Fn(&Found) -> bool) -> Vec<AttemptError> {
        let chosen = self.found.iter().filter(|found| chosen(found));
        chosen.flat_map(|found| found.attempts.clone()).collect()
    }

    /// The 95th percentile of |error| in attempts whose meter allows 1 %.
    #[must_use]
    pub fn error_p95_where_allowed(&self) -> Option<f64> {
        quantile(
            &gross(&self.attempts(|found| found.allows_one_percent)),
            0.95,
        )
    }

    /// The share of attempts whose error is within the U that their records state.
    #[must_use]
    pub fn share_within_stated(&self) -> f64 {
        within_stated(&self.attempts(|_| true))
    }

    /// The share of runs whose status' interval holds the energy per request of their trials, and of
    /// the candidate that these are a sample of.
    #[must_use]
    pub fn share_of_runs_held(&self) -> (f64, f64) {
        let runs: Vec<_> = self.found.iter().filter_map(|found| found.run).collect();
        let share = |held: usize| held as f64 / runs.len() as f64;
        (
            share(runs.iter().filter(|run| run.holds_trials).count()),
            share(runs.iter().filter(|run| run.holds_candidate).count()),
        )
    }

    /// Runs with a figure.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.found
            .iter()
            .filter(|found| found.run.is_some())
            .count()
    }

    /// What does not keep to what is promised.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let mut failures: Vec<String> = self
            .found
            .iter()
            .flat_map(|found| &found.missed)
            .map(|missed| format!("a disturbed attempt: {missed}"))
            .collect();
        match self.error_p95_where_allowed() {
            Some(p95) if p95 <= MAX_ERROR => {}
            p95 => failures.push(format!(
                "|error| of joules/request where the meter allows 1 %: p95 is {}",
                p95.map_or("unknown".to_owned(), percent)
            )),
        }
        let within = self.share_within_stated();
        if within.is_nan() || within < MIN_COVERAGE {
            failures.push(format!(
                "|error| within the stated U in {} of attempts",
                percent(within)
            ));
        }
        let (of_trials, of_candidate) = self.share_of_runs_held();
        if of_trials.is_nan() || of_trials < MIN_COVERAGE {
            failures.push(format!(
                "status' interval holds the trials' energy in {} of runs",
                percent(of_trials)
            ));
        }
        // This share's expectation is 95 % itself where nothing but the trials' spread counts.
        let slack = 4.0 * (0.05 * 0.95 / self.runs().max(1) as f64).sqrt();
        if of_candidate.is_nan() || of_candidate < MIN_COVERAGE - slack {
            failures.push(format!(
                "status' interval holds the candidate's energy in {} of runs",
                percent(of_candidate)
            ));
        }
        failures
    }

    /// The section as text for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut table = Table::new([
            "meter",
            "cases",
            "ended void",
            "attempts",
            "|error| p50",
            "p95",
            "max",
            "net p95",
            "U p50",
            "within U",
        ]);
        let row = |name: &str, chosen: &dyn Fn(&Found) -> bool, table: &mut Table| {
            let cases: Vec<_> = self.found.iter().filter(|found| chosen(found)).collect();
            let attempts = self.attempts(chosen);
            let errors = gross(&attempts);
            let at = |errors: &[f64], q: f64| quantile(errors, q).map_or("–".to_owned(), percent);
            let net: Vec<f64> = attempts
                .iter()
                .filter_map(|a| a.net)
                .map(f64::abs)
                .collect();
            let stated: Vec<f64> = attempts.iter().map(|a| a.stated).collect();
            let is_invalid = |found: &&&Found| found.verdict == Verdict::Invalid;
            let within = if attempts.is_empty() {
                "–".to_owned()
            } else {
                percent(within_stated(&attempts))
            };
            table.row([
                name.to_owned(),
                cases.len().to_string(),
                cases.iter().filter(is_invalid).count().to_string(),
                attempts.len().to_string(),
                at(&errors, 0.5),
                at(&errors, 0.95),
                at(&errors, 1.0),
                at(&net, 0.95),
                at(&stated, 0.5),
                within,
            ]);
        };
        for (index, stratum) in STRATA.iter().enumerate() {
            row(stratum.name, &|found| found.stratum == index, &mut table);
        }
        row(
            "where it allows 1 %",
            &|found| found.allows_one_percent,
            &mut table,
        );
        row("all", &|_| true, &mut table);

        let mut voids: BTreeMap<&str, usize> = BTreeMap::new();
        for reason in self.found.iter().flat_map(|found| &found.voids) {
            *voids.entry(reason).or_default() += 1;
        }
        let voids: Vec<_> = voids
            .iter()
            .map(|(reason, n)| format!("{n} {reason}"))
            .collect();
        let runs: Vec<_> = self.found.iter().filter_map(|found| found.run).collect();
        let (of_trials, of_candidate) = self.share_of_runs_held();
        let of = |value: fn(&super::RunError) -> f64, q: f64| {
            let values: Vec<f64> = runs.iter().map(|run| value(run).abs()).collect();
            quantile(&values, q).map_or("–".to_owned(), percent)
        };
        let mut text = table.text();
        // Writing to a String can't fail.
        let _ = writeln!(text, "\n  void attempts: {}", voids.join(", "));
        let _ = writeln!(
            text,
            "  {} runs of 5 blocks: |error| of the figure p50 {} p95 {}; its interval's half p50 {};\n  \
             the interval holds the trials' energy in {}, the candidate's in {} of them",
            runs.len(),
            of(|run| run.of_trials, 0.5),
            of(|run| run.of_trials, 0.95),
            of(|run| run.stated, 0.5),
            percent(of_trials),
            percent(of_candidate),
        );
        text
    }
}

fn gross(attempts: &[AttemptError]) -> Vec<f64> {
    attempts.iter().map(|attempt| attempt.gross.abs()).collect()
}

/// An error of 10⁻⁹ is rounding: no U promises less.
fn within_stated(attempts: &[AttemptError]) -> f64 {
    let is_within = |attempt: &&AttemptError| attempt.gross.abs() <= attempt.stated + 1e-9;
    attempts.iter().filter(is_within).count() as f64 / attempts.len() as f64
}

/// The value that this share of the values stays at or below.
fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index below the length"
    )]
    let at = (share * last as f64).ceil() as usize;
    sorted.get(at).copied()
}
