//! A parser of the Prometheus text format, which Kepler and the node meter use.
//!
//! It reads names, labels, values and timestamps. `# HELP`, `# TYPE` and other comments are skipped. An exemplar is
//! not returned.
//!
//! Format: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::CharIndices;

/// One sample of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The metric's name.
    pub name: String,
    /// The labels, without escapes; empty if the sample has none.
    pub labels: BTreeMap<String, String>,
    /// The value; NaN and the infinities are legal in the format.
    pub value: f64,
    /// When the value was measured, if the sample says so: milliseconds since 1970 in the text format, seconds in
    /// OpenMetrics.
    pub timestamp: Option<f64>,
}

impl Sample {
    /// The value of a label, or `None` if the sample does not have this label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(name).map(String::as_str)
    }
}

/// Why a text is not a valid exposition. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpositionError {
    /// The last line has no line feed. The format requires one. Without this rule a text that was cut off
    /// inside a number would be read as a smaller number.
    #[error("line {line}: the text ends inside this line")]
    Truncated {
        /// The line that was cut off.
        line: usize,
    },
    /// A line that is neither empty nor a comment does not begin with a metric's name.
    #[error("line {line}: a metric name is expected")]
    MetricName {
        /// The invalid line.
        line: usize,
    },
    /// The label block is not of the form `{name="value",…}`.
    #[error("line {line}: {expected} is expected among the labels")]
    Labels {
        /// The invalid line.
        line: usize,
        /// The expected text.
        expected: &'static str,
    },
    /// One sample names a label twice.
    #[error("line {line}: the label {label} is given twice")]
    DuplicateLabel {
        /// The invalid line.
        line: usize,
        /// The label's name.
        label: String,
    },
    /// A sample's value is missing, is not a number, or exceeds the range of a double.
    #[error("line {line}: {text:?} is not a value")]
    Value {
        /// The invalid line.
        line: usize,
        /// The text at the place of the value.
        text: String,
    },
    /// Something other than a timestamp or an exemplar follows the value.
    #[error("line {line}: {text:?} is not a timestamp")]
    Timestamp {
        /// The invalid line.
        line: usize,
        /// The unexpected text.
        text: String,
    },
}

/// Parses a whole exposition, in order. An empty text has no samples and is not an error:
/// [`crate::reading::read`] checks that the required series exist.
pub fn parse(text: &str) -> Result<Vec<Sample>, ExpositionError> {
    let mut samples = Vec::new();
    for (index, raw) in text.split_inclusive('\n').enumerate() {
        let line = index + 1;
        let Some(content) = raw.strip_suffix('\n') else {
            return Err(ExpositionError::Truncated { line });
        };
        let content = content.trim_matches([' ', '\t', '\r']);
        if !content.is_empty() && !content.starts_with('#') {
            samples.push(sample(content, line)?);
        }
    }
    Ok(samples)
}

/// `name [{labels}] value [timestamp] [# exemplar]`
fn sample(content: &str, line: usize) -> Result<Sample, ExpositionError> {
    let (name, rest) = split_name(content, true).ok_or(ExpositionError::MetricName { line })?;
    let rest = skip_blanks(rest);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => label_block(inside, line)?,
        None => (BTreeMap::new(), rest),
    };
    // A lone `#` separates an exemplar. No label value can follow any more, so this split is safe.
    let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
    let mut words = rest.split_ascii_whitespace();
    let word = words.next().unwrap_or_default();
    let value = number(word).ok_or_else(|| ExpositionError::Value {
        line,
        text: word.to_owned(),
    })?;
    let timestamp = match (words.next(), words.next()) {
        (None, _) => None,
        (Some(word), None) if number(word).is_some() => number(word),
        (Some(word), extra) => {
            let text = extra.unwrap_or(word).to_owned();
            return Err(ExpositionError::Timestamp { line, text });
        }
    };
    Ok(Sample {
        name: name.to_owned(),
        labels,
        value,
        timestamp,
    })
}

/// Parses labels after the opening brace. Returns them and the text after the closing brace.
fn label_block(
    inside: &str,
    line: usize,
) -> Result<(BTreeMap<String, String>, &str), ExpositionError> {
    let expected = |expected| ExpositionError::Labels { line, expected };
    let mut labels = BTreeMap::new();
    let mut rest = skip_blanks(inside);
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Ok((labels, after));
        }
        let (name, after) = split_name(rest, false).ok_or_else(|| expected("a name or '}'"))?;
        let after = skip_blanks(after)
            .strip_prefix('=')
            .ok_or_else(|| expected("'='"))?;
        let after = skip_blanks(after)
            .strip_prefix('"')
            .ok_or_else(|| expected("'\"'"))?;
        let (value, after) = quoted(after).ok_or_else(|| expected("a closing '\"'"))?;
        if labels.insert(name.to_owned(), value).is_some() {
            return Err(ExpositionError::DuplicateLabel {
                line,
                label: name.to_owned(),
            });
        }
        rest = skip_blanks(after);
        match rest.strip_prefix(',') {
            Some(after) => rest = skip_blanks(after),
            None if rest.starts_with('}') => {}
            None => return Err(expected("',' or '}'")),
        }
    }
}

/// Parses a label's value after its opening quote. Returns the value without escapes, and the text after the
/// closing quote.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters: Peekable<CharIndices<'_>> = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.peek().map(|&(_, next)| next) {
                Some(escaped @ ('\\' | '"' | 'n')) => {
                    value.push(if escaped == 'n' { '\n' } else { escaped });
                    characters.next();
                }
                // The format has three escapes; any other backslash is literal.
                _ => value.push('\\'),
            },
            other => value.push(other),
        }
    }
    None
}

/// Splits a metric's name (which may contain colons) or a label's name off the front.
fn split_name(text: &str, colons: bool) -> Option<(&str, &str)> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || (colons && c == ':');
    let end = text.find(|c| !fits(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let first = name.chars().next()?;
    (!first.is_ascii_digit()).then_some((name, rest))
}

/// A number in the format's notation. An overflow such as `1e999` is refused: it would become an infinity
/// that the meter did not write.
fn number(word: &str) -> Option<f64> {
    let value: f64 = word.parse().ok()?;
    let digits = word.contains(|c: char| c.is_ascii_digit());
    (value.is_finite() || !digits).then_some(value)
}

fn skip_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

#[cfg(test)]
mod tests;
