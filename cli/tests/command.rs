//! The program: its input, its output and its error messages.

use std::{
    fs,
    io::Write as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use crate::{
    api::{Api, folder, refusal},
    data, data_path,
};

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_kubectl-frugality"))
}

fn piped(arguments: &[&str], text: &str) -> Output {
    let mut child = command()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    child.wait_with_output().unwrap()
}

fn stdout(done: &Output) -> String {
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    String::from_utf8(done.stdout.clone()).unwrap()
}

#[track_caller]
fn assert_refused(done: &Output, words: &[&str]) {
    assert!(!done.status.success());
    let said = String::from_utf8_lossy(&done.stderr);
    for words in words {
        assert!(said.contains(words), "{words} is missing in: {said}");
    }
}

#[test]
fn a_ledger_comes_from_standard_input_or_a_file_and_goes_to_standard_output_or_a_file() {
    let text = data("ledger.json");
    let csv = piped(&["export", "--format", "csv"], &text);
    assert_eq!(stdout(&csv), data("ledger-export.csv"));
    let dash = piped(&["export", "-f", "-"], &text);
    assert_eq!(stdout(&dash), data("ledger-export.json"));
    let to = folder("export").join("ledger.json");
    let done = command()
        .args(["export", "--output"])
        .arg(&to)
        .arg("--filename")
        .arg(data_path("ledger.json"))
        .output()
        .unwrap();
    assert_eq!(stdout(&done), "");
    assert_eq!(fs::read_to_string(to).unwrap(), data("ledger-export.json"));
}

#[test]
fn a_list_of_benchmarks_is_summarized_one_after_another() {
    let one = data("passed.json");
    let alone = stdout(&piped(&["summarize"], &one));
    assert!(alone.starts_with("two: Pass (BudgetsMet)\n"), "{alone}");
    let list = format!("{{\"kind\": \"List\", \"items\": [{one}, {one}]}}");
    assert_eq!(
        stdout(&piped(&["summarize"], &list)),
        format!("{alone}\n{alone}")
    );
}

const PATH: &str = "GET /apis/frugality.dev/v1alpha1";

#[test]
fn benchmarks_are_asked_for_in_the_namespace_of_the_flag_or_the_context() {
    let api = Api::answering("benchmarks", vec![(200, data("passed.json"))]);
    for (flags, namespace) in [
        (["summarize", "two"].as_slice(), "default"),
        (&["summarize", "two", "-n", "farm"], "farm"),
        (&["summarize", "two", "--context", "shop"], "shop"),
    ] {
        assert!(stdout(&api.run(flags)).starts_with("two: Pass"));
        let asked = format!("{PATH}/namespaces/{namespace}/frugalitybenchmarks/two");
        assert_eq!(api.asked().last(), Some(&asked));
    }
    let list = format!(
        "{{\"kind\": \"List\", \"metadata\": {{}}, \"items\": [{}]}}",
        data("passed.json")
    );
    let api = Api::answering("benchmarks-list", vec![(200, list)]);
    assert!(stdout(&api.run(&["summarize", "-n", "farm"])).starts_with("two: Pass"));
    let asked = format!("{PATH}/namespaces/farm/frugalitybenchmarks?");
    assert_eq!(api.asked(), [asked]);
}

#[test]
fn a_ledger_is_asked_for_in_one_namespace_or_in_all() {
    let api = Api::answering("ledger", vec![(200, data("ledger.json"))]);
    let all = api.run(&["export", "-A"]);
    assert_eq!(stdout(&all), data("ledger-export.json"));
    // An empty file could be taken for the ledger of a benchmark.
    let one = api.run(&["export", "nothing", "--format=csv"]);
    assert_refused(&one, &["no attempt of a benchmark nothing", "--namespace"]);
    assert_eq!(one.stdout, b"");
    let asked = [
        format!("{PATH}/frugalitytrials?"),
        format!("{PATH}/namespaces/default/frugalitytrials?"),
    ];
    assert_eq!(api.asked(), asked);
    let none = r#"{"kind": "FrugalityTraceList", "items": []}"#;
    let api = Api::answering("traces", vec![(200, none.to_owned())]);
    assert_eq!(stdout(&api.run(&["export", "two", "--traces"])), "[]\n");
    let asked = [format!("{PATH}/namespaces/default/frugalitytraces?")];
    assert_eq!(api.asked(), asked);
}

#[test]
fn a_message_names_the_cause_and_what_to_do() {
    let missing = command()
        .args(["export", "-f", "no-such-file"])
        .output()
        .unwrap();
    assert_refused(&missing, &["no-such-file", "kubectl get -o json"]);
    let folder = command().args(["export", "-f", "."]).output().unwrap();
    assert_refused(&folder, &["cannot read .", "kubectl get -o json"]);
    let cut = piped(&["export"], data("ledger.json").split_at(9_000).0);
    assert_refused(&cut, &["is not understood", "kubectl get fbt -o json"]);
    assert_eq!(cut.stdout, b"");
    let nonsense = piped(&["summarize"], "{\"spec\": 1}");
    assert_refused(
        &nonsense,
        &["not a benchmark", "kubectl get fb NAME -o json"],
    );
    let no_config = command()
        .args(["summarize", "two"])
        .env("KUBECONFIG", "/no/such/kubeconfig")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .output()
        .unwrap();
    assert_refused(&no_config, &["there is no cluster", "--kubeconfig"]);
    let api = Api::answering("contexts", vec![(200, data("passed.json"))]);
    let no_context = api.run(&["summarize", "two", "--context", "farm"]);
    assert_refused(&no_context, &["farm", "kubectl config get-contexts"]);
    let missing = refusal(404, "NotFound", "two", "not found");
    let api = Api::answering("missing-benchmark", vec![missing]);
    let missing = api.run(&["summarize", "two"]);
    assert_refused(
        &missing,
        &["there is no frugalitybenchmarks two in namespace default"],
    );
    let unwritable = piped(
        &["export", "--output", "/no/such/folder/ledger.json"],
        &data("ledger.json"),
    );
    assert_refused(&unwritable, &["/no/such/folder/ledger.json", "--output"]);
}

#[test]
fn the_definitions_are_printed_and_written() {
    let printed = stdout(&command().arg("crd").output().unwrap());
    assert_eq!(printed.matches("kind: CustomResourceDefinition").count(), 4);
    let to = folder("crds");
    let done = command()
        .args(["crd", "--write"])
        .arg(&to)
        .output()
        .unwrap();
    assert_eq!(stdout(&done), "");
    let mut files: Vec<_> = fs::read_dir(&to)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    let text = |file: &PathBuf| format!("---\n{}", fs::read_to_string(file).unwrap());
    let written: Vec<_> = files.iter().map(text).collect();
    assert_eq!(written.concat(), printed);
}

#[test]
fn every_command_has_examples() {
    for name in [
        "summarize",
        "export",
        "gate",
        "serve-gate",
        "doctor",
        "run",
        "estimate",
        "watch",
        "completion",
        "compare",
        "crd",
        "reference",
    ] {
        let help = stdout(&command().args([name, "--help"]).output().unwrap());
        assert!(
            help.contains(&format!("kubectl frugality {name}")),
            "{help}"
        );
    }
}

#[test]
fn shells_get_a_script_and_kubectl_gets_words() {
    let script = command().args(["completion", "bash"]).output().unwrap();
    assert!(stdout(&script).contains("kubectl-frugality"));
    let api = Api::answering(
        "completion",
        vec![(
            200,
            format!(
                "{{\"kind\": \"List\", \"metadata\": {{}}, \"items\": [{}]}}",
                data("passed.json")
            ),
        )],
    );
    let words = |words: &[&str]| stdout(&api.run(&[&["__complete", "--"], words].concat()));
    assert!(words(&["wa"]).starts_with("watch\tFollow a benchmark"));
    assert_eq!(words(&["watch", "--namespace", "farm", "t"]), "two\n:4\n");
    let asked = format!("{PATH}/namespaces/farm/frugalitybenchmarks?");
    assert_eq!(api.asked(), [asked]);
    assert_eq!(words(&["watch", "--namespace", "farm", "x"]), ":4\n");
    assert!(words(&["gate", "--ti"]).starts_with("--timeout\tLongest time"));
}
