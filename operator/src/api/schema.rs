//! Schemas that the derives do not write.

/// A map of strings with bounded values, because CEL's cost estimate needs bounds.
pub(in crate::api) fn string_map(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": { "type": "string", "maxLength": 1024 },
    })
}

/// Schema of an object whose fields come from the Rust type and grow with it.
pub(in crate::api) fn open_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
