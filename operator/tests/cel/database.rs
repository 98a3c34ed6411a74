//! Rules of the database.

use super::*;

/// A database with this field set.
pub(super) fn database(field: &str, value: Value) -> [(&'static str, Value); 1] {
    let mut database = json!({"seed": {"contacts": 10}});
    database[field] = value;
    [("spec/database", database)]
}

#[test]
fn the_database_image_names_its_version() {
    let of = |image: &str| {
        [(
            "spec/database",
            json!({"image": image, "seed": {"contacts": 10}}),
        )]
    };
    let message = "database.image needs a tag";
    rule(
        message,
        &of("example.org/postgresql:latest"),
        &of("example.org/postgresql:17.5"),
    );
    rule(
        message,
        &of("example.org:5000/postgresql"),
        &of("example.org:5000/postgresql:15-bookworm"),
    );
}

#[test]
fn the_database_is_postgresql_15_or_later() {
    let message = "database.image must be PostgreSQL 15 or later";
    for (old, new) in [
        ("example.org/postgresql:14", "example.org/postgresql:15"),
        (
            "example.org:5000/pg:9.6-alpine",
            "example.org:5000/pg:17.5-alpine",
        ),
        ("example.org/pg:14@sha256:0a", "example.org/pg:16@sha256:0a"),
    ] {
        rule(
            message,
            &database("image", json!(old)),
            &database("image", json!(new)),
        );
    }
}

#[test]
fn only_allowed_parameters_in_lower_case_are_accepted() {
    for name in [
        "port",
        "Port",
        "LISTEN_ADDRESSES",
        "ssl",
        "Data_Directory",
        "Work_Mem",
        "archive_command",
        "shared_preload_libraries",
        "search_path",
        "session_replication_role",
        "track_counts",
        "pg_stat_statements.max",
        " port",
        "",
    ] {
        rule(
            &format!("database.parameters must not set {name}: allowed are"),
            &database("parameters", json!({name: "1", "work_mem": "4MB"})),
            &database("parameters", json!({"work_mem": "4MB"})),
        );
    }
}

#[test]
fn every_allowed_parameter_is_explained_and_in_lower_case() {
    let mut schema = schema::<FrugalityBenchmark>();
    let of = "/properties/spec/properties/database/properties/parameters/description";
    let explained = schema.pointer_mut(of).unwrap().take();
    for name in ALLOWED_PARAMETERS {
        let is_small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
        assert!(name.chars().all(is_small), "{name}");
        assert!(
            explained.as_str().unwrap().contains(&format!("`{name}`")),
            "{name}"
        );
    }
    let all = ALLOWED_PARAMETERS
        .iter()
        .take(64)
        .map(|name| (*name, "100"));
    let all: BTreeMap<&str, &str> = all.collect();
    let reported = refusals(
        &self::schema::<FrugalityBenchmark>(),
        &benchmark(&database("parameters", json!(all))),
        None,
    );
    assert_eq!(reported, Vec::<String>::new());
}

#[test]
fn fields_of_one_provider_are_refused_for_the_other() {
    let of = |provider: &str, field: &str, value: Value| {
        let mut changes = database(field, value);
        changes[0].1["provider"] = json!(provider);
        changes
    };
    let user = |provider| of(provider, "runAsUser", json!(999));
    rule(
        "database.runAsUser goes with",
        &user("CloudNativePG"),
        &user("Standalone"),
    );
    rule(
        "database.runAsUser goes with",
        &database("runAsUser", json!(999)),
        &user("Standalone"),
    );
    let instances = |provider, number| of(provider, "instances", json!(number));
    rule(
        "database.instances goes with",
        &instances("Standalone", 2),
        &instances("CloudNativePG", 2),
    );
    rule(
        "database.instances goes with",
        &instances("Standalone", 2),
        &instances("Standalone", 1),
    );
    let storage = |provider, storage| of(provider, "storage", storage);
    rule(
        "database.storage.storageClass goes with",
        &storage("Standalone", json!({"storageClass": "local-path"})),
        &storage("CloudNativePG", json!({"storageClass": "local-path"})),
    );
    rule(
        "database.storage.storageClass goes with",
        &storage("Standalone", json!({"storageClass": "local-path"})),
        &storage("Standalone", json!({"size": "512Mi"})),
    );
}

#[test]
fn the_database_has_connections_for_the_pool() {
    let of = |most: &str| {
        let mut changes = database("parameters", json!({"max_connections": most}));
        changes[0].1["poolSize"] = json!(20);
        changes
    };
    let message = "database.parameters.max_connections leaves too few";
    rule(message, &of("29"), &of("30"));
    // PostgreSQL refuses a value that is not a number. The rule does not.
    rule(message, &of("5"), &of("many"));
}

#[test]
fn a_database_is_filled_in_one_way() {
    let of = |seed: Value| [("spec/database", json!({ "seed": seed }))];
    let own = json!({"name": "sql", "key": "seed.sql", "table": "t", "rows": 3});
    let message = "database.seed needs exactly one of";
    rule(message, &of(json!({})), &of(json!({"contacts": 10})));
    rule(
        message,
        &of(json!({"contacts": 10, "configMap": own})),
        &of(json!({"configMap": own})),
    );
}
