//! The result at one point, and the conclusions from all points together.

use std::collections::BTreeSet;

use crate::{
    api::{BoardVerdict, CandidateResult, Comparison, NoiseFloor},
    plan::verdict::{evidence::Evidence, not_compared::NotCompared},
};

/// Most notes of a status.
const MAX_NOTES: usize = 20;

/// The result at one point.
pub(super) struct PointResult {
    pub(super) point: String,
    pub(super) results: Vec<CandidateResult>,
    /// The winner against each other candidate. Without a winner, the candidate of the least figure.
    pub(super) comparisons: Vec<Comparison>,
    pub(super) winner: Option<String>,
    /// The winner by intervals so strict that all points together have the error of one.
    pub(super) strict_winner: Option<String>,
    pub(super) tie: bool,
    /// Whether a candidate wins on some boards and not on others.
    pub(super) depends_on_board: bool,
    pub(super) noise_floor: Option<NoiseFloor>,
    pub(super) not_compared: Option<NotCompared>,
    pub(super) notes: Vec<String>,
}

impl PointResult {
    pub(super) fn of(evidence: &Evidence<'_>) -> Self {
        let candidates = evidence.settings.candidates.iter();
        let results: Vec<_> = candidates.map(|name| evidence.result(name)).collect();
        let noise_floor = evidence.noise_floor();
        let floor = noise_floor.as_ref();
        let comparisons = evidence.comparisons(floor);
        let tie = evidence.is_tie(&comparisons);
        let winner = evidence.winner(&comparisons).filter(|_| !tie);
        let strict_winner = evidence.strict_winner(floor).filter(|_| !tie);
        let reported = evidence.reported(&comparisons, winner.as_deref(), floor, &results);
        let of_reported = |c: &&Comparison| reported.iter().any(|it| it.candidate == c.candidate);
        let claims: Vec<&Comparison> = comparisons.iter().filter(of_reported).collect();
        let margin = evidence.margin_note(&reported, tie).into_iter();
        Self {
            point: evidence.point.name.clone(),
            notes: margin.chain(evidence.notes(&reported, floor)).collect(),
            not_compared: evidence.not_compared(),
            strict_winner: strict_winner.map(str::to_owned),
            depends_on_board: winner.is_none() && !tie && depend_on_board(&claims),
            results,
            comparisons: reported,
            winner,
            tie,
            noise_floor,
        }
    }

    fn outcome(&self) -> String {
        match &self.winner {
            Some(winner) => winner.clone(),
            None if self.tie => "a tie".into(),
            None if self.depends_on_board => "depends on the board".into(),
            None if self.comparisons.is_empty() => "not compared".into(),
            None if self.comparisons.iter().any(Comparison::is_within_margin) => {
                "a difference within energy.tieWithin".into()
            }
            None => "not separated".into(),
        }
    }
}

/// The candidate that wins at every point. The claim needs all of its parts, so no part is corrected (see
/// [`frugality_measure::statistics::multiplicity::holm`]).
pub(super) fn winner(results: &[PointResult]) -> Option<String> {
    let first = results.first()?.winner.as_ref()?;
    results
        .iter()
        .all(|result| result.winner.as_ref() == Some(first))
        .then(|| first.clone())
}

/// Whether all candidates are shown to be equal at every point.
pub(super) fn is_tie(results: &[PointResult]) -> bool {
    !results.is_empty() && results.iter().all(|result| result.tie)
}

/// The winner at each point, if the points differ, and whether the winner depends on the load.
pub(super) fn by_point(results: &[PointResult]) -> Option<String> {
    let outcomes: Vec<String> = results.iter().map(PointResult::outcome).collect();
    let first = outcomes.first()?;
    if results.iter().all(|it| it.results.len() < 2) || outcomes.iter().all(|o| o == first) {
        return None;
    }
    let points = results.iter().map(|result| result.point.as_str());
    let parts: Vec<String> = gathered(outcomes.iter().map(String::as_str).zip(points))
        .iter()
        .map(|(outcome, points)| format!("{outcome} at {}", points.join(", ")))
        .collect();
    let begin = if depends_on_load(results) {
        "The winner depends on the load"
    } else {
        "No candidate wins at every point"
    };
    Some(format!("{begin}: {}.", parts.join("; ")))
}

/// Each text once, with all of its points.
fn gathered<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut gathered: Vec<(&str, Vec<&str>)> = Vec::new();
    for (text, point) in texts {
        match gathered.iter_mut().find(|(other, _)| *other == text) {
            Some((_, points)) => points.push(point),
            None => gathered.push((text, vec![point])),
        }
    }
    gathered
}

/// Whether different candidates win at different points, by intervals so strict that all points together have the error of
/// one.
pub(super) fn depends_on_load(results: &[PointResult]) -> bool {
    let winners: BTreeSet<&String> = results
        .iter()
        .filter_map(|result| result.strict_winner.as_ref())
        .collect();
    winners.len() > 1
}

/// Whether one candidate would win on some boards: it wins all comparisons that do not depend on the board, and at least one
/// comparison depends on the board.
fn depend_on_board(comparisons: &[&Comparison]) -> bool {
    let depends = |c: &Comparison| c.board == Some(BoardVerdict::DependsOnBoard);
    let is_won = |c: &Comparison| c.ratio.bounds().1 < 1.0;
    comparisons.iter().any(|c| depends(c)) && comparisons.iter().all(|c| depends(c) || is_won(c))
}

/// Whether the board decides the winner: each point has a winner or depends on the board, and at least one point depends on
/// the board.
pub(super) fn depends_on_board(results: &[PointResult]) -> bool {
    results.iter().any(|it| it.depends_on_board)
        && results
            .iter()
            .all(|it| it.depends_on_board || it.winner.is_some())
}

/// The noise floor of the worst point. `None` if it is unknown at any point.
pub(super) fn noise_floor(results: &[PointResult]) -> Option<NoiseFloor> {
    let floors: Option<Vec<NoiseFloor>> = results
        .iter()
        .map(|result| result.noise_floor.clone())
        .collect();
    floors?
        .into_iter()
        .max_by(|a, b| a.share.total_cmp(&b.share))
}

/// The notes of all points, each once. A note that is not about all points names its points. A status has room for a few.
pub(super) fn notes(results: &[PointResult]) -> Vec<String> {
    let by_note = gathered(results.iter().flat_map(|result| {
        let notes = result.notes.iter();
        notes.map(|note| (note.as_str(), result.point.as_str()))
    }));
    let mut notes: Vec<String> = by_note
        .iter()
        .map(|(note, points)| {
            if points.len() == results.len() {
                (*note).to_owned()
            } else {
                format!("At {}: {note}", points.join(", "))
            }
        })
        .collect();
    // There may be one note each about the zone, the boundary, the winner at each point, omitted points and void attempts.
    // There may be one about different rates, pauses in blocks, pauses in rounds and other deciding joules.
    let room = MAX_NOTES - 10;
    if notes.len() > room {
        let left_out: BTreeSet<&str> = by_note[room..]
            .iter()
            .flat_map(|(_, p)| p.clone())
            .collect();
        let left_out: Vec<&str> = left_out.into_iter().collect();
        let count = notes.len() - room;
        notes.truncate(room);
        notes.push(format!(
            "{count} further notes, about {}, have no room in the status.",
            left_out.join(", ")
        ));
    }
    notes
}
