//! Figures over the points of a sweep, the points that may be the best, and energy against latency.

mod curve;

use frugality_operator::{
    api::{CandidateResult, Figure, Optimum, SweepResult},
    text,
};
use maud::{Markup, html};

use super::{
    parts::{self, absent, chart},
    quantity::{OfResult, ReportedQuantity, energy_unit, quantities},
    view::PageView,
};
use crate::{
    report::chart::{Align, Canvas, Chart, ChartError, SMALL, WIDTH, axis::Axis, ink::Ink},
    summarize::{self, view::View},
    table::{Table, dash},
};

/// Left, right, top and bottom of the plot.
const LEFT: i32 = 90;
const RIGHT: i32 = WIDTH - 20;
const TOP: i32 = 46;
const BOTTOM: i32 = 380;
/// Height of a row of the points that may be the best.
const STRIP: i32 = 34;
const TICKS: usize = 6;
/// Beyond this ratio of the greatest to the least value, the axis is logarithmic.
const WIDE: f64 = 20.0;

pub(super) fn section(view: &PageView<'_>) -> Result<Markup, ChartError> {
    if view.status.results.is_empty() {
        return Ok(html! {});
    }
    let mut parts = Vec::new();
    if view.has_several_points() {
        for (number, quantity) in quantities(view).iter().enumerate() {
            parts.push(lines(view, number, quantity)?);
        }
    }
    parts.push(front(view)?);
    parts.push(curve::power_over_rate(view)?);
    let curves = summarize::load_curves(&View::of(&view.status, &view.units));
    parts.extend(curves.map(|grid| parts::table("load curves", &grid)));
    let (heading, lead) = if view.has_several_points() {
        (
            "Over the load",
            "The rows below each chart mark, for each candidate, the points that may be its best.",
        )
    } else {
        ("Energy against latency", "Left and low is better.")
    };
    let content = html! { @for part in &parts { (part) } };
    Ok(parts::section("load", heading, lead, &content))
}

/// Position of a point's column.
fn column(view: &PageView<'_>, index: usize) -> i32 {
    let count = i32::try_from(view.points.len().max(1)).unwrap_or(1);
    let index = i32::try_from(index).unwrap_or(0);
    let width = (RIGHT - LEFT) / count;
    LEFT + index * width + width / 2
}

/// How many texts of so many characters fit next to each other.
fn columns(characters: usize) -> usize {
    let room = usize::try_from(RIGHT - LEFT).unwrap_or(0);
    (room / (10 * characters.max(1))).max(1)
}

/// An axis for all values and the ends of their intervals.
fn value_axis(figures: impl Iterator<Item = Figure>, positions: (i32, i32)) -> Axis {
    let ends = figures.flat_map(|it| {
        let (lower, upper) = it.bounds();
        if it.is_repeatability_only() {
            [it.value, it.value]
        } else {
            [lower, upper]
        }
    });
    let (least, most) = ends
        .filter(|it| it.is_finite())
        .fold((f64::MAX, f64::MIN_POSITIVE), |(least, most), it| {
            (least.min(it), most.max(it))
        });
    if least > 0.0 && most / least > WIDE {
        return Axis::logarithmic(least / 1.2..most * 1.2, positions);
    }
    Axis::linear(0.0..most * 1.08, positions)
}

fn lines(
    view: &PageView<'_>,
    number: usize,
    quantity: &ReportedQuantity<'_>,
) -> Result<Markup, ChartError> {
    let results = &view.status.results;
    let figure = &quantity.figure;
    if results.iter().all(|it| figure(it).is_none()) {
        return Ok(parts::no_chart(&quantity.title));
    }
    let axis = value_axis(results.iter().filter_map(figure), (BOTTOM, TOP));
    let sets: Vec<(&SweepResult, &Optimum)> = view
        .status
        .sweep
        .iter()
        .filter_map(|it| Some((it, (quantity.best.of)(it)?)))
        .collect();
    let strips = i32::try_from(sets.len()).unwrap_or(0) * STRIP;
    let described: Vec<_> = results
        .iter()
        .map(|it| {
            let shown = figure(it).map_or_else(|| "absent".to_owned(), |it| text::figure(&it));
            format!("{} at {}: {shown}.", it.candidate, it.point)
        })
        .chain(sets.iter().map(|(of, set)| {
            let among = set.among.join(", ");
            format!(
                "{}: {} at {}, may be any of {among}.",
                of.candidate, quantity.best.name, set.point
            )
        }))
        .collect();
    let drawing = Chart {
        id: "load",
        title: format!("{} over the load", quantity.title),
        description: described.join(" "),
        height: BOTTOM + 50 + strips + 8,
    }
    .draw(number, |canvas| {
        if number == 0 {
            parts::watermark(canvas, view.provenance, BOTTOM);
        }
        if axis.is_logarithmic() {
            canvas.text(
                "logarithmic",
                (0, TOP - 28),
                Align::Start,
                SMALL,
                Ink::Faint,
            );
        }
        grid(canvas, &axis);
        let widest = view.points.iter().map(|it| it.chars().count()).max();
        let room = columns(widest.unwrap_or(0) + 1);
        let step = view.points.len().div_ceil(room);
        for (index, point) in view.points.iter().enumerate().step_by(step.max(1)) {
            let x = column(view, index);
            canvas.text(point, (x, BOTTOM + 22), Align::Middle, SMALL, Ink::Faint);
        }
        for candidate in &view.candidates {
            line(canvas, view, &axis, candidate, figure);
        }
        key(canvas, view);
        for (row, (of, set)) in (0..).zip(&sets) {
            strip(canvas, view, of, set, BOTTOM + 46 + row * STRIP);
        }
    })?;
    let numbers = Table::of(results)
        .text("POINT", |it| it.point.clone())
        .text("CANDIDATE", |it| it.candidate.clone())
        .right(quantity.title.to_uppercase(), move |it| {
            figure(it).map_or_else(dash, |it| text::figure(&it))
        })
        .text(quantity.best.name.to_uppercase(), move |it| {
            let sets = view.status.sweep.iter();
            let mut sets = sets.filter(|of| of.candidate == it.candidate);
            match sets.find_map(|of| (quantity.best.of)(of)) {
                Some(set) if set.point == it.point => "best".to_owned(),
                Some(set) if set.among.contains(&it.point) => "may be".to_owned(),
                _ => String::new(),
            }
        })
        .grid();
    Ok(chart(
        &quantity.title,
        &drawing,
        &html! {},
        numbers.as_ref(),
    ))
}

fn grid(canvas: &mut Canvas<'_>, axis: &Axis) {
    for tick in axis.ticks(TICKS) {
        let y = axis.at(tick);
        canvas.line([(LEFT, y), (RIGHT, y)], Ink::Grid, 1);
        let label = text::all_digits(tick);
        canvas.text(&label, (LEFT - 10, y), Align::End, SMALL, Ink::Faint);
    }
    canvas.line([(LEFT, BOTTOM), (RIGHT, BOTTOM)], Ink::Axis, 2);
}

fn upright_grid(canvas: &mut Canvas<'_>, axis: &Axis) {
    for tick in axis.ticks(TICKS) {
        let x = axis.at(tick);
        canvas.line([(x, TOP), (x, BOTTOM)], Ink::Grid, 1);
        let label = text::all_digits(tick);
        canvas.text(&label, (x, BOTTOM + 22), Align::Middle, SMALL, Ink::Faint);
    }
}

/// Names of the candidates with their marks.
fn key(canvas: &mut Canvas<'_>, view: &PageView<'_>) {
    let names = view.candidates.iter().map(String::as_str);
    parts::key(canvas, LEFT, names.enumerate());
}

fn line(
    canvas: &mut Canvas<'_>,
    view: &PageView<'_>,
    axis: &Axis,
    candidate: &str,
    figure: &OfResult<'_>,
) {
    let series = view.series(candidate);
    let figures: Vec<Option<Figure>> = view
        .points
        .iter()
        .map(|point| figure(view.result(candidate, point)?))
        .collect();
    // An absent figure interrupts the line.
    for (index, pair) in figures.windows(2).enumerate() {
        if let [Some(from), Some(to)] = pair {
            let ends = [(index, from), (index + 1, to)];
            let ends = ends.map(|(index, it)| (column(view, index), axis.at(it.value)));
            canvas.line(ends, Ink::Line(series), 4);
        }
    }
    for (index, figure) in figures.iter().enumerate() {
        let Some(figure) = figure else { continue };
        let x = column(view, index);
        if !figure.is_repeatability_only() {
            let (lower, upper) = figure.bounds();
            canvas.upright(x, axis.at(lower), axis.at(upper), Ink::Series(series));
        }
        canvas.mark((x, axis.at(figure.value)), series, 10);
    }
}

/// The points that may be the best of a candidate.
fn strip(canvas: &mut Canvas<'_>, view: &PageView<'_>, of: &SweepResult, set: &Optimum, top: i32) {
    let count = i32::try_from(view.points.len().max(1)).unwrap_or(1);
    let half = (RIGHT - LEFT) / count / 2 - 3;
    let middle = top + STRIP / 2;
    let name = text::shortened(&of.candidate, 9);
    canvas.text(&name, (0, middle), Align::Start, SMALL, Ink::Text);
    for (index, point) in view.points.iter().enumerate() {
        let x = column(view, index);
        let ends = ((x - half, top + 3), (x + half, top + STRIP - 3));
        if set.among.contains(point) {
            canvas.rectangle(ends.0, ends.1, Ink::Among);
            let has_room = view.points.len() <= columns(7);
            let word = match (set.point == *point, has_room) {
                (true, true) => "★ best",
                (true, false) => "★",
                (false, true) => "may be",
                (false, false) => "",
            };
            canvas.text(word, (x, middle), Align::Middle, SMALL, Ink::Text);
        } else {
            canvas.rectangle(ends.0, ends.1, Ink::Track);
        }
    }
}

/// One result with both figures.
struct Both<'a> {
    result: &'a CandidateResult,
    milliseconds: Figure,
    energy: Figure,
    /// Whether no other result has less of both.
    is_on_front: bool,
}

/// Energy against latency, and the results that no other result beats in both.
fn front(view: &PageView<'_>) -> Result<Markup, ChartError> {
    let unit = energy_unit(view);
    let mut all: Vec<Both<'_>> = view
        .status
        .results
        .iter()
        .filter_map(|result| {
            Some(Both {
                result,
                milliseconds: view.milliseconds(result)?,
                energy: view.joules(result)?.times(unit.factor),
                is_on_front: false,
            })
        })
        .collect();
    if all.len() < 2 {
        return Ok(absent(
            "No chart of energy against latency: fewer than two results have both figures.",
        ));
    }
    let values: Vec<_> = all
        .iter()
        .map(|it| (it.milliseconds.value, it.energy.value))
        .collect();
    for (it, own) in all.iter_mut().zip(&values) {
        let beats = |other: &(f64, f64)| other != own && other.0 <= own.0 && other.1 <= own.1;
        it.is_on_front = !values.iter().any(beats);
    }
    all.sort_by(|a, b| a.milliseconds.value.total_cmp(&b.milliseconds.value));
    let whole = view.units.whole;
    let title = format!("Energy ({}) against time (ms/{whole})", unit.text);
    let shown = |it: &Both<'_>| {
        format!(
            "{}{}: {} ms, {}",
            it.result.candidate,
            view.at(&it.result.point),
            text::figure(&it.milliseconds),
            text::figure(&it.energy)
        )
    };
    let described: Vec<_> = all.iter().filter(|it| it.is_on_front).map(shown).collect();
    let drawing = Chart {
        id: "front",
        title: title.clone(),
        description: format!(
            "No result has less of both than these: {}.",
            described.join("; ")
        ),
        height: BOTTOM + 84,
    }
    .draw(0, |canvas| {
        let x = value_axis(all.iter().map(|it| it.milliseconds), (LEFT, RIGHT - 60));
        let y = value_axis(all.iter().map(|it| it.energy), (BOTTOM, TOP));
        parts::watermark(canvas, view.provenance, BOTTOM);
        scatter(canvas, view, &all, (&x, &y));
        if y.is_logarithmic() {
            canvas.text(
                "logarithmic axis",
                (RIGHT, TOP - 28),
                Align::End,
                SMALL,
                Ink::Faint,
            );
        }
        let scale = if x.is_logarithmic() {
            ", logarithmic"
        } else {
            ""
        };
        let label = format!("ms/{whole} (mean){scale}");
        canvas.text(&label, (RIGHT, BOTTOM + 54), Align::End, SMALL, Ink::Faint);
    })?;
    let numbers = Table::of(&all)
        .text("CANDIDATE", |it| it.result.candidate.clone())
        .text("POINT", |it| it.result.point.clone())
        .right(format!("MS/{}", whole.to_uppercase()), |it| {
            text::figure(&it.milliseconds)
        })
        .right(unit.text.to_uppercase(), |it| text::figure(&it.energy))
        .text("ON THE FRONT", |it| {
            if it.is_on_front { "yes" } else { "no" }.to_owned()
        })
        .grid();
    let legend = html! {
        p class="small" {
            "Ringed results are the Pareto front: no other result has less of both. The front compares values only, so intervals may overlap."
            @if view.mixes_times() { " Results of a closed loop are left out, because their times leave out waiting." }
        }
    };
    Ok(chart(&title, &drawing, &legend, numbers.as_ref()))
}

fn scatter(canvas: &mut Canvas<'_>, view: &PageView<'_>, all: &[Both<'_>], (x, y): (&Axis, &Axis)) {
    grid(canvas, y);
    upright_grid(canvas, x);
    key(canvas, view);
    let on_front: Vec<_> = all.iter().filter(|it| it.is_on_front).collect();
    let at = |it: &Both<'_>| (x.at(it.milliseconds.value), y.at(it.energy.value));
    canvas.line(on_front.iter().map(|it| at(it)), Ink::Axis, 2);
    let mut labels = Labels::default();
    for it in all {
        let series = view.series(&it.result.candidate);
        let point = at(it);
        let (lower, upper) = it.milliseconds.bounds();
        canvas.line(
            [(x.at(lower), point.1), (x.at(upper), point.1)],
            Ink::Series(series),
            3,
        );
        if !it.energy.is_repeatability_only() {
            let (lower, upper) = it.energy.bounds();
            canvas.line(
                [(point.0, y.at(lower)), (point.0, y.at(upper))],
                Ink::Series(series),
                3,
            );
        }
        if it.is_on_front {
            canvas.ring(point, 19, Ink::Axis);
        }
        canvas.mark(point, series, 10);
        let name = if view.has_several_points() {
            &it.result.point
        } else {
            &it.result.candidate
        };
        if let Some((at, align)) = labels.place(point, name) {
            canvas.text(name, at, align, SMALL, Ink::Faint);
        }
    }
}

/// The labels so far, as left, top, right and bottom.
#[derive(Default)]
struct Labels(Vec<[i32; 4]>);

impl Labels {
    /// A place next to a point where no other label is. `None` if there is none: the table has the name.
    fn place(&mut self, (x, y): (i32, i32), name: &str) -> Option<((i32, i32), Align)> {
        let width = i32::try_from(name.chars().count()).unwrap_or(0) * 10;
        let places = [
            (x + 22, y - 18, Align::Start),
            (x - 22, y - 18, Align::End),
            (x + 22, y + 20, Align::Start),
            (x - 22, y + 20, Align::End),
        ];
        places.into_iter().find_map(|(x, y, align)| {
            let left = if align == Align::End { x - width } else { x };
            let own = [left, y - 10, left + width, y + 10];
            let overlaps = |it: &[i32; 4]| {
                own[0] < it[2] && it[0] < own[2] && own[1] < it[3] && it[1] < own[3]
            };
            let is_inside = left > LEFT && left + width < WIDTH;
            (is_inside && !self.0.iter().any(overlaps)).then(|| {
                self.0.push(own);
                ((x, y), align)
            })
        })
    }
}
