//! The report of a benchmark in each form. `tests/report` has the tests of the page in a browser.

use std::{fs, path::PathBuf};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use frugality_operator::text;
use kubectl_frugality::{
    export::{ExportFormat, course::export_courses, export},
    report::{Objects, ReportFormat, report},
    summarize::summary,
};
use serde_json::{Value, json};

use crate::{
    api::{Api, folder, refusal},
    data,
};

const LARGEST: usize = 1_500_000;

/// A file of the report's fixtures.
fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/report/data")
        .join(format!("{name}.json"));
    fs::read_to_string(path).unwrap()
}

fn written(text: &str, format: ReportFormat) -> String {
    let objects = Objects::in_list(text.as_bytes()).unwrap();
    String::from_utf8(report(&objects, format).unwrap()).unwrap()
}

fn page(text: &str) -> String {
    written(text, ReportFormat::Html)
}

/// The objects of a list after a change.
fn changed(name: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut list: Value = serde_json::from_str(&fixture(name)).unwrap();
    change(&mut list);
    list.to_string()
}

#[track_caller]
fn assert_has(text: &str, words: &[&str]) {
    for words in words {
        // A page is too long to print.
        assert!(text.contains(words), "{words} is missing");
    }
}

#[test]
fn text_and_csv_equal_summarize_and_export() {
    let list = fixture("budgets");
    let objects = Objects::in_list(list.as_bytes()).unwrap();
    assert_eq!(
        written(&list, ReportFormat::Text),
        summary(&objects.benchmark)
    );
    let items: Value = serde_json::from_str(&list).unwrap();
    let trials: Vec<Value> = items["items"].as_array().unwrap()[1..].to_vec();
    let ledger = json!({ "items": trials }).to_string();
    let csv = export(ledger.as_bytes(), None, ExportFormat::Csv).unwrap();
    assert_eq!(written(&list, ReportFormat::Csv).into_bytes(), csv);
}

#[test]
fn json_has_the_benchmark_as_it_was_and_each_attempt() {
    let list = changed("budgets", |list| {
        list["items"][0]["status"]["fieldOfALaterVersion"] = json!(7);
    });
    let read: Value = serde_json::from_str(&written(&list, ReportFormat::Json)).unwrap();
    assert_eq!(read["benchmark"]["status"]["fieldOfALaterVersion"], 7);
    let outcomes: Vec<_> = read["ledger"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes.len(), 13);
    assert_eq!(outcomes.iter().filter(|it| **it == "Void").count(), 3);
}

#[test]
fn markdown_and_junit_are_about_the_benchmark_and_not_about_a_gate() {
    let markdown = written(&fixture("fail"), ReportFormat::Markdown);
    assert_has(
        &markdown,
        &[
            "### shop/two: Fail",
            "| python | maxJoulesPerRequest | exceeded |",
        ],
    );
    let junit = written(&fixture("fail"), ReportFormat::Junit);
    assert_has(
        &junit,
        &[
            "energy report",
            "testsuite name=\"shop/two\"",
            " type=\"Fail\"",
        ],
    );
    for text in [&markdown, &junit] {
        assert!(!text.contains("gate"), "{text}");
        assert!(!text.contains("--image"), "{text}");
    }
    let reported = written(&data("two-boards.json"), ReportFormat::Markdown);
    assert_has(&reported, &["### shop/two: Reported"]);
}

#[test]
fn the_page_loads_nothing_and_is_small() {
    for name in ["budgets", "fail", "sweep", "modelled"] {
        let page = page(&fixture(name));
        assert!(page.len() < LARGEST, "{name}: {}", page.len());
        assert_has(&page, &["content=\"default-src 'none';"]);
        for forbidden in ["<script", "<link", "<img", "@import", " src=", "<iframe"] {
            assert!(!page.contains(forbidden), "{name}: {forbidden}");
        }
        // Links are followed only by a click.
        let urls = page.matches("http").count();
        let links = page.matches("<a href=\"https://github.com/").count();
        let policy = page.matches("http-equiv").count();
        assert_eq!(urls, links + policy, "{name}");
    }
}

#[test]
fn no_colour_of_the_drawing_library_is_left() {
    for name in ["budgets", "fail", "sweep", "modelled"] {
        assert!(!page(&fixture(name)).contains("#FACE"), "{name}");
    }
}

#[test]
fn names_and_messages_from_the_cluster_are_text() {
    let hostile = "<script>alert(1)</script>\"'><b>";
    let page = page(&changed("budgets", |list| {
        let items = list["items"].as_array_mut().unwrap();
        items[0]["status"]["columns"]["message"] = json!(hostile);
        items[0]["status"]["meter"] = json!(hostile);
        items[0]["status"]["comparisons"][0]["candidate"] = json!(hostile);
        for trial in &mut items[1..] {
            trial["spec"]["candidate"] = json!(hostile);
            trial["status"]["reason"] = json!(hostile);
        }
    }));
    assert!(!page.contains("<script"));
    assert!(!page.contains("<b>alert"));
    assert_has(&page, &["&lt;script&gt;alert(1)&lt;/script&gt;"]);
    // A text that looks like a colour of the drawing stays a text.
    let looks = " fill=\"#FACE00\"";
    let page = self::page(&changed("budgets", |list| {
        list["items"][0]["status"]["comparisons"][0]["candidate"] = json!(looks);
    }));
    assert_has(&page, &["fill=&quot;#FACE00&quot;"]);
}

#[test]
fn power_that_no_instrument_measured_is_marked() {
    let modelled = page(&fixture("modelled"));
    assert_has(
        &modelled,
        &[
            "Modelled, not measured",
            "MODELLED",
            "mJ/request (modelled)",
        ],
    );
    let fake = page(&changed("budgets", |list| {
        list["items"][0]["status"]["provenance"] = json!("Fake");
    }));
    assert_has(&fake, &["class=\"fake\"", "FAKE", "mJ/request (fake)"]);
    let unknown = page(&changed("budgets", |list| {
        let status = list["items"][0]["status"].as_object_mut().unwrap();
        status.remove("provenance");
    }));
    assert_has(&unknown, &["Source of power unknown", "SOURCE UNKNOWN"]);
    let metered = page(&fixture("budgets"));
    assert!(!metered.contains("not measured"));
    assert!(!metered.contains("(modelled)"));
}

#[test]
fn a_verdict_of_an_earlier_spec_says_so() {
    let edited = page(&changed("budgets", |list| {
        list["items"][0]["metadata"]["generation"] = json!(3);
        list["items"][0]["status"]["verdict"] = json!("Pass");
        list["items"][0]["status"]["observedGeneration"] = json!(2);
    }));
    let said = "This is the status of generation 2 of the spec. The spec now has generation 3";
    assert_has(&edited, &["Pass for an earlier spec", said]);
    assert!(edited.contains(r#"<div class="verdict plain">"#));
}

#[test]
fn what_is_absent_has_its_reason() {
    assert_has(
        &page(&data("shared-node.json")),
        &["the injector ran on the measured node"],
    );
    assert_has(
        &page(&data("passed.json")),
        &[
            "No attempts: the input has no FrugalityTrial of this run.",
            "No digests: the ledger that was given recorded none.",
            "No distribution of rust, python: the status has no percentiles",
        ],
    );
    assert_has(
        &page(&data("latency.json")),
        &[
            "No distribution of rust, python: the ledger that was given does not have the histogram of each trial.",
        ],
    );
    assert_has(
        &page(&data("shared-node.json").replace(
            "\"decidingFigure\": \"NetAttributed\"",
            "\"decidingFigure\": \"Gross\"",
        )),
        &["No chart of Energy, gross J/request: each figure is absent."],
    );
    let running = page(&changed("budgets", |list| {
        list["items"][0]["status"] = json!({"observedGeneration": 2});
    }));
    assert_has(
        &running,
        &["No verdict yet", "No figures: the status has no results."],
    );
}

#[test]
fn a_distribution_that_differs_from_the_status_is_not_drawn() {
    let other = page(&changed("budgets", |list| {
        list["items"][0]["status"]["results"][0]["latency"][0]["milliseconds"] = json!(17.0);
    }));
    assert_has(
        &other,
        &[
            "No distribution of rust: the ledger that was given does not have the status’s percentiles",
        ],
    );
    assert!(!page(&fixture("budgets")).contains("No distribution of"));
}

#[test]
fn times_that_leave_out_waiting_are_not_drawn_next_to_times_that_include_it() {
    let words = "Results of a closed loop are left out";
    assert!(!page(&fixture("sweep")).contains(words));
    // At the first point the injector waited for answers. A result without a histogram does not say so.
    for of_first in [json!("Closed"), Value::Null] {
        let mixed = changed("sweep", |list| {
            let results = list["items"][0]["status"]["results"]
                .as_array_mut()
                .unwrap();
            for result in results {
                let is_first = result["point"] == "c1-max";
                result["arrivals"] = if is_first {
                    of_first.clone()
                } else {
                    json!("Open")
                };
            }
        });
        assert_has(&page(&mixed), &[words, "rust at c1-max: absent."]);
    }
}

#[test]
fn data_that_would_make_the_page_too_large_are_left_out() {
    let large = changed("budgets", |list| {
        let items = list["items"].as_array_mut().unwrap();
        let trial = items[1].clone();
        for number in 0..4000 {
            let mut other = trial.clone();
            other["spec"]["run"] = json!("another");
            other["metadata"]["name"] = json!(format!("other-{number}"));
            items.push(other);
        }
    });
    let page = page(&large);
    assert!(page.len() < LARGEST, "{}", page.len());
    assert_has(
        &page,
        &[
            "two-ledger.csv is too large for this page. Write it with: kubectl frugality report two --namespace shop -o csv",
        ],
    );
}

/// A void attempt repeats its whole block. What the block measured before does not count.
#[test]
fn a_trial_whose_block_was_repeated_is_in_no_distribution() {
    let before = page(&fixture("budgets"));
    let repeated = changed("budgets", |list| {
        let items = list["items"].as_array_mut().unwrap();
        let is_measured = |it: &Value| it["status"]["outcome"] == "Measured";
        let last = items.iter().filter(|it| is_measured(it));
        let block = last.filter_map(|it| it["spec"]["block"].as_i64()).max();
        let is_of_block = |it: &Value| is_measured(it) && it["spec"]["block"].as_i64() == block;
        let mut earlier: Vec<Value> = items.iter().filter(|it| is_of_block(it)).cloned().collect();
        assert!(earlier.len() > 1);
        for (number, trial) in earlier.iter_mut().enumerate() {
            trial["metadata"]["name"] = json!(format!("earlier-{number}"));
            trial["status"]["fortio"]["latency"]["buckets"][3]["count"] = json!(9999);
        }
        earlier[1]["status"]["outcome"] = json!("Void");
        for trial in items.iter_mut().filter(|it| is_of_block(it)) {
            let attempt = trial["spec"]["attempt"].as_i64().unwrap();
            trial["spec"]["attempt"] = json!(attempt + 1);
        }
        items.extend(earlier);
    });
    let repeated = page(&repeated);
    assert_has(section(&before, "latency"), &["<svg"]);
    assert_eq!(section(&repeated, "latency"), section(&before, "latency"));
}

#[test]
fn points_whose_distribution_is_not_drawn_are_named() {
    let many = changed("budgets", |list| {
        let status = &mut list["items"][0]["status"];
        let results = status["results"].as_array_mut().unwrap();
        let of_point = results.clone();
        let at = |number: i64| json!(format!("c{}-max", 1_i64 << number));
        for number in 5..14 {
            results.extend(of_point.iter().cloned().map(|mut result| {
                result["point"] = at(number);
                result
            }));
        }
        let items = list["items"].as_array_mut().unwrap();
        let trials: Vec<Value> = items[1..].to_vec();
        for number in 5..14 {
            for (index, trial) in trials.iter().enumerate() {
                let mut other = trial.clone();
                let block = trial["spec"]["block"].as_i64().unwrap();
                other["metadata"]["name"] = json!(format!("other-{number}-{index}"));
                other["spec"]["point"] = at(number);
                other["spec"]["block"] = json!(block + 100 * number);
                items.push(other);
            }
        }
    });
    let page = page(&many);
    let drawn = section(&page, "latency");
    assert_eq!(drawn.matches("<svg").count(), 8);
    assert_has(
        drawn,
        &["No chart of the distribution at c4096-max, c8192-max: this page has at most 8."],
    );
}

#[test]
fn power_is_drawn_over_the_rate_of_each_level() {
    let list = fixture("levels");
    let page = page(&list);
    let drawn = section(&page, "load");
    assert_has(
        drawn,
        &[
            "Power of the node, W, over requests/s",
            "rust: 15 trials, idle 2.0",
            "python: 15 trials, idle 2.0",
            "<td>c4-50%</td><td>rust</td>",
            "NODE W",
        ],
    );
    let status: Value = serde_json::from_str(&list).unwrap();
    for sweep in status["items"][0]["status"]["sweep"].as_array().unwrap() {
        let slope = &sweep["loadCurve"]["marginalJoulesPerRequest"];
        let slope = serde_json::from_value(slope.clone()).unwrap();
        let slope = format!("slope {} J/request", text::figure(&slope));
        assert_has(drawn, &[&slope]);
    }
    let alone = changed("levels", |list| {
        list["items"].as_array_mut().unwrap().truncate(1);
    });
    assert_has(
        &self::page(&alone),
        &[
            "No power over the rate of rust: the ledger that was given has no trial at a load level.",
        ],
    );
    // Rates and powers that the operator does not trust are not drawn either.
    let withheld = changed("levels", |list| {
        let curve = json!({"withheld": ["the injector limited python, at c4-100%"]});
        list["items"][0]["status"]["sweep"][1]["loadCurve"] = curve;
    });
    let withheld = self::page(&withheld);
    let drawn = section(&withheld, "load");
    let why = "No power over the rate of python: the injector limited python, at c4-100%.";
    assert_has(drawn, &[why, "rust: 15 trials"]);
    assert!(!drawn.contains("python: 15 trials"));
}

#[test]
fn the_courses_of_the_attempts_are_in_the_page() {
    let without = page(&fixture("budgets"));
    assert!(!without.contains("two-traces.json"));
    let list = with_traces("budgets");
    let page = page(&list);
    let (_, link) = page.split_once("download=\"two-traces.json\"").unwrap();
    let (_, data) = link.split_once(";base64,").unwrap();
    let (data, _) = data.split_once('"').unwrap();
    let traces = String::from_utf8(BASE64_STANDARD.decode(data).unwrap()).unwrap();
    let all: Value = serde_json::from_str(&list).unwrap();
    let items = all["items"].as_array().unwrap().iter();
    let of_list: Vec<_> = items.filter(|it| it["kind"] == "FrugalityTrace").collect();
    let of_list = json!({ "items": of_list }).to_string();
    let table = |text: &str| export_courses(text.as_bytes(), None, ExportFormat::Csv).unwrap();
    assert_eq!(table(&traces), table(&of_list));
}

/// A page of thousands of attempts still fits.
#[test]
fn the_longest_run_has_a_page_of_the_usual_size() {
    let long = changed("budgets", |list| {
        let items = list["items"].as_array_mut().unwrap();
        let trial = items[2].clone();
        for number in 0..5000 {
            let mut other = trial.clone();
            other["metadata"]["name"] = json!(format!("other-{number}"));
            items.push(other);
        }
    });
    let page = page(&long);
    assert!(page.len() < LARGEST, "{}", page.len());
    assert_has(
        &page,
        &["The table has only attempts that do not count, at most 500."],
    );
}

#[test]
fn attempts_of_other_benchmarks_and_namespaces_stay_out() {
    let list = changed("budgets", |list| {
        let items = list["items"].as_array_mut().unwrap();
        items[1]["spec"]["benchmark"] = json!("other");
        items[2]["metadata"]["namespace"] = json!("elsewhere");
    });
    assert_eq!(Objects::in_list(list.as_bytes()).unwrap().trials.len(), 11);
}

#[test]
fn input_without_one_benchmark_gets_an_error_that_says_what_to_write() {
    for (text, words) in [
        (json!({"items": []}).to_string(), "no FrugalityBenchmark"),
        ("{".to_owned(), "kubectl get fb,fbt -o json"),
        (
            changed("budgets", |list| {
                let items = list["items"].as_array_mut().unwrap();
                let mut second = items[0].clone();
                second["metadata"]["name"] = json!("three");
                items.push(second);
            }),
            "several benchmarks: two, three",
        ),
        (
            changed("budgets", |list| {
                list["items"][1]["spec"] = json!({});
            }),
            "is not a FrugalityTrial",
        ),
    ] {
        let error = Objects::in_list(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// What the API server answers about the benchmark, about the ledger, and about the courses.
fn answers() -> Vec<(u16, String)> {
    let list: Value = serde_json::from_str(&fixture("budgets")).unwrap();
    let items = list["items"].as_array().unwrap();
    let ledger = json!({
        "apiVersion": "frugality.dev/v1alpha1",
        "kind": "FrugalityTrialList",
        "metadata": {},
        "items": &items[1..],
    });
    let traces = json!({ "kind": "FrugalityTraceList", "metadata": {}, "items": [] });
    let answers = [items[0].clone(), ledger, traces];
    answers.map(|it| (200, it.to_string())).to_vec()
}

#[test]
fn a_report_of_the_cluster_equals_the_report_of_a_file() {
    let api = Api::answering("report", answers());
    let file = folder("report-file").join("two.html");
    let to = file.to_str().unwrap();
    let done = api.run(&["report", "two", "-n", "shop", "-o", to]);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(done.stdout, b"");
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        page(&fixture("budgets"))
    );
    assert_eq!(
        api.asked(),
        [
            "GET /apis/frugality.dev/v1alpha1/namespaces/shop/frugalitybenchmarks/two",
            "GET /apis/frugality.dev/v1alpha1/namespaces/shop/frugalitytrials?",
            "GET /apis/frugality.dev/v1alpha1/namespaces/shop/frugalitytraces?",
        ]
    );
    let api = Api::answering("report-form", answers());
    let done = api.run(&["report", "two", "-n", "shop", "-o", "html"]);
    assert_eq!(
        String::from_utf8(done.stdout).unwrap(),
        page(&fixture("budgets"))
    );
}

#[test]
fn a_wrong_command_line_says_what_to_write() {
    let missing = refusal(404, "NotFound", "two", "not found");
    let api = Api::answering("report-errors", vec![missing]);
    for (arguments, words) in [
        (
            &["report", "two", "-o", "report.pdf"][..],
            "a file that ends in .html, .md, .txt, .json, .csv or .xml",
        ),
        (&["report", "-n", "shop"], "Write its name"),
        (&["report", "two"], "there is no frugalitybenchmarks two"),
    ] {
        let done = api.run(arguments);
        assert!(!done.status.success());
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(said.contains(words), "{said}");
    }
}

/// The list with a trace of each attempt that has windows: 3 W idle, 8 W in the window, one point unknown.
fn with_traces(name: &str) -> String {
    changed(name, |list| {
        let items = list["items"].as_array_mut().unwrap();
        let traces: Vec<Value> = items.iter().filter_map(trace_of).collect();
        assert!(!traces.is_empty());
        items.extend(traces);
    })
}

fn trace_of(trial: &Value) -> Option<Value> {
    let status = &trial["status"];
    let phases: Vec<Value> = [
        ("IdleBefore", "idleBefore", 3000),
        ("Window", "window", 8000),
        ("IdleAfter", "idleAfter", 3000),
    ]
    .into_iter()
    .filter_map(|(phase, field, milliwatts)| {
        let start = status[field]["startUnixSeconds"].as_f64()?;
        let mut energy = vec![json!(milliwatts * 2); 10];
        if phase == "IdleAfter" {
            energy[4] = Value::Null;
        }
        Some(json!({
            "phase": phase, "startUnixSeconds": start, "endUnixSeconds": start + 20.0, "points": 10,
            "nodeMillijoules": energy, "nodeCpuMicroseconds": vec![3_000_000; 10],
            "candidateCpuMicroseconds": vec![2_000_000; 10],
        }))
    })
    .collect();
    let spec = &trial["spec"];
    // The last slice has too few requests for a percentile.
    let p99 = [vec![json!(9_000_000); 31], vec![Value::Null]].concat();
    (!phases.is_empty()).then(|| {
        json!({
            "apiVersion": "frugality.dev/v1alpha1", "kind": "FrugalityTrace",
            "metadata": trial["metadata"],
            "spec": {
                "benchmark": spec["benchmark"], "run": spec["run"], "point": spec["point"], "block": spec["block"],
                "attempt": spec["attempt"], "candidate": spec["candidate"],
                "provenance": "Modelled", "phases": phases,
                "slices": {
                    "sliceSeconds": 0.625, "wholeSeconds": 19.9,
                    "successes": vec![200; 32], "errors": vec![1; 32],
                    "meanNanoseconds": vec![json!(2_000_000); 32],
                    "p99Nanoseconds": p99,
                },
            },
        })
    })
}

/// The section about power over time.
fn course(page: &str) -> &str {
    section(page, "course")
}

fn section<'p>(page: &'p str, id: &str) -> &'p str {
    let start = format!("<section id=\"{id}\"");
    let (_, section) = page.split_once(&start).unwrap();
    section.split_once("</section>").unwrap().0
}

#[test]
fn the_course_of_each_attempt_is_drawn_with_its_means() {
    for name in ["fail", "budgets", "sweep", "modelled"] {
        let page = page(&with_traces(name));
        assert!(page.len() < LARGEST, "{name}: {}", page.len());
        let section = course(&page);
        assert_has(
            section,
            &[
                "<svg",
                "polyline",
                "measured window",
                "<td class=\"figure\">8",
                "<td class=\"figure\">3",
            ],
        );
        // The traces' own source of power, also if the status has another one.
        assert_has(section, &["MODELLED", "(modelled)", "<td>modelled</td>"]);
        // The mean of a phase with an unknown point is unknown.
        assert_has(section, &["<td class=\"figure\">–"]);
    }
    let page = page(&with_traces("sweep"));
    assert_has(course(&page), &["Not drawn: ", "--traces"]);
}

#[test]
fn latency_over_time_is_drawn_with_its_extremes_and_void_attempts_are_marked() {
    for name in ["fail", "budgets", "sweep", "modelled"] {
        let page = page(&with_traces(name));
        assert_has(
            section(&page, "slices"),
            &[
                "<svg",
                "polyline",
                "Void attempts do not count",
                "<td class=\"figure\">6400</td><td class=\"figure\">32</td>",
                "<td class=\"figure\">2.00</td><td class=\"figure\">2.00</td><td class=\"figure\">9.00</td>",
            ],
        );
    }
    let void = changed("budgets", |list| {
        let items = list["items"].as_array_mut().unwrap();
        let traces: Vec<Value> = items.iter().filter_map(trace_of).collect();
        let name = traces[0]["metadata"]["name"].clone();
        for item in items.iter_mut().filter(|it| it["metadata"]["name"] == name) {
            item["status"]["outcome"] = json!("Void");
            item["status"]["reason"] = json!("Tested");
        }
        items.extend(traces);
    });
    let page = page(&void);
    let drawn = section(&page, "slices");
    let (svg, _) = drawn.split_once("</svg>").unwrap();
    assert_has(svg, &["Void: Tested"]);
    assert_has(drawn, &["<td>Void: Tested</td>"]);
}

#[test]
fn a_page_without_traces_is_as_before() {
    let text = fixture("budgets");
    assert_has(
        course(&page(&text)),
        &["No course of power: the input has no traces of these attempts."],
    );
    assert_has(
        section(&page(&text), "slices"),
        &["No latency over time: the input has no traces with slices of these attempts."],
    );
    // Traces of another benchmark do not count.
    let other = with_traces("budgets").replace("\"kind\":\"FrugalityTrace\"", "\"kind\":\"Other\"");
    assert_eq!(page(&other), page(&text));
    assert_eq!(
        written(&with_traces("budgets"), ReportFormat::Csv),
        written(&text, ReportFormat::Csv)
    );
}

#[test]
fn a_cluster_without_traces_or_without_the_right_to_read_them_has_a_report() {
    for third in [
        refusal(
            404,
            "NotFound",
            "",
            "the server could not find the requested resource",
        ),
        refusal(403, "Forbidden", "", "frugalitytraces is forbidden"),
    ] {
        let mut answers = answers();
        answers[2] = third;
        let api = Api::answering("report-traces", answers);
        let done = api.run(&["report", "two", "-n", "shop", "-o", "html"]);
        assert_eq!(
            String::from_utf8(done.stdout).unwrap(),
            page(&fixture("budgets"))
        );
    }
}
