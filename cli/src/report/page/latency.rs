//! The distribution of the latencies, from the ledger's histograms.

use frugality_measure::latency::{Bucket, merged_percentiles};
use frugality_operator::{
    api::{CandidateResult, FrugalityTrial},
    text,
};
use maud::{Markup, html};

use super::{
    parts::{self, absent, chart},
    view::PageView,
};
use crate::{
    report::chart::{Align, Canvas, Chart, ChartError, SMALL, WIDTH, axis::Axis, ink::Ink},
    table::Table,
};

const LEFT: i32 = 90;
const RIGHT: i32 = WIDTH - 20;
const TOP: i32 = 46;
const BOTTOM: i32 = 360;
const TICKS: usize = 12;
/// The status has four digits of each percentile.
const ROUNDING: f64 = 1e-3;
/// Most points of a sweep with a chart each. The tables have all of them.
const MOST_CHARTS: usize = 8;

/// The distribution of one candidate at one point.
struct Curve<'a> {
    result: &'a CandidateResult,
    /// Milliseconds, and the percentage of the requests that take no longer.
    points: Vec<(f64, f64)>,
}

pub(super) fn section(view: &PageView<'_>) -> Result<Markup, ChartError> {
    if view.status.results.is_empty() {
        return Ok(html! {});
    }
    let mut charts = Vec::new();
    let mut further = Vec::new();
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for point in &view.points {
        let results = view.status.results.iter().filter(|it| it.point == *point);
        let mut curves = Vec::new();
        for result in results {
            match curve(view, result) {
                Ok(curve) => curves.push(curve),
                Err(reason) => {
                    let name = format!("{}{}", result.candidate, view.at(&result.point));
                    match reasons.iter_mut().find(|(known, _)| *known == reason) {
                        Some((_, names)) => names.push(name),
                        None => reasons.push((reason, vec![name])),
                    }
                }
            }
        }
        if curves.is_empty() {
            continue;
        }
        if charts.len() < MOST_CHARTS {
            charts.push(distribution(view, charts.len(), point, &curves)?);
        } else {
            further.push(point.as_str());
        }
    }
    let content = html! {
        @for chart in &charts { (chart) }
        @for (reason, names) in &reasons {
            (absent(&format!("No distribution of {}: {reason}.", names.join(", "))))
        }
        @if !further.is_empty() {
            (absent(&format!(
                "No chart of the distribution at {}: this page has at most {MOST_CHARTS}. The ledger has all histograms.",
                further.join(", ")
            )))
        }
    };
    let lead = format!(
        "Share of the {}s that took no longer. Marks are the status’s percentiles, whiskers the range of the single trials.",
        view.units.whole
    );
    Ok(parts::section("latency", "Latency", &lead, &content))
}

fn buckets(trial: &FrugalityTrial) -> Option<&[Bucket]> {
    Some(&trial.status.as_ref()?.load()?.latency().buckets)
}

/// The curve from the same trials as the status's percentiles. An error says why there is no curve.
fn curve<'a>(view: &PageView<'_>, result: &'a CandidateResult) -> Result<Curve<'a>, &'static str> {
    let last = result.latency.last().ok_or(
        "the status has no percentiles (errors, too few requests, or a limit of the injector)",
    )?;
    let runs: Option<Vec<&[Bucket]>> = view.counted(result).map(buckets).collect();
    let runs = runs
        .filter(|runs| i32::try_from(runs.len()) == Ok(result.trials))
        .ok_or("the ledger that was given does not have the histogram of each trial")?;
    let of_status: Vec<f64> = result.latency.iter().map(|it| it.percentile).collect();
    let unusable = "the ledger’s histograms can’t be merged";
    let merged = merged_percentiles(&runs, &of_status).ok_or(unusable)?;
    let is_same = result.latency.iter().zip(&merged).all(|(it, seconds)| {
        (1000.0 * seconds - it.milliseconds).abs() <= ROUNDING * it.milliseconds
    });
    if !is_same {
        return Err("the ledger that was given does not have the status’s percentiles");
    }
    let whole = (0..100).map(f64::from);
    let tail = (1..10).map(|tenths| 99.0 + f64::from(tenths) / 10.0);
    let percentages: Vec<f64> = whole
        .chain([99.0])
        .chain(tail)
        .filter(|it| *it <= last.percentile)
        .collect();
    let seconds = merged_percentiles(&runs, &percentages).ok_or(unusable)?;
    let points = seconds
        .into_iter()
        .map(|it| 1000.0 * it)
        .zip(percentages)
        .filter(|(milliseconds, _)| *milliseconds > 0.0)
        .collect();
    Ok(Curve { result, points })
}

fn distribution(
    view: &PageView<'_>,
    number: usize,
    point: &str,
    curves: &[Curve<'_>],
) -> Result<Markup, ChartError> {
    let of_curves = curves.iter().flat_map(|it| it.points.iter().map(|it| it.0));
    let of_marks = curves
        .iter()
        .flat_map(|it| &it.result.latency)
        .flat_map(|it| [it.least_milliseconds, it.most_milliseconds]);
    let (least, most) = of_curves
        .chain(of_marks)
        .filter(|it| *it > 0.0)
        .fold((f64::MAX, f64::MIN_POSITIVE), |(least, most), it| {
            (least.min(it), most.max(it))
        });
    let x = Axis::logarithmic(least / 1.1..most * 1.1, (LEFT, RIGHT));
    let y = Axis::linear(0.0..100.0, (BOTTOM, TOP));
    let title = format!("Latency of a {}{}", view.units.whole, view.at(point));
    let described: Vec<_> = curves
        .iter()
        .map(|curve| {
            let percentiles = curve.result.latency.iter();
            let shown: Vec<_> = percentiles
                .map(|it| format!("p{} {} ms", it.percentile, text::number(it.milliseconds)))
                .collect();
            format!("{}: {}.", curve.result.candidate, shown.join(", "))
        })
        .collect();
    let drawing = Chart {
        id: "latency",
        title: title.clone(),
        description: described.join(" "),
        height: BOTTOM + 62,
    }
    .draw(number, |canvas| {
        for tick in x.ticks(TICKS) {
            let at = x.at(tick);
            canvas.line([(at, TOP), (at, BOTTOM)], Ink::Grid, 1);
            let label = text::all_digits(tick);
            canvas.text(&label, (at, BOTTOM + 22), Align::Middle, SMALL, Ink::Faint);
        }
        for tick in [0.0, 25.0, 50.0, 75.0, 100.0] {
            let at = y.at(tick);
            canvas.line([(LEFT, at), (RIGHT, at)], Ink::Grid, 1);
            let label = format!("{tick} %");
            canvas.text(&label, (LEFT - 10, at), Align::End, SMALL, Ink::Faint);
        }
        canvas.line([(LEFT, BOTTOM), (RIGHT, BOTTOM)], Ink::Axis, 2);
        let unit = "ms, logarithmic";
        canvas.text(unit, (RIGHT, BOTTOM + 48), Align::End, SMALL, Ink::Faint);
        parts::key(
            canvas,
            LEFT,
            curves.iter().map(|curve| {
                let candidate = curve.result.candidate.as_str();
                (view.series(candidate), candidate)
            }),
        );
        for curve in curves {
            draw(
                canvas,
                view.series(&curve.result.candidate),
                curve,
                (&x, &y),
            );
        }
    })?;
    let percentiles = curves.iter().flat_map(|curve| {
        curve
            .result
            .latency
            .iter()
            .map(move |it| (curve.result, it))
    });
    let numbers = Table::of(percentiles)
        .text("CANDIDATE", |(result, _)| result.candidate.clone())
        .right("PERCENTILE", |(_, it)| text::all_digits(it.percentile))
        .right("MS", |(_, it)| text::number(it.milliseconds))
        .right("LEAST OF A TRIAL", |(_, it)| {
            text::number(it.least_milliseconds)
        })
        .right("MOST OF A TRIAL", |(_, it)| {
            text::number(it.most_milliseconds)
        })
        .grid();
    Ok(chart(&title, &drawing, &html! {}, numbers.as_ref()))
}

fn draw(canvas: &mut Canvas<'_>, series: usize, curve: &Curve<'_>, (x, y): (&Axis, &Axis)) {
    let points = curve.points.iter();
    let points = points.map(|(milliseconds, share)| (x.at(*milliseconds), y.at(*share)));
    canvas.line(points, Ink::Line(series), 4);
    for it in &curve.result.latency {
        let at = y.at(it.percentile);
        let [from, to] = [it.least_milliseconds, it.most_milliseconds].map(|it| x.at(it));
        canvas.line([(from, at), (to, at)], Ink::Series(series), 3);
        canvas.mark((x.at(it.milliseconds), at), series, 8);
    }
}
