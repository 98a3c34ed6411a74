//! Words for shells: as a script for `kubectl-frugality`, and as answers for `kubectl frugality`.

use std::{fmt::Write as _, time::Duration};

use clap::{Arg, Command};
use clap_complete::{Shell, generate};
use frugality_operator::api::FrugalityBenchmark;
use serde_json::Value;
use tokio::time::timeout;

use crate::cluster::{Access, Place};

/// Help below the options.
pub const HELP: &str = "\
The script completes kubectl-frugality. For `kubectl frugality`, copy kubectl_complete-frugality of the release archive to a
folder in PATH: kubectl calls it if the completion of kubectl itself is loaded.

Examples:
  kubectl frugality completion bash >~/.local/share/bash-completion/completions/kubectl-frugality
  kubectl frugality completion zsh >~/.zfunc/_kubectl-frugality";

/// Name of the program's file.
const PROGRAM: &str = "kubectl-frugality";
/// The directive of kubectl's completion (cobra) that no file names follow.
const NO_FILES: &str = ":4\n";
/// The directive that file names follow.
const FILES: &str = ":0\n";
/// Longest time for the names of benchmarks. A shell waits for them.
const ANSWER: Duration = Duration::from_secs(3);
/// Commands whose first word is the name of a benchmark.
const NAMED: [&str; 6] = ["watch", "gate", "summarize", "export", "report", "compare"];

/// The options of `kubectl frugality completion`.
#[derive(Clone, Debug, clap::Args)]
pub struct Completion {
    /// Shell.
    shell: Shell,
}

impl Completion {
    /// The script.
    #[must_use]
    pub fn script(&self, mut command: Command) -> Vec<u8> {
        let mut script = Vec::new();
        // The file is a separate program, whose name has no blank.
        command = command.bin_name(PROGRAM);
        generate(self.shell, &mut command, PROGRAM, &mut script);
        script
    }
}

/// The words after `kubectl frugality`. The last one is completed.
#[derive(Clone, Debug, clap::Args)]
pub struct Complete {
    /// The words.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Complete {
    /// A candidate per line, and a directive, in the form that kubectl reads. Errors give no candidates, because a shell
    /// has no place for messages.
    pub async fn run(&self, command: Command) -> String {
        let known = answer(&command, &self.words);
        if known != Answer::Benchmarks {
            return known.text();
        }
        let names = timeout(ANSWER, benchmarks(&self.words)).await;
        let names = names.ok().flatten().unwrap_or_default();
        let last = self.words.last().map_or("", String::as_str);
        let fitting = names.into_iter().filter(|name| name.starts_with(last));
        Answer::Words(fitting.map(|name| (name, String::new())).collect()).text()
    }
}

/// What may stand in the place of the last word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    /// These words, each with its description.
    Words(Vec<(String, String)>),
    /// The name of a benchmark.
    Benchmarks,
    /// The name of a file, or any text.
    Anything,
}

impl Answer {
    fn text(&self) -> String {
        let mut text = String::new();
        let Self::Words(words) = self else {
            return FILES.to_owned();
        };
        for (word, description) in words {
            // Writing to a String does not fail.
            let _ = match description.as_str() {
                "" => writeln!(text, "{word}"),
                description => writeln!(text, "{word}\t{description}"),
            };
        }
        text + NO_FILES
    }
}

/// The answer for the words, without asking a cluster.
fn answer(command: &Command, words: &[String]) -> Answer {
    let Some((last, before)) = words.split_last() else {
        return Answer::Words(Vec::new());
    };
    let Some((name, before)) = before.split_first() else {
        let commands = command.get_subcommands().filter(|it| !it.is_hide_set());
        let commands = commands.map(|it| (it.get_name().to_owned(), about(it.get_about())));
        return Answer::Words(starting_with(last, commands));
    };
    let Some(command) = command.find_subcommand(name) else {
        return Answer::Words(Vec::new());
    };
    let options = || command.get_arguments().filter(|it| !it.is_positional());
    if let Some(option) = before.last().and_then(|word| option_of(options(), word)) {
        return values(option, last);
    }
    if last.starts_with('-') {
        let flags = options().filter_map(|it| {
            let name = format!("--{}", it.get_long()?);
            Some((name, about(it.get_help())))
        });
        return Answer::Words(starting_with(last, flags));
    }
    let is_first = positionals(options, before) == 0;
    match command.get_positionals().next() {
        Some(_) if is_first && NAMED.contains(&name.as_str()) => Answer::Benchmarks,
        Some(argument) if is_first => values(argument, last),
        _ => Answer::Words(Vec::new()),
    }
}

/// Number of words that are neither an option nor an option's value.
fn positionals<'a, I>(options: impl Fn() -> I, words: &[String]) -> usize
where
    I: Iterator<Item = &'a Arg>,
{
    let is_value = |index: usize| {
        let before = index.checked_sub(1).and_then(|before| words.get(before));
        before.is_some_and(|word| option_of(options(), word).is_some())
    };
    let is_own = |(index, word): &(usize, &String)| !word.starts_with('-') && !is_value(*index);
    words.iter().enumerate().filter(is_own).count()
}

/// The option that the word names and whose value follows.
fn option_of<'a>(mut options: impl Iterator<Item = &'a Arg>, word: &str) -> Option<&'a Arg> {
    options.find(|option| {
        let long = option
            .get_long()
            .is_some_and(|it| word == format!("--{it}"));
        let short = option
            .get_short()
            .is_some_and(|it| word == format!("-{it}"));
        let is_next = option.get_action().takes_values() && !option.is_require_equals_set();
        (long || short) && is_next
    })
}

fn values(argument: &Arg, begin: &str) -> Answer {
    let values = argument.get_possible_values();
    if values.is_empty() {
        return Answer::Anything;
    }
    let values = values
        .iter()
        .map(|it| (it.get_name().to_owned(), about(it.get_help())));
    Answer::Words(starting_with(begin, values))
}

fn starting_with(
    begin: &str,
    words: impl Iterator<Item = (String, String)>,
) -> Vec<(String, String)> {
    words.filter(|(word, _)| word.starts_with(begin)).collect()
}

/// The first line of a help text.
fn about(text: Option<&clap::builder::StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// Names of the benchmarks in the namespace that the words name.
async fn benchmarks(words: &[String]) -> Option<Vec<String>> {
    let after = |flags: [&str; 2]| {
        let at = words.iter().position(|it| flags.contains(&it.as_str()))?;
        words.get(at + 1).cloned()
    };
    let access = Access {
        namespace: after(["-n", "--namespace"]),
        place: Place {
            context: after(["--context"; 2]),
            kubeconfig: after(["--kubeconfig"; 2]).map(Into::into),
            cluster: after(["--cluster"; 2]),
            user: after(["--user"; 2]),
            act_as: after(["--as"; 2]),
            act_as_groups: Vec::new(),
        },
    };
    let cluster = access.connect().await.ok()?;
    let text = cluster.list::<FrugalityBenchmark>(false).await.ok()?;
    let list: Value = serde_json::from_str(&text).ok()?;
    let items = list["items"].as_array()?;
    let names = items
        .iter()
        .filter_map(|it| it["metadata"]["name"].as_str());
    Some(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Command {
        Command::new("frugality").subcommands([
            Command::new("watch")
                .about("Follow")
                .arg(Arg::new("name"))
                .arg(Arg::new("namespace").long("namespace").short('n')),
            Command::new("estimate")
                .arg(Arg::new("filename").long("filename").short('f'))
                .arg(
                    Arg::new("dry")
                        .long("dry")
                        .num_args(0..=1)
                        .require_equals(true)
                        .value_parser(["client", "server"]),
                )
                .arg(
                    Arg::new("output")
                        .long("output")
                        .value_parser(["text", "json"]),
                ),
            Command::new("__complete").hide(true),
        ])
    }

    #[test]
    fn words_flags_values_and_names_are_completed() {
        let words = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|it| (*it).to_owned()).collect();
            answer(&program(), &words).text()
        };
        assert_eq!(words(&[""]), "watch\tFollow\nestimate\n:4\n");
        assert_eq!(words(&["w"]), "watch\tFollow\n:4\n");
        assert_eq!(words(&["estimate", "--o"]), "--output\n:4\n");
        assert_eq!(words(&["estimate", "--output", ""]), "text\njson\n:4\n");
        assert_eq!(words(&["estimate", "-f", ""]), ":0\n");
        // The next word is not a value of an option whose value follows `=`.
        assert_eq!(words(&["estimate", "--dry", ""]), ":4\n");
        assert_eq!(words(&["nothing", ""]), ":4\n");
        let name = ["watch".to_owned(), String::new()];
        assert_eq!(answer(&program(), &name), Answer::Benchmarks);
    }
}
