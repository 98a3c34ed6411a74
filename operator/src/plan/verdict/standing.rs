//! How the candidates stand at one point, and what follows from all points together.

use std::collections::BTreeSet;

use crate::{
    api::{BoardVerdict, CandidateResult, Comparison, NoiseFloor},
    plan::verdict::{comparisons::told, evidence::Evidence, not_compared::NotCompared},
    text,
};

/// The most notes that a status tells.
const MAX_NOTES: usize = 16;

/// What was found at one point.
pub(super) struct Standing {
    pub(super) point: String,
    pub(super) results: Vec<CandidateResult>,
    /// The winner, or else the candidate of the least figure, against each other one.
    pub(super) comparisons: Vec<Comparison>,
    pub(super) winner: Option<String>,
    /// Who wins even if every point is asked.
    pub(super) strict_winner: Option<String>,
    pub(super) tie: bool,
    /// Whether a candidate wins on some boards and on others not.
    pub(super) depends_on_board: bool,
    pub(super) noise_floor: Option<NoiseFloor>,
    pub(super) not_compared: Option<NotCompared>,
    pub(super) notes: Vec<String>,
}

impl Standing {
    pub(super) fn of(evidence: &Evidence<'_>) -> Self {
        let candidates = evidence.settings.candidates.iter();
        let results: Vec<_> = candidates.map(|name| evidence.result(name)).collect();
        let noise_floor = evidence.noise_floor();
        let floor = noise_floor.as_ref();
        let comparisons = evidence.comparisons(floor);
        let tie = evidence.is_tie(&comparisons);
        let winner = evidence.winner(&comparisons).filter(|_| !tie);
        let strict_winner = evidence.strict_winner(floor).filter(|_| !tie);
        let comparisons = told(comparisons, winner.as_deref(), evidence.deciding, &results);
        Self {
            point: evidence.point.name.clone(),
            notes: evidence.notes(&comparisons, floor),
            not_compared: evidence.not_compared(),
            strict_winner: strict_winner.map(str::to_owned),
            depends_on_board: winner.is_none() && !tie && depend_on_board(&comparisons),
            results,
            comparisons,
            winner,
            tie,
            noise_floor,
        }
    }

    fn outcome(&self) -> String {
        match &self.winner {
            Some(winner) => winner.clone(),
            None if self.tie => "a tie".into(),
            None if self.depends_on_board => text::DEPENDS_ON_BOARD.into(),
            None if self.comparisons.is_empty() => "not compared".into(),
            None => "not separated".into(),
        }
    }
}

/// The candidate that wins at every point: a claim that needs all of its parts, so that none is corrected
/// for (see [`frugality_measure::statistics::multiplicity::holm`]).
pub(super) fn winner(standings: &[Standing]) -> Option<String> {
    let first = standings.first()?.winner.as_ref()?;
    standings
        .iter()
        .all(|standing| standing.winner.as_ref() == Some(first))
        .then(|| first.clone())
}

/// Whether all candidates are shown to be equal at every point.
pub(super) fn is_tie(standings: &[Standing]) -> bool {
    !standings.is_empty() && standings.iter().all(|standing| standing.tie)
}

/// Who wins where, if that is not the same at all points; and whether two different ones do even if every
/// point is asked.
pub(super) fn by_point(standings: &[Standing]) -> Option<String> {
    let outcomes: Vec<String> = standings.iter().map(Standing::outcome).collect();
    let first = outcomes.first()?;
    if standings.iter().all(|s| s.results.len() < 2) || outcomes.iter().all(|o| o == first) {
        return None;
    }
    let points = standings.iter().map(|standing| standing.point.as_str());
    let parts: Vec<String> = gathered(outcomes.iter().map(String::as_str).zip(points))
        .iter()
        .map(|(outcome, points)| format!("{outcome} at {}", points.join(", ")))
        .collect();
    let begin = if depends_on_load(standings) {
        "the winner depends on the load"
    } else {
        "no winner at every point"
    };
    Some(format!("{begin}: {}", parts.join("; ")))
}

/// What is said of points, each once and with all that it is said of.
fn gathered<'a>(said: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut gathered: Vec<(&str, Vec<&str>)> = Vec::new();
    for (text, point) in said {
        match gathered.iter_mut().find(|(other, _)| *other == text) {
            Some((_, points)) => points.push(point),
            None => gathered.push((text, vec![point])),
        }
    }
    gathered
}

/// Whether different candidates win at different points, shown so strictly that all points together are
/// wrong no oftener than one.
pub(super) fn depends_on_load(standings: &[Standing]) -> bool {
    let winners: BTreeSet<&String> = standings
        .iter()
        .filter_map(|standing| standing.strict_winner.as_ref())
        .collect();
    winners.len() > 1
}

/// Whether one candidate's comparisons would make it a winner on some boards: all are won but for those that depend on the
/// board, and one at least does.
fn depend_on_board(comparisons: &[Comparison]) -> bool {
    let depends = |c: &Comparison| c.board == Some(BoardVerdict::DependsOnBoard);
    let is_won = |c: &Comparison| c.ratio.bounds().1 < 1.0;
    comparisons.iter().any(depends) && comparisons.iter().all(|c| depends(c) || is_won(c))
}

/// Whether the board decides who wins at every point: at each there is a winner or it depends on the board, and at one at
/// least it does.
pub(super) fn depends_on_board(standings: &[Standing]) -> bool {
    standings.iter().any(|s| s.depends_on_board)
        && standings
            .iter()
            .all(|s| s.depends_on_board || s.winner.is_some())
}

/// The noise floor of the worst point; unknown where it is at any.
pub(super) fn noise_floor(standings: &[Standing]) -> Option<NoiseFloor> {
    let floors: Option<Vec<NoiseFloor>> = standings
        .iter()
        .map(|standing| standing.noise_floor.clone())
        .collect();
    floors?
        .into_iter()
        .max_by(|a, b| a.share.total_cmp(&b.share))
}

/// The notes of all points, each once and with its points, unless it is of all. A status has room for a few.
pub(super) fn notes(standings: &[Standing]) -> Vec<String> {
    let told = gathered(standings.iter().flat_map(|standing| {
        let notes = standing.notes.iter();
        notes.map(|note| (note.as_str(), standing.point.as_str()))
    }));
    let mut notes: Vec<String> = told
        .iter()
        .map(|(note, points)| {
            if points.len() == standings.len() {
                (*note).to_owned()
            } else {
                format!("at {}: {note}", points.join(", "))
            }
        })
        .collect();
    // Next to these there may be one of who wins where, of the points left out, of void attempts, and of suspensions.
    let room = MAX_NOTES - 5;
    if notes.len() > room {
        let left_out: BTreeSet<&str> = told[room..].iter().flat_map(|(_, p)| p.clone()).collect();
        let left_out: Vec<&str> = left_out.into_iter().collect();
        let count = notes.len() - room;
        notes.truncate(room);
        notes.push(format!(
            "{count} further notes, on {}, have no room here",
            left_out.join(", ")
        ));
    }
    notes
}
