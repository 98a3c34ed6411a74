//! What a summary shows, for statuses as an operator wrote them (`data/*.json`).

use std::path::Path;

use frugality_operator::api::FrugalityBenchmark;
use kubectl_frugality::{
    summarize::{summaries, summary},
    table::TableStyle,
};
use serde_json::{Value, json};

use crate::data;

fn benchmark(name: &str) -> Value {
    serde_json::from_str(&data(&format!("{name}.json"))).unwrap()
}

fn summarized(benchmark: Value) -> String {
    summary(&serde_json::from_value::<FrugalityBenchmark>(benchmark).unwrap())
}

/// The summary of a status, as one line: words may be on different lines.
fn words(name: &str) -> String {
    one_line(&summarized(benchmark(name)))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_has(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "{words} is missing in\n{text}");
    }
}

/// The row of a candidate in the table with this heading.
fn row(text: &str, heading: &str, candidate: &str) -> String {
    let table = text.lines().skip_while(|line| !line.contains(heading));
    let mut rows = table.skip(1);
    let row = rows.find(|line| line.trim_start().starts_with(candidate));
    row.unwrap().to_owned()
}

const STATUSES: [&str; 13] = [
    "batch",
    "batch-without-work",
    "costs",
    "depends-on-board",
    "endurance",
    "latency",
    "modelled",
    "passed",
    "scenario",
    "shared-node",
    "sweep",
    "two-boards",
    "workloads",
];

#[test]
fn benchmarks_of_several_namespaces_have_their_namespace() {
    let of = |namespace: &str| {
        let mut benchmark = benchmark("passed");
        benchmark["metadata"]["namespace"] = json!(namespace);
        serde_json::from_value::<FrugalityBenchmark>(benchmark).unwrap()
    };
    let heads = |namespaces: [&str; 2]| -> Vec<String> {
        let text = summaries(&namespaces.map(of), TableStyle::default());
        let lines = text.lines().filter(|line| line.ends_with("(BudgetsMet)"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(
        heads(["shop", "mall"]),
        ["shop/two: Pass (BudgetsMet)", "mall/two: Pass (BudgetsMet)"]
    );
    assert_eq!(heads(["shop", "shop"]), ["two: Pass (BudgetsMet)"; 2]);
}

#[test]
fn without_headers_only_the_headings_of_tables_are_missing() {
    for name in STATUSES {
        let benchmark: FrugalityBenchmark = serde_json::from_value(benchmark(name)).unwrap();
        let [with, without] = [false, true].map(|no_headers| {
            let text = summaries(std::slice::from_ref(&benchmark), TableStyle { no_headers });
            text.lines().map(one_line).collect::<Vec<_>>()
        });
        assert_eq!(without[0], with[0], "verdict and reason");
        // A column without its heading may be narrower, so that a cell needs fewer lines.
        let words = |lines: &[String]| one_line(&lines.join(" ")).split(' ').count();
        assert!(words(&without) < words(&with), "{name}: {without:#?}");
        for heading in ["CANDIDATE", "REQUESTS/S", "TRIALS", "GROSS mJ"] {
            let has = |lines: &[String]| lines.iter().any(|line| line.contains(heading));
            assert!(!has(&without), "{name}: {heading} in {without:#?}");
        }
        for word in ["rust", "python"] {
            let count = |lines: &[String]| lines.iter().filter(|it| it.starts_with(word)).count();
            assert_eq!(count(&without), count(&with), "{name}: rows of {word}");
        }
    }
}

#[test]
fn summaries_are_read_as_a_whole() {
    for name in STATUSES {
        insta::assert_snapshot!(name, summarized(benchmark(name)));
    }
}

#[test]
fn no_line_is_wider_than_120_characters() {
    for name in STATUSES {
        let text = summarized(benchmark(name));
        let widest = text
            .lines()
            .max_by_key(|line| line.chars().count())
            .unwrap();
        assert!(widest.chars().count() <= 120, "{name}: {widest}");
    }
}

#[test]
fn every_status_of_the_data_is_part_of_a_test() {
    let this = include_str!("summarize.rs");
    let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"));
    for file in files.unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".json") else {
            continue;
        };
        let is_ledger = name.starts_with("ledger");
        assert!(is_ledger || this.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn a_benchmark_that_no_operator_has_seen_has_no_figures() {
    let mut unseen = benchmark("passed");
    unseen["status"] = json!({"observedGeneration": -1});
    assert_eq!(summarized(unseen), "two: not seen by the operator yet\n");
}

#[test]
fn a_run_without_results_has_its_state_and_message() {
    let mut running = benchmark("passed");
    running["status"] = json!({
        "observedGeneration": 2,
        "columns": {"reason": "Measuring", "message": "block 1 of 10"},
    });
    assert_eq!(
        summarized(running),
        "two: running (Measuring)\n  block 1 of 10\n"
    );
}

#[test]
fn a_status_of_an_earlier_spec_says_so() {
    let mut edited = benchmark("passed");
    assert!(!words("passed").contains("generation"));
    edited["metadata"]["generation"] = json!(3);
    let said = "This is the status of generation 2 of the spec. The spec now has generation 3,";
    assert_has(
        &one_line(&summarized(edited)),
        &["two: Pass (BudgetsMet)", said],
    );
}

#[test]
fn work_is_the_unit_of_a_program_that_counts_it() {
    let text = words("batch");
    assert_has(
        &text,
        &[
            "NODES/S",
            "MS/EXECUTION",
            "GROSS mJ/NODE",
            "SCORE (nodes/s)",
            "STANDARD DEVIATION",
            "NODES/EXECUTION",
            "GROSS J/EXECUTION",
            "joules per node",
        ],
    );
    assert!(!text.contains("REQUEST"), "{text}");
}

#[test]
fn an_execution_is_the_unit_without_work() {
    let text = words("batch-without-work");
    assert_has(&text, &["GROSS mJ/EXECUTION", "EXECUTIONS/S"]);
    assert!(!text.contains("SCORE"), "{text}");
}

#[test]
fn a_cycle_is_the_unit_of_a_script() {
    let text = words("scenario");
    assert_has(
        &text,
        &[
            "CYCLES/S",
            "GROSS mJ/CYCLE",
            "is no tenth",
            "a cycle of rust: 1.00 requests",
            "of the cycles of rust failed. Its figures are per successful cycle.",
            "joules per cycle",
        ],
    );
    assert!(!text.contains("REQUEST"), "{text}");
}

#[test]
fn net_attributed_joules_have_a_column_only_if_they_decide() {
    let text = words("shared-node");
    assert_has(&text, &["ATTRIBUTED mJ/REQUEST NET ATTRIBUTED mJ/REQUEST"]);
    assert!(!words("passed").contains("NET ATTRIBUTED"));
}

#[test]
fn a_reason_to_withhold_is_said_once_for_all_candidates() {
    assert_has(
        &words("shared-node"),
        &["withheld for rust, python: gross joules: the injector ran on the measured node"],
    );
}

#[test]
fn costs_have_their_terms_and_the_prices_of_the_run() {
    assert_has(
        &words("costs"),
        &[
            "EUR/MILLION EUR FOR ENERGY EUR FOR THE NODE",
            "gCO2e/MILLION gCO2e FOR ENERGY gCO2e FOR THE NODE",
            "0.000694",
            "0.00143",
            "kWh/MILLION NODE'S LIFE/MILLION",
            "0.00278 0.0000159",
            "Costs are from gross joules (metered), at 0.25 EUR/kWh and 90 EUR per node; 56 gCO2e/kWh and 25000 gCO2e per node.",
            "gCO2e/MILLION is the SCI of ISO/IEC 21031",
        ],
    );
}

#[test]
fn a_price_has_all_the_digits_that_the_user_wrote() {
    let mut benchmark = benchmark("costs");
    for result in benchmark["status"]["results"].as_array_mut().unwrap() {
        result["money"]["terms"]["perKilowattHour"] = json!(0.2875);
    }
    let text = one_line(&summarized(benchmark));
    assert_has(&text, &["at 0.2875 EUR/kWh and 90 EUR per node;"]);
}

#[test]
fn the_confidence_belongs_to_the_look() {
    let mut late = benchmark("passed");
    late["status"]["look"]["claimConfidence"] = json!(0.999_53);
    let text = one_line(&summarized(late));
    assert_has(
        &text,
        &["± and [ ] are 95 % t-intervals over trials, [ ] of ratios and budgets 99.953 %."],
    );
    // The interval of a share of errors is not from a t distribution alone.
    assert!(!text.contains("binomial"), "{text}");
    assert_has(
        &words("scenario"),
        &[
            "The interval of failed cycles also covers the binomial interval of all trials' cycles together.",
        ],
    );
    let mut unknown = benchmark("passed");
    unknown["status"].as_object_mut().unwrap().remove("look");
    let text = one_line(&summarized(unknown));
    assert!(!text.contains("t-intervals"), "{text}");
}

#[test]
fn costs_that_the_spec_does_not_ask_for_are_absent() {
    let mut only_carbon = benchmark("costs");
    for result in only_carbon["status"]["results"].as_array_mut().unwrap() {
        result.as_object_mut().unwrap().remove("money");
    }
    let text = one_line(&summarized(only_carbon));
    assert!(
        !text.contains("EUR") && text.contains("gCO2e/MILLION"),
        "{text}"
    );
    assert_has(&text, &["kWh/MILLION"]);
    let text = words("passed");
    assert!(
        !text.contains("MILLION") && !text.contains("Costs are"),
        "{text}"
    );
}

#[test]
fn each_board_has_its_watts_and_its_prices() {
    let text = summarized(benchmark("two-boards"));
    let row = row(&text, "W UNDER LOAD", "python");
    assert!(row.contains("pi-5") && row.contains("2.00±0.20"), "{text}");
    assert_has(
        &one_line(&text),
        &[
            "on pi-5; load from node injector-1",
            "and of ratios between nodes, include the meters' own accuracy",
            "at 0 EUR/kWh and 90 EUR per node (rust); 0 EUR/kWh and 180 EUR per node (python).",
        ],
    );
}

#[test]
fn percentiles_have_the_range_of_the_trials() {
    let text = summarized(benchmark("latency"));
    assert_has(
        &one_line(&text),
        &[
            "P99.9 ms",
            "Latencies are over the successful requests of all trials.",
            "coordinated omission",
        ],
    );
    // rust has fewer requests, and therefore fewer percentiles.
    let [rust, python] = ["rust", "python"].map(|candidate| row(&text, "P50 ms", candidate));
    assert_eq!(rust.matches('(').count(), 4, "{text}");
    assert!(rust.ends_with('–'), "{text}");
    assert_eq!(python.matches('(').count(), 5, "{text}");
}

#[test]
fn percentiles_that_are_unknown_have_no_table() {
    let text = words("passed");
    assert!(
        !text.contains("P50") && !text.contains("Latencies"),
        "{text}"
    );
}

#[test]
fn cpu_use_at_rest_is_shown() {
    let text = summarized(benchmark("passed"));
    let row = row(&text, "IDLE CPUS", "rust");
    assert!(row.contains(" 0.00400 "), "{text}");
}

/// The summary of a verdict with these words and these budgets, each with its outcome and its sentence.
fn judged(verdict: &str, reason: &str, message: &str, budgets: &[(&str, &str)]) -> String {
    let mut changed = benchmark("passed");
    let status = &mut changed["status"];
    let budget = status["budgets"][0].clone();
    let budget = |(outcome, message): &(&str, &str)| {
        let mut budget = budget.clone();
        budget["outcome"] = json!(outcome);
        budget["message"] = json!(message);
        budget
    };
    status["budgets"] = budgets.iter().map(budget).collect();
    status["verdict"] = json!(verdict);
    status["columns"]["reason"] = json!(reason);
    status["columns"]["message"] = json!(message);
    one_line(&summarized(changed))
}

#[track_caller]
fn assert_said_once(text: &str, words: &[&str]) {
    for words in words {
        assert_eq!(text.matches(words).count(), 1, "{words} in\n{text}");
    }
}

const RUST: &str = "10.0 gross mJ/request (limit 0.02 J = 20 mJ)";
const PYTHON: &str = "30.0 gross mJ/request (limit 0.04 J = 40 mJ)";

#[test]
fn a_budget_is_said_once() {
    let of_rust = format!("Met for rust: {RUST}.");
    let of_python = format!("Met for python: {PYTHON}.");
    let one = format!("Budget met for rust: {RUST}.");
    let text = judged("Pass", "BudgetsMet", &one, &[("Met", &of_rust)]);
    assert_said_once(&text, &[RUST]);
    // The message names each candidate next to its figure.
    let several = format!("All 2 budgets met: rust {RUST}, python {PYTHON}.");
    let both = [("Met", of_rust.as_str()), ("Met", of_python.as_str())];
    let text = judged("Pass", "BudgetsMet", &several, &both);
    assert_said_once(&text, &[RUST, PYTHON]);
}

#[test]
fn budgets_that_did_not_decide_a_fail_are_said_below() {
    let met = format!("Met for rust: {RUST}.");
    let exceeded = format!("Exceeded for python: {PYTHON}.");
    let message = format!("Budget exceeded for python: {PYTHON}.");
    let budgets = [("Met", met.as_str()), ("Exceeded", exceeded.as_str())];
    let text = judged("Fail", "BudgetExceeded", &message, &budgets);
    assert_said_once(&text, &[met.as_str(), PYTHON]);
}

#[test]
fn a_message_that_was_cut_is_followed_by_all_budgets() {
    let of_rust = format!("Met for rust: {RUST}.");
    let of_python = format!("Met for python: {PYTHON}.");
    let budgets = [("Met", of_rust.as_str()), ("Met", of_python.as_str())];
    let text = judged(
        "Pass",
        "BudgetsMet",
        "All 2 budgets met: rust 10.0 …",
        &budgets,
    );
    assert_said_once(&text, &[of_rust.as_str(), of_python.as_str()]);
}

#[test]
fn budgets_that_decided_an_inconclusive_are_said_once() {
    let (met, other) = ("Met for rust: 10.0.", "Undecided for python: 30.0.");
    for (reason, outcome) in [
        ("BudgetWithinUncertainty", "Undecided"),
        ("BudgetBelowNoiseFloor", "BelowNoiseFloor"),
        ("ResponsesDiffer", "Withheld"),
    ] {
        let budgets = [("Met", met), (outcome, other)];
        let text = judged("Inconclusive", reason, other, &budgets);
        assert_said_once(&text, &[met, other]);
    }
    // The message is about a candidate without a deciding figure, and names no budget.
    let mut withheld = benchmark("passed");
    let status = &mut withheld["status"];
    status["verdict"] = json!("Inconclusive");
    status["columns"]["reason"] = json!("FigureWithheld");
    status["columns"]["message"] = json!("No trustworthy deciding figure for rust: lost counters.");
    status["budgets"][0]["outcome"] = json!("Withheld");
    status["budgets"][0]["message"] = json!(other);
    let result = status["results"][0].as_object_mut().unwrap();
    result.remove("grossJoulesPerRequest");
    assert_said_once(&one_line(&summarized(withheld)), &[other]);
}

#[test]
fn growth_of_memory_and_drift_of_latency_have_intervals() {
    let text = words("endurance");
    assert_has(
        &text,
        &[
            "memory of rust changes by 12.0 [10.0–14.0] MiB/h",
            "mean latency of rust changes by 12.0 [10.0–14.0] ms/h",
        ],
    );
    assert!(!text.contains("memory of python"), "{text}");
}

#[test]
fn a_sweep_has_the_best_points_of_each_candidate() {
    let text = summarized(benchmark("sweep"));
    assert_has(
        &text,
        &[
            "POINT",
            "winner: rust, by gross joules per request, at every point",
            "rust: knee at c8-max\n",
            "most requests per gross joule at c",
            " (may be any of c8-max, c16-max, c32-max)",
            "rust / python at c1-max: ",
        ],
    );
    let one_point = words("passed");
    assert!(!one_point.contains("POINT") && !one_point.contains("c4-max"));
}

#[test]
fn load_levels_have_a_table_of_load_curves_and_say_what_is_withheld() {
    let mut levels = benchmark("sweep");
    let figure = |value: f64| json!({"value": value, "lower": 0.99 * value, "upper": 1.01 * value});
    levels["status"]["sweep"][0]["loadCurve"] = json!({
        "requestsPerJoule": figure(83.3),
        "marginalJoulesPerRequest": figure(0.005),
        "idleWatts": figure(2.0),
        "idleShare": figure(0.5),
        "proportionality": figure(0.5),
    });
    levels["status"]["sweep"][1]["loadCurve"] =
        json!({"withheld": ["the injector limited python at c4-max"]});
    let text = summarized(levels);
    let rust = row(&text, "REQUESTS/J AT ALL LEVELS", "rust");
    let cells: Vec<&str> = rust.split_whitespace().collect();
    assert_eq!(
        cells,
        [
            "rust",
            "83.3±0.8",
            "5.00±0.05",
            "2.00±0.02",
            "0.500±0.005",
            "0.500±0.005"
        ]
    );
    assert!(row(&text, "REQUESTS/J AT ALL LEVELS", "python").contains('–'));
    let one_line = one_line(&text);
    assert_has(
        &one_line,
        &["withheld for the load curve of python: the injector limited python at c4-max"],
    );
}

#[test]
fn joules_of_unknown_accuracy_have_no_interval() {
    let text = summarized(benchmark("modelled"));
    let [work, energy] = ["REQUESTS/S", "GROSS"].map(|heading| row(&text, heading, "rust"));
    assert!(
        energy.contains("~3.2 ") && !energy.contains('±'),
        "{energy}"
    );
    assert_eq!(energy.matches('~').count(), 3, "{energy}");
    // Rates, times and CPU time are counted, and keep their intervals.
    assert_eq!(work.matches('±').count(), 3, "{work}");
    assert_has(
        &one_line(&text),
        &[
            "~ marks modelled joules. They have no interval",
            "rust / python: 0.400–0.500 [0.391–0.512], on every board",
            "power: Modelled by frugality-meter",
        ],
    );
    assert_said_once(&one_line(&text), &["accuracy"]);
    let mut cut = benchmark("modelled");
    cut["status"]["columns"]["message"] = json!("Budget met …");
    let text = one_line(&summarized(cut));
    assert_said_once(&text, &["a model whose accuracy is unknown"]);
}

#[test]
fn a_note_that_the_message_lacks_is_below_the_tables() {
    let mut cut = benchmark("passed");
    cut["status"]["columns"]["message"] = json!("Said first. Note: Half of it …");
    cut["status"]["notes"] = json!(["Said first.", "Half of it is lost."]);
    let text = one_line(&summarized(cut));
    assert_has(&text, &["note: Half of it is lost."]);
    assert!(!text.contains("note: Said first."), "{text}");
}

#[test]
fn a_winner_that_another_board_would_change_is_no_winner() {
    assert_has(
        &words("depends-on-board"),
        &["no winner: it depends on the board by gross joules per request"],
    );
}

#[test]
fn each_server_of_a_candidate_has_its_part() {
    let text = words("workloads");
    assert_has(
        &text,
        &["WORKLOAD", "data-service 2.00", "0.500", "2.0 MiB"],
    );
    let withheld = summarized(benchmark("workload-withheld"));
    assert!(
        row(&withheld, "WORKLOAD", "rust").contains('–'),
        "{withheld}"
    );
}
