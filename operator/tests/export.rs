//! The ledger as JSON and CSV.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use crate::common::{T0, entries, two};
use frugality_operator::{
    api::{FrugalityTrial, Outcome},
    export::{Format, export},
    time,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

const AWKWARD: &str = "it said \"no\",\nthen nothing";

/// The trials of block 1, and a void and an open attempt of block 2, unsorted.
fn ledger() -> Vec<FrugalityTrial> {
    let benchmark = two();
    let measured: Vec<_> = entries::ledger(&benchmark, |_, name| entries::Trial {
        latency_drift: Some(3.6),
        seconds: if name == "rust" { 600.0 } else { 590.0 },
        ..entries::Trial::default()
    })
    .into_iter()
    .filter(|entry| entry.spec.block == 1)
    .collect();
    let mut void = entries::entry(&benchmark, 2, 1, 1, "rust");
    void.status = Some(entries::without_figures(
        Outcome::Void,
        "PodReplaced",
        AWKWARD,
    ));
    let open = entries::entry(&benchmark, 2, 1, 2, "rust");
    let mut trials = vec![open, void];
    trials.extend(measured.into_iter().rev());
    for trial in &mut trials {
        let spec = &trial.spec;
        let age = f64::from(100 * spec.block + 10 * spec.attempt + spec.position);
        trial.metadata.namespace = Some("shop".into());
        trial.metadata.creation_timestamp = time::timestamp(T0 + age).map(Time);
    }
    trials
}

/// The list as kubectl prints it.
fn list(trials: &[FrugalityTrial]) -> String {
    json!({ "apiVersion": "v1", "kind": "List", "items": trials }).to_string()
}

fn as_json(text: &str) -> Vec<Value> {
    serde_json::from_slice(&export(text, Format::Json).unwrap()).unwrap()
}

fn as_csv(text: &str) -> String {
    String::from_utf8(export(text, Format::Csv).unwrap()).unwrap()
}

#[test]
fn every_attempt_is_one_flat_object_with_every_field() {
    let rows = as_json(&list(&ledger()));
    let told: Vec<_> = rows
        .iter()
        .map(|row| {
            let number = |name: &str| row[name].as_i64().unwrap();
            (
                number("block"),
                number("position"),
                number("attempt"),
                row["candidate"].as_str().unwrap(),
                row["outcome"].as_str().unwrap_or("-"),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (1, 1, 1, "rust", "Measured"),
            (1, 2, 1, "python", "Measured"),
            (2, 1, 1, "rust", "Void"),
            (2, 1, 2, "rust", "-"),
        ]
    );
    let fields = |row: &Value| row.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for row in &rows {
        assert_eq!(fields(row), fields(&rows[0]));
        assert!(
            row.as_object()
                .unwrap()
                .values()
                .all(|value| !value.is_object() && !value.is_array())
        );
    }
    assert_eq!(rows[0]["grossJoulesPerRequest"], json!(0.01));
    let drift = rows[0]["latencyDriftSecondsPerSecond"].as_f64().unwrap();
    assert!((drift - 1e-6).abs() < 1e-9, "{drift}");
    assert_eq!(rows[1]["latencyDriftSecondsPerSecond"], Value::Null);
    assert_eq!(rows[0]["provenance"], json!("Metered"));
    assert_eq!(rows[0]["createdAt"], json!("2026-11-21T04:56:51Z"));
    assert_eq!(rows[2]["reason"], json!("PodReplaced"));
    assert_eq!(rows[2]["message"], json!(AWKWARD));
    // Unknown, not 0.
    assert_eq!(rows[2]["grossJoulesPerRequest"], Value::Null);
    assert_eq!(rows[3]["outcome"], Value::Null);
}

#[test]
fn joules_per_request_of_a_shared_node_are_absent() {
    let mut trials = ledger();
    let measured = trials.last_mut().unwrap();
    measured
        .spec
        .injector_node
        .clone_from(&measured.spec.measured_node);
    let rows = as_json(&list(&trials));
    let shared = rows
        .iter()
        .find(|row| row["injectorNode"] == row["measuredNode"])
        .unwrap();
    assert_eq!(
        (
            &shared["grossJoulesPerRequest"],
            &shared["netJoulesPerRequest"]
        ),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(shared["nodeJoules"], json!(10.0));
    assert_eq!(shared["nodeJoulesRelativeUncertainty"], json!(0.0));
}

#[test]
fn csv_has_the_same_cells_and_follows_rfc_4180() {
    let text = list(&ledger());
    let csv_text = as_csv(&text);
    // Outside quotes, CR LF ends a record. A line break within quotes does not.
    assert_eq!(csv_text.matches("\r\n").count(), 5);
    assert!(csv_text.contains("\"it said \"\"no\"\",\nthen nothing\""));
    assert!(csv_text.starts_with("namespace,benchmark,run,trial,point,block,"));
    let mut reader = csv::Reader::from_reader(csv_text.as_bytes());
    let header = reader.headers().unwrap().clone();
    let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let rows = as_json(&text);
    assert_eq!(records.len(), rows.len());
    for (record, row) in records.iter().zip(&rows) {
        assert_eq!(record.len(), row.as_object().unwrap().len());
        for (name, cell) in header.iter().zip(record) {
            match &row[name] {
                Value::Null => assert_eq!(cell, "", "{name}"),
                Value::String(text) => assert_eq!(cell, text, "{name}"),
                value => assert_eq!(
                    serde_json::from_str::<Value>(cell).unwrap(),
                    *value,
                    "{name}"
                ),
            }
        }
    }
}

#[test]
fn an_empty_ledger_is_a_header_alone_and_one_entry_is_a_list_of_one() {
    let full = as_csv(&list(&ledger()));
    let header = full.split_inclusive("\r\n").next().unwrap();
    assert_eq!(as_csv(&list(&[])), header);
    assert_eq!(as_json(&list(&[])), Vec::<Value>::new());
    let one = serde_json::to_string(&ledger()[1]).unwrap();
    assert_eq!(as_json(&one).len(), 1);
}

#[test]
fn an_entry_that_cannot_be_read_is_named_and_not_left_out() {
    let mut broken = serde_json::to_value(&ledger()[1]).unwrap();
    let name = broken["metadata"]["name"].as_str().unwrap().to_owned();
    broken["spec"]["block"] = json!("one");
    let text = json!({ "items": [broken] }).to_string();
    let error = export(&text, Format::Csv).unwrap_err().to_string();
    assert!(error.contains(&name), "{error}");
    assert!(export("no JSON", Format::Json).is_err());
}

#[test]
fn the_command_reads_standard_input_or_a_file_and_writes_standard_output_or_a_file() {
    let command = || Command::new(env!("CARGO_BIN_EXE_frugality-operator"));
    let text = list(&ledger());
    let mut child = command()
        .args(["export", "--format", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let printed = child.wait_with_output().unwrap();
    assert!(printed.status.success());
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), as_csv(&text));

    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (from, to) = (folder.join("ledger.json"), folder.join("ledger-flat.json"));
    std::fs::write(&from, &text).unwrap();
    let status = command()
        .arg("export")
        .args(["--output".as_ref(), to.as_os_str(), from.as_os_str()])
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(
        std::fs::read(&to).unwrap(),
        export(&text, Format::Json).unwrap()
    );
    let missing = command()
        .arg("export")
        .arg("no-such-file")
        .output()
        .unwrap();
    assert!(!missing.status.success());
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no-such-file"));
}
