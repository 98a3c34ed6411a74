//! Rules of candidates: names, images, variables, resources and nodes.

use super::{database::database, *};

#[test]
fn names_leave_room_for_derived_names() {
    let message = "metadata.name must be a DNS label of at most 30 characters";
    let name = |text: &str| [("metadata/name", json!(text))];
    rule(message, &name(&"a".repeat(31)), &name(&"a".repeat(30)));
    rule(message, &name("1a"), &name("a1"));
    rule(message, &name("a.b"), &name("a-b"));
}

#[test]
fn a_backend_has_another_name_and_valid_fields() {
    let of = |name: &str| {
        let backend = candidate(name);
        [("spec/candidates/0/backends", json!([backend]))]
    };
    let message = "a backend has the candidate's own name";
    rule(message, &of("server"), &of("service"));
    let bad = |field: &str, value: Value| {
        let mut backend = candidate("service");
        backend[field] = value;
        [("spec/candidates/0/backends", json!([backend]))]
    };
    let message = "env must not set PORT";
    let env = |name: &str| bad("env", json!([{"name": name, "value": "1"}]));
    rule(message, &env("PORT"), &env("PORTS"));
    let message = "a candidate's image is a name without blanks";
    let image = |name: &str| bad("image", json!(name));
    rule(
        message,
        &image("https://example.org/a"),
        &image("example.org/a:1"),
    );
}

#[test]
fn candidates_must_not_set_the_operators_variables() {
    let of = |name: &str| {
        [(
            "spec/candidates/0/env",
            json!([{"name": name, "value": "1"}]),
        )]
    };
    for name in [
        "PORT",
        "DATABASE_URL",
        "POOL_SIZE",
        "PGUSER",
        "PGPASSWORD",
        "POD_IP",
        "PEERS_HOST",
        "PEERS_COUNT",
    ] {
        rule("env must not set PORT", &of(name), &of("PORTS"));
    }
}

#[test]
fn an_image_is_a_name() {
    let of = |image: &str| [("spec/candidates/0/image", json!(image))];
    let message = "a candidate's image is a name without blanks";
    for wrong in [
        "https://example.org/server:1",
        "example.org/server: 1",
        "\u{9}server",
    ] {
        rule(
            message,
            &of(wrong),
            &of("localhost:5000/you/server:1.2@sha256:0a"),
        );
    }
}

#[test]
fn resource_requests_do_not_exceed_the_limits() {
    let of = |requests: Value, limits: Value| {
        [(
            "spec/candidates/0/resources",
            json!({"requests": requests, "limits": limits}),
        )]
    };
    rule(
        "resources.requests.cpu is more than",
        &of(json!({"cpu": "1.1"}), json!({"cpu": "1000m"})),
        &of(
            json!({"cpu": "1"}),
            json!({"cpu": "1000m", "memory": "64Mi"}),
        ),
    );
    rule(
        "resources.requests.memory is more than",
        &of(json!({"memory": "1Gi"}), json!({"memory": "1G"})),
        &of(
            json!({"memory": "1G", "cpu": "1"}),
            json!({"memory": "1Gi"}),
        ),
    );
    let mut of_database = database(
        "resources",
        json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
    );
    let broken = of_database.clone();
    of_database[0].1["resources"]["limits"]["cpu"] = json!("2");
    rule("resources.requests.cpu is more than", &broken, &of_database);
}

#[test]
fn the_injector_is_not_put_on_the_measured_node() {
    let of = |injector: &str, shared: bool| {
        [(
            "spec/placement",
            json!({
                "measuredNodeSelector": {"kubernetes.io/hostname": "pi-1"},
                "injectorNodeSelector": {"kubernetes.io/hostname": injector, "board": "pi"},
                "allowSharedNode": shared,
            }),
        )]
    };
    let message = "placement puts the injector on the measured node";
    rule(message, &of("pi-1", false), &of("pi-2", false));
    rule(message, &of("pi-1", false), &of("pi-1", true));
}

#[test]
fn candidates_with_boards_have_no_database() {
    let board = |selector: Value| {
        let mut board = candidate(SERVER);
        board["measuredNodeSelector"] = selector;
        board
    };
    let of = |candidate: Value| ("spec/candidates", json!([candidate]));
    let pi = || json!({"kubernetes.io/hostname": "pi-5"});
    let [contacts] = database("seed", json!({"contacts": 10}));
    rule(
        "a database runs on one node, together with its candidates",
        &[of(board(pi())), contacts],
        &[of(board(pi()))],
    );
    rule(
        "a candidate's measuredNodeSelector names labels",
        &[of(board(json!({})))],
        &[of(board(pi()))],
    );
    let priced = |mut candidate: Value| {
        candidate["costs"] = json!({
            "nodeLifetime": "43800h",
            "carbon": {"nodeGrams": "1", "gramsPerKilowattHour": "1"},
        });
        [of(candidate)]
    };
    rule(
        "a candidate's costs need a node of its own",
        &priced(candidate(SERVER)),
        &priced(board(pi())),
    );
}
