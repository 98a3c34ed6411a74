//! Limits against figures. The bounds of the interval decide, never its middle.
//!
//! "All budgets met" needs every claim and therefore no correction. One exceeded budget is enough for a Fail. Therefore the
//! required confidence rises with the number of limits (Holm).

mod judged;
mod remarks;
mod words;

use frugality_measure::statistics::multiplicity::holm;

pub(super) use self::remarks::{MET_WITHOUT_METER, UNKNOWN_METER, UNKNOWN_MODEL};

use crate::{
    api::{BudgetOutcome, BudgetResult},
    plan::{
        settings::Quantity,
        verdict::{
            budgets::judged::{Judged, is_of_all_points},
            evidence::Evidence,
            judgement::BudgetText,
            point_result::PointResult,
        },
    },
};

/// The result of every limit at the point that decides it.
pub(super) fn budgets(
    points: &[Evidence<'_>],
    point_results: &[PointResult],
) -> Vec<(BudgetResult, BudgetText)> {
    let Some(settings) = points.first().map(|evidence| evidence.settings) else {
        return Vec::new();
    };
    // Limit by limit, and for each limit point by point.
    let judged: Vec<Judged<'_>> = settings
        .limits
        .iter()
        .flat_map(|limit| {
            let is_of_all = is_of_all_points(limit);
            let judges = |evidence: &Evidence<'_>| {
                // A load level has less than the highest rate on purpose.
                evidence.point.level.is_none() || limit.quantity != Quantity::RequestsPerSecond
            };
            let of_limit = points.iter().zip(point_results);
            let of_limit = of_limit.filter(|(evidence, _)| is_of_all || judges(evidence));
            let most = if is_of_all { 1 } else { points.len() };
            let of_limit: Vec<_> = of_limit.take(most).collect();
            let count = of_limit.len();
            of_limit.into_iter().map(move |(evidence, of_point)| {
                Judged::of(
                    points,
                    evidence,
                    limit,
                    of_point.noise_floor.as_ref(),
                    count,
                )
            })
        })
        .collect();
    // Half of an interval's error is at each end. Each limit's share of the error is spread over the looks (Y. Ye, A. Li,
    // L. Liu and B. Yao, Statistics in Medicine 32 (2013), 1112–1124).
    let exceeded = holm(
        judged.len(),
        settings.claim_error() / 2.0,
        |share| settings.level_of_looks(2.0 * share),
        |index, level| level.is_some_and(|level| judged[index].is_broken(level)),
    );
    let results: Vec<_> = judged
        .iter()
        .zip(exceeded)
        .map(|(limit, is_exceeded)| (limit, limit.result(is_exceeded)))
        .collect();
    results
        .chunk_by(|(one, _), (other, _)| std::ptr::eq(one.limit, other.limit))
        .filter_map(decisive)
        .collect()
}

/// The result that decides a limit for all points: the worst outcome. If several points have it, the figure that is
/// nearest to the wrong side of the limit.
fn decisive(
    of_limit: &[(&Judged<'_>, (BudgetResult, BudgetText))],
) -> Option<(BudgetResult, BudgetText)> {
    let room = |judged: &Judged<'_>, result: &BudgetResult| {
        let figure = result.figure.as_ref();
        figure.map_or(0.0, |figure| judged.room(figure))
    };
    let worst = of_limit.iter().min_by(|(a, (one, _)), (b, (other, _))| {
        let by_outcome = severity(other.outcome).cmp(&severity(one.outcome));
        by_outcome.then(room(a, one).total_cmp(&room(b, other)))
    });
    worst.map(|(_, result)| result.clone())
}

/// Order in which the outcomes of several points decide: the largest wins.
fn severity(outcome: BudgetOutcome) -> u8 {
    match outcome {
        BudgetOutcome::Met => 0,
        BudgetOutcome::Undecided => 1,
        BudgetOutcome::BelowNoiseFloor => 2,
        BudgetOutcome::Withheld => 3,
        BudgetOutcome::Exceeded => 4,
    }
}
