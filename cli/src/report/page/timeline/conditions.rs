//! The node's temperature and clock in each attempt.

use std::collections::BTreeSet;

use frugality_measure::energy::Conditions;
use frugality_operator::text;
use kube::ResourceExt as _;
use maud::{Markup, html};

use super::{Attempt, MOST_ROWS, PLOT, TICKS};
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

const TOP: i32 = 44;
const BOTTOM: i32 = 190;
const LABELS: usize = 4;

/// A quantity of the node.
struct Condition {
    title: &'static str,
    /// Why a report may not have it.
    absent: &'static str,
    of: fn(&Conditions) -> Option<f64>,
}

const CONDITIONS: [Condition; 2] = [
    Condition {
        title: "Highest temperature in the window, °C",
        absent: "No temperatures: the meter reported none.",
        of: |conditions| conditions.peak_celsius,
    },
    Condition {
        title: "Mean clock in the window, MHz",
        absent: "No clock frequencies: the meter reported none.",
        of: |conditions| Some(conditions.mean_hertz? / 1e6),
    },
];

/// A chart for each quantity that the ledger has. `times` are the ends of the run, in Unix seconds.
pub(super) fn charts(
    view: &PageView<'_>,
    attempts: &[Attempt<'_>],
    times: Option<(f64, f64)>,
) -> Result<Markup, ChartError> {
    let Some((begin, end)) = times else {
        return Ok(html! {});
    };
    let time = Axis::linear(0.0..((end - begin) / 60.0).max(0.1), PLOT);
    let mut parts = Vec::new();
    for (number, condition) in CONDITIONS.iter().enumerate() {
        let values: Vec<_> = attempts
            .iter()
            .filter_map(|attempt| {
                let energy = attempt.trial.status.as_ref()?.energy.as_ref()?;
                Some((attempt, (condition.of)(&energy.conditions)?))
            })
            .collect();
        parts.push(if values.is_empty() {
            absent(condition.absent)
        } else {
            drawn(view, number, condition.title, &values, (&time, begin))?
        });
    }
    Ok(html! { @for part in &parts { (part) } })
}

fn drawn(
    view: &PageView<'_>,
    number: usize,
    title: &str,
    values: &[(&Attempt<'_>, f64)],
    (time, begin): (&Axis, f64),
) -> Result<Markup, ChartError> {
    let numbers = || values.iter().map(|(_, value)| *value);
    let least = numbers().fold(f64::MAX, f64::min);
    let most = numbers().fold(f64::MIN, f64::max);
    let margin = (0.2 * (most - least)).max(0.01 * most.abs()).max(0.5);
    let axis = Axis::linear(least - margin..most + margin, (BOTTOM, TOP));
    let drawing = Chart {
        id: "conditions",
        title: title.to_owned(),
        description: format!(
            "{} attempts, from {} to {}.",
            values.len(),
            text::number(least),
            text::number(most)
        ),
        height: BOTTOM + 34,
    }
    .draw(number, |canvas| {
        frame(canvas, time, &axis);
        let names = view.entrants.iter().map(|it| view.label(it));
        parts::key(canvas, PLOT.0, names.enumerate());
        let marks: BTreeSet<_> = values
            .iter()
            .filter_map(|(attempt, value)| {
                let (from, to) = attempt.times?;
                let x = time.at((f64::midpoint(from, to) - begin) / 60.0);
                let series = view.series(&attempt.trial.spec.candidate);
                Some((x, axis.at(*value), series))
            })
            .collect();
        for (x, y, series) in marks {
            canvas.mark((x, y), series, 8);
        }
    })?;
    let numbers = Table::of(values.iter().take(MOST_ROWS))
        .text("ATTEMPT", |(attempt, _)| attempt.trial.name_any())
        .text("CANDIDATE", |(attempt, _)| {
            attempt.trial.spec.candidate.clone()
        })
        .right(title.to_uppercase(), |(_, value)| text::number(*value))
        .grid();
    Ok(chart(title, &drawing, &html! {}, numbers.as_ref()))
}

fn frame(canvas: &mut Canvas<'_>, time: &Axis, axis: &Axis) {
    for tick in axis.ticks(LABELS) {
        let y = axis.at(tick);
        canvas.line([(PLOT.0, y), (PLOT.1, y)], Ink::Grid, 1);
        let label = text::all_digits(tick);
        canvas.text(&label, (PLOT.0 - 10, y), Align::End, SMALL, Ink::Faint);
    }
    canvas.line([(PLOT.0, BOTTOM), (PLOT.1, BOTTOM)], Ink::Axis, 2);
    for tick in time.ticks(TICKS) {
        let x = time.at(tick);
        let label = format!("{} min", text::all_digits(tick));
        canvas.text(&label, (x, BOTTOM + 20), Align::Middle, SMALL, Ink::Faint);
    }
}
