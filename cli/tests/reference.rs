//! The API reference: complete, without repetition, and the one in `docs/`.

use std::{collections::BTreeSet, path::Path};

use kubectl_frugality::{export::columns::COLUMNS, reference::markdown};
use serde_json::Value;

use crate::data;

#[test]
fn the_document_is_what_the_types_generate() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/api.md");
    let file = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        file == markdown().unwrap(),
        "docs/api.md is not what the types generate: run `make generate`"
    );
}

#[test]
fn each_type_has_one_section_and_each_link_leads_to_one() {
    let text = markdown().unwrap();
    let headings: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .map(str::to_lowercase)
        .collect();
    let anchors: BTreeSet<_> = headings.iter().map(String::as_str).collect();
    assert_eq!(anchors.len(), headings.len(), "a heading occurs twice");
    let links = text.split("](#").skip(1);
    let links: BTreeSet<_> = links.map(|link| link.split(')').next().unwrap()).collect();
    let broken: Vec<_> = links.difference(&anchors).collect();
    assert!(broken.is_empty(), "{broken:?}");
    let kinds = |name: &&str| name.starts_with("frugality");
    let unused: Vec<_> = anchors.difference(&links).filter(|it| !kinds(it)).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn no_table_occurs_twice() {
    let text = markdown().unwrap();
    let mut tables = BTreeSet::new();
    for section in text.split("\n### ").skip(1) {
        let table = section.split_once("\n| ").map_or("", |(_, table)| table);
        let name = section.lines().next().unwrap();
        assert!(tables.insert(table), "{name} repeats another type");
    }
}

#[test]
fn every_field_value_and_column_is_described() {
    let text = markdown().unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let silent: Vec<_> = rows.filter(|line| line.ends_with("|  |")).collect();
    assert!(silent.is_empty(), "{silent:#?}");
    for column in COLUMNS {
        assert!(text.contains(&format!("| `{}` | ", column.name)));
    }
}

/// Names of the fields of all objects within, without the keys of maps.
fn names(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| names(item, into)),
        Value::Object(fields) => {
            for (name, field) in fields {
                into.insert(name.clone());
                let is_map = ["checks", "codes", "images", "percentilesMs", "state"];
                if !is_map.contains(&name.as_str()) {
                    names(field, into);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn every_field_of_a_ledger_entry_has_a_row() {
    let text = markdown().unwrap();
    let list: Value = serde_json::from_str(&data("ledger.json")).unwrap();
    let mut written = BTreeSet::new();
    for entry in list["items"].as_array().unwrap() {
        names(&entry["spec"], &mut written);
        names(&entry["status"], &mut written);
    }
    assert!(written.contains("startUnixSeconds") && written.len() > 50);
    for name in written {
        assert!(text.contains(&format!("| `{name}` | ")), "{name}");
    }
}
