//! The API reference as Markdown, from the same Rust types as the custom resource definitions.
//!
//! Each type has one section. A field whose type has a section links to it.

mod api;
mod fields;
mod types;

// Writing to a String never fails.
use std::fmt::Write as _;

use frugality_operator::api::{
    FrugalityBaseline, FrugalityBenchmark, FrugalityTrace, FrugalityTrial,
};
use kube::CustomResourceExt as _;

use self::{api::Api, fields::one_line, types::Types};
use crate::export::{columns::COLUMNS, course::COURSE_COLUMNS};

const INTRODUCTION: &str = "\
# API reference

`make generate` writes this page from the Rust types. `kubectl explain` shows the same text. A type with fields of its own has one
section, and the fields of this type link to it.

";

const EXPORT: &str = "\
## Columns of an export

The columns of `kubectl frugality export --format csv`, and the fields of `--format json`. An unknown value is an empty cell or
`null`, never 0.

| column | meaning |
|---|---|
";

const COURSES: &str = "
## Columns of an export of courses

The columns of `kubectl frugality export --traces --format csv`, and the fields of `--format json`. There is one row per value. An
unknown value is an empty cell or `null`, never 0. A quantity that is unknown in a whole phase has no rows.

| column | meaning |
|---|---|
";

/// The whole reference: all kinds with all their types, and the columns of an export.
pub fn markdown() -> Result<String, serde_json::Error> {
    let Api {
        definitions: of_types,
        kinds,
    } = Api::generate()?;
    let mut types = Types::new(of_types);
    let mut text = INTRODUCTION.to_owned();
    let definitions = [
        FrugalityBenchmark::crd(),
        FrugalityTrial::crd(),
        FrugalityBaseline::crd(),
        FrugalityTrace::crd(),
    ];
    for (definition, schema) in definitions.iter().zip(&kinds) {
        let (names, group) = (&definition.spec.names, &definition.spec.group);
        let kind = &names.kind;
        let version = &definition.spec.versions[0].name;
        let short = names.short_names.iter().flatten().next();
        let short = short
            .map(|name| format!(", short `{name}`"))
            .unwrap_or_default();
        _ = write!(text, "## {kind} (`{group}/{version}`{short})\n\n");
        text += &types.kind(kind, schema);
    }
    text += EXPORT;
    for column in COLUMNS {
        _ = writeln!(text, "| `{}` | {} |", column.name, one_line(column.meaning));
    }
    text += COURSES;
    for (name, meaning) in COURSE_COLUMNS {
        _ = writeln!(text, "| `{name}` | {meaning} |");
    }
    Ok(text)
}
