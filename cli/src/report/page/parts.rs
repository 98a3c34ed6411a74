//! Parts that several sections of the page share.

use maud::{Markup, PreEscaped, html};

use super::view::PageProvenance;
use crate::{
    report::chart::{Align, Canvas, SMALL, WIDTH, ink::Ink},
    table::Grid,
};

/// Size of the word behind a chart of figures that no instrument measured.
const WATERMARK: i32 = 64;

/// A section with its heading. `lead` says in a sentence how to read it.
pub(super) fn section(id: &str, heading: &str, lead: &str, content: &Markup) -> Markup {
    html! {
        section id=(id) aria-labelledby={ (id) "-h" } {
            h2 id={ (id) "-h" } { (heading) }
            @if !lead.is_empty() { p class="lead" { (lead) } }
            (content)
        }
    }
}

/// A chart with its caption and legend, and the same numbers as a table.
pub(super) fn chart(
    caption: &str,
    drawing: &Markup,
    legend: &Markup,
    numbers: Option<&Grid>,
) -> Markup {
    html! {
        figure {
            figcaption { (caption) }
            div class="scroll" tabindex="0" role="group" aria-label={ "Chart: " (caption) } { (drawing) }
            (legend)
            @if let Some(numbers) = numbers { (folded("The numbers as a table", caption, numbers)) }
        }
    }
}

/// Says in the chart itself that no instrument measured its energy: a chart may be copied without its page.
pub(super) fn watermark(canvas: &mut Canvas<'_>, provenance: PageProvenance, height: i32) {
    let word = match provenance {
        PageProvenance::Metered => return,
        PageProvenance::Modelled => "MODELLED",
        PageProvenance::Fake => "FAKE",
        PageProvenance::Unknown => "SOURCE UNKNOWN",
    };
    let middle = (WIDTH / 2, height / 2);
    canvas.bold(word, middle, Align::Middle, WATERMARK, Ink::Watermark);
}

/// Names of series with their marks and lines, above a plot.
pub(super) fn key<'t>(
    canvas: &mut Canvas<'_>,
    left: i32,
    names: impl IntoIterator<Item = (usize, &'t str)>,
) {
    let mut x = left;
    for (series, name) in names {
        // Further names are in the table.
        if x > WIDTH - 120 {
            break;
        }
        canvas.line([(x, 18), (x + 36, 18)], Ink::Line(series), 4);
        canvas.mark((x + 18, 18), series, 9);
        canvas.bold(name, (x + 46, 18), Align::Start, SMALL, Ink::Text);
        let width = i32::try_from(name.chars().count()).unwrap_or(0) * 10;
        x += 46 + width + 36;
    }
}

/// A table that is shown on demand.
pub(super) fn folded(summary: &str, name: &str, numbers: &Grid) -> Markup {
    html! {
        details {
            summary { (summary) }
            (table(name, numbers))
        }
    }
}

/// A table. `name` is for readers who do not see the page.
pub(super) fn table(name: &str, numbers: &Grid) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="group" aria-label={ "Table: " (name) } {
            table {
                thead { tr { @for heading in numbers.headings() { th scope="col" { (heading) } } } }
                tbody {
                    @for row in numbers.rows() {
                        tr {
                            @for (cell, is_figure) in row { td class=[is_figure.then_some("figure")] { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

/// In place of a chart without a single figure.
pub(super) fn no_chart(title: &str) -> Markup {
    absent(&format!(
        "No chart of {title}: each figure is absent. The reasons are next to the tables and in the message."
    ))
}

/// What is absent, and why.
pub(super) fn absent(text: &str) -> Markup {
    html! { p class="absent" { (text) } }
}

/// Items of a legend: a sample of the drawing, and its meaning.
pub(super) fn legend<'t>(items: impl IntoIterator<Item = (&'static str, &'t str)>) -> Markup {
    html! {
        ul class="legend" {
            @for (class, meaning) in items {
                li { span class={ "swatch " (class) } aria-hidden="true" {} (meaning) }
            }
        }
    }
}

/// The patterns that charts fill areas with.
pub(super) fn patterns() -> Markup {
    // Constant text.
    PreEscaped(include_str!("patterns.svg").trim_end().to_owned())
}
