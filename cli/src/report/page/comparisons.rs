//! All comparisons as a forest plot.

use frugality_operator::{
    api::{BoardVerdict, Comparison},
    text,
};
use maud::{Markup, html};

use super::{
    parts::{self, absent, chart, legend},
    view::PageView,
};
use crate::{
    report::chart::{Align, Canvas, Chart, ChartError, SMALL, TEXT, WIDTH, axis::Axis, ink::Ink},
    table::{Table, dash},
};

const ROW: i32 = 62;
const TOP: i32 = 44;
const BOTTOM: i32 = 64;
/// Left and right end of the plot. Names are on the left, numbers on the right.
const PLOT: (i32, i32) = (300, 740);
const TICKS: usize = 7;

pub(super) fn section(view: &PageView<'_>) -> Result<Markup, ChartError> {
    let comparisons = &view.status.comparisons;
    let content = if comparisons.is_empty() {
        let why = if view.candidates.len() < 2 {
            "No comparison: the status has figures of fewer than two candidates."
        } else {
            "No comparison: the status has none. Its message and the reasons for absent figures say why."
        };
        absent(why)
    } else {
        plot(view, comparisons)?
    };
    let lead = format!(
        "Ratio of {} joules per {}{}, paired by block. Left of 1: the first candidate needs less.",
        view.kind_word(),
        view.unit(),
        view.provenance.mark()
    );
    Ok(parts::section(
        "comparisons",
        "Comparisons",
        &lead,
        &content,
    ))
}

/// The bands around 1 that a ratio must leave.
struct Bands {
    tie: Option<f64>,
    noise: Option<f64>,
}

fn plot(view: &PageView<'_>, comparisons: &[Comparison]) -> Result<Markup, ChartError> {
    let rows = i32::try_from(comparisons.len()).unwrap_or(i32::MAX / ROW);
    let tie = view.objects.benchmark.spec.energy.tie_within.as_ref();
    let bands = Bands {
        tie: tie.and_then(|it| it.to_string().parse().ok()),
        noise: view.status.noise_floor.as_ref().map(|it| it.share),
    };
    let axis = axis(comparisons, &bands);
    let described: Vec<_> = comparisons
        .iter()
        .map(|it| {
            format!(
                "{}: {}, {}.",
                name(view, it),
                text::comparison(it),
                result(it)
            )
        })
        .collect();
    let height = TOP + rows * ROW + BOTTOM;
    let drawing = Chart {
        id: "comparisons",
        title: format!(
            "Ratios of {} joules{}",
            view.kind_word(),
            view.provenance.mark()
        ),
        description: described.join(" "),
        height,
    }
    .draw(0, |canvas| {
        parts::watermark(canvas, view.provenance, height - BOTTOM + TOP);
        frame(canvas, &axis, &bands, height - BOTTOM);
        for (row, comparison) in (0..).zip(comparisons) {
            let middle = TOP + row * ROW + ROW / 2;
            draw(canvas, &axis, &name(view, comparison), comparison, middle);
        }
    })?;
    let numbers = Table::of(comparisons)
        .text("CANDIDATE", |it| it.candidate.clone())
        .text("AGAINST", |it| it.against.clone())
        .text("POINT", |it| it.point.clone())
        .right("RATIO", |it| text::ratio(&it.ratio))
        .right("OVER ALL BOARDS", |it| {
            it.boards.as_ref().map_or_else(dash, text::board_range)
        })
        .text("RESULT", |it| result(it))
        .grid();
    let has_boards = comparisons.iter().any(|it| it.boards.is_some());
    let floor = view.status.noise_floor.as_ref().map(|floor| {
        format!(
            "noise floor: {} against itself is {}",
            floor.candidate,
            text::ratio(&floor.ratio)
        )
    });
    let tie = tie.map(|tie| format!("tie: within {tie} of 1"));
    let items = [
        Some((
            "k-interval",
            if has_boards {
                "ratio by the watts of this node, with its interval"
            } else {
                "ratio and the interval that decides"
            },
        )),
        has_boards.then_some(("k-boards", "range over all boards (needs no power model)")),
        tie.as_deref().map(|it| ("k-tie", it)),
        floor.as_deref().map(|it| ("k-noise", it)),
    ];
    let legend = html! {
        (legend(items.into_iter().flatten()))
        @if bands.noise.is_none() {
            p class="small" {
                @if view.objects.benchmark.spec.trials.control.is_some() {
                    "Noise floor: unknown. A note says why."
                } @else {
                    "Noise floor: unknown, because the run had no A/A control (trials.control)."
                }
            }
        }
    };
    let caption = "Ratios with their intervals";
    Ok(chart(caption, &drawing, &legend, numbers.as_ref()))
}

fn name(view: &PageView<'_>, comparison: &Comparison) -> String {
    format!(
        "{} / {}{}",
        comparison.candidate,
        comparison.against,
        view.at(&comparison.point)
    )
}

/// What the comparison shows, in words.
fn result(comparison: &Comparison) -> String {
    let boards = match comparison.board {
        Some(BoardVerdict::EveryBoard) => ", on every board",
        Some(BoardVerdict::StatedAccuracy) => ", by the stated accuracy of this board",
        Some(BoardVerdict::DependsOnBoard) => return "depends on the board".to_owned(),
        None => "",
    };
    let word = match (comparison.separated, comparison.equivalent) {
        (true, Some(true)) => "separated, within the margin of a tie",
        (true, _) => "separated",
        (false, Some(true)) => "equal within the margin of a tie",
        (false, _) => "not separated",
    };
    format!("{word}{boards}")
}

fn axis(comparisons: &[Comparison], bands: &Bands) -> Axis {
    let of_bands = [bands.tie, bands.noise]
        .into_iter()
        .flatten()
        .flat_map(|it| [1.0 / (1.0 + it), 1.0 + it]);
    let values = comparisons.iter().flat_map(|it| {
        let (from, to) = it.ratio.bounds();
        let boards = it.boards.map_or((from, to), |boards| boards.bounds());
        [from, to, boards.0, boards.1, it.ratio.value]
    });
    let ends = values
        .chain(of_bands)
        .filter(|it| it.is_finite() && *it > 0.0)
        .fold((0.9, 1.1), |(least, most): (f64, f64), it| {
            (least.min(it), most.max(it))
        });
    let margin = (ends.1 / ends.0).powf(0.06);
    Axis::logarithmic(ends.0 / margin..ends.1 * margin, PLOT)
}

fn frame(canvas: &mut Canvas<'_>, axis: &Axis, bands: &Bands, bottom: i32) {
    for (share, ink) in [(bands.tie, Ink::Tie), (bands.noise, Ink::Noise)] {
        let Some(share) = share else { continue };
        let [from, to] = [1.0 / (1.0 + share), 1.0 + share].map(|it| axis.at(it));
        canvas.rectangle((from, TOP - 8), (to.max(from + 2), bottom), ink);
    }
    for tick in axis.ticks(TICKS) {
        let x = axis.at(tick);
        canvas.line([(x, TOP - 8), (x, bottom)], Ink::Grid, 1);
        let label = text::all_digits(tick);
        canvas.text(&label, (x, bottom + 20), Align::Middle, SMALL, Ink::Faint);
    }
    let one = axis.at(1.0);
    canvas.line([(one, TOP - 14), (one, bottom + 6)], Ink::Axis, 3);
    let (less, more) = ("◄ less energy", "more energy ►");
    canvas.text(less, (PLOT.0, bottom + 46), Align::Start, SMALL, Ink::Faint);
    canvas.text(more, (PLOT.1, bottom + 46), Align::End, SMALL, Ink::Faint);
    let head = TOP - 28;
    canvas.text(
        "ratio [interval]",
        (WIDTH, head),
        Align::End,
        SMALL,
        Ink::Faint,
    );
    canvas.text("equal", (one, head), Align::Middle, SMALL, Ink::Faint);
}

fn draw(canvas: &mut Canvas<'_>, axis: &Axis, name: &str, it: &Comparison, middle: i32) {
    let name = text::shortened(name, 34);
    canvas.bold(&name, (0, middle - 10), Align::Start, TEXT, Ink::Text);
    let words = text::shortened(&result(it), 40);
    canvas.text(&words, (0, middle + 14), Align::Start, SMALL, Ink::Faint);
    let ink = if it.separated { Ink::Good } else { Ink::Open };
    if let Some(boards) = &it.boards {
        let (from, to) = boards.bounds();
        canvas.interval(axis.at(from), axis.at(to), middle, Ink::Boards);
        let (from, to) = boards.values();
        let (from, to) = (axis.at(from), axis.at(to));
        canvas.rectangle(
            (from, middle - 9),
            (to.max(from + 3), middle + 9),
            Ink::Boards,
        );
    }
    if !it.ratio.is_repeatability_only() {
        let (from, to) = it.ratio.bounds();
        canvas.interval(axis.at(from), axis.at(to), middle, Ink::Text);
    }
    let x = axis.at(it.ratio.value);
    canvas.polygon(
        [
            (x, middle - 12),
            (x + 10, middle),
            (x, middle + 12),
            (x - 10, middle),
        ],
        ink,
    );
    canvas.text(
        &text::comparison(it),
        (WIDTH, middle),
        Align::End,
        TEXT,
        Ink::Text,
    );
}
