//! The ledger as JSON and CSV. `data/ledger.json` has attempts with requests, a script and a program, a void attempt and
//! an open attempt. `data/ledger-export.*` have the values that the first builds exported; `unit` and `valid` were added later.

use kubectl_frugality::export::{
    ExportFormat,
    columns::COLUMNS,
    course::{COURSE_COLUMNS, export_courses},
    export,
};
use serde_json::{Value, json};

use crate::data;

const AWKWARD: &str = "it said \"no\",\nthen nothing";

fn as_json(text: &str) -> Vec<Value> {
    serde_json::from_slice(&export(text.as_bytes(), None, ExportFormat::Json).unwrap()).unwrap()
}

fn as_csv(text: &str) -> String {
    String::from_utf8(export(text.as_bytes(), None, ExportFormat::Csv).unwrap()).unwrap()
}

/// The entries of the ledger that `keep` keeps, as kubectl prints them.
fn ledger(keep: impl Fn(&Value) -> bool) -> Value {
    let mut list: Value = serde_json::from_str(&data("ledger.json")).unwrap();
    list["items"].as_array_mut().unwrap().retain(keep);
    list
}

fn rows(namespace: &str) -> Vec<Value> {
    as_json(&ledger(|it| it["metadata"]["namespace"] == namespace).to_string())
}

#[test]
fn exports_are_byte_for_byte_what_they_were() {
    let text = data("ledger.json");
    let json =
        String::from_utf8(export(text.as_bytes(), None, ExportFormat::Json).unwrap()).unwrap();
    assert_eq!(json, data("ledger-export.json"));
    assert_eq!(as_csv(&text), data("ledger-export.csv"));
}

/// A void trial makes its block begin again: what the block measured before is in no figure.
#[test]
fn only_trials_of_a_whole_block_are_valid() {
    let mut list: Value = serde_json::from_str(&data("ledger.json")).unwrap();
    let items = list["items"].as_array_mut().unwrap();
    let is_measured = |it: &&Value| it["status"]["outcome"] == "Measured";
    let measured = items.iter().find(is_measured).unwrap().clone();
    let mut later = measured.clone();
    later["metadata"]["name"] = json!("later");
    later["spec"]["attempt"] = json!(measured["spec"]["attempt"].as_i64().unwrap() + 1);
    items.push(later);
    let json = export(list.to_string().as_bytes(), None, ExportFormat::Json).unwrap();
    let rows: Vec<Value> = serde_json::from_slice(&json).unwrap();
    let valid = |name: &Value| {
        let row = rows.iter().find(|row| row["trial"] == *name).unwrap();
        row["valid"].as_bool().unwrap()
    };
    assert!(valid(&json!("later")) && !valid(&measured["metadata"]["name"]));
}

#[test]
fn every_attempt_is_one_flat_object_with_every_field() {
    let rows = rows("shop");
    let attempts: Vec<_> = rows
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
        attempts,
        [
            (1, 1, 1, "rust", "Measured"),
            (1, 2, 1, "python", "Measured"),
            (2, 1, 1, "rust", "Void"),
            (2, 1, 2, "rust", "-"),
        ]
    );
    // A map of serde_json is sorted by name.
    let mut names: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
    names.sort_unstable();
    for row in &rows {
        let row = row.as_object().unwrap();
        assert!(row.keys().eq(&names), "{row:?}");
        assert!(
            row.values()
                .all(|value| !value.is_object() && !value.is_array())
        );
    }
    assert_eq!(rows[0]["grossJoulesPerRequest"], json!(0.01));
    let drift = rows[0]["latencyDriftSecondsPerSecond"].as_f64().unwrap();
    assert!((drift - 1e-6).abs() < 1e-9, "{drift}");
    assert_eq!(rows[0]["provenance"], json!("Metered"));
    assert_eq!(rows[0]["createdAt"], json!("2026-11-21T04:56:51Z"));
    assert_eq!(rows[2]["reason"], json!("PodReplaced"));
    assert_eq!(rows[2]["message"], json!(AWKWARD));
}

#[test]
fn an_unknown_figure_is_null_and_not_0() {
    let rows = rows("shop");
    for (row, name) in [
        // Too short a window.
        (1, "latencyDriftSecondsPerSecond"),
        (2, "grossJoulesPerRequest"),
        (3, "outcome"),
    ] {
        assert_eq!(rows[row][name], Value::Null, "{name}");
    }
}

#[test]
fn an_attempt_without_an_outcome_has_no_figures_yet() {
    let mut list = ledger(|it| it["status"]["outcome"] == "Measured");
    list["items"].as_array_mut().unwrap().truncate(1);
    let figures = ["nodeJoules", "grossJoulesPerRequest", "successes"];
    let first = |list: &Value| as_json(&list.to_string()).remove(0);
    let ended = first(&list);
    assert!(figures.iter().all(|name| ended[name].is_number()));
    for part in ["outcome", "reason", "message", "finishedAt"] {
        let status = list["items"][0]["status"].as_object_mut().unwrap();
        status.remove(part);
    }
    let open = first(&list);
    for name in figures {
        assert_eq!(open[name], Value::Null, "{name}");
    }
}

#[test]
fn a_void_attempt_has_no_score() {
    let mut list = ledger(|it| !it["status"]["batch"]["score"].is_null());
    let first = |list: &Value| as_json(&list.to_string()).remove(0);
    assert!(first(&list)["meanScore"].is_number());
    list["items"][0]["status"]["outcome"] = json!("Void");
    let void = first(&list);
    for name in ["meanScore", "scoreStandardDeviation"] {
        assert_eq!(void[name], Value::Null, "{name}");
    }
}

#[test]
fn a_script_without_checks_has_no_failed_checks() {
    let mut list = ledger(|it| it["status"]["k6"]["checks"].is_object());
    list["items"][0]["status"]["k6"]["checks"] = json!({});
    let row = as_json(&list.to_string()).remove(0);
    assert_eq!(row["failedChecks"], Value::Null);
    assert!(row["droppedCycles"].is_number());
}

#[test]
fn joules_per_request_are_unknown_if_the_injector_shared_the_node() {
    let mut list = ledger(|it| it["status"]["outcome"] == "Measured");
    let spec = &mut list["items"][0]["spec"];
    spec["injectorNode"] = spec["measuredNode"].clone();
    let rows = as_json(&list.to_string());
    let shared = rows
        .iter()
        .find(|row| row["injectorNode"] == row["measuredNode"])
        .unwrap();
    assert_eq!(shared["grossJoulesPerRequest"], Value::Null);
    assert_eq!(shared["netJoulesPerRequest"], Value::Null);
    assert!(shared["nodeJoules"].is_number());
    assert_eq!(shared["nodeJoulesRelativeUncertainty"], json!(0.0));
}

#[test]
fn a_script_has_dropped_cycles_and_failed_checks() {
    let scripted = |row: &&Value| row["trial"].as_str().unwrap().starts_with("scenario");
    let rows = rows("lab");
    let found: Vec<_> = rows.iter().filter(scripted).collect();
    assert_eq!(found.len(), 2);
    for row in found {
        let dropped = if row["candidate"] == "rust" { 7 } else { 0 };
        assert_eq!(row["droppedCycles"], json!(dropped), "{row}");
        assert_eq!(row["failedChecks"], json!(960), "{row}");
        // The waiting time of a cycle that did not begin is unknown.
        assert_eq!(row["p99_9Milliseconds"].is_null(), dropped > 0, "{row}");
        assert_eq!(row["meanScore"], Value::Null, "{row}");
    }
}

#[test]
fn a_program_has_scores() {
    let executed = |row: &&Value| row["trial"].as_str().unwrap().starts_with("batch");
    let rows = rows("lab");
    let found: Vec<_> = rows.iter().filter(executed).collect();
    assert_eq!(found.len(), 2);
    for row in found {
        assert_eq!(row["meanScore"], json!(1001.5), "{row}");
        // Of 1000, 1001, 1002 and 1003: the root of 5/3.
        let deviation = row["scoreStandardDeviation"].as_f64().unwrap();
        assert!((deviation - (5.0_f64 / 3.0).sqrt()).abs() < 1e-9, "{row}");
        assert_eq!(row["droppedCycles"], Value::Null, "{row}");
    }
}

#[test]
fn one_execution_has_no_standard_deviation() {
    let mut list = ledger(|it| it["status"]["batch"]["score"].is_object());
    for item in list["items"].as_array_mut().unwrap() {
        item["status"]["batch"]["score"] =
            serde_json::to_value(frugality_measure::batch::Spread::of(1000.0)).unwrap();
    }
    for row in as_json(&list.to_string()) {
        assert_eq!(row["meanScore"], json!(1000.0), "{row}");
        assert_eq!(row["scoreStandardDeviation"], Value::Null, "{row}");
    }
}

#[test]
fn csv_has_the_same_cells_and_follows_rfc_4180() {
    let text = ledger(|it| it["metadata"]["namespace"] == "shop").to_string();
    let csv_text = as_csv(&text);
    // A line break ends a record only outside quotes, and is CR LF there.
    assert_eq!(csv_text.matches("\r\n").count(), 5);
    assert!(csv_text.contains("\"it said \"\"no\"\",\nthen nothing\""));
    let mut reader = csv::Reader::from_reader(csv_text.as_bytes());
    let header = reader.headers().unwrap().clone();
    assert!(header.iter().eq(COLUMNS.iter().map(|column| column.name)));
    let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let rows = as_json(&text);
    assert_eq!(records.len(), rows.len());
    for (record, row) in records.iter().zip(&rows) {
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
fn an_empty_ledger_is_a_header_and_one_entry_is_a_list_of_one() {
    let full = as_csv(&data("ledger.json"));
    let header = full.split_inclusive("\r\n").next().unwrap();
    let empty = ledger(|_| false).to_string();
    assert_eq!(as_csv(&empty), header);
    assert_eq!(as_json(&empty), Vec::<Value>::new());
    let one = ledger(|_| true)["items"][1].to_string();
    assert_eq!(as_json(&one).len(), 1);
}

#[test]
fn the_attempts_of_one_benchmark_can_be_exported_alone() {
    let mut list = ledger(|_| true);
    list["items"][0]["spec"]["benchmark"] = json!("other");
    let exported = export(
        list.to_string().as_bytes(),
        Some("other"),
        ExportFormat::Json,
    )
    .unwrap();
    let rows: Vec<Value> = serde_json::from_slice(&exported).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["benchmark"], json!("other"));
}

#[test]
fn an_entry_that_cannot_be_read_is_named_and_not_left_out() {
    let mut broken = ledger(|_| true)["items"][1].clone();
    let name = broken["metadata"]["name"].as_str().unwrap().to_owned();
    broken["spec"]["block"] = json!("one");
    let text = json!({ "items": [broken] }).to_string();
    let error = export(text.as_bytes(), None, ExportFormat::Csv)
        .unwrap_err()
        .to_string();
    assert!(error.contains(&name), "{error}");
    assert!(export("no JSON".as_bytes(), None, ExportFormat::Json).is_err());
}

/// Two courses, as kubectl prints them. The second is of an attempt that ended early.
fn courses() -> String {
    let trace = |name: &str, attempt: i32, phases: Value| {
        json!({
            "apiVersion": "frugality.dev/v1alpha1", "kind": "FrugalityTrace",
            "metadata": { "name": name, "namespace": "shop" },
            "spec": {
                "benchmark": "two", "run": "0123abcd", "point": "c4-max", "block": 1, "attempt": attempt,
                "candidate": "rust", "provenance": "Modelled", "phases": phases,
            },
        })
    };
    let window = json!({
        "phase": "Window", "startUnixSeconds": 1000.5, "endUnixSeconds": 1004.5, "points": 2,
        "nodeMillijoules": [5000, 6000], "candidateCpuMicroseconds": [null, 0],
    });
    let load = json!({
        "phase": "Load", "startUnixSeconds": 500.0, "endUnixSeconds": 501.0, "points": 1,
        "temperatureMillicelsius": [-1250],
    });
    let mut second = trace("second", 2, json!([window]));
    second["spec"]["slices"] = json!({
        "sliceSeconds": 2.5, "wholeSeconds": 3.9, "successes": [120, 0], "errors": [0, 7],
        "meanNanoseconds": [1_500_000, null], "p99Nanoseconds": [4_000_000, null],
    });
    let traces = [second, trace("first", 1, json!([load]))];
    json!({ "kind": "List", "items": traces }).to_string()
}

#[test]
fn courses_are_a_long_table_with_one_row_per_value() {
    let csv = export_courses(courses().as_bytes(), None, ExportFormat::Csv).unwrap();
    let names: Vec<_> = COURSE_COLUMNS.iter().map(|(name, _)| *name).collect();
    let head = names.join(",");
    let expected = [
        head.as_str(),
        "shop,two,0123abcd,first,c4-max,1,1,rust,Modelled,Load,500.0,1.0,temperatureMillicelsius,-1250",
        "shop,two,0123abcd,second,c4-max,1,2,rust,Modelled,Window,1000.5,2.0,nodeMillijoules,5000",
        "shop,two,0123abcd,second,c4-max,1,2,rust,Modelled,Window,1002.5,2.0,nodeMillijoules,6000",
        // Unknown is not 0.
        "shop,two,0123abcd,second,c4-max,1,2,rust,Modelled,Window,1000.5,2.0,candidateCpuMicroseconds,",
        "shop,two,0123abcd,second,c4-max,1,2,rust,Modelled,Window,1002.5,2.0,candidateCpuMicroseconds,0",
        "shop,two,0123abcd,second,c4-max,1,2,rust,Modelled,Window,1000.5,2.5,successes,120",
        "shop,two,0123abcd,second,c4-max,1,2,rust,Modelled,Window,1003.0,2.5,successes,0",
        "shop,two,0123abcd,second,c4-max,1,2,rust,Modelled,Window,1000.5,2.5,errors,0",
        "shop,two,0123abcd,second,c4-max,1,2,rust,Modelled,Window,1003.0,2.5,errors,7",
        "shop,two,0123abcd,second,c4-max,1,2,rust,Modelled,Window,1000.5,2.5,meanNanoseconds,1500000",
        "shop,two,0123abcd,second,c4-max,1,2,rust,Modelled,Window,1003.0,2.5,meanNanoseconds,",
        "shop,two,0123abcd,second,c4-max,1,2,rust,Modelled,Window,1000.5,2.5,p99Nanoseconds,4000000",
        "shop,two,0123abcd,second,c4-max,1,2,rust,Modelled,Window,1003.0,2.5,p99Nanoseconds,",
        "",
    ];
    assert_eq!(String::from_utf8(csv).unwrap(), expected.join("\r\n"));
    let rows: Vec<Value> = serde_json::from_slice(
        &export_courses(courses().as_bytes(), Some("two"), ExportFormat::Json).unwrap(),
    )
    .unwrap();
    assert_eq!(rows.len(), 13);
    assert_eq!(rows[3]["value"], Value::Null);
    let mut sorted = names;
    sorted.sort_unstable();
    for row in &rows {
        assert!(row.as_object().unwrap().keys().eq(&sorted), "{row}");
    }
    let other = export_courses(courses().as_bytes(), Some("other"), ExportFormat::Json).unwrap();
    assert_eq!(other, b"[]\n");
}

#[test]
fn an_entry_of_the_ledger_is_no_course() {
    let error =
        export_courses(data("ledger.json").as_bytes(), None, ExportFormat::Csv).unwrap_err();
    assert!(
        error.to_string().contains("is not a FrugalityTrace"),
        "{error}"
    );
}
