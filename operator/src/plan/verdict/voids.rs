//! Void attempts: what is measured again may choose what is measured.

use frugality_measure::statistics::proportion::fisher;

use crate::{
    plan::{ledger::Ledger, settings::Settings},
    text,
};

/// The largest share of a candidate's attempts that may be void without a note. A judgement: a check that voids a
/// tenth of the attempts and depends on the outcome moves the mean by up to a fifth of the standard deviation.
const LARGEST_SHARE: f64 = 0.1;
/// Chance that void attempts are called different between candidates if they are not.
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

/// That many attempts are void, or more of one candidate than of the others. A suspension's void attempts are the
/// user's doing and do not count.
pub(super) fn note(settings: &Settings, ledger: &Ledger<'_>) -> Option<String> {
    let entrants = settings.entrants();
    let attempts: Vec<Attempts<'_>> = entrants
        .iter()
        .map(|name| {
            let (void, measured) = ledger.void_and_measured(|spec| spec.candidate == *name);
            Attempts {
                name: settings.candidate_of(name),
                void,
                all: void + measured,
            }
        })
        .filter(|attempts| attempts.all > 0)
        .collect();
    let difference = differing(&attempts);
    let is_many = attempts.iter().any(|it| it.share() > LARGEST_SHARE);
    if difference.is_none() && !is_many {
        return None;
    }
    let shares: Vec<String> = attempts
        .iter()
        .map(|it| format!("{} {} of {}", it.name, it.void, it.all))
        .collect();
    let why = match difference {
        Some(p) => format!(
            "they differ between candidates (Fisher's exact test, p = {})",
            text::number(p)
        ),
        None => format!("more than {} % of a candidate's", 100.0 * LARGEST_SHARE),
    };
    Some(format!(
        "void attempts: {}: {why}. If the cause depends on the result, the figures are biased: look at the reasons (kubectl get fbt)",
        shares.join(", ")
    ))
}

/// The least chance, if it is small enough: each entrant against all others, the error divided among the tests
/// (Bonferroni). Of two entrants both tests are the same one.
fn differing(attempts: &[Attempts<'_>]) -> Option<f64> {
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
        .map(|p| (p * tests as f64).min(1.0))
        .filter(|p| *p < LEVEL)
}
