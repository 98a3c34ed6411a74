//! Power and CPU over the time of each attempt, as small multiples with one scale.

use frugality_measure::energy::{PhaseName, TracePhase};
use frugality_operator::{
    api::{FrugalityTrace, FrugalityTrial, Outcome},
    text,
};
use kube::ResourceExt as _;
use maud::{Markup, html};

use super::{
    parts::{self, absent, chart, legend},
    view::{PageProvenance, PageView},
};
use crate::{
    report::chart::{Align, Canvas, Chart, ChartError, SMALL, WIDTH, axis::Axis, ink::Ink},
    table::{Table, dash},
};

/// Panels per row.
pub(super) const COLUMNS: i32 = 3;
/// Most panels, because each takes about 3 kB of the page. The export has the courses of all attempts.
pub(super) const MOST_PANELS: usize = 48;
pub(super) const LEFT: i32 = 56;
pub(super) const GAP: i32 = 18;
pub(super) const PANEL: i32 = (WIDTH - LEFT - COLUMNS * GAP) / COLUMNS;
const ROW: i32 = 250;
/// Top and bottom of the plots of power and of CPU, within a row.
const POWER: (i32, i32) = (30, 120);
const CPU: (i32, i32) = (134, 204);
pub(super) const TICKS: usize = 3;

/// An attempt with its course.
struct Panel<'a> {
    trial: &'a FrugalityTrial,
    trace: &'a FrugalityTrace,
}

/// The values of a phase, one per point.
type Of = fn(&TracePhase) -> Option<&Vec<Option<i64>>>;

const NODE_POWER: Of = |phase| phase.node_millijoules.as_ref();
const NODE_CPU: Of = |phase| phase.node_cpu_microseconds.as_ref();
const CANDIDATE_CPU: Of = |phase| phase.candidate_cpu_microseconds.as_ref();
const PER_WATT: f64 = 1e3;
const PER_CPU: f64 = 1e6;

pub(super) fn section(view: &PageView<'_>) -> Result<Markup, ChartError> {
    if view.attempts.is_empty() {
        return Ok(html! {});
    }
    let panels: Vec<_> = view
        .attempts
        .iter()
        .filter_map(|trial| {
            let trace = view.trace_of(trial)?;
            (!trace.spec.phases.is_empty()).then_some(Panel { trial, trace })
        })
        .collect();
    let (lead, content) = if panels.is_empty() {
        (
            "",
            absent("No course of power: the input has no traces of these attempts."),
        )
    } else {
        (
            "Each attempt over its time, on one scale: power of the node above, CPU below. A line is interrupted where readings are missing. The readings have no uncertainty. Void attempts do not count.",
            drawn(view, &panels)?,
        )
    };
    Ok(parts::section("course", "Power over time", lead, &content))
}

fn drawn(view: &PageView<'_>, panels: &[Panel<'_>]) -> Result<Markup, ChartError> {
    let shown = &panels[..panels.len().min(MOST_PANELS)];
    let sources = shown.iter().map(|it| it.trace.spec.provenance);
    let provenance = sources.max().map_or(view.provenance, PageProvenance::from);
    let caption = format!(
        "Power (W){} and CPU over the seconds of {} attempts",
        provenance.mark(),
        shown.len()
    );
    let mean = |panel: &Panel<'_>, phase, of, per| {
        let value = panel.mean(phase, of, per);
        value.map_or_else(dash, text::number)
    };
    let numbers = Table::of(shown.iter())
        .text("ATTEMPT", |it| it.trial.name_any())
        .text("OUTCOME", |it| outcome(it.trial))
        .text("POWER", |it| {
            it.trace.spec.provenance.to_string().to_lowercase()
        })
        .right("IDLE BEFORE, W", |it| {
            mean(it, PhaseName::IdleBefore, NODE_POWER, PER_WATT)
        })
        .right("WINDOW, W", |it| {
            mean(it, PhaseName::Window, NODE_POWER, PER_WATT)
        })
        .right("IDLE AFTER, W", |it| {
            mean(it, PhaseName::IdleAfter, NODE_POWER, PER_WATT)
        })
        .right("NODE IN THE WINDOW, CPUS", |it| {
            mean(it, PhaseName::Window, NODE_CPU, PER_CPU)
        })
        .right("CANDIDATE IN THE WINDOW, CPUS", |it| {
            mean(it, PhaseName::Window, CANDIDATE_CPU, PER_CPU)
        })
        .grid();
    let count = i32::try_from(shown.len()).unwrap_or(0);
    let height = (count + COLUMNS - 1) / COLUMNS * ROW;
    let most = |of: Of, per: f64| {
        let values = shown.iter().flat_map(|it| it.lines(of, per));
        let values = values.flatten().map(|(_, value)| value);
        1.05 * values.fold(0.1, f64::max)
    };
    let seconds = shown.iter().map(Panel::seconds).fold(1.0, f64::max);
    let scales = Scales {
        seconds,
        watts: most(NODE_POWER, PER_WATT),
        cpus: most(NODE_CPU, PER_CPU).max(most(CANDIDATE_CPU, PER_CPU)),
    };
    let drawing = Chart {
        id: "course",
        title: "Power and CPU over the time of each attempt".to_owned(),
        description: format!(
            "{caption}, up to {} W and {} CPUs. The table has the means.",
            text::number(scales.watts),
            text::number(scales.cpus)
        ),
        height,
    }
    .draw(0, |canvas| {
        parts::watermark(canvas, provenance, height);
        for (number, panel) in (0..).zip(shown) {
            let corner = (
                LEFT + number % COLUMNS * (PANEL + GAP),
                number / COLUMNS * ROW,
            );
            let series = view.series(&panel.trial.spec.candidate);
            let name = view.label(&panel.trial.spec.candidate);
            scales.draw(canvas, panel, (name, series), corner);
        }
    })?;
    let legend = legend([
        ("k-running", "idle baselines"),
        ("k-tie", "measured window"),
        ("k-measured", "power of the node, and CPU of the candidate"),
        ("k-limit", "CPU of the node"),
    ]);
    let left_out = panels.len() - shown.len();
    Ok(html! {
        (chart(&caption, &drawing, &legend, numbers.as_ref()))
        @if left_out > 0 {
            p class="small" { "Not drawn: " (left_out) " more attempts. kubectl frugality export --traces writes all courses." }
        }
    })
}

/// The outcome of an attempt, with the reason if it does not count.
pub(super) fn outcome(trial: &FrugalityTrial) -> String {
    let status = trial.status.as_ref();
    let reason = status.and_then(|it| it.reason.clone()).unwrap_or_default();
    match status.and_then(|it| it.outcome) {
        Some(Outcome::Measured) => "Measured".to_owned(),
        Some(Outcome::Void) => format!("Void: {reason}"),
        Some(Outcome::Failed) => format!("Failed: {reason}"),
        None => "under way".to_owned(),
    }
}

/// Writes above a panel which attempt it shows, and its outcome if the attempt does not count.
pub(super) fn title(
    canvas: &mut Canvas<'_>,
    trial: &FrugalityTrial,
    name: &str,
    (left, top): (i32, i32),
) {
    let spec = &trial.spec;
    let title = format!(
        "{} {}.{}",
        text::shortened(name, 12),
        spec.block,
        spec.attempt
    );
    canvas.bold(&title, (left, top + 16), Align::Start, SMALL, Ink::Text);
    if trial.status.as_ref().and_then(|it| it.outcome) != Some(Outcome::Measured) {
        let right = (left + PANEL, top + 16);
        let outcome = text::shortened(&outcome(trial), 20);
        canvas.text(&outcome, right, Align::End, SMALL, Ink::Faint);
    }
}

/// Draws a line. A single point becomes a short line.
pub(super) fn line(canvas: &mut Canvas<'_>, mut points: Vec<(i32, i32)>, ink: Ink) {
    if let [(x, y)] = points[..] {
        points.push((x + 2, y));
    }
    canvas.line(points, ink, 2);
}

impl Panel<'_> {
    fn phases(&self) -> &[TracePhase] {
        &self.trace.spec.phases
    }

    fn begin(&self) -> f64 {
        let phases = self.phases().iter();
        let begins = phases.map(|it| it.start_unix_seconds);
        begins.reduce(f64::min).unwrap_or_default()
    }

    /// Length of the attempt's course, in seconds.
    fn seconds(&self) -> f64 {
        let phases = self.phases().iter();
        let ends = phases.map(|it| it.end_unix_seconds - self.begin());
        ends.fold(0.0, f64::max)
    }

    /// Seconds and amounts per second of the points, at the middle of each. A new line begins after unknown points.
    fn lines(&self, of: Of, per: f64) -> Vec<Vec<(f64, f64)>> {
        let begin = self.begin();
        let points = self.phases().iter().flat_map(|phase| {
            let seconds = phase.point_seconds();
            let unknown = vec![None; phase.points];
            let values = of(phase).cloned().unwrap_or(unknown);
            let at = move |point: usize| {
                phase.start_unix_seconds - begin + (point as f64 + 0.5) * seconds
            };
            values.into_iter().enumerate().map(move |(point, value)| {
                value.map(|value| (at(point), value as f64 / seconds / per))
            })
        });
        let points: Vec<_> = points.collect();
        points
            .split(Option::is_none)
            .map(|line| line.iter().flatten().copied().collect())
            .filter(|line: &Vec<_>| !line.is_empty())
            .collect()
    }

    /// The mean over a phase. `None` if a point is unknown.
    fn mean(&self, name: PhaseName, of: Of, per: f64) -> Option<f64> {
        let phase = self.phases().iter().find(|it| it.phase == name)?;
        let sum = of(phase)?.iter().copied().sum::<Option<i64>>()?;
        let seconds = phase.end_unix_seconds - phase.start_unix_seconds;
        (seconds > 0.0).then(|| sum as f64 / seconds / per)
    }
}

/// The ends of the axes, which all panels share. Each begins at 0.
struct Scales {
    seconds: f64,
    watts: f64,
    cpus: f64,
}

impl Scales {
    fn draw(
        &self,
        canvas: &mut Canvas<'_>,
        panel: &Panel<'_>,
        (name, series): (&str, usize),
        (left, top): (i32, i32),
    ) {
        let time = Axis::linear(0.0..self.seconds, (left, left + PANEL));
        let begin = panel.begin();
        for phase in panel.phases() {
            let ink = match phase.phase {
                PhaseName::IdleBefore | PhaseName::IdleAfter => Ink::Track,
                PhaseName::Window => Ink::Tie,
                PhaseName::WarmUp | PhaseName::Tail | PhaseName::Load => continue,
            };
            let [from, to] =
                [phase.start_unix_seconds, phase.end_unix_seconds].map(|it| time.at(it - begin));
            for (above, below) in [POWER, CPU] {
                canvas.rectangle((from, top + above), (to, top + below), ink);
            }
        }
        title(canvas, panel.trial, name, (left, top));
        let plots = [
            (POWER, self.watts, &[(NODE_POWER, PER_WATT, None)][..]),
            (
                CPU,
                self.cpus,
                &[
                    (NODE_CPU, PER_CPU, Some(Ink::Axis)),
                    (CANDIDATE_CPU, PER_CPU, None),
                ][..],
            ),
        ];
        for ((above, below), most, curves) in plots {
            let axis = Axis::linear(0.0..most, (top + below, top + above));
            for tick in axis.ticks(TICKS) {
                let y = axis.at(tick);
                canvas.line([(left, y), (left + PANEL, y)], Ink::Grid, 1);
                if left == LEFT {
                    let label = text::all_digits(tick);
                    canvas.text(&label, (left - 8, y), Align::End, SMALL, Ink::Faint);
                }
            }
            for (of, per, ink) in curves {
                for values in panel.lines(*of, *per) {
                    let points = values
                        .into_iter()
                        .map(|(at, value)| (time.at(at), axis.at(value)))
                        .collect();
                    line(canvas, points, ink.unwrap_or(Ink::Series(series)));
                }
            }
        }
        for tick in time.ticks(TICKS) {
            let label = format!("{} s", text::all_digits(tick));
            let at = (time.at(tick), top + CPU.1 + 18);
            canvas.text(&label, at, Align::Middle, SMALL, Ink::Faint);
        }
    }
}
