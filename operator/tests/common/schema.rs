//! Checks whether an API server would accept a status, as far as the schemas of the CRDs decide it. A crate
//! for JSON schemas would do this too. Its features, however, would make cargo compile half of the operator
//! twice: for the tests and for the images.

use std::{collections::BTreeSet, sync::LazyLock};

use frugality_operator::crd::definitions;
use serde::Serialize;
use serde_json::Value;

/// The schemas of the statuses, by kind.
static STATUSES: LazyLock<Vec<(String, Value)>> = LazyLock::new(|| {
    // The course of an attempt has no status.
    let of = |definition: Value| {
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/status";
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        Some((kind.to_owned(), definition.pointer(schema)?.clone()))
    };
    let definitions = definitions().into_iter();
    definitions
        .filter_map(|(_, definition)| of(serde_json::to_value(definition).unwrap()))
        .collect()
});

/// Asserts that the API server would store the whole status.
#[track_caller]
pub(crate) fn assert_taken(kind: &str, status: &impl Serialize) {
    let known = STATUSES.iter().find(|(known, _)| known == kind);
    let mut faults = Vec::new();
    look(
        &known.unwrap().1,
        &serde_json::to_value(status).unwrap(),
        "status",
        &mut faults,
    );
    assert!(faults.is_empty(), "{kind}: {faults:#?}");
}

/// Appends every violation of the schema to `faults`.
fn look(schema: &Value, value: &Value, path: &str, faults: &mut Vec<String>) {
    let mut fault = |what: String| faults.push(format!("{path}: {what}"));
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    let is = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        _ => true,
    };
    if !is {
        return fault(format!("{value} is not of type {}", schema["type"]));
    }
    let most = |limit: &str| schema[limit].as_u64().unwrap_or(u64::MAX);
    let number = value.as_f64().unwrap_or_default();
    if number < schema["minimum"].as_f64().unwrap_or(f64::NEG_INFINITY) {
        fault(format!("{number} is below the minimum"));
    }
    let of_enum = schema["enum"].as_array();
    if of_enum.is_some_and(|values| !values.contains(value)) {
        fault(format!("{value} is not an allowed value"));
    }
    match value {
        Value::String(text) if text.chars().count() as u64 > most("maxLength") => {
            fault(format!("{value} is too long"));
        }
        Value::Array(items) => {
            if items.len() as u64 > most("maxItems") {
                fault(format!("{} items are too many", items.len()));
            }
            let keys = schema["x-kubernetes-list-map-keys"].as_array();
            let keys = keys.into_iter().flatten().filter_map(Value::as_str);
            let keys: Vec<_> = keys.collect();
            let key = |item: &Value| keys.iter().map(|key| item[key].to_string()).collect();
            let distinct: BTreeSet<Vec<String>> = items.iter().map(key).collect();
            if !keys.is_empty() && distinct.len() < items.len() {
                fault("two items have the same key".into());
            }
            for (index, item) in items.iter().enumerate() {
                look(&schema["items"], item, &format!("{path}[{index}]"), faults);
            }
        }
        Value::Object(fields) => {
            if fields.len() as u64 > most("maxProperties") {
                fault(format!("{} fields are too many", fields.len()));
            }
            for name in schema["required"].as_array().into_iter().flatten() {
                if !fields.contains_key(name.as_str().unwrap_or_default()) {
                    fault(format!("{name} is missing"));
                }
            }
            let is_free = schema["x-kubernetes-preserve-unknown-fields"] == true;
            for (name, field) in fields {
                let own = schema["properties"].get(name);
                match own.or(schema.get("additionalProperties")) {
                    Some(schema) => look(schema, field, &format!("{path}.{name}"), faults),
                    None if is_free => {}
                    None => faults.push(format!("{path}: {name} would be dropped")),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn values_that_an_api_server_would_refuse_are_found() {
    let schema = serde_json::json!({
        "type": "object", "required": ["name"],
        "properties": {
            "name": {"type": "string", "maxLength": 3, "enum": ["one", "seven"]},
            "among": {"type": "array", "maxItems": 1, "items": {"type": "integer", "minimum": 1}},
            "checks": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "number"}},
            "parts": {
                "type": "array", "x-kubernetes-list-map-keys": ["key"],
                "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
            "rest": {"type": "boolean", "nullable": true},
        },
    });
    let faults = |value: Value| {
        let mut faults = Vec::new();
        look(&schema, &value, "it", &mut faults);
        faults
    };
    let kept = serde_json::json!({
        "name": "one", "among": [1], "checks": {"a": 0.5}, "rest": null,
        "parts": [{"key": 1}, {"key": 2, "more": 1}],
    });
    assert!(faults(kept.clone()).is_empty());
    for (path, value) in [
        ("/name", "two".into()),
        ("/name", "seven".into()),
        ("/name", Value::Null),
        ("/among", serde_json::json!([1, 2])),
        ("/among/0", 0.into()),
        ("/among/0", 1.5.into()),
        ("/checks", serde_json::json!({"a": 1, "b": 2})),
        ("/checks/a", "1".into()),
        ("/parts/1/key", 1.into()),
        ("/rest", 1.into()),
        ("", serde_json::json!({"other": 1, "name": "one"})),
        ("", serde_json::json!({})),
    ] {
        let mut broken = kept.clone();
        *broken.pointer_mut(path).unwrap() = value;
        assert_eq!(faults(broken.clone()).len(), 1, "{broken}");
    }
}
