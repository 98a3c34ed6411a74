//! `kubectl get fb` and `kubectl get fbt` of the examples, in 120 characters.

use std::fmt::Write as _;

use frugality_measure::{
    model::{LinearModel, ModelUncertainty},
    reading::Provenance,
};
use frugality_operator::{
    api::{Columns, DecidingFigure, FrugalityBenchmark, FrugalityTrial, Outcome, Verdict},
    crd::definitions,
    load::LoadKind,
    plan::{action::Plan, names::run_id, report::trial::TrialFigures, settings::Settings},
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceColumnDefinition;
use serde_json::{Value, json};

use crate::common::{
    edited,
    entries::{Trial, entry, factor, judged, measured, on_board, swept},
    judgement::{budgets, status, usual},
    of_yaml,
    sweep::{at, judged_over, saturating},
    three, two,
};

/// Width of a usual terminal.
const WIDTH: usize = 120;
/// `kubectl` puts three spaces between two columns.
const SPACE: usize = 3;
const AGE: &str = "25m";

/// The board of the cluster in a box.
const BOX: LinearModel = LinearModel {
    idle_watts: 2.0,
    watts_per_cpu: 3.0,
    uncertainty: None,
};

/// The columns that `kubectl get` prints without `-o wide`.
fn columns(kind: usize) -> Vec<CustomResourceColumnDefinition> {
    let (_, definition) = definitions().into_iter().nth(kind).unwrap();
    let columns = definition.spec.versions.into_iter().next().unwrap();
    let columns = columns.additional_printer_columns.unwrap();
    let is_shown =
        |column: &CustomResourceColumnDefinition| column.priority.unwrap_or_default() == 0;
    columns.into_iter().filter(is_shown).collect()
}

/// A row in the order of the columns.
fn row(columns: &[CustomResourceColumnDefinition], object: &Value) -> Vec<String> {
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    let cells = columns.iter().map(|column| {
        if column.name == "Age" {
            return AGE.to_owned();
        }
        let path = column.json_path.trim_start_matches('.').split('.');
        match path.fold(object, |value, field| &value[field]) {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        }
    });
    std::iter::once(name).chain(cells).collect()
}

/// The table as `kubectl` prints it.
fn table(kind: usize, objects: &[Value]) -> String {
    let columns = columns(kind);
    let header = columns.iter().map(|it| it.name.to_uppercase());
    let header: Vec<String> = std::iter::once("NAME".to_owned()).chain(header).collect();
    let rows = objects.iter().map(|object| row(&columns, object));
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap()
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<0$}", width + SPACE);
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn width(table: &str) -> usize {
    table
        .lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap()
}

/// All examples.
fn examples() -> Vec<FrugalityBenchmark> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "yaml"))
        .filter(|path| !path.to_string_lossy().ends_with(".patch.yaml"))
        .collect();
    paths.sort();
    let documents = |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let documents = text.split("\n---\n").map(str::to_owned);
        documents.collect::<Vec<_>>()
    };
    paths
        .into_iter()
        .flat_map(documents)
        .filter(|text| text.contains("kind: FrugalityBenchmark"))
        .map(|text| of_yaml(&text))
        .collect()
}

/// Trials with figures such as those in `docs/results/articles.md`, with a spread of 2 to 3 %.
fn trials(benchmark: &FrugalityBenchmark, provenance: Provenance) -> Vec<FrugalityTrial> {
    let settings = Settings::parse(&benchmark.spec).unwrap();
    let names: Vec<&str> = settings.candidates.iter().map(String::as_str).collect();
    let is_apart = benchmark
        .spec
        .candidates
        .iter()
        .any(|it| it.measured_node_selector.is_some());
    let uncertainty = is_apart.then_some(ModelUncertainty {
        idle_watts: 0.02,
        watts_per_cpu: 0.02,
    });
    let model = LinearModel { uncertainty, ..BOX };
    let of = |connections: u32, block: i32, _: i32, candidate: &str| {
        let place = names.iter().position(|it| *it == candidate).unwrap();
        // `mnesia-cluster` has four ways to write, and two of them take the same.
        let times = if candidate.ends_with("-dirty") {
            0.6
        } else {
            [1.0, 2.2, 3.1][place]
        };
        let spread = factor(block, [0.02, -0.03, 0.05, -0.02][place]);
        // Seconds for one request, cycle, execution or unit of work, and the time of the whole.
        let (seconds, milliseconds) = match settings.kind {
            LoadKind::Request => (0.000_092, f64::from(connections) * 0.092),
            LoadKind::Scenario => (0.01, f64::from(connections) * 10.0),
            LoadKind::Batch if settings.units.work.is_some() => (0.000_024_9, 20_100.0),
            LoadKind::Batch => (20.1, 20_100.0),
        };
        let load = 1.0 + 0.3 / f64::from(connections);
        let seconds = seconds * times * spread * load;
        let mut trial = on_board(model, seconds, 0.95 * seconds);
        trial.milliseconds = milliseconds * times * spread * load;
        if provenance == Provenance::Metered {
            trial.model = None;
            trial.meter_uncertainty = Some(0.01);
        }
        Trial {
            provenance,
            ..trial
        }
    };
    let mut trials = swept(benchmark, of);
    for trial in &mut trials {
        if is_apart && trial.spec.candidate != names[0] {
            trial.spec.measured_node = "pi-5".into();
        }
    }
    trials
}

#[test]
fn each_example_has_a_row_of_120_characters() {
    let mut shown = String::new();
    for benchmark in examples() {
        for provenance in [Provenance::Modelled, Provenance::Metered] {
            let all = trials(&benchmark, provenance);
            let some = all[..all.len() / 3].to_vec();
            for trials in [all, some] {
                let mut with_status = benchmark.clone();
                with_status.status = Some(judged(&benchmark, trials).status);
                let table = table(0, &[json!(with_status)]);
                assert!(width(&table) <= WIDTH, "{}\n{table}", width(&table));
                shown.push_str(&table);
            }
        }
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn several_benchmarks_share_a_table() {
    let end = |name: &str, changes: &[(&str, Value)], of: &dyn Fn(i32, &str) -> Trial| {
        let mut benchmark = edited(&two(), changes);
        benchmark.metadata.name = Some(name.into());
        benchmark.status = Some(status(&benchmark, of).status);
        json!(benchmark)
    };
    let budget = |limit: &str| json!([{"candidate": "rust", "maxJoulesPerRequest": limit}]);
    let equal = |block: i32, candidate: &str| {
        let k = if candidate == "rust" { 0.01 } else { -0.01 };
        Trial {
            gross: 0.01 * factor(block, k),
            ..Trial::default()
        }
    };
    let waiting = {
        let mut benchmark = two();
        benchmark.status = Some(judged(&benchmark, Vec::new()).status);
        benchmark.metadata.name = Some("shop-pr-412".into());
        let columns = benchmark.status.as_mut().unwrap().columns.as_mut();
        columns.unwrap().verdict = Some("Measuring".into());
        json!(benchmark)
    };
    let ended = [
        end("shop-figures", &[], &usual),
        end("shop-release", &[("/budgets", budget("0.02"))], &usual),
        end("shop-pr-410", &[("/budgets", budget("0.005"))], &usual),
        end("shop-pr-411", &[("/budgets", budget("0.01"))], &usual),
        end("shop-tie", &[("/energy/tieWithin", json!("0.05"))], &equal),
        end("shop-few", &[("/trials/blocks", json!(3))], &usual),
    ];
    let running = [
        end("shop-release", &[("/budgets", budget("0.02"))], &usual),
        waiting,
    ];
    let equal = [end("shop-equal", &[], &equal)];
    let tables = [table(0, &ended), table(0, &running), table(0, &equal)];
    for table in &tables {
        assert!(width(table) <= WIDTH, "{}\n{table}", width(table));
    }
    insta::assert_snapshot!(tables.join("\n"));
}

#[test]
fn each_ledger_has_rows_of_120_characters() {
    let mut shown = String::new();
    for benchmark in examples() {
        let settings = Settings::parse(&benchmark.spec).unwrap();
        let (mut rows, mut words) = (Vec::new(), Vec::new());
        for candidate in &settings.candidates {
            let all = trials(&benchmark, Provenance::Modelled);
            let mut own = all.into_iter().filter(|it| it.spec.candidate == *candidate);
            let mut trial = own.next().unwrap();
            let status = trial.status.as_mut().unwrap();
            let figures = TrialFigures::of(&trial.spec, status).unwrap();
            status.columns = Some(figures.columns(&settings.units));
            words.push(figures.words(&settings.units).join("; "));
            rows.push(json!(trial));
        }
        let mut void = entry(&benchmark, 7, 1, 2, &settings.candidates[0]);
        let mut record = measured(&benchmark, &Trial::default());
        record.outcome = Some(Outcome::Void);
        record.reason = Some("NeighbourActive".into());
        void.status = Some(record);
        rows.push(json!(void));
        let table = table(1, &rows);
        assert!(width(&table) <= WIDTH, "{}\n{table}", width(&table));
        shown.push_str(&table);
        for words in words {
            let _ = writeln!(shown, "event: {words}");
        }
    }
    insta::assert_snapshot!("the_ledgers", without_run(&shown));
}

/// The run's ID is a hash that changes with every field of the spec.
fn without_run(table: &str) -> String {
    let mut text = table.to_owned();
    for benchmark in examples() {
        let run = run_id(&benchmark);
        text = text.replace(&run, "00000000");
    }
    text
}

fn columns_of(plan: &Plan) -> Columns {
    plan.status.columns.clone().unwrap()
}

fn winner_of(plan: &Plan) -> String {
    columns_of(plan).winner.unwrap()
}

fn energy_of(plan: &Plan) -> String {
    columns_of(plan).energy.unwrap()
}

#[test]
fn a_candidate_that_was_not_compared_is_named_next_to_the_leading_one() {
    let plan = status(&three(), |block, candidate| Trial {
        body_bytes: Some(if candidate == "go" { 2000.0 } else { 1000.0 }),
        ..usual(block, candidate)
    });
    assert_eq!(plan.status.winner, None);
    let [rust_to_python] = plan.status.comparisons.as_slice() else {
        panic!("{:?}", plan.status.comparisons);
    };
    assert!(rust_to_python.separated);
    let columns = columns_of(&plan);
    assert_eq!(columns.winner.as_deref(), Some("rust, go"));
    assert!(columns.ratio.unwrap().starts_with("0.33 ["));
    assert_eq!(columns.energy.as_deref(), Some("rust: 10.0 mJ gross"));
}

#[test]
fn all_candidates_lead_at_a_point_without_comparisons() {
    let plan = judged_over(&at(&[1, 8], &[]), |connections, block, name| {
        let is_limited = connections == 8 && name == "python";
        Trial {
            occupancy: if is_limited { 0.5 } else { 0.99 },
            ..saturating(connections, block, name)
        }
    });
    assert_eq!(plan.status.winner, None);
    assert_eq!(plan.status.comparisons.len(), 1);
    assert_eq!(winner_of(&plan), "rust, python");
}

#[test]
fn a_tie_at_one_point_leaves_both_candidates_in_the_lead() {
    let tie = at(&[1, 8], &[("/energy/tieWithin", json!("0.05"))]);
    let plan = judged_over(&tie, |connections, block, name| {
        let trial = saturating(connections, block, "rust");
        let times = match (connections, name) {
            (_, "rust") => 1.0,
            (1, _) => 1.01 * factor(block, -0.001),
            _ => 3.0,
        };
        Trial {
            gross: trial.gross * times,
            ..trial
        }
    });
    assert_eq!((plan.status.tie, &plan.status.winner), (None, &None));
    assert!(plan.status.comparisons.iter().all(|it| it.separated));
    assert_eq!(winner_of(&plan), "rust, python");
}

#[test]
fn the_first_figure_names_its_candidate_unless_it_is_the_winner() {
    let of = |candidate: &str, limit: &str| {
        let mut benchmark = budgets(&json!({"maxJoulesPerRequest": limit}));
        benchmark.spec.budgets[0].candidate = candidate.into();
        let plan = status(&benchmark, usual);
        assert_eq!(winner_of(&plan), "rust");
        (plan.status.verdict.unwrap(), energy_of(&plan))
    };
    let [rust, python] = ["10.0±0.2 mJ gross", "python: 30.0 mJ gross"].map(str::to_owned);
    assert_eq!(of("rust", "0.02"), (Verdict::Pass, rust.clone()));
    assert_eq!(of("rust", "0.005"), (Verdict::Fail, rust));
    assert_eq!(of("python", "0.02"), (Verdict::Fail, python));
    // Without a figure of energy, the next figure has the name.
    let mut net = budgets(&json!({"maxMillisecondsPerRequest": "5"}));
    net.spec.energy.deciding_figure = Some(DecidingFigure::Net);
    let plan = status(&net, |block, candidate| Trial {
        net: None,
        ..usual(block, candidate)
    });
    let columns = columns_of(&plan);
    assert_eq!(
        (plan.status.verdict, columns.energy),
        (Some(Verdict::Fail), None)
    );
    assert_eq!(columns.rate.as_deref(), Some("rust: 400"));
}

#[test]
fn a_row_of_a_sweep_names_its_point() {
    let point = |plan: &Plan| columns_of(plan).point.unwrap();
    // The winner, at the point of the ratio.
    let figures = judged_over(&at(&[1, 2, 8], &[]), saturating);
    assert_eq!(
        (energy_of(&figures), point(&figures)),
        ("25.0 mJ @c1".into(), "c1-max".into())
    );
    // A point that decides a budget.
    let with = |candidate: &str, limit: &str| {
        let budget = json!([{"candidate": candidate, "maxMillisecondsPerRequest": limit}]);
        judged_over(&at(&[1, 8, 32], &[("/budgets", budget)]), saturating)
    };
    let fail = with("rust", "39");
    assert_eq!(
        (energy_of(&fail), point(&fail)),
        ("7.50 mJ @c32".into(), "c32-max".into())
    );
    // A candidate without such a point: its cheapest, which the result chose.
    let pass = with("python", "150");
    assert_eq!(pass.status.verdict, Some(Verdict::Pass));
    let energy = energy_of(&pass);
    assert!(energy.starts_with("python: least 22.5 mJ @c"), "{energy}");
}

#[test]
fn the_event_of_a_winner_names_the_point_of_its_ratio() {
    let note = |plan: &Plan| plan.events.last().unwrap().note.clone();
    let sweep = note(&judged_over(&at(&[1, 8], &[]), saturating));
    assert!(
        sweep.contains(
            "winner rust, ratio 0.3334 [0.3326–0.3343] at c8-max by gross joules, power metered."
        ),
        "{sweep}"
    );
    let one_point = note(&status(&two(), usual));
    assert!(
        one_point.contains("winner rust, ratio 0.33 [0.32–0.35] by gross joules"),
        "{one_point}"
    );
}

#[test]
fn a_message_that_was_cut_still_says_that_power_is_modelled() {
    let names: Vec<String> = (1..=16)
        .map(|number| format!("candidate-{number}"))
        .collect();
    let candidates: Vec<Value> = names
        .iter()
        .map(|name| json!({"name": name, "image": "example.org/server:1"}))
        .collect();
    let budgets: Vec<Value> = names
        .iter()
        .map(|name| {
            json!({
                "candidate": name,
                "maxJoulesPerRequest": "0.0000041",
                "maxMillisecondsPerRequest": "0.0041",
                "minRequestsPerSecond": "4100000",
            })
        })
        .collect();
    let benchmark = edited(
        &two(),
        &[
            ("/candidates", json!(candidates)),
            ("/budgets", json!(budgets)),
            ("/energy/allowModelled", json!(true)),
        ],
    );
    let plan = status(&benchmark, |block, _| {
        on_board(BOX, 0.002 * factor(block, 0.01), 0.001)
    });
    assert_eq!(plan.status.verdict, Some(Verdict::Fail));
    let message = columns_of(&plan).message.unwrap();
    assert!(
        (1900..=2000).contains(&message.chars().count()),
        "{message}"
    );
    assert!(
        message.starts_with("Power is modelled from CPU use"),
        "{message}"
    );
    assert!(
        message.contains("not measured. 48 budgets exceeded: "),
        "{message}"
    );
    assert!(message.ends_with(" …"), "{message}");
    assert_eq!(message.matches("Power is modelled").count(), 1);
}
