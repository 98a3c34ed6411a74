//! The ledger as a table for other tools: one row an attempt, void ones included.

use frugality_measure::batch::Spread;
use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;
use serde_json::Value;

use crate::api::{FrugalityTrial, Outcome};

/// Form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An array of flat objects, each with every field; `null` is unknown.
    Json,
    /// RFC 4180: a header, then a line for each attempt, ended by CR LF; an empty cell is unknown.
    Csv,
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The input is no JSON.
    #[error("the input is no JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// An entry of the ledger can't be read. None is left out silently.
    #[error("entry {name} is no FrugalityTrial: {source}")]
    Entry {
        /// Its name.
        name: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The CSV could not be written.
    #[error("cannot write CSV: {0}")]
    Csv(#[from] csv::Error),
}

/// One attempt, each name with its unit; an absent figure is unknown or withheld, never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    namespace: Option<String>,
    benchmark: String,
    run: String,
    trial: String,
    point: String,
    block: i32,
    position: i32,
    attempt: i32,
    candidate: String,
    measured_node: String,
    injector_node: String,
    seed: i64,
    created_at: Option<Timestamp>,
    finished_at: Option<String>,
    outcome: Option<Outcome>,
    reason: Option<String>,
    message: Option<String>,
    window_start_unix_seconds: Option<f64>,
    window_seconds: Option<f64>,
    requests: Option<u64>,
    successes: Option<u64>,
    errors: Option<u64>,
    error_ratio: Option<f64>,
    work: Option<f64>,
    requests_per_second: Option<f64>,
    milliseconds_per_request: Option<f64>,
    p50_milliseconds: Option<f64>,
    p75_milliseconds: Option<f64>,
    p90_milliseconds: Option<f64>,
    p99_milliseconds: Option<f64>,
    #[serde(rename = "p99_9Milliseconds")]
    p99_9_milliseconds: Option<f64>,
    dropped_cycles: Option<u64>,
    failed_checks: Option<u64>,
    mean_score: Option<f64>,
    score_standard_deviation: Option<f64>,
    provenance: Option<String>,
    meter: Option<String>,
    zone: Option<String>,
    meter_relative_uncertainty: Option<f64>,
    node_joules: Option<f64>,
    node_joules_relative_uncertainty: Option<f64>,
    gross_joules_per_request: Option<f64>,
    idle_before_watts: Option<f64>,
    idle_after_watts: Option<f64>,
    net_joules: Option<f64>,
    net_joules_per_request: Option<f64>,
    net_detection_limit_joules: Option<f64>,
    net_withheld: Option<String>,
    net_drift_joules: Option<f64>,
    candidate_idle_cpus: Option<f64>,
    candidate_joules: Option<f64>,
    database_joules: Option<f64>,
    system_joules: Option<f64>,
    candidate_joules_per_request: Option<f64>,
    candidate_and_database_joules_per_request: Option<f64>,
    net_candidate_joules_per_request: Option<f64>,
    net_candidate_and_database_joules_per_request: Option<f64>,
    candidate_cpu_seconds: Option<f64>,
    database_cpu_seconds: Option<f64>,
    node_cpu_seconds: Option<f64>,
    pods_withheld: Option<String>,
    candidate_peak_working_set_bytes: Option<f64>,
    candidate_working_set_growth_bytes_per_second: Option<f64>,
    database_peak_working_set_bytes: Option<f64>,
    latency_drift_seconds_per_second: Option<f64>,
    restarts: Option<i32>,
    database_rows: Option<i64>,
    database_digest: Option<String>,
    transactions_per_request: Option<f64>,
    images: Option<String>,
}

/// The entries of `kubectl get fbt -o json`, a list or one alone, by benchmark and time.
pub fn export(text: &str, format: Format) -> Result<Vec<u8>, ExportError> {
    let mut trials = entries(serde_json::from_str(text)?)?;
    trials.sort_by_cached_key(|trial| {
        let spec = &trial.spec;
        let created = trial.creation_timestamp().map(|time| time.0);
        (
            trial.namespace(),
            spec.benchmark.clone(),
            created,
            spec.block,
            spec.attempt,
            spec.position,
        )
    });
    let rows: Vec<Row> = trials.into_iter().map(row).collect();
    match format {
        Format::Json => {
            let mut text = serde_json::to_vec_pretty(&rows)?;
            text.push(b'\n');
            Ok(text)
        }
        Format::Csv => csv(&rows),
    }
}

fn entries(input: Value) -> Result<Vec<FrugalityTrial>, ExportError> {
    let items = match input {
        Value::Object(mut list) if list.contains_key("items") => {
            match list.remove("items").unwrap_or_default() {
                Value::Array(items) => items,
                other => vec![other],
            }
        }
        one => vec![one],
    };
    items
        .into_iter()
        .map(|item| {
            let name = item
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or("without a name")
                .to_owned();
            serde_json::from_value(item).map_err(|source| ExportError::Entry { name, source })
        })
        .collect()
}

fn csv(rows: &[Row]) -> Result<Vec<u8>, ExportError> {
    // The header follows from a row, so an empty ledger borrows one.
    let header_only = rows.is_empty();
    let blank = [Row::default()];
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    for row in if header_only { &blank } else { rows } {
        writer.serialize(row)?;
    }
    let mut text = writer
        .into_inner()
        .map_err(|error| csv::Error::from(error.into_error()))?;
    if header_only && let Some(end) = text.iter().position(|byte| *byte == b'\n') {
        text.truncate(end + 1);
    }
    Ok(text)
}

fn row(trial: FrugalityTrial) -> Row {
    let created_at = trial.creation_timestamp().map(|time| time.0);
    let (namespace, name) = (trial.namespace(), trial.name_any());
    let spec = trial.spec;
    let status = trial.status.unwrap_or_default();
    let requests = status.requests.as_ref();
    let percentile = |name: &str| requests?.percentiles_ms.get(name).copied();
    let k6 = status.k6.as_ref();
    let score = status.batch.as_ref().and_then(|it| it.score.as_ref());
    let energy = status.energy.as_ref();
    // The injector's energy is no candidate's.
    let of_candidate = energy.filter(|_| !spec.is_node_shared());
    let attributed = energy.and_then(|energy| energy.attributed.as_ref());
    let shared = energy.and_then(|energy| energy.net_attributed.as_ref());
    let cpu = energy.and_then(|energy| energy.cpu.as_ref());
    let latency_drift_seconds_per_second = status.latency_drift_seconds_per_second();
    let images: Vec<String> = status
        .images
        .iter()
        .map(|(container, digest)| format!("{container}={digest}"))
        .collect();
    Row {
        namespace,
        benchmark: spec.benchmark,
        run: spec.run,
        trial: name,
        point: spec.point,
        block: spec.block,
        position: spec.position,
        attempt: spec.attempt,
        candidate: spec.candidate,
        measured_node: spec.measured_node,
        injector_node: spec.injector_node,
        seed: spec.seed,
        created_at,
        finished_at: status.finished_at,
        outcome: status.outcome,
        reason: status.reason,
        message: status.message,
        window_start_unix_seconds: status.window.map(|window| window.start_unix_seconds),
        window_seconds: status.window.map(|window| window.seconds()),
        requests: requests.map(|r| r.requests),
        successes: requests.map(|r| r.successes),
        errors: requests.map(|r| r.errors),
        error_ratio: requests.and_then(|r| r.error_rate),
        work: requests.and_then(|r| r.work),
        requests_per_second: requests.and_then(|r| r.requests_per_second),
        milliseconds_per_request: requests.and_then(|r| r.ms_per_request),
        p50_milliseconds: percentile("p50"),
        p75_milliseconds: percentile("p75"),
        p90_milliseconds: percentile("p90"),
        p99_milliseconds: percentile("p99"),
        p99_9_milliseconds: percentile("p99.9"),
        dropped_cycles: k6.map(|k6| k6.dropped_cycles),
        failed_checks: k6.map(|k6| k6.checks.values().map(|check| check.failed).sum()),
        mean_score: score.map(|score| score.mean),
        score_standard_deviation: score.and_then(Spread::standard_deviation),
        provenance: energy.map(|e| e.provenance.to_string()),
        meter: energy.map(|e| e.meter.to_string()),
        zone: energy.map(|e| e.zone.clone()),
        meter_relative_uncertainty: energy.and_then(|e| e.meter_relative_uncertainty),
        node_joules: energy.map(|e| e.node_joules),
        node_joules_relative_uncertainty: energy.map(|e| e.node_joules_relative_uncertainty),
        gross_joules_per_request: of_candidate.and_then(|e| e.gross_joules_per_request),
        idle_before_watts: energy.map(|e| e.idle_before_watts),
        idle_after_watts: energy.map(|e| e.idle_after_watts),
        net_joules: energy.and_then(|e| e.net_joules),
        net_joules_per_request: of_candidate.and_then(|e| e.net_joules_per_request),
        net_detection_limit_joules: energy.map(|e| e.net_detection_limit_joules),
        net_withheld: energy.and_then(|e| e.net_withheld.clone()),
        net_drift_joules: energy.and_then(|e| e.net_drift_joules),
        candidate_idle_cpus: energy.and_then(|e| e.candidate_idle_cpus),
        candidate_joules: attributed.map(|a| a.candidate_joules),
        database_joules: attributed.and_then(|a| a.database_joules),
        system_joules: attributed.and_then(|a| a.system_joules),
        candidate_joules_per_request: attributed.and_then(|a| a.candidate_joules_per_request),
        candidate_and_database_joules_per_request: attributed
            .and_then(|a| a.candidate_and_database_joules_per_request),
        net_candidate_joules_per_request: shared.and_then(|s| s.candidate_joules_per_request),
        net_candidate_and_database_joules_per_request: shared
            .and_then(|s| s.candidate_and_database_joules_per_request),
        candidate_cpu_seconds: cpu.map(|c| c.candidate_seconds),
        database_cpu_seconds: cpu.and_then(|c| c.database_seconds),
        node_cpu_seconds: cpu.and_then(|c| c.node_seconds),
        pods_withheld: energy.and_then(|e| e.pods_withheld.clone()),
        candidate_peak_working_set_bytes: energy.and_then(|e| e.candidate_peak_working_set_bytes),
        candidate_working_set_growth_bytes_per_second: energy
            .and_then(|e| e.candidate_working_set_growth_bytes_per_second),
        database_peak_working_set_bytes: energy.and_then(|e| e.database_peak_working_set_bytes),
        latency_drift_seconds_per_second,
        restarts: status.restarts,
        database_rows: status.database.as_ref().map(|database| database.rows),
        database_digest: status.database.map(|database| database.digest),
        transactions_per_request: status.transactions_per_request,
        images: (!images.is_empty()).then(|| images.join(" ")),
    }
}
