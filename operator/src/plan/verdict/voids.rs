//! Void attempts. If the cause of a void attempt depends on its result, the repetition selects results.

use frugality_measure::statistics::proportion::fisher;

use crate::{
    plan::{ledger::Ledger, settings::Settings},
    text,
};

/// The largest share of a candidate's attempts that may be void without a note. A choice: a check that voids a tenth of the
/// attempts and depends on the outcome moves the mean by up to a fifth of the standard deviation.
const LARGEST_SHARE: f64 = 0.1;
/// The least number of void attempts for a note about one of several points. One is chance, and there are many points.
const LEAST_AT_A_POINT: u64 = 2;
/// Chance of a false report that the shares of void attempts differ.
const LEVEL: f64 = 0.05;

/// An entrant's void attempts and all of its attempts.
struct Attempts<'a> {
    name: &'a str,
    void: u64,
    all: u64,
}

impl Attempts<'_> {
    fn share(&self) -> f64 {
        self.void as f64 / self.all as f64
    }
}

/// A note if many attempts are void, or if the shares differ between candidates, over all points or at one of them. A cause
/// that depends on the result may act at one point only. Void attempts by a suspension are the user's choice and do not count.
pub(super) fn note(settings: &Settings, ledger: &Ledger<'_>) -> Option<String> {
    let over_all = attempts(settings, ledger, None);
    let points = settings.points.iter().map(|point| point.name.as_str());
    let points: Vec<&str> = points.filter(|_| settings.points.len() > 1).collect();
    let tests = 1 + points.len();
    note_about(&over_all, "", 1, tests).or_else(|| {
        points.into_iter().find_map(|point| {
            let at_point = attempts(settings, ledger, Some(point));
            note_about(&at_point, &format!(" at {point}"), LEAST_AT_A_POINT, tests)
        })
    })
}

/// Each entrant's attempts at a point; without a point, at every point.
fn attempts<'a>(
    settings: &'a Settings,
    ledger: &Ledger<'_>,
    point: Option<&str>,
) -> Vec<Attempts<'a>> {
    let entrants = settings.entrants();
    let of_entrant = |name: &&'a str| {
        let (void, measured) = ledger.void_and_measured(|spec| {
            spec.candidate == **name && point.is_none_or(|point| spec.point == point)
        });
        Attempts {
            name: settings.candidate_of(name),
            void,
            all: void + measured,
        }
    };
    let attempts = entrants.iter().map(of_entrant);
    attempts.filter(|attempts| attempts.all > 0).collect()
}

/// The note about these attempts. `tests` is the number of groups of attempts that are looked at.
fn note_about(attempts: &[Attempts<'_>], place: &str, least: u64, tests: usize) -> Option<String> {
    let difference = differing(attempts, tests);
    let is_many = attempts
        .iter()
        .any(|it| it.void >= least && it.share() > LARGEST_SHARE);
    if difference.is_none() && !is_many {
        return None;
    }
    let shares: Vec<String> = attempts
        .iter()
        .map(|it| format!("{} {} of {}", it.name, it.void, it.all))
        .collect();
    let why = match difference {
        Some(p) => format!(
            "the shares differ between candidates (Fisher's exact test, p = {})",
            text::number(p)
        ),
        None => format!(
            "more than {} % of a candidate's attempts",
            100.0 * LARGEST_SHARE
        ),
    };
    Some(format!(
        "Void attempts{place}: {}; {why}. If the cause depends on the result, the figures are biased. kubectl get fbt shows the reasons.",
        shares.join(", ")
    ))
}

/// The smallest p-value, if it is below the level. Each entrant is tested against all others, in each group of attempts. The
/// error is divided among the tests (Bonferroni). With two entrants both tests of a group are the same.
fn differing(attempts: &[Attempts<'_>], groups: usize) -> Option<f64> {
    let all: u64 = attempts.iter().map(|it| it.all).sum();
    let void: u64 = attempts.iter().map(|it| it.void).sum();
    let tests = if attempts.len() > 2 {
        attempts.len()
    } else {
        1
    };
    attempts
        .iter()
        .filter_map(|it| fisher(it.void, it.all, void - it.void, all - it.all))
        .min_by(f64::total_cmp)
        .map(|p| (p * (tests * groups) as f64).min(1.0))
        .filter(|p| *p < LEVEL)
}
