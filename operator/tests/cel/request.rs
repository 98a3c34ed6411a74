//! Rules of single requests.

use super::*;

#[test]
fn paths_contain_no_host_and_no_blanks() {
    let readiness = |path: &str| [("spec/candidates/0/readinessPath", json!(path))];
    let request = |path: &str| [("spec/request/path", json!(path))];
    for wrong in ["healthz", "http://server/healthz", "/health z"] {
        rule(
            "readinessPath is a path without host and blanks",
            &readiness(wrong),
            &readiness("/"),
        );
        rule(
            "request.path is a path without host and blanks",
            &request(wrong),
            &request("/a?b=%20{uuid}"),
        );
    }
}

#[test]
fn headers_of_the_connection_are_refused() {
    let of = |name: &str| {
        [(
            "spec/request/headers",
            json!([{"name": name, "value": "1"}]),
        )]
    };
    for name in ["Connection", "content-length", "Transfer-Encoding"] {
        rule(
            "request.headers must not set Connection",
            &of(name),
            &of("Content-Type"),
        );
    }
}

#[test]
fn a_header_value_has_no_blanks_at_its_ends() {
    let of = |value: &str| {
        [(
            "spec/request/headers",
            json!([{"name": "X", "value": value}]),
        )]
    };
    for value in [" a", "a ", "\ta", "a\t", " "] {
        rule(
            "a header's value must not begin or end with a blank",
            &of(value),
            &of("a b\tc"),
        );
    }
    assert_eq!(
        refusals(&schema::<FrugalityBenchmark>(), &benchmark(&of("")), None),
        Vec::<String>::new()
    );
}

#[test]
fn a_body_goes_with_a_method_that_has_one() {
    let of = |method: &str| {
        [(
            "spec/request",
            json!({"path": "/", "method": method, "body": "x"}),
        )]
    };
    for method in ["POST", "PUT", "PATCH"] {
        rule(
            "request.body goes with method POST, PUT or PATCH",
            &of("GET"),
            &of(method),
        );
    }
}
