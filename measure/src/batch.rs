//! A program that is executed repeatedly to completion: the report of one execution, the score and work in
//! its output, and the result of all executions in a measured window.

mod result;
mod spread;

use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use result::{BatchError, ExecutionsResult};
pub use spread::Spread;

/// The path at which the runner in the candidate's pod starts the program: one POST is one execution.
pub const EXECUTIONS_PATH: &str = "/executions";

/// How much of the end of a program's output is kept, in bytes.
pub const OUTPUT_LIMIT_BYTES: usize = 64 << 10;

/// The runner's answer after the program has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// Exit code; absent if a signal ended the program.
    pub exit_code: Option<i32>,
    /// Time from its start to its end, in seconds by the clock of the candidate's node.
    pub duration_seconds: f64,
    /// The end of its output, at most [`OUTPUT_LIMIT_BYTES`]: standard output and standard error in the order
    /// of printing.
    pub output: String,
}

/// A pattern that finds a number in a program's output.
#[derive(Clone, Debug)]
pub struct NumberPattern(Regex);

/// Why a pattern finds no number.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PatternError {
    /// The text is not a regular expression.
    #[error("{0}")]
    Syntax(String),
    /// The pattern does not have exactly one group.
    #[error(
        "it has {0} groups, and needs one, around the number, for example `Nodes/second *: ([0-9]+)`; write (?:…) for other groups"
    )]
    Groups(usize),
}

impl NumberPattern {
    /// Compiles a regular expression of the crate `regex-lite` with one group.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        let regex = Regex::new(pattern).map_err(|error| PatternError::Syntax(error.to_string()))?;
        match regex.captures_len() - 1 {
            1 => Ok(Self(regex)),
            groups => Err(PatternError::Groups(groups)),
        }
    }

    /// The number in the group at the pattern's last match. A part of a number is an error: `([0-9]+)` takes
    /// 390 of 390,786, `([0-9]+) nodes` the 786, and `.*([0-9]+)` the 6. So is a number whose unit the pattern leaves
    /// out: 1.2 of 1.2 GB.
    pub fn last_in(&self, output: &str) -> Result<f64, NumberError> {
        let found = self.0.captures_iter(output).last();
        let group = found.and_then(|found| found.get(1));
        let group = group.ok_or(NumberError::NotThere)?;
        let (before, after) = (&output[..group.start()], &output[group.end()..]);
        let (said_before, said_after) = around_group(self.0.as_str());
        let is_group = is_group_of(before, group.as_str(), said_before);
        let has_unit = has_unit(after, said_after);
        let is_part = begins_in(before, said_before) || goes_on(after, said_after);
        if is_part || is_group || has_unit {
            let word = if is_group { before.trim_end() } else { before };
            let earlier = word.trim_end_matches(|c| !is_blank(c) && c != '\n');
            let words = output[earlier.len()..].split_whitespace();
            let number = if is_group || has_unit { 2 } else { 1 };
            let printed: Vec<&str> = words.take(number).collect();
            return Err(NumberError::Part {
                taken: group.as_str().to_owned(),
                printed: printed.join(" ").chars().take(40).collect(),
            });
        }
        let number: f64 = group
            .as_str()
            .trim()
            .parse()
            .map_err(|_| NumberError::NotThere)?;
        (number.is_finite() && number > 0.0 && number < crate::NUMBERS_END)
            .then_some(number)
            .ok_or(NumberError::NotThere)
    }
}

/// Characters that programs print within a number.
const WITHIN: [char; 7] = ['.', ',', '\'', '\u{2019}', '_', 'e', 'E'];

/// A blank between two groups of digits, or between a number and its unit. Some languages write narrow or no-break
/// ones.
fn is_blank(c: char) -> bool {
    c.is_whitespace() && c != '\n' && c != '\r'
}

/// Whether the group is the end of a number in groups of three digits, such as 567 of `1 234 567`. A pattern with a
/// blank at this place says that there are two numbers.
fn is_group_of(before: &str, group: &str, pattern: &str) -> bool {
    let said = pattern.trim_end_matches(|c| "*+?".contains(c));
    let is_said = said.ends_with(is_blank) || said.ends_with("\\s") || said.ends_with(']');
    let earlier = before.strip_suffix(is_blank).unwrap_or_default();
    let digits = earlier.chars().rev().take_while(char::is_ascii_digit);
    group.len() == 3
        && group.chars().all(|c| c.is_ascii_digit())
        && (1..=3).contains(&digits.count())
        && !is_said
}

/// Whether the number goes on after a blank, as 234 of `1 234`, or has a unit such as MB/s. The next execution may
/// print another unit, so the pattern must have the unit's first letter, a class or a group at its place.
fn has_unit(after: &str, pattern: &str) -> bool {
    let word = after.trim_start_matches(is_blank);
    let blanks = after[..after.len() - word.len()].chars().count();
    let digits = word.chars().take_while(char::is_ascii_digit).count();
    let pattern = pattern.trim_start_matches(')');
    let said = pattern.strip_prefix("\\s").unwrap_or(pattern);
    let said = said.trim_start_matches(|c: char| is_blank(c) || "*+?".contains(c));
    let is_class = said.starts_with(['[', '(', '\\']);
    if blanks == 1 && digits == 3 {
        return said.len() == pattern.len() && !is_class;
    }
    let is_exponent = |c: char| blanks == 0 && matches!(c, 'e' | 'E');
    word.chars()
        .next()
        .is_some_and(|c| c.is_alphabetic() && !is_exponent(c) && !is_class && !said.starts_with(c))
}

/// Whether the number began before the group. A separator belongs to the number, unless the pattern ends with
/// the separator.
fn begins_in(before: &str, pattern: &str) -> bool {
    let digit_ends = |text: &str| text.ends_with(|c: char| c.is_ascii_digit());
    let unsigned = before.strip_suffix(['+', '-']).unwrap_or(before);
    // A sign belongs to the number only after the exponent's letter.
    let unsigned = if unsigned.ends_with(['e', 'E']) {
        unsigned
    } else {
        before
    };
    match unsigned.chars().next_back() {
        Some(c) if c.is_ascii_digit() => true,
        Some(c) if WITHIN.contains(&c) => {
            let said = pattern.trim_end_matches(|c| ")*+?".contains(c));
            let said = match said.rfind('{') {
                Some(at) if said.ends_with('}') => &said[..at],
                _ => said,
            };
            let said = said.trim_end_matches(')');
            digit_ends(&unsigned[..unsigned.len() - 1])
                && !(said.ends_with(c) && (c != '.' || said.ends_with("\\.")))
        }
        _ => false,
    }
}

/// Whether the number continues after the group; separators count as in [`begins_in`].
fn goes_on(after: &str, pattern: &str) -> bool {
    let mut following = after.chars();
    match following.next() {
        Some(c) if c.is_ascii_digit() => true,
        Some(c) if WITHIN.contains(&c) => {
            let rest = following.as_str();
            let rest = if matches!(c, 'e' | 'E') {
                rest.strip_prefix(['+', '-']).unwrap_or(rest)
            } else {
                rest
            };
            let said = pattern.strip_prefix("(?:").unwrap_or(pattern);
            let is_said = if c == '.' {
                said.starts_with("\\.")
            } else {
                said.starts_with(c)
            };
            rest.starts_with(|c: char| c.is_ascii_digit()) && !is_said
        }
        _ => false,
    }
}

/// The pattern's text before its group and after it.
fn around_group(pattern: &str) -> (&str, &str) {
    let (mut is_escaped, mut in_class, mut depth) = (false, false, 0);
    let mut group = None;
    for (at, c) in pattern.char_indices() {
        let next = &pattern[at + c.len_utf8()..];
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                let captures =
                    !next.starts_with('?') || next.starts_with("?P<") || next.starts_with("?<");
                if captures && group.is_none() {
                    group = Some((at, depth));
                }
                depth += 1;
            }
            ')' if !in_class => {
                depth -= 1;
                if let Some((from, outer)) = group
                    && outer == depth
                {
                    return (&pattern[..from], next);
                }
            }
            _ => {}
        }
    }
    ("", "")
}

/// Why an output contains no number.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NumberError {
    /// The pattern does not match, or its group does not contain a number above 0.
    #[error("is not in what the program printed")]
    NotThere,
    /// The group holds a part of a number.
    #[error(
        "takes only {taken} of {printed}: the group must contain the whole number, or the pattern must contain the sign or the unit next to the group"
    )]
    Part {
        /// The text in the group.
        taken: String,
        /// The whole number in the output.
        printed: String,
    },
}

/// The amount of work of an execution.
#[derive(Clone, Debug)]
pub enum WorkSource {
    /// A constant amount.
    Amount(f64),
    /// The amount that the program prints.
    Printed(NumberPattern),
}

/// The patterns for the output of an execution.
#[derive(Clone, Debug, Default)]
pub struct Readers {
    /// Finds the score, if the benchmark has one.
    pub score: Option<NumberPattern>,
    /// Finds the work, if the benchmark counts work.
    pub work: Option<WorkSource>,
}

/// The result of an execution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExecutionOutcome {
    /// Time from its start to its end, in seconds.
    pub duration_seconds: f64,
    /// Its score, if the benchmark has one.
    pub score: Option<f64>,
    /// Its work, if the benchmark counts work.
    pub work: Option<f64>,
}

/// Why an execution has failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExecutionError {
    /// The exit code was not 0.
    #[error("exit code {code}: {said}")]
    ExitCode {
        /// The code.
        code: i32,
        /// The last line that it printed.
        said: String,
    },
    /// A signal killed the program.
    #[error("ended by a signal: {said}")]
    Signal {
        /// The last line that it printed.
        said: String,
    },
    /// A number is not in the output.
    #[error("{name} {why}: {said}")]
    NotPrinted {
        /// `batch.score` or `batch.work`.
        name: &'static str,
        /// Why the number is missing.
        why: NumberError,
        /// The last line that it printed.
        said: String,
    },
}

impl Readers {
    /// Reads the result of an execution, or the reason for its failure. An execution without its score or its
    /// work counts as failed: a mean over the others would contain the successful executions only.
    pub fn read(&self, execution: &Execution) -> Result<ExecutionOutcome, ExecutionError> {
        let said = || last_line(&execution.output);
        match execution.exit_code {
            Some(0) => {}
            Some(code) => return Err(ExecutionError::ExitCode { code, said: said() }),
            None => return Err(ExecutionError::Signal { said: said() }),
        }
        let printed = |name, pattern: &NumberPattern| {
            let number = pattern.last_in(&execution.output);
            number.map_err(|why| ExecutionError::NotPrinted {
                name,
                why,
                said: said(),
            })
        };
        let score = self.score.as_ref().map(|it| printed("batch.score", it));
        let work = self.work.as_ref().map(|work| match work {
            WorkSource::Amount(amount) => Ok(*amount),
            WorkSource::Printed(pattern) => printed("batch.work", pattern),
        });
        Ok(ExecutionOutcome {
            duration_seconds: execution.duration_seconds,
            score: score.transpose()?,
            work: work.transpose()?,
        })
    }
}

/// The last line that is not empty, at most 200 characters of it.
fn last_line(output: &str) -> String {
    let mut lines = output.lines().rev().map(str::trim);
    match lines.find(|line| !line.is_empty()) {
        Some(line) => line.chars().take(200).collect(),
        None => "it printed nothing".to_owned(),
    }
}
