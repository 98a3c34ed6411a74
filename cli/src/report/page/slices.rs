//! Latency over the time of each measured window, as small multiples with one scale.

use frugality_measure::slices::Slices;
use frugality_operator::{api::FrugalityTrial, text};
use kube::ResourceExt as _;
use maud::{Markup, html};

use super::{
    course::{COLUMNS, GAP, LEFT, MOST_PANELS, PANEL, TICKS, line, outcome, title},
    parts::{self, absent, chart, legend},
    view::PageView,
};
use crate::{
    report::chart::{Align, Canvas, Chart, ChartError, SMALL, axis::Axis, ink::Ink},
    table::{Table, dash},
};

const ROW: i32 = 180;
/// Top and bottom of the plot, within a row.
const PLOT: (i32, i32) = (30, 134);
/// A greater ratio of latencies has a logarithmic axis.
const WIDE: f64 = 10.0;

/// An attempt with its slices.
struct Panel<'a> {
    trial: &'a FrugalityTrial,
    slices: &'a Slices,
}

pub(super) fn section(view: &PageView<'_>) -> Result<Markup, ChartError> {
    if view.attempts.is_empty() {
        return Ok(html! {});
    }
    let panels: Vec<_> = view
        .attempts
        .iter()
        .filter_map(|trial| {
            let slices = view.trace_of(trial)?.spec.slices.as_ref()?;
            Some(Panel { trial, slices })
        })
        .collect();
    let (lead, content) = if panels.is_empty() {
        (
            String::new(),
            absent("No latency over time: the input has no traces with slices of these attempts."),
        )
    } else {
        let whole = view.units.whole;
        let lead = format!(
            "Latency of the successful {whole}s over the measured window of each attempt, on one scale. A line is interrupted at slices with too few {whole}s. Void attempts do not count."
        );
        (lead, drawn(view, &panels)?)
    };
    Ok(parts::section(
        "slices",
        "Latency over time",
        &lead,
        &content,
    ))
}

fn drawn(view: &PageView<'_>, panels: &[Panel<'_>]) -> Result<Markup, ChartError> {
    let shown = &panels[..panels.len().min(MOST_PANELS)];
    let scales = Scales::of(shown);
    let logarithmic = if scales.is_wide() {
        ", logarithmic"
    } else {
        ""
    };
    let caption = format!(
        "Latency (ms{logarithmic}) over the seconds of the measured windows of {} attempts",
        shown.len()
    );
    let milliseconds = |value: Option<f64>| value.map_or_else(dash, text::number);
    let whole = view.units.whole.to_uppercase();
    let numbers = Table::of(shown.iter())
        .text("ATTEMPT", |it| it.trial.name_any())
        .text("OUTCOME", |it| outcome(it.trial))
        .right(format!("{whole}S"), |it| {
            it.slices.successes.iter().sum::<u64>().to_string()
        })
        .right("ERRORS", |it| {
            it.slices.errors.iter().sum::<u64>().to_string()
        })
        .right("FASTEST SLICE, MEAN MS", |it| {
            milliseconds(it.means().reduce(f64::min))
        })
        .right("SLOWEST SLICE, MEAN MS", |it| {
            milliseconds(it.means().reduce(f64::max))
        })
        .right("SLOWEST SLICE, P99 MS", |it| {
            milliseconds(it.p99s().reduce(f64::max))
        })
        .grid();
    let count = i32::try_from(shown.len()).unwrap_or(0);
    let height = (count + COLUMNS - 1) / COLUMNS * ROW;
    let drawing = Chart {
        id: "slices",
        title: "Latency over the time of each measured window".to_owned(),
        description: format!(
            "{caption}, up to {} ms. The table has the extremes.",
            text::number(scales.most)
        ),
        height,
    }
    .draw(0, |canvas| {
        for (number, panel) in (0..).zip(shown) {
            let corner = (
                LEFT + number % COLUMNS * (PANEL + GAP),
                number / COLUMNS * ROW,
            );
            let candidate = &panel.trial.spec.candidate;
            title(canvas, panel.trial, view.label(candidate), corner);
            scales.draw(canvas, panel, view.series(candidate), corner);
        }
    })?;
    let legend = legend([
        ("k-measured", "mean of a slice"),
        ("k-limit", "99th percentile of a slice"),
    ]);
    let left_out = panels.len() - shown.len();
    Ok(html! {
        (chart(&caption, &drawing, &legend, numbers.as_ref()))
        @if left_out > 0 {
            p class="small" { "Not drawn: " (left_out) " more attempts. kubectl frugality export --traces writes all slices." }
        }
    })
}

/// Milliseconds.
fn of_nanoseconds(value: u64) -> f64 {
    value as f64 / 1e6
}

impl Panel<'_> {
    fn means(&self) -> impl Iterator<Item = f64> {
        let values = self.slices.mean_nanoseconds.iter().flatten();
        values.copied().map(of_nanoseconds)
    }

    fn p99s(&self) -> impl Iterator<Item = f64> {
        let values = self.slices.p99_nanoseconds.iter().flatten();
        values.copied().map(of_nanoseconds)
    }

    fn seconds(&self) -> f64 {
        self.slices.slice_seconds * self.slices.successes.len() as f64
    }

    /// Seconds and milliseconds at the middle of each slice. A new line begins after unknown values.
    fn lines(&self, values: &[Option<u64>]) -> Vec<Vec<(f64, f64)>> {
        let at = |slice: usize| (slice as f64 + 0.5) * self.slices.slice_seconds;
        let points = values.iter().enumerate();
        let points: Vec<_> = points
            .map(|(slice, value)| value.map(|value| (at(slice), of_nanoseconds(value))))
            .collect();
        let lines = points.split(Option::is_none);
        let lines = lines.map(|line| line.iter().flatten().copied().collect());
        lines.filter(|line: &Vec<_>| !line.is_empty()).collect()
    }
}

/// The ends of the axes, which all panels share.
struct Scales {
    seconds: f64,
    least: f64,
    most: f64,
}

impl Scales {
    fn of(panels: &[Panel<'_>]) -> Self {
        let values = || panels.iter().flat_map(|it| it.means().chain(it.p99s()));
        Self {
            // The last label is not at the end, where the next panel begins.
            seconds: 1.1 * panels.iter().map(Panel::seconds).fold(0.0, f64::max),
            least: values().filter(|it| *it > 0.0).fold(f64::MAX, f64::min),
            most: 1.05 * values().fold(f64::MIN_POSITIVE, f64::max),
        }
    }

    fn is_wide(&self) -> bool {
        self.most > WIDE * self.least
    }

    fn latency(&self, positions: (i32, i32)) -> Axis {
        if self.is_wide() {
            Axis::logarithmic(self.least / 1.2..self.most, positions)
        } else {
            Axis::linear(0.0..self.most, positions)
        }
    }

    fn draw(
        &self,
        canvas: &mut Canvas<'_>,
        panel: &Panel<'_>,
        series: usize,
        (left, top): (i32, i32),
    ) {
        let time = Axis::linear(0.0..self.seconds, (left, left + PANEL));
        let axis = self.latency((top + PLOT.1, top + PLOT.0));
        for tick in axis.ticks(2 * TICKS) {
            let y = axis.at(tick);
            canvas.line([(left, y), (left + PANEL, y)], Ink::Grid, 1);
            if left == LEFT {
                let label = text::all_digits(tick);
                canvas.text(&label, (left - 8, y), Align::End, SMALL, Ink::Faint);
            }
        }
        let curves = [
            (&panel.slices.p99_nanoseconds, Ink::Axis),
            (&panel.slices.mean_nanoseconds, Ink::Series(series)),
        ];
        for (values, ink) in curves {
            for values in panel.lines(values) {
                let points = values
                    .into_iter()
                    .map(|(at, value)| (time.at(at), axis.at(value)))
                    .collect();
                line(canvas, points, ink);
            }
        }
        for tick in time.ticks(TICKS) {
            let label = format!("{} s", text::all_digits(tick));
            let at = (time.at(tick), top + PLOT.1 + 18);
            canvas.text(&label, at, Align::Middle, SMALL, Ink::Faint);
        }
    }
}
