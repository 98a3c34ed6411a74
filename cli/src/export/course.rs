//! The courses of attempts as a long table for other tools: one row per value.

use std::io::Read;

use frugality_measure::{
    energy::{PhaseName, TracePhase},
    reading::Provenance,
};
use frugality_operator::api::FrugalityTrace;
use kube::ResourceExt as _;
use serde::Serialize;

use super::{ExportError, ExportFormat, written};
use crate::items::{Item, collect_items};

/// The columns of an export of courses, with their meaning as Markdown.
pub const COURSE_COLUMNS: [(&str, &str); 14] = [
    ("namespace", "Namespace of the benchmark."),
    ("benchmark", "Name of the benchmark."),
    ("run", "ID of the run."),
    (
        "trial",
        "Name of the ledger entry (`FrugalityTrial`), and of the `FrugalityTrace`.",
    ),
    ("point", "Load settings, for example `c4-max`."),
    ("block", "Block, from 1."),
    ("attempt", "Attempt at the block, from 1."),
    ("candidate", "Candidate."),
    (
        "provenance",
        "Source of the node's power: `Metered`, `Modelled` or `Fake`. `nodeMillijoules` are from this source.",
    ),
    (
        "phase",
        "Phase of the attempt: `IdleBefore`, `WarmUp`, `Window`, `Tail`, `IdleAfter` or `Load`.",
    ),
    (
        "startUnixSeconds",
        "Begin of the point or slice, in Unix seconds of the measured node's clock.",
    ),
    ("seconds", "Length of the point or slice, in seconds."),
    (
        "quantity",
        "What is measured, with the unit, as the field of the `FrugalityTrace` is named. `successes`, `errors`, `meanNanoseconds` and `p99Nanoseconds` have slices in place of points.",
    ),
    (
        "value",
        "The value, an integer. Unknown if a reading lacks it, or if a slice has too few requests.",
    ),
];

/// One value of one point.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    namespace: Option<&'a str>,
    benchmark: &'a str,
    run: &'a str,
    trial: String,
    point: &'a str,
    block: i32,
    attempt: i32,
    candidate: &'a str,
    provenance: Provenance,
    phase: PhaseName,
    start_unix_seconds: f64,
    seconds: f64,
    quantity: &'static str,
    value: Option<i64>,
}

fn rows(trace: &FrugalityTrace) -> impl Iterator<Item = Row<'_>> {
    let phases = &trace.spec.phases;
    let of_phases = phases.iter().flat_map(move |phase| {
        phase.quantities().flat_map(move |(quantity, values)| {
            values.iter().enumerate().map(move |(point, value)| {
                let point = (point, phase.point_seconds());
                row(trace, phase, point, quantity, *value)
            })
        })
    });
    let window = phases.iter().find(|it| it.phase == PhaseName::Window);
    let of_slices = window.zip(trace.spec.slices.as_ref());
    let of_slices = of_slices.into_iter().flat_map(move |(window, slices)| {
        slices
            .quantities()
            .into_iter()
            .flat_map(move |(quantity, values)| {
                values.into_iter().enumerate().map(move |(slice, value)| {
                    let slice = (slice, slices.slice_seconds);
                    let value = value.and_then(|it| i64::try_from(it).ok());
                    row(trace, window, slice, quantity, value)
                })
            })
    });
    of_phases.chain(of_slices)
}

/// The value of a point or slice, which is given by its number and its length in seconds.
fn row<'a>(
    trace: &'a FrugalityTrace,
    phase: &TracePhase,
    (number, seconds): (usize, f64),
    quantity: &'static str,
    value: Option<i64>,
) -> Row<'a> {
    let spec = &trace.spec;
    Row {
        namespace: trace.metadata.namespace.as_deref(),
        benchmark: &spec.benchmark,
        run: &spec.run,
        trial: trace.name_any(),
        point: &spec.point,
        block: spec.block,
        attempt: spec.attempt,
        candidate: &spec.candidate,
        provenance: spec.provenance,
        phase: phase.phase,
        start_unix_seconds: phase.start_unix_seconds + number as f64 * seconds,
        seconds,
        quantity,
        value,
    }
}

/// The course in an item.
pub(crate) fn course(item: Item<'_>) -> Result<FrugalityTrace, ExportError> {
    item.parse().map_err(|source| ExportError::Trace {
        name: item.name(),
        source,
    })
}

/// The courses in the text of `kubectl get fbtr -o json`, a list or one alone, by benchmark and time. With
/// `benchmark`, only the attempts of this benchmark.
pub fn export_courses(
    input: impl Read,
    benchmark: Option<&str>,
    format: ExportFormat,
) -> Result<Vec<u8>, ExportError> {
    let wanted = |it: &FrugalityTrace| benchmark.is_none_or(|name| it.spec.benchmark == name);
    let mut traces = collect_items(input, |item| course(item).map(|it| Some(it).filter(wanted)))?;
    traces.sort_by_cached_key(|trace| {
        let phases = trace.spec.phases.iter();
        #[allow(
            clippy::cast_possible_truncation,
            reason = "milliseconds of a time are far below the limit"
        )]
        let start = phases.map(|it| (it.start_unix_seconds * 1e3) as i64).min();
        (trace.namespace(), trace.spec.benchmark.clone(), start)
    });
    let rows = || traces.iter().flat_map(rows);
    match format {
        ExportFormat::Json => {
            let mut text = serde_json::to_vec_pretty(&rows().collect::<Vec<_>>())?;
            text.push(b'\n');
            Ok(text)
        }
        ExportFormat::Csv => written(|writer| {
            writer.write_record(COURSE_COLUMNS.iter().map(|(name, _)| name))?;
            rows().try_for_each(|row| writer.serialize(row))
        }),
    }
}
