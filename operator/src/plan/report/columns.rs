//! The columns of `kubectl get fb` that show figures.

use std::collections::BTreeSet;

use crate::{
    api::{CandidateResult, Columns, Comparison, DecidingFigure},
    load::units::Units,
    plan::{
        report::cells::{self, IntervalDisplay},
        verdict::{Figures, deciding_figure},
    },
    text,
};

/// The cells of these figures. WINNER and RATIO are about the leading candidates; in a sweep, RATIO is at the point with the
/// closest ratio. All other figures belong to one candidate at one point. The first of them names that candidate. A row of
/// 120 characters has no room for one name twice. Therefore the winner's name is left out. In a sweep, the name of the
/// candidate that WINNER names first is left out too, and the first figure names the point.
pub(super) fn of_figures(figures: &Figures, units: &Units) -> Columns {
    let table = Table::of(figures);
    let ratio = table.ratio();
    let mut columns = Columns {
        winner: table.winner(),
        ratio: ratio.map(|comparison| cells::ratio(&comparison.ratio)),
        power: figures.provenance.map(|it| it.to_string().to_lowercase()),
        ..Columns::default()
    };
    let Some(shown) = table.shown(ratio) else {
        return columns;
    };
    let result = shown.result;
    let energy = table.energy(result, units);
    let has_energy = energy.is_some();
    columns.energy = energy.map(|cell| shown.least(cell));
    columns.rate = (result.requests_per_second).map(|it| cells::rate(&it, units, has_energy));
    columns.latency = (result.milliseconds_per_request).map(|it| cells::time(&it, units));
    columns.cpu = (result.cpu_milliseconds_per_request).map(|it| cells::cpu(&it, units));
    let figures = [&mut columns.energy, &mut columns.rate, &mut columns.latency];
    if let Some(first) = figures.into_iter().flatten().next() {
        *first = table.named(first, &shown);
    }
    columns.candidate = Some(result.candidate.clone());
    columns.point = table.has_several_points().then(|| result.point.clone());
    columns
}

/// The result that a row shows.
struct Shown<'a> {
    result: &'a CandidateResult,
    /// Whether the candidate's least energy chose the point.
    is_cheapest: bool,
    /// Whether WINNER names the candidate, alone or first.
    is_named: bool,
}

impl Shown<'_> {
    fn least(&self, cell: String) -> String {
        if self.is_cheapest {
            format!("least {cell}")
        } else {
            cell
        }
    }
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

    /// The candidates that no comparison shows to be beaten, at one point at least. Nearest first are the candidates of
    /// the least figure and those that are not separated from them. Then come candidates that were not compared.
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
        for comparison in by_nearness.iter().filter(|it| !it.is_won()) {
            add(&comparison.against);
        }
        for result in self.results {
            let is_about =
                |it: &&&Comparison| it.point == result.point && it.against == result.candidate;
            if !self
                .comparisons
                .iter()
                .filter(is_about)
                .any(|it| it.is_won())
            {
                add(&result.candidate);
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

    fn candidates(&self) -> BTreeSet<&'a str> {
        let results = self.results.iter();
        results.map(|it| it.candidate.as_str()).collect()
    }

    /// The candidate that WINNER names first if there is no winner. `None` if WINNER names no candidate.
    fn leader(&self) -> Option<&'a str> {
        let figures = self.figures;
        let is_a_phrase = figures.tie || figures.depends_on_load || figures.depends_on_board;
        let is_a_list = figures.winner.is_none() && !is_a_phrase && !self.comparisons.is_empty();
        self.leaders().first().copied().filter(|_| is_a_list)
    }

    /// The result of the candidate that the verdict's message is about, else of the leading candidate. The point is the
    /// message's point, else the point of the candidate's ratio, else the candidate's cheapest point.
    fn shown(&self, ratio: Option<&Comparison>) -> Option<Shown<'a>> {
        let about = self.figures.about.as_ref();
        let names = self.candidates();
        let only = names.first().copied().filter(|_| names.len() == 1);
        let leader = self.leader();
        let candidate = about
            .map(|it| it.candidate.as_str())
            .or(ratio.map(|it| it.candidate.as_str()))
            .or(only)
            .or(leader)?;
        let point = about.and_then(|it| it.point.as_deref()).or_else(|| {
            let of_ratio = ratio.filter(|it| it.candidate == candidate);
            of_ratio.map(|it| it.point.as_str())
        });
        let mut own = self.results.iter().filter(|it| it.candidate == candidate);
        let result = match point {
            Some(point) => own.find(|it| it.point == point),
            None => own.min_by(|a, b| self.joules(a).total_cmp(&self.joules(b))),
        };
        let result = result?;
        let is_cheapest = point.is_none() && self.has_several_points();
        Some(Shown {
            result,
            is_cheapest,
            is_named: self.is_winner(result) || (is_cheapest && leader == Some(candidate)),
        })
    }

    fn energy(&self, result: &CandidateResult, units: &Units) -> Option<String> {
        let kind = self.figures.deciding?;
        let joules = deciding_figure(result, kind)?;
        let provenance = self.figures.provenance?;
        // A row that names its candidate has no room for an interval. Of a point that the result chose among several, the
        // interval would promise too much.
        let interval = if self.has_several_points() || !self.is_winner(result) {
            IntervalDisplay::Hidden
        } else {
            IntervalDisplay::Shown
        };
        match kind {
            // A row that names its point has no room for the usual kind of joules.
            DecidingFigure::Gross if self.has_several_points() => {
                cells::amount_of_joules(&joules, provenance, units, interval)
            }
            kind => cells::energy(&joules, kind, provenance, units, interval),
        }
    }

    /// Whether a candidate is the winner or the only one.
    fn is_winner(&self, result: &CandidateResult) -> bool {
        self.candidates().len() == 1 || self.figures.winner.as_ref() == Some(&result.candidate)
    }

    /// The first figure of a row, with the candidate and the point that it belongs to: `python: 1.13 mJ @c16`.
    fn named(&self, cell: &str, shown: &Shown<'_>) -> String {
        let result = shown.result;
        let name = if shown.is_named {
            String::new()
        } else {
            format!("{}: ", result.candidate)
        };
        let at = if self.has_several_points() {
            format!(" @{}", self.brief(&result.point))
        } else {
            String::new()
        };
        format!("{name}{cell}{at}")
    }

    /// A point without the parts that all points share: `c16` of `c16-max`, if all points end in `max`.
    fn brief(&self, point: &str) -> String {
        let others: Vec<Vec<&str>> = self.points.iter().map(|it| parts(it)).collect();
        let own = parts(point);
        if others.iter().any(|other| other.len() != own.len()) {
            return point.to_owned();
        }
        let differs = |(index, part): &(usize, &&str)| others.iter().any(|it| it[*index] != **part);
        let own = own.iter().enumerate().filter(differs);
        own.map(|(_, part)| *part).collect::<Vec<_>>().join("-")
    }

    /// The deciding figure; a missing one is the largest.
    fn joules(&self, result: &CandidateResult) -> f64 {
        let deciding = self.figures.deciding;
        deciding
            .and_then(|kind| deciding_figure(result, kind))
            .map_or(f64::INFINITY, |it| it.value)
    }
}

/// The parts of a point's name, such as `c16`, `max` and `x3`.
fn parts(point: &str) -> Vec<&str> {
    point.split('-').collect()
}

/// The comparison in which two candidates are closest.
fn nearest<'a>(comparisons: impl Iterator<Item = &'a Comparison>) -> Option<&'a Comparison> {
    comparisons.max_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value))
}
