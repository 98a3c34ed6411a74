//! The results of all cases together.

use std::{collections::BTreeMap, fmt::Write as _};

use frugality_operator::api::Verdict;

use super::{AttemptError, Found, RunError, draw::STRATA};
use crate::table::{Table, percent};

/// The limit for the 95th percentile of the error if the meter allows 1 %, for gross and for net joules. A wrong gain
/// has the same relative effect on both. A counter step is at most 0.2 % of the net energy, because the operator
/// otherwise voids the attempt as `MeterTooCoarse`.
pub(super) const MAX_ERROR: f64 = 0.01;
/// If the meter's accuracy is at least this share of U², U counts as the meter's accuracy.
const OF_METER: f64 = 0.8;
/// The minimum share of errors within U.
pub(super) const MIN_COVERAGE: f64 = 0.95;
/// The maximum share of errors within U if U is nearly all the meter's accuracy: ±2 u of a normal gain hold 95.4 %.
/// The record states the timing error at the window's edges by its bounds, because its distribution is unknown. A U
/// that is mostly this error holds more.
pub(super) const MAX_COVERAGE: f64 = 0.97;

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

    /// The 95th percentiles of |error| in attempts whose meter allows 1 %: for gross joules, and for net joules of the
    /// attempts that have them.
    #[must_use]
    pub fn error_p95s_where_allowed(&self) -> [(&'static str, Option<f64>); 2] {
        let attempts = self.attempts(|found| found.allows_one_percent);
        [
            ("joules/request", quantile(&gross(&attempts), 0.95)),
            ("net joules/request", quantile(&net(&attempts), 0.95)),
        ]
    }

    /// The share of attempts whose error is within the U of their record.
    #[must_use]
    pub fn share_within_stated(&self) -> f64 {
        within_stated(&self.attempts(|_| true))
    }

    /// Attempts whose U is nearly all the meter's accuracy, and the number of their meters. The number matters, because
    /// all attempts with one meter share its gain.
    fn of_meters(&self) -> (Vec<AttemptError>, usize) {
        let is_of_meter = |attempt: &&AttemptError| attempt.meter_share > OF_METER;
        let mut meters = 0;
        let mut attempts = Vec::new();
        for found in &self.found {
            let own: Vec<AttemptError> =
                found.attempts.iter().filter(is_of_meter).copied().collect();
            meters += usize::from(!own.is_empty());
            attempts.extend(own);
        }
        (attempts, meters)
    }

    /// The runs with a figure: first the runs whose interval includes the meter's accuracy, then the others.
    fn by_statement(&self) -> (Vec<RunError>, Vec<RunError>) {
        let runs = self.found.iter().filter_map(|found| found.run);
        runs.partition(|run| run.covers_meter)
    }

    /// The number of runs with a figure.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.found
            .iter()
            .filter(|found| found.run.is_some())
            .count()
    }

    /// The broken promises, one text per promise. Empty if all promises are kept.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let mut failures: Vec<String> = self
            .found
            .iter()
            .flat_map(|found| &found.missed)
            .map(|missed| format!("an attempt: {missed}"))
            .collect();
        for (figure, p95) in self.error_p95s_where_allowed() {
            if p95.is_none_or(|p95| p95.is_nan() || p95 > MAX_ERROR) {
                failures.push(format!(
                    "|error| of {figure} where the meter allows 1 %: p95 is {}",
                    p95.map_or("unknown".to_owned(), percent)
                ));
            }
        }
        let within = self.share_within_stated();
        if within.is_nan() || within < MIN_COVERAGE - slack(self.found.len()) {
            failures.push(format!(
                "|error| within the stated U in {} of attempts",
                percent(within)
            ));
        }
        let (of_meters, meters) = self.of_meters();
        let (within, slack) = (within_stated(&of_meters), slack(meters));
        if !(MIN_COVERAGE - 0.01 - slack..=MAX_COVERAGE + slack).contains(&within) {
            failures.push(format!(
                "|error| within the stated U in {} of attempts where U is the meter's accuracy",
                percent(within)
            ));
        }
        let (stated, _) = self.by_statement();
        for (whose, held) in [
            ("trials'", held(&stated, |run| run.holds_trials)),
            ("candidate's", held(&stated, |run| run.holds_candidate)),
        ] {
            // If only the trials' spread counts, the expectation of this share is 95 %.
            let slack = self::slack(stated.len());
            if held.is_nan() || held < MIN_COVERAGE - slack {
                let share = percent(held);
                failures.push(format!(
                    "the {whose} energy within the stated U in {share} of runs"
                ));
            }
        }
        failures
    }

    /// The number of void attempts per reason.
    fn voids_by_reason(&self) -> String {
        let mut voids: BTreeMap<&str, usize> = BTreeMap::new();
        for reason in self.found.iter().flat_map(|found| &found.voids) {
            *voids.entry(reason).or_default() += 1;
        }
        let voids: Vec<_> = voids
            .iter()
            .map(|(reason, n)| format!("{n} {reason}"))
            .collect();
        voids.join(", ")
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
            let is_invalid = |found: &&&Found| found.verdict == Verdict::Invalid;
            let void = cases.iter().filter(is_invalid).count().to_string();
            table.row(&cells(name, cases.len(), void, &self.attempts(chosen)));
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
        let (of_meters, meters) = self.of_meters();
        table.row(&cells(
            "U is the meter's accuracy",
            meters,
            "–".to_owned(),
            &of_meters,
        ));

        let mut text = table.text();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n  void attempts: {}\n", self.voids_by_reason());
        let mut table = Table::new([
            "runs of 5 blocks",
            "runs",
            "|error| p50",
            "p95",
            "U p50",
            "trials within U",
            "candidate within U",
        ]);
        let (stated, silent) = self.by_statement();
        for (name, runs) in [
            ("meter states its accuracy", stated),
            ("it does not", silent),
        ] {
            let of = |value: fn(&RunError) -> f64, q: f64| {
                let values: Vec<f64> = runs.iter().map(|run| value(run).abs()).collect();
                quantile(&values, q).map_or("–".to_owned(), percent)
            };
            table.row(&[
                name.to_owned(),
                runs.len().to_string(),
                of(|run| run.of_trials, 0.5),
                of(|run| run.of_trials, 0.95),
                of(|run| run.stated, 0.5),
                percent(held(&runs, |run| run.holds_trials)),
                percent(held(&runs, |run| run.holds_candidate)),
            ]);
        }
        text.push_str(&table.text());
        text
    }
}

/// A row of the table of attempts.
fn cells(name: &str, cases: usize, void: String, attempts: &[AttemptError]) -> [String; 10] {
    let errors = gross(attempts);
    let at = |errors: &[f64], q: f64| quantile(errors, q).map_or("–".to_owned(), percent);
    let stated: Vec<f64> = attempts.iter().map(|a| a.stated).collect();
    let within = if attempts.is_empty() {
        "–".to_owned()
    } else {
        percent(within_stated(attempts))
    };
    [
        name.to_owned(),
        cases.to_string(),
        void,
        attempts.len().to_string(),
        at(&errors, 0.5),
        at(&errors, 0.95),
        at(&errors, 1.0),
        at(&net(attempts), 0.95),
        at(&stated, 0.5),
        within,
    ]
}

/// Tolerance for chance with this number of independent draws: four standard deviations of a share of 95 %.
fn slack(draws: usize) -> f64 {
    4.0 * (0.05 * 0.95 / draws.max(1) as f64).sqrt()
}

fn held(runs: &[RunError], holds: impl Fn(&RunError) -> bool) -> f64 {
    runs.iter().filter(|run| holds(run)).count() as f64 / runs.len() as f64
}

fn gross(attempts: &[AttemptError]) -> Vec<f64> {
    attempts.iter().map(|attempt| attempt.gross.abs()).collect()
}

fn net(attempts: &[AttemptError]) -> Vec<f64> {
    let net = attempts.iter().filter_map(|attempt| attempt.net);
    net.map(f64::abs).collect()
}

/// The share of attempts with an error within U. It tolerates 10⁻⁹ for rounding.
fn within_stated(attempts: &[AttemptError]) -> f64 {
    let is_within = |attempt: &&AttemptError| attempt.gross.abs() <= attempt.stated + 1e-9;
    attempts.iter().filter(is_within).count() as f64 / attempts.len() as f64
}

/// A quantile: at least this share of the values is at or below it. `None` without values.
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
