//! The columns of `kubectl get fb` that show figures.

use std::collections::BTreeSet;

use crate::{
    api::{CandidateResult, Columns, Comparison},
    load::units::Units,
    plan::{
        report::cells::{self, Interval},
        verdict::{Figures, deciding_figure},
    },
    text,
};

/// The cells of these figures. All figures of a row belong to one candidate at one point.
pub(super) fn of_figures(figures: &Figures, units: &Units) -> Columns {
    let table = Table::of(figures);
    let ratio = table.ratio();
    let mut columns = Columns {
        winner: table.winner(),
        ratio: ratio.map(|comparison| cells::ratio(&comparison.ratio)),
        power: figures.provenance.map(|it| it.to_string().to_lowercase()),
        ..Columns::default()
    };
    let Some(result) = table.result(ratio) else {
        return columns;
    };
    // The result chose one point of several, so its interval would promise too much.
    let interval = if table.has_several_points() {
        Interval::Hidden
    } else {
        Interval::Shown
    };
    columns.energy = figures.deciding.and_then(|kind| {
        let joules = deciding_figure(result, kind)?;
        cells::energy(&joules, kind, figures.provenance?, units, interval)
    });
    let has_energy = columns.energy.is_some();
    columns.rate = (result.requests_per_second).map(|it| cells::rate(&it, units, has_energy));
    columns.latency = (result.milliseconds_per_request).map(|it| cells::time(&it, units));
    columns.cpu = (result.cpu_milliseconds_per_request).map(|it| cells::cpu(&it, units));
    columns.candidate = Some(result.candidate.clone());
    columns.point = table.has_several_points().then(|| result.point.clone());
    columns
}

/// What a row needs of the figures at the judged points.
struct Table<'a> {
    figures: &'a Figures,
    results: &'a [CandidateResult],
    points: BTreeSet<&'a str>,
    comparisons: Vec<&'a Comparison>,
}

impl<'a> Table<'a> {
    fn of(figures: &'a Figures) -> Self {
        let results = figures.judged();
        let points: BTreeSet<&str> = results.iter().map(|it| it.point.as_str()).collect();
        let comparisons = figures.comparisons.iter();
        Self {
            figures,
            results,
            comparisons: comparisons
                .filter(|it| points.contains(it.point.as_str()))
                .collect(),
            points,
        }
    }

    fn has_several_points(&self) -> bool {
        self.points.len() > 1
    }

    /// The candidates that no other candidate is shown to beat: at each point the candidate of the least figure, and
    /// those that are not separated from it, nearest first.
    fn leaders(&self) -> Vec<&'a str> {
        let mut leaders: Vec<&str> = Vec::new();
        let mut add = |name: &'a str| {
            if !leaders.contains(&name) {
                leaders.push(name);
            }
        };
        let mut by_nearness = self.comparisons.clone();
        by_nearness.sort_by(|a, b| b.ratio.value.total_cmp(&a.ratio.value));
        for comparison in &by_nearness {
            add(&comparison.candidate);
        }
        for comparison in by_nearness {
            if !(comparison.separated && comparison.ratio.value < 1.0) {
                add(&comparison.against);
            }
        }
        leaders
    }

    fn winner(&self) -> Option<String> {
        if self.comparisons.is_empty() {
            return None;
        }
        match &self.figures.winner {
            Some(winner) => Some(winner.clone()),
            None if self.figures.tie => Some("tie".into()),
            None if self.figures.depends_on_load => Some("depends on load".into()),
            None if self.figures.depends_on_board => Some(text::DEPENDS_ON_BOARD.into()),
            None => cells::names(&self.leaders()),
        }
    }

    /// The comparison of the leading candidate with the next best one that the winner's cell does not name. If the cell
    /// names all candidates, the comparison with the next of them.
    fn ratio(&self) -> Option<&'a Comparison> {
        let figures = self.figures;
        let has_subject = figures.winner.is_some() || figures.tie || figures.depends_on_board;
        if has_subject {
            return nearest(self.comparisons.iter().copied());
        }
        if self.has_several_points() {
            return None;
        }
        let leaders = self.leaders();
        let others = self.comparisons.iter().copied();
        nearest(others.filter(|it| !leaders.contains(&it.against.as_str())))
            .or_else(|| nearest(self.comparisons.iter().copied()))
    }

    /// The result of the candidate that the verdict's message names, else of the leading candidate.
    fn result(&self, ratio: Option<&Comparison>) -> Option<&'a CandidateResult> {
        let about = self.figures.about.as_ref();
        let names: BTreeSet<&str> = self
            .results
            .iter()
            .map(|it| it.candidate.as_str())
            .collect();
        let only = names.first().copied().filter(|_| names.len() == 1);
        let candidate = about
            .map(|it| it.candidate.as_str())
            .or(ratio.map(|it| it.candidate.as_str()))
            .or(only)?;
        let point = about.and_then(|it| it.point.as_deref()).or_else(|| {
            let of_ratio = ratio.filter(|it| it.candidate == candidate);
            of_ratio.map(|it| it.point.as_str())
        });
        let mut own = self.results.iter().filter(|it| it.candidate == candidate);
        match point {
            Some(point) => own.find(|it| it.point == point),
            None => own.min_by(|a, b| self.joules(a).total_cmp(&self.joules(b))),
        }
    }

    /// The deciding figure; a missing one is the largest.
    fn joules(&self, result: &CandidateResult) -> f64 {
        let deciding = self.figures.deciding;
        deciding
            .and_then(|kind| deciding_figure(result, kind))
            .map_or(f64::INFINITY, |it| it.value)
    }
}

/// The comparison in which two candidates are closest.
fn nearest<'a>(comparisons: impl Iterator<Item = &'a Comparison>) -> Option<&'a Comparison> {
    comparisons.max_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value))
}
