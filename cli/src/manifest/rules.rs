//! The rules of the definition (CEL), evaluated without an API server.

use frugality_operator::crd::bare_definitions;
use kube_cel::{ErrorKind, Validator};
use serde_json::Value;

/// Path of a version's schema in a definition.
const SCHEMA: &str = "/spec/versions/0/schema/openAPIV3Schema";

/// The messages of the rules that the benchmark breaks. A rule that can't be evaluated without an API server is left out.
pub(super) fn broken(benchmark: &Value) -> Vec<String> {
    let [(_, definition), ..] = bare_definitions();
    let Ok(definition) = serde_json::to_value(definition) else {
        return Vec::new();
    };
    let schema = definition.pointer(SCHEMA).unwrap_or(&Value::Null);
    let errors = match Validator::new().validate(schema, benchmark, None) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.into_vec(),
    };
    let broken = errors
        .into_iter()
        .filter(|error| error.kind == ErrorKind::ValidationFailure);
    broken.map(|error| error.message).collect()
}
