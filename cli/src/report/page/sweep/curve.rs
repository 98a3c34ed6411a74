//! Power over the rate: what each candidate costs at part load.

use frugality_operator::{
    api::{FrugalityTrial, LoadCurveResult},
    text,
};
use maud::{Markup, html};

use super::{BOTTOM, LEFT, RIGHT, TOP, grid, upright_grid};
use crate::{
    report::{
        chart::{Align, Canvas, Chart, ChartError, SMALL, axis::Axis, ink::Ink},
        page::{
            parts::{self, absent, chart},
            view::PageView,
        },
    },
    table::Table,
};

/// A trial at a load level.
struct AtLevel<'a> {
    trial: &'a FrugalityTrial,
    requests_per_second: f64,
    watts: f64,
}

/// The trials of a candidate at all levels, with the status's figures.
struct Curve<'a> {
    candidate: &'a str,
    figures: &'a LoadCurveResult,
    trials: Vec<AtLevel<'a>>,
    blocks: usize,
}

/// Power over the rate, with the regression's line. Empty without load levels.
pub(super) fn power_over_rate(view: &PageView<'_>) -> Result<Markup, ChartError> {
    let sweep = view.status.sweep.iter();
    let of_status: Vec<_> = sweep
        .filter_map(|it| Some((it.candidate.as_str(), it.load_curve.as_ref()?)))
        .collect();
    if of_status.is_empty() {
        return Ok(html! {});
    }
    let mut curves = Vec::new();
    let mut left_out = Vec::new();
    for (candidate, figures) in of_status {
        match Curve::of(view, candidate, figures) {
            Ok(curve) => curves.push(curve),
            Err(why) => left_out.push(format!("No power over the rate of {candidate}: {why}.")),
        }
    }
    let left_out = html! { @for text in &left_out { (absent(text)) } };
    if curves.is_empty() {
        return Ok(left_out);
    }
    let unit = view.unit();
    let title = format!(
        "Power of the node, W{}, over {unit}s/s",
        view.provenance.mark()
    );
    let all = || curves.iter().flat_map(|it| &it.trials);
    let most = |of: fn(&AtLevel<'_>) -> f64| all().map(of).fold(f64::MIN_POSITIVE, f64::max);
    let x = Axis::linear(
        0.0..most(|it| it.requests_per_second) * 1.05,
        (LEFT, RIGHT - 20),
    );
    let y = Axis::linear(0.0..most(|it| it.watts) * 1.1, (BOTTOM, TOP));
    let described: Vec<_> = curves.iter().map(|it| it.described(unit)).collect();
    let drawing = Chart {
        id: "curve",
        title: title.clone(),
        description: described.join(" "),
        height: BOTTOM + 62,
    }
    .draw(0, |canvas| {
        parts::watermark(canvas, view.provenance, BOTTOM);
        grid(canvas, &y);
        upright_grid(canvas, &x);
        let names = curves
            .iter()
            .map(|it| (view.series(it.candidate), it.candidate));
        parts::key(canvas, LEFT, names);
        for curve in &curves {
            curve.draw(canvas, view.series(curve.candidate), (&x, &y));
        }
        let label = format!("{unit}s/s");
        canvas.text(&label, (RIGHT, BOTTOM + 48), Align::End, SMALL, Ink::Faint);
    })?;
    let rows = curves
        .iter()
        .flat_map(|curve| curve.trials.iter().map(move |it| (curve.candidate, it)));
    let numbers = Table::of(rows)
        .text("POINT", |(_, it)| it.trial.spec.point.clone())
        .text("CANDIDATE", |(candidate, _)| (*candidate).to_owned())
        .right("BLOCK", |(_, it)| it.trial.spec.block.to_string())
        .right(format!("{}S/S", unit.to_uppercase()), |(_, it)| {
            text::number(it.requests_per_second)
        })
        .right(
            format!("NODE W{}", view.provenance.mark().to_uppercase()),
            |(_, it)| text::number(it.watts),
        )
        .grid();
    let legend = html! {
        p class="small" {
            "Each mark is a trial, without its uncertainty."
            @if curves.iter().any(|it| it.figures.idle_watts.is_some()) {
                " A ringed mark at 0 is the idle power with the server up."
            }
            @if curves.iter().any(|it| it.line().is_some()) {
                " The slope of a line is the marginal energy: joules of one more " (unit) "."
            }
        }
        (left_out)
    };
    Ok(chart(&title, &drawing, &legend, numbers.as_ref()))
}

impl<'a> Curve<'a> {
    /// An error says why there is no curve. If the status withholds all figures, the trials' rates or powers can't be trusted
    /// either.
    fn of(
        view: &PageView<'a>,
        candidate: &'a str,
        figures: &'a LoadCurveResult,
    ) -> Result<Self, String> {
        let has_figures = figures.requests_per_joule.is_some()
            || figures.marginal_joules_per_request.is_some()
            || figures.idle_watts.is_some();
        if !has_figures {
            return Err(figures.withheld.join("; "));
        }
        let levels: Vec<Vec<AtLevel<'_>>> = view
            .status
            .results
            .iter()
            .filter(|it| it.candidate == candidate)
            .map(|result| view.counted(result).filter_map(AtLevel::of).collect())
            .collect();
        let blocks = levels.iter().map(Vec::len).max().unwrap_or(0);
        let trials: Vec<_> = levels.into_iter().flatten().collect();
        if trials.is_empty() {
            return Err("the ledger that was given has no trial at a load level".to_owned());
        }
        Ok(Self {
            candidate,
            figures,
            trials,
            blocks,
        })
    }

    fn described(&self, unit: &str) -> String {
        let shown = [
            ("idle", self.figures.idle_watts, "W"),
            (
                "slope",
                self.figures.marginal_joules_per_request,
                &format!("J/{unit}") as &str,
            ),
        ]
        .map(|(name, figure, unit)| match figure {
            Some(figure) => format!("{name} {} {unit}", text::figure(&figure)),
            None => format!("{name} absent"),
        });
        let trials = self.trials.len();
        format!("{}: {trials} trials, {}.", self.candidate, shown.join(", "))
    }

    /// Power over the rate, as a line with the status's slope. Absent if a figure that it needs is.
    fn line(&self) -> Option<impl Fn(f64) -> f64> {
        let slope = self.figures.marginal_joules_per_request?.value;
        let idle = self.figures.idle_watts?.value;
        let trials = self.trials.iter();
        let points = trials.map(|it| (it.requests_per_second, it.watts));
        let points = points.chain((0..self.blocks).map(|_| (0.0, idle)));
        line_through(&points.collect::<Vec<_>>(), slope)
    }

    fn draw(&self, canvas: &mut Canvas<'_>, series: usize, (x, y): (&Axis, &Axis)) {
        if let Some(line) = self.line() {
            let rates = self.trials.iter().map(|it| it.requests_per_second);
            let ends = [0.0, rates.fold(0.0, f64::max)];
            let ends = ends.map(|rate| (x.at(rate), y.at(line(rate))));
            canvas.line(ends, Ink::Line(series), 3);
        }
        for it in &self.trials {
            let at = (x.at(it.requests_per_second), y.at(it.watts));
            canvas.mark(at, series, 7);
        }
        if let Some(idle) = self.figures.idle_watts {
            let at = (x.at(0.0), y.at(idle.value));
            if !idle.is_repeatability_only() {
                let (lower, upper) = idle.bounds();
                canvas.upright(at.0, y.at(lower), y.at(upper), Ink::Series(series));
            }
            canvas.mark(at, series, 7);
            canvas.ring(at, 14, Ink::Axis);
        }
    }
}

/// The line of this slope through the mean of the points. A line of least squares goes through it.
fn line_through(points: &[(f64, f64)], slope: f64) -> Option<impl Fn(f64) -> f64 + use<>> {
    let count = points.len() as f64;
    let rate = points.iter().map(|it| it.0).sum::<f64>() / count;
    let watts = points.iter().map(|it| it.1).sum::<f64>() / count;
    (!points.is_empty()).then_some(move |at| watts + slope * (at - rate))
}

impl<'a> AtLevel<'a> {
    /// `None` for a trial at the highest rate, and without figures.
    fn of(trial: &'a FrugalityTrial) -> Option<Self> {
        trial.spec.rate_per_second?;
        let status = trial.status.as_ref()?;
        let seconds = status.window?.seconds();
        Some(Self {
            trial,
            requests_per_second: status.requests.as_ref()?.requests_per_second?,
            watts: status.energy.as_ref()?.node_joules / seconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::line_through;

    #[test]
    fn the_line_through_points_of_a_line_is_this_line() {
        let watts = |rate: f64| 2.0 + 0.005 * rate;
        let points = [400.0, 200.0, 40.0, 398.0, 199.0, 39.8, 0.0, 0.0];
        let points = points.map(|rate| (rate, watts(rate)));
        let line = line_through(&points, 0.005).unwrap();
        for rate in [0.0, 40.0, 400.0] {
            assert!((line(rate) - watts(rate)).abs() < 1e-12, "{rate}");
        }
        assert!(line_through(&[], 1.0).is_none());
    }
}
