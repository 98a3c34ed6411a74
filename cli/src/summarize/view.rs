//! What all parts of a summary need to know about a status, and how they show a figure.

use frugality_operator::{
    api::{CandidateResult, Figure, FrugalityBenchmarkStatus},
    load::units::Units,
    text,
};

use crate::table::{Table, dash};

pub(crate) const MEBIBYTE: f64 = 1_048_576.0;

/// A row about a candidate at a point.
pub(crate) type Row<'a, T> = (&'a CandidateResult, T);

/// A status that has results.
pub(crate) struct View<'a> {
    pub(crate) status: &'a FrugalityBenchmarkStatus,
    pub(crate) results: &'a [CandidateResult],
    pub(crate) units: &'a Units,
    /// What joules and rates are per: a request, a scenario's cycle, a batch's execution, or a unit of the batch's work.
    pub(crate) unit: &'a str,
    /// What has a duration: a request, cycle or execution.
    pub(crate) whole: &'static str,
    /// The word for the figure that decides, such as `gross`.
    pub(crate) deciding: &'static str,
    pub(crate) has_several_points: bool,
}

impl<'a> View<'a> {
    pub(crate) fn of(status: &'a FrugalityBenchmarkStatus, units: &'a Units) -> Self {
        let results = &status.results;
        Self {
            status,
            results,
            units,
            unit: &units.one,
            whole: units.whole,
            deciding: status.deciding_figure.map_or("", |figure| figure.word()),
            has_several_points: results.iter().any(|it| it.point != results[0].point),
        }
    }

    /// A candidate, and its point if there are several points.
    pub(crate) fn name(&self, result: &CandidateResult) -> String {
        format!("{}{}", result.candidate, self.at(&result.point))
    }

    pub(crate) fn at(&self, point: &str) -> String {
        text::at(point, self.has_several_points)
    }

    /// A table whose first columns are the point, if there are several points, and the candidate.
    pub(crate) fn table<T>(
        &self,
        rows: impl IntoIterator<Item = Row<'a, T>>,
    ) -> Table<'a, Row<'a, T>> {
        let mut table = Table::of(rows);
        if self.has_several_points {
            table = table.text("POINT", |(result, _)| result.point.clone());
        }
        table.text("CANDIDATE", |(result, _)| result.candidate.clone())
    }

    /// One row per result.
    pub(crate) fn table_of_results(&self) -> Table<'a, Row<'a, ()>> {
        self.table(self.results.iter().map(|result| (result, ())))
    }

    /// Whether a result has this.
    pub(crate) fn any(&self, has: impl FnMut(&CandidateResult) -> bool) -> bool {
        self.results.iter().any(has)
    }
}

/// The reasons for absent figures, each once, with what lacks them: candidates, and their points if there are several.
pub(crate) fn withheld(
    status: &FrugalityBenchmarkStatus,
    has_several_points: bool,
) -> Vec<(&str, Vec<String>)> {
    let of_results = status.results.iter().flat_map(|result| {
        let name = format!(
            "{}{}",
            result.candidate,
            text::at(&result.point, has_several_points)
        );
        result.withheld.iter().map(move |it| (it, name.clone()))
    });
    let of_curves = status.sweep.iter().flat_map(|sweep| {
        let name = format!("the load curve of {}", sweep.candidate);
        let curves = sweep.load_curve.iter();
        curves.flat_map(move |it| {
            let name = name.clone();
            it.withheld.iter().map(move |why| (why, name.clone()))
        })
    });
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for (reason, name) in of_results.chain(of_curves) {
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    reasons
}

pub(crate) fn milli(figure: Option<Figure>) -> Option<Figure> {
    figure.map(|figure| figure.times(1000.0))
}

pub(crate) fn memory(bytes: Option<i64>) -> String {
    bytes.map_or_else(dash, |bytes| format!("{:.1} MiB", bytes as f64 / MEBIBYTE))
}

/// A figure in units of `part`, with its interval over the trials: `12.0 [10.0–14.0]`.
pub(crate) fn interval(figure: &Figure, part: f64) -> String {
    let [value, lower, upper] =
        [figure.value, figure.lower, figure.upper].map(|it| text::number(it / part));
    format!("{value} [{lower}–{upper}]")
}
