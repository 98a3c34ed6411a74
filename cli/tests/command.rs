//! The program: its input, its output and its error messages.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::{data, data_path};

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_kubectl-frugality"))
}

/// A new folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
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

/// With a kubectl that writes its arguments to a file, and `file` of the tests' data to standard output.
fn with_kubectl(name: &str, file: &str, arguments: &[&str]) -> (Output, String) {
    let folder = folder(name);
    let (kubectl, asked) = (folder.join("kubectl"), folder.join("asked"));
    let script = format!(
        "#!/bin/sh\necho \"$@\" >{}\nexec cat {}\n",
        asked.display(),
        data_path(file).display()
    );
    fs::write(&kubectl, script).unwrap();
    fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let done = command()
        .args(arguments)
        .env("PATH", path)
        .output()
        .unwrap();
    (done, fs::read_to_string(asked).unwrap_or_default())
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

#[test]
fn a_named_benchmark_is_asked_for_with_kubectl() {
    let flags = ["summarize", "two", "-n", "shop", "--context", "pis"];
    let (done, asked) = with_kubectl("named", "passed.json", &flags);
    assert!(stdout(&done).starts_with("two: Pass"));
    assert_eq!(
        asked,
        "--context=pis --namespace=shop get fb two --output json\n"
    );
}

#[test]
fn the_ledger_of_a_cluster_is_asked_for_with_kubectl() {
    let (done, asked) = with_kubectl("all", "ledger.json", &["export", "-A"]);
    assert_eq!(stdout(&done), data("ledger-export.json"));
    assert_eq!(asked, "get fbt --all-namespaces --output json\n");
    let (done, asked) = with_kubectl("one", "ledger.json", &["export", "nothing", "--format=csv"]);
    assert_eq!(stdout(&done).lines().count(), 1);
    assert_eq!(asked, "get fbt --output json\n");
}

#[test]
fn a_message_names_the_cause_and_what_to_do() {
    let missing = command()
        .args(["export", "-f", "no-such-file"])
        .output()
        .unwrap();
    assert_refused(&missing, &["no-such-file", "kubectl get -o json"]);
    let nonsense = piped(&["summarize"], "{\"spec\": 1}");
    assert_refused(&nonsense, &["no benchmark", "kubectl get fb NAME -o json"]);
    let no_kubectl = command()
        .args(["summarize", "two"])
        .env("PATH", folder("empty"))
        .output()
        .unwrap();
    assert_refused(&no_kubectl, &["cannot run kubectl", "--filename"]);
    let (failed, _) = with_kubectl("failing", "no-such-file", &["summarize", "two"]);
    assert_refused(&failed, &["`kubectl get fb two --output json` failed"]);
    let unwritable = piped(
        &["export", "--output", "/no/such/folder/ledger.json"],
        &data("ledger.json"),
    );
    assert_refused(&unwritable, &["/no/such/folder/ledger.json", "--output"]);
}

#[test]
fn the_definitions_are_printed_and_written() {
    let printed = stdout(&command().arg("crd").output().unwrap());
    assert_eq!(printed.matches("kind: CustomResourceDefinition").count(), 2);
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
    for name in ["summarize", "export", "crd", "reference"] {
        let help = stdout(&command().args([name, "--help"]).output().unwrap());
        assert!(
            help.contains(&format!("kubectl frugality {name}")),
            "{help}"
        );
    }
}
