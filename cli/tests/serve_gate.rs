//! The gate as a server, asked as Flagger asks it.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::{Child, ChildStderr, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    api::{Answer, Api, refusal},
    data,
};

const DIGEST: &str = "@sha256:0123";

/// The body of a webhook as Flagger v1.36.1 marshals it: `CanaryWebhookPayload` in pkg/apis/flagger/v1beta1/canary.go.
fn payload(phase: &str) -> String {
    format!(
        r#"{{"name":"web","namespace":"shop","phase":"{phase}","checksum":"85d557f47b","metadata":{{"benchmark":"two"}}}}"#
    )
}

fn canary() -> Value {
    let hook = |kind: &str| {
        json!({
            "type": kind, "name": kind, "url": "http://gate/confirm", "muteAlert": false,
            "metadata": { "benchmark": "two" },
        })
    };
    json!({
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": {
            "targetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "rust" },
            "service": { "port": 80 },
            "analysis": { "webhooks": [hook("confirm-rollout"), hook("confirm-promotion")] },
        },
    })
}

fn deployment(image: &str) -> Value {
    let container = json!({ "name": "server", "image": image });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "rust", "namespace": "shop" },
        "spec": { "template": { "spec": { "containers": [container] } } },
    })
}

/// A benchmark of one image, with a budget for it.
fn benchmark(image: &str, verdict: &str) -> Value {
    let mut benchmark: Value = serde_json::from_str(&data("passed.json")).unwrap();
    benchmark["spec"]["candidates"][0]["image"] = json!(image);
    benchmark["status"]["verdict"] = json!(verdict);
    benchmark
}

fn image(tag: &str) -> String {
    format!("example.org/rust:{tag}{DIGEST}{tag}")
}

fn found(objects: &[Value]) -> Vec<Answer> {
    objects.iter().map(|it| (200, it.to_string())).collect()
}

/// The answers of the API server to one question: Canary, target, benchmark.
fn release(image: &str, benchmark: &Value) -> Vec<Answer> {
    found(&[canary(), deployment(image), benchmark.clone()])
}

fn twice(answers: &[Answer]) -> Vec<Answer> {
    [answers, answers].concat()
}

/// A gate that runs. It is killed with its test.
struct Server {
    child: Child,
    address: SocketAddr,
    log: BufReader<ChildStderr>,
}

impl Server {
    fn of(api: &Api, options: &[&str]) -> Self {
        let arguments = [&["serve-gate", "--listen=127.0.0.1:0"], options].concat();
        let mut child = api
            .command(&arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        let address = line.trim().rsplit(' ').next().unwrap().parse();
        let address = address.unwrap_or_else(|_| panic!("no address in: {line}"));
        Self {
            child,
            address,
            log,
        }
    }

    /// Status and body for a request.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: gate\r\nUser-Agent: Go-http-client/1.1\r\nContent-Length: {}\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        // The server closes the connection.
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, text.to_owned())
    }

    fn confirm(&self) -> (u16, String) {
        self.ask("POST", "/confirm", &payload("Waiting"))
    }

    fn rollback(&self) -> (u16, String) {
        self.ask("POST", "/rollback", &payload("WaitingPromotion"))
    }

    /// Ends the server as kubelet does, and returns its exit code and the rest of its log.
    fn end(mut self) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        let killed = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(killed.unwrap().success());
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn each_verdict_has_an_answer_to_both_questions() {
    for (verdict, confirm, rollback) in [
        ("Pass", 200, 403),
        ("Fail", 403, 200),
        ("Inconclusive", 403, 403),
        ("Invalid", 403, 200),
        ("Error", 403, 200),
        ("Reported", 403, 403),
    ] {
        let answers = twice(&release(&image("1"), &benchmark(&image("1"), verdict)));
        let api = Api::answering(&format!("serve-{verdict}"), answers);
        let server = Server::of(&api, &[]);
        let (status, text) = server.confirm();
        assert_eq!(status, confirm, "{verdict}: {text}");
        let (status, text) = server.rollback();
        assert_eq!(status, rollback, "{verdict}: {text}");
    }
}

#[test]
fn it_reads_the_canary_its_target_and_the_benchmark_and_nothing_else() {
    let api = Api::answering(
        "serve-reads",
        release(&image("1"), &benchmark(&image("1"), "Pass")),
    );
    let server = Server::of(&api, &[]);
    assert_eq!(server.ask("GET", "/healthz", ""), (200, "ok\n".to_owned()));
    assert_eq!(api.asked(), Vec::<String>::new());
    let (status, text) = server.confirm();
    assert_eq!(
        (status, text.as_str()),
        (200, "Open: benchmark two has the verdict Pass.\n")
    );
    let expected = [
        "GET /apis/flagger.app/v1beta1/namespaces/shop/canaries/web",
        "GET /apis/apps/v1/namespaces/shop/deployments/rust",
        "GET /apis/frugality.dev/v1alpha1/namespaces/shop/frugalitybenchmarks/two",
    ];
    assert_eq!(api.asked(), expected);
}

#[test]
fn a_verdict_about_another_image_opens_nothing_and_rolls_nothing_back() {
    for verdict in ["Pass", "Fail"] {
        let answers = twice(&release(&image("2"), &benchmark(&image("1"), verdict)));
        let api = Api::answering(&format!("serve-other-{verdict}"), answers);
        let server = Server::of(&api, &[]);
        for (status, text) in [server.confirm(), server.rollback()] {
            assert_eq!(status, 403, "{text}");
            assert!(text.contains("does not measure the image"), "{text}");
            assert!(!text.contains("example.org"), "{text}");
        }
        // The log may name the images.
        let (_, log) = server.end();
        assert!(
            log.contains(&image("1")) && log.contains(&image("2")),
            "{log}"
        );
    }
}

#[test]
fn a_verdict_of_an_older_generation_is_no_answer_yet() {
    let mut edited = benchmark(&image("1"), "Pass");
    edited["metadata"]["generation"] = json!(3);
    let mut unseen = edited.clone();
    unseen["status"] = json!({ "observedGeneration": -1 });
    for (name, benchmark) in [("edited", edited), ("unseen", unseen)] {
        let answers = twice(&release(&image("1"), &benchmark));
        let api = Api::answering(&format!("serve-{name}"), answers);
        let server = Server::of(&api, &[]);
        for (status, text) in [server.confirm(), server.rollback()] {
            assert_eq!(status, 409, "{text}");
        }
    }
}

#[test]
fn a_pass_without_a_budget_for_the_image_does_not_open() {
    let mut passed = benchmark(&image("1"), "Pass");
    passed["spec"]["candidates"][1]["image"] = json!(image("2"));
    let api = Api::answering("serve-unjudged", release(&image("2"), &passed));
    let (status, text) = Server::of(&api, &[]).confirm();
    assert_eq!(status, 403);
    assert!(text.contains("no budget for the image"), "{text}");
}

#[test]
fn a_tag_is_refused_unless_allowed() {
    let tagged = release(
        "example.org/rust:1",
        &benchmark("example.org/rust:1", "Pass"),
    );
    let api = Api::answering("serve-tag", tagged.clone());
    let (status, text) = Server::of(&api, &[]).confirm();
    assert_eq!(status, 400);
    assert!(text.contains("has no digest"), "{text}");
    let api = Api::answering("serve-tag-allowed", tagged);
    let (status, text) = Server::of(&api, &["--allow-tag"]).confirm();
    assert_eq!(status, 200, "{text}");
}

#[test]
fn whatever_is_missing_or_refused_is_a_no() {
    let (shown, stated) = (image("1"), benchmark(&image("1"), "Pass"));
    let mut deleted = stated.clone();
    deleted["metadata"]["deletionTimestamp"] = json!("2026-11-21T05:00:00Z");
    let with = |last: Answer, number: usize| {
        let mut answers = release(&shown, &stated);
        answers.truncate(number);
        answers.push(last);
        answers
    };
    let cases = [
        (
            "canary",
            with(refusal(404, "NotFound", "web", ""), 0),
            404,
            "no canaries web",
        ),
        (
            "target",
            with(refusal(404, "NotFound", "rust", ""), 1),
            404,
            "no deployments rust",
        ),
        (
            "benchmark",
            with(refusal(404, "NotFound", "two", ""), 2),
            404,
            "no frugalitybenchmarks two",
        ),
        (
            "forbidden",
            with(refusal(403, "Forbidden", "two", "you may not"), 2),
            424,
            "you may not",
        ),
        (
            "broken",
            with(refusal(500, "InternalError", "", "no leader"), 2),
            424,
            "did not answer",
        ),
        (
            "nonsense",
            with((200, "{\"metadata\": {}}".to_owned()), 2),
            403,
            "not understood",
        ),
        (
            "deleted",
            with((200, deleted.to_string()), 2),
            403,
            "being deleted",
        ),
    ];
    for (name, answers, expected, words) in cases {
        let api = Api::answering(&format!("serve-no-{name}"), answers);
        let (status, text) = Server::of(&api, &[]).confirm();
        assert_eq!(status, expected, "{name}: {text}");
        assert!(text.contains(words), "{name}: {text}");
    }
}

#[test]
fn a_canary_that_flagger_would_promote_unasked_is_refused_but_can_be_rolled_back() {
    let mut alone = canary();
    alone["spec"]["analysis"]["webhooks"]
        .as_array_mut()
        .unwrap()
        .pop();
    let release = [
        alone,
        deployment(&image("1")),
        benchmark(&image("1"), "Fail"),
    ];
    // The first question ends with the Canary.
    let answers = [&release[..1], &release[..]].concat();
    let api = Api::answering("serve-unasked", found(&answers));
    let server = Server::of(&api, &[]);
    let (status, text) = server.confirm();
    assert_eq!(status, 400);
    assert!(text.contains("confirm-promotion"), "{text}");
    assert_eq!(server.rollback().0, 200);
}

#[test]
fn other_requests_are_refused_without_a_question_to_the_api_server() {
    let api = Api::answering("serve-refused", found(&[canary()]));
    let server = Server::of(&api, &[]);
    let long = format!("{{\"name\":\"{}\"}}", "a".repeat(20_000));
    for (method, path, body, expected) in [
        ("POST", "/confirm", "not JSON", 400),
        (
            "POST",
            "/confirm",
            "{\"name\":\"web\",\"namespace\":\"shop\"}",
            400,
        ),
        (
            "POST",
            "/rollback",
            r#"{"name":"..","namespace":"shop","metadata":{"benchmark":"two"}}"#,
            400,
        ),
        ("POST", "/confirm", &long, 413),
    ] {
        let (status, text) = server.ask(method, path, body);
        assert_eq!(status, expected, "{text}");
    }
    assert_eq!(api.asked(), Vec::<String>::new());
}

#[test]
fn it_ends_by_itself_when_kubelet_ends_it() {
    let api = Api::answering("serve-ends", found(&[canary()]));
    let server = Server::of(&api, &[]);
    assert_eq!(server.ask("GET", "/healthz", "").0, 200);
    let (code, _) = server.end();
    assert_eq!(code, Some(0));
}

#[test]
fn an_address_in_use_is_named() {
    let api = Api::answering("serve-twice", found(&[canary()]));
    let server = Server::of(&api, &[]);
    let second = api.run(&["serve-gate", &format!("--listen={}", server.address)]);
    assert!(!second.status.success());
    let text = String::from_utf8(second.stderr).unwrap();
    assert!(
        text.contains("--listen") && text.contains(&server.address.to_string()),
        "{text}"
    );
}
