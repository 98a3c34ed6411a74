//! Types and limits of the definition's fields, and unknown fields.

use frugality_operator::crd::bare_definitions;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex::Regex;
use serde_json::Value;

/// What the benchmark's fields break, each with its path.
pub(super) fn broken(benchmark: &Value) -> Vec<String> {
    let [(_, definition), ..] = bare_definitions();
    let mut broken = Vec::new();
    if benchmark["metadata"]["name"].as_str().is_none() {
        broken.push("metadata.name is missing: write for example name: shop".to_owned());
    }
    let versions = definition.spec.versions.into_iter();
    let schemas = versions.filter_map(|version| version.schema?.open_api_v3_schema);
    for schema in schemas {
        let spec = schema.properties.as_ref().and_then(|it| it.get("spec"));
        match (spec, benchmark.get("spec")) {
            (Some(schema), Some(spec)) => examine(schema, spec, "spec", &mut broken),
            _ => broken.push("spec is missing".to_owned()),
        }
    }
    broken
}

fn examine(schema: &JSONSchemaProps, value: &Value, path: &str, broken: &mut Vec<String>) {
    let kind = schema.type_.as_deref();
    if let Some(kind) = kind.filter(|kind| !is_of(kind, value)) {
        broken.push(format!("{path} must be of the type {kind}, not {value}"));
        return;
    }
    match value {
        Value::Object(fields) => {
            for name in schema.required.iter().flatten() {
                if !fields.contains_key(name) {
                    broken.push(format!("{path}.{name} is missing"));
                }
            }
            let known = schema.properties.as_ref();
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                match (
                    known.and_then(|it| it.get(name)),
                    &schema.additional_properties,
                ) {
                    (Some(schema), _) => examine(schema, value, &path, broken),
                    (None, Some(JSONSchemaPropsOrBool::Schema(schema))) => {
                        examine(schema, value, &path, broken);
                    }
                    (None, None) if schema.x_kubernetes_preserve_unknown_fields != Some(true) => {
                        broken.push(unknown(&path, known.into_iter().flat_map(|it| it.keys())));
                    }
                    (None, _) => {}
                }
            }
            let most = schema.max_properties;
            count(path, fields.len(), "entries", None, most, broken);
        }
        Value::Array(items) => {
            let (least, most) = (schema.min_items, schema.max_items);
            count(path, items.len(), "items", least, most, broken);
            if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    examine(schema, item, &format!("{path}[{index}]"), broken);
                }
            }
            repeated(schema, items, path, broken);
        }
        Value::String(text) => {
            let (least, most) = (schema.min_length, schema.max_length);
            let length = text.chars().count();
            count(path, length, "characters", least, most, broken);
            let pattern = schema.pattern.as_deref().map(Regex::new);
            if let Some(Ok(pattern)) = pattern
                && !pattern.is_match(text)
            {
                broken.push(format!("{path}: `{text}` does not match {pattern}"));
            }
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            let within = schema.minimum.is_none_or(|least| number >= least)
                && schema.maximum.is_none_or(|most| number <= most);
            if !within {
                let least = schema.minimum.map(|it| format!("from {it}"));
                let most = schema.maximum.map(|it| format!("up to {it}"));
                let range: Vec<_> = least.into_iter().chain(most).collect();
                broken.push(format!(
                    "{path} is {number}, but must be {}",
                    range.join(" ")
                ));
            }
        }
        Value::Bool(_) | Value::Null => {}
    }
    if let Some(values) = &schema.enum_
        && !values.iter().any(|allowed| allowed.0 == *value)
    {
        let values: Vec<_> = values.iter().map(|it| it.0.to_string()).collect();
        let values = values.join(", ").replace('"', "");
        broken.push(format!("{path} is {value}: write one of {values}"));
    }
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => true,
    }
}

fn unknown<'a>(path: &str, known: impl Iterator<Item = &'a String>) -> String {
    let known: Vec<&str> = known.map(String::as_str).collect();
    format!("{path} is not a field; the fields are {}", known.join(", "))
}

fn count(
    path: &str,
    number: usize,
    what: &str,
    least: Option<i64>,
    most: Option<i64>,
    broken: &mut Vec<String>,
) {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    match (least, most) {
        (Some(least), _) if number < least => {
            broken.push(format!(
                "{path} has {number} {what}, but needs at least {least}"
            ));
        }
        (_, Some(most)) if number > most => {
            broken.push(format!(
                "{path} has {number} {what}, but may have at most {most}"
            ));
        }
        _ => {}
    }
}

/// Two items of a list with the same key.
fn repeated(schema: &JSONSchemaProps, items: &[Value], path: &str, broken: &mut Vec<String>) {
    let key_of = |item: &Value| match schema.x_kubernetes_list_type.as_deref() {
        Some("map") => {
            let keys = schema.x_kubernetes_list_map_keys.iter().flatten();
            let key: Vec<_> = keys.map(|key| item[key].to_string()).collect();
            Some(key.join(", "))
        }
        Some("set") => Some(item.to_string()),
        _ => None,
    };
    let keys: Vec<_> = items.iter().filter_map(key_of).collect();
    for (index, key) in keys.iter().enumerate() {
        if keys[..index].contains(key) {
            broken.push(format!("{path}[{index}]: {key} occurs twice"));
        }
    }
}
