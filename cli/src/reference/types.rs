//! Which type has which section, and which fields link to it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use super::{
    api::referred,
    fields::{bounded, choices, fields, rules, values},
};

/// The known types. A schema does not name a type of [`kube::KubeSchema`]. Such types are equal if their fields are equal.
/// The field that is seen first gives the name.
pub(super) struct Types {
    definitions: BTreeMap<String, JSONSchemaProps>,
    unnamed: Vec<(String, JSONSchemaProps)>,
    described: BTreeSet<String>,
}

/// Types that a section links to and that have no section yet.
type Found = Vec<(String, JSONSchemaProps)>;

impl Types {
    pub(super) fn new(definitions: BTreeMap<String, JSONSchemaProps>) -> Self {
        Self {
            definitions,
            unnamed: Vec::new(),
            described: BTreeSet::new(),
        }
    }

    /// A kind's description, and the sections of its spec and status with all types within.
    pub(super) fn kind(&mut self, kind: &str, schema: &JSONSchemaProps) -> String {
        let mut text = rules(schema);
        for (part, title) in [("spec", "Spec"), ("status", "Status")] {
            if let Some(part) = schema.properties.as_ref().and_then(|it| it.get(part)) {
                let name = format!("{kind}{title}");
                let schema = self.known(part).unwrap_or_else(|| part.clone());
                text += &self.sections(&name, &schema);
            }
        }
        text
    }

    /// The section of a type, and the sections of its types that have none yet.
    fn sections(&mut self, name: &str, schema: &JSONSchemaProps) -> String {
        if !self.described.insert(name.to_owned()) {
            return String::new();
        }
        let mut found = Found::new();
        let table = match &schema.properties {
            Some(_) => fields(schema, |field, schema| {
                // The description is the field's, not its type's.
                let description = None;
                let schema = JSONSchemaProps {
                    description,
                    ..schema.clone()
                };
                self.type_of(name, field, &schema, &mut found)
            }),
            None => values(schema),
        };
        let section = format!("### {name}\n\n{}{table}\n", rules(schema));
        let mut text = with_names_as_written(section, schema);
        for (name, schema) in found {
            text += &self.sections(&name, &schema);
        }
        text
    }

    /// A field's type in a few words, with a link to its section.
    fn type_of(
        &mut self,
        parent: &str,
        field: &str,
        schema: &JSONSchemaProps,
        found: &mut Found,
    ) -> String {
        if let Some(name) = referred(schema) {
            let name = name.rsplit('.').next().unwrap_or(name).to_owned();
            return match (name.as_str(), self.known(schema)) {
                ("IntOrString", _) => "integer or string".to_owned(),
                ("Time", _) => "time (RFC 3339)".to_owned(),
                (_, Some(known)) => match choices(&known) {
                    Some(choices) => choices,
                    None => link(&name, &known, found),
                },
                (_, None) => name,
            };
        }
        if schema.properties.is_some() {
            let name = self.name(parent, field, schema);
            return link(&name, schema, found);
        }
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
            let singular = field.strip_suffix('s').unwrap_or(field);
            let items = self.type_of(parent, singular, items, found);
            return bounded(&format!("list of {items}"), schema);
        }
        if let Some(values) = map_values(schema) {
            let values = self.type_of(parent, field, values, found);
            return bounded(&format!("map of string to {values}"), schema);
        }
        choices(schema).unwrap_or_else(|| bounded(type_name(schema), schema))
    }

    fn known(&self, schema: &JSONSchemaProps) -> Option<JSONSchemaProps> {
        self.definitions.get(referred(schema)?).cloned()
    }

    /// The name of a type that the schema does not name.
    fn name(&mut self, parent: &str, field: &str, schema: &JSONSchemaProps) -> String {
        let is_same = |known: &JSONSchemaProps| {
            known.properties == schema.properties
                && known.x_kubernetes_validations == schema.x_kubernetes_validations
        };
        if let Some((name, _)) = self.unnamed.iter().find(|(_, known)| is_same(known)) {
            return name.clone();
        }
        let (first, rest) = field.split_at(1);
        let name = first.to_uppercase() + rest;
        let is_taken = self.definitions.contains_key(&name)
            || self.unnamed.iter().any(|(known, _)| *known == name);
        let name = if is_taken {
            format!("{parent}{name}")
        } else {
            name
        };
        self.unnamed.push((name.clone(), schema.clone()));
        name
    }
}

/// Doc comments name the fields of the same type as Rust does; users know them by their names in JSON.
fn with_names_as_written(mut text: String, schema: &JSONSchemaProps) -> String {
    for name in schema.properties.iter().flatten().map(|(name, _)| name) {
        let in_rust = name.chars().fold(String::new(), |text, char| {
            let separator = if char.is_uppercase() { "_" } else { "" };
            text + separator + &char.to_lowercase().to_string()
        });
        text = text.replace(&format!("`{in_rust}`"), &format!("`{name}`"));
    }
    text
}

fn link(name: &str, schema: &JSONSchemaProps, found: &mut Found) -> String {
    found.push((name.to_owned(), schema.clone()));
    format!("[{name}](#{})", name.to_lowercase())
}

fn map_values(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(values)) => Some(values),
        _ => schema.pattern_properties.as_ref()?.values().next(),
    }
}

fn type_name(schema: &JSONSchemaProps) -> &str {
    match schema.type_.as_deref() {
        Some(name) => name,
        None if schema.x_kubernetes_int_or_string == Some(true) => "integer or string",
        None => "any",
    }
}
