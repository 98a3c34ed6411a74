//! The figures of the candidates at one point, each with its interval; all tables.

use frugality_operator::{api::Figure, text};
use maud::{Markup, html};

use super::{
    parts::{self, chart},
    quantity::{ReportedQuantity, quantities},
    view::PageView,
};
use crate::{
    report::chart::{Align, Canvas, Chart, ChartError, SMALL, TEXT, WIDTH, axis::Axis, ink::Ink},
    summarize::{self, view::View},
    table::{Table, dash},
};

const ROW: i32 = 46;
const TOP: i32 = 12;
const BOTTOM: i32 = 44;
/// Left and right end of the plot. Names are on the left, numbers on the right.
const PLOT: (i32, i32) = (230, 770);
const TICKS: usize = 6;

pub(super) fn section(view: &PageView<'_>) -> Result<Markup, ChartError> {
    let results = &view.status.results;
    if results.is_empty() {
        return Ok(html! {});
    }
    let mut charts = Vec::new();
    if !view.has_several_points() {
        for (number, quantity) in quantities(view).iter().enumerate() {
            charts.push(panel(view, number, quantity)?);
        }
    }
    let of_summary = View::of(&view.status, &view.units);
    let tables: Vec<_> = summarize::grids(&of_summary).collect();
    let notes: Vec<_> = summarize::notes(&of_summary).collect();
    let content = html! {
        @for chart in &charts { (chart) }
        details {
            summary { "All figures as tables" }
            @for (number, grid) in tables.iter().enumerate() {
                (parts::table(&format!("figures {}", number + 1), grid))
            }
        }
        details {
            summary { "How to read the figures" }
            ul class="notes" { @for note in &notes { li { (note) } } }
        }
    };
    let lead = "± and whiskers are the intervals of one candidate. Budgets and comparisons are decided with their own, which are wider. A figure that can’t be trusted is absent.";
    Ok(parts::section("figures", "Figures", lead, &content))
}

fn panel(
    view: &PageView<'_>,
    number: usize,
    quantity: &ReportedQuantity<'_>,
) -> Result<Markup, ChartError> {
    let ReportedQuantity { title, figure, .. } = quantity;
    let results = &view.status.results;
    let figures: Vec<_> = results.iter().map(|it| (it, figure(it))).collect();
    if figures.iter().all(|(_, it)| it.is_none()) {
        return Ok(parts::no_chart(title));
    }
    let most = figures
        .iter()
        .filter_map(|(_, it)| Some(it.as_ref()?.bounds().1.max(it.as_ref()?.value)))
        .fold(f64::MIN_POSITIVE, f64::max);
    let axis = Axis::linear(0.0..most * 1.05, PLOT);
    let shown = |it: &Option<Figure>| {
        it.as_ref()
            .map_or_else(|| "absent".to_owned(), text::figure)
    };
    let described: Vec<_> = figures
        .iter()
        .map(|(result, it)| format!("{}: {}.", result.candidate, shown(it)))
        .collect();
    let rows = i32::try_from(figures.len()).unwrap_or(i32::MAX / ROW);
    let bottom = TOP + rows * ROW;
    let drawing = Chart {
        id: "figures",
        title: title.clone(),
        description: described.join(" "),
        height: bottom + BOTTOM,
    }
    .draw(number, |canvas| {
        if number == 0 {
            parts::watermark(canvas, view.provenance, bottom + TOP);
        }
        for tick in axis.ticks(TICKS) {
            let x = axis.at(tick);
            canvas.line([(x, TOP), (x, bottom)], Ink::Grid, 1);
            let label = text::all_digits(tick);
            canvas.text(&label, (x, bottom + 20), Align::Middle, SMALL, Ink::Faint);
        }
        for (row, (result, it)) in (0..).zip(&figures) {
            let middle = TOP + row * ROW + ROW / 2;
            let series = view.series(&result.candidate);
            let name = text::shortened(&result.candidate, 22);
            canvas.bold(&name, (0, middle), Align::Start, TEXT, Ink::Text);
            if let Some(it) = it {
                bar(canvas, &axis, it, series, middle);
            }
            canvas.text(&shown(it), (WIDTH, middle), Align::End, TEXT, Ink::Text);
        }
    })?;
    let numbers = Table::of(figures)
        .text("CANDIDATE", |(result, _)| result.candidate.clone())
        .right(title.to_uppercase(), move |(_, it)| {
            it.as_ref().map_or_else(dash, text::figure)
        })
        .grid();
    Ok(chart(title, &drawing, &html! {}, numbers.as_ref()))
}

fn bar(canvas: &mut Canvas<'_>, axis: &Axis, figure: &Figure, series: usize, middle: i32) {
    let x = axis.at(figure.value);
    canvas.rectangle((PLOT.0, middle - 6), (x, middle + 6), Ink::Series(series));
    canvas.mark((x, middle), series, 10);
    if !figure.is_repeatability_only() {
        let (lower, upper) = figure.bounds();
        canvas.interval(axis.at(lower), axis.at(upper), middle, Ink::Text);
    }
}
