//! The table of a type: its fields, or its values.

// Writing to a String never fails.
use std::fmt::Write as _;

use frugality_operator::crd::bounds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use serde_json::Value;

/// A row per field. `type_of` says a field's type.
pub(super) fn fields(
    schema: &JSONSchemaProps,
    mut type_of: impl FnMut(&str, &JSONSchemaProps) -> String,
) -> String {
    let required = schema.required.as_deref().unwrap_or_default();
    let mut text = "| field | type | default | meaning |\n|---|---|---|---|\n".to_owned();
    for (name, field) in schema.properties.iter().flatten() {
        let type_of_field = type_of(name, field);
        let default = match field.default.as_ref().map(|default| &default.0) {
            // The type's section has the defaults of its fields.
            Some(Value::Object(_)) => String::new(),
            Some(default) => format!("`{default}`"),
            None if required.contains(name) => "required".to_owned(),
            None => String::new(),
        };
        let mut meaning = one_line(field.description.as_deref().unwrap_or_default());
        if field.properties.is_none() {
            for message in messages(field) {
                _ = write!(meaning, " *{}.*", one_line(message));
            }
        }
        _ = writeln!(
            text,
            "| `{name}` | {type_of_field} | {default} | {meaning} |"
        );
    }
    text
}

/// A row per value of a type that has no fields.
pub(super) fn values(schema: &JSONSchemaProps) -> String {
    let mut text = "| value | meaning |\n|---|---|\n".to_owned();
    for variant in schema.one_of.iter().flatten() {
        let names = variant
            .enum_
            .iter()
            .flatten()
            .filter_map(|name| name.0.as_str());
        let fields = variant
            .properties
            .iter()
            .flatten()
            .map(|(name, _)| name.as_str());
        let meaning = one_line(variant.description.as_deref().unwrap_or_default());
        for name in names.chain(fields) {
            _ = writeln!(text, "| `{name}` | {meaning} |");
        }
    }
    text
}

/// A type's description and rules.
pub(super) fn rules(schema: &JSONSchemaProps) -> String {
    let description = one_line(schema.description.as_deref().unwrap_or_default());
    let mut text = if description.is_empty() {
        String::new()
    } else {
        format!("{description}\n\n")
    };
    let rules: Vec<_> = messages(schema)
        .map(|message| {
            format!(
                "- {message}
"
            )
        })
        .collect();
    if !rules.is_empty() {
        _ = write!(text, "Rules:\n\n{}\n", rules.concat());
    }
    text
}

fn messages(schema: &JSONSchemaProps) -> impl Iterator<Item = &str> {
    let rules = schema.x_kubernetes_validations.iter().flatten();
    rules.filter_map(|rule| rule.message.as_deref())
}

/// The values of a type whose values have no description.
pub(super) fn choices(schema: &JSONSchemaProps) -> Option<String> {
    let choices = schema
        .enum_
        .iter()
        .flatten()
        .filter_map(|choice| choice.0.as_str());
    let choices: Vec<_> = choices.map(|choice| format!("`{choice}`")).collect();
    (!choices.is_empty()).then(|| choices.join(", "))
}

/// A type's name with its bounds.
pub(super) fn bounded(name: &str, schema: &JSONSchemaProps) -> String {
    let words = [Some(name.to_owned()), bounds(schema)];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A description in one line, as a cell of a table: without links to Rust's items, and with no bar, which would end the cell.
pub(super) fn one_line(description: &str) -> String {
    let words: Vec<_> = description.split_whitespace().collect();
    let text = words.join(" ").replace("[`", "`").replace("`]", "`");
    text.replace('|', "\\|")
}
