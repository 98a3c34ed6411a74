//! The parsers, and the code that uses the values they accept.

use std::io::Write as _;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use flate2::{Compression, write::GzEncoder};
use frugality_measure::{
    fortio,
    k6::{self, CycleSettings},
    load::LoadResult,
    reading,
    report::{InjectionReport, REPORT_VERSION},
};
use serde_json::json;

use super::{Corpus, chain::Chain, expect::require, finite::not_finite, mutate::damage};
use crate::{
    Error,
    experiment::{MEASURED_NODE, T0},
    random::Random,
};

/// A parser of foreign text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Parser {
    /// The meters' exposition.
    Exposition,
    /// Fortio's JSON.
    Fortio,
    /// The line of k6's output.
    K6,
    /// The injector's report.
    Report,
}

impl Parser {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Exposition, Self::Fortio, Self::K6, Self::Report];

    /// Its name, which is also the name of its corpus' folder.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exposition => "exposition",
            Self::Fortio => "fortio",
            Self::K6 => "k6",
            Self::Report => "report",
        }
    }
}

/// A parser with the code after it.
#[derive(Clone, Debug)]
pub struct Target {
    parser: Parser,
    chain: Chain,
}

impl Target {
    /// The code from this parser to the status.
    pub fn new(parser: Parser) -> Result<Self, Error> {
        Ok(Self {
            parser,
            chain: Chain::new()?,
        })
    }

    /// A damaged input of the corpus.
    pub(super) fn damaged(&self, corpus: &Corpus, random: &mut Random) -> Vec<u8> {
        let inputs = corpus.inputs();
        let any = |random: &mut Random| {
            let input = inputs.get(random.below(inputs.len()));
            input.map(Vec::as_slice).unwrap_or_default()
        };
        let mut input = any(random).to_vec();
        let other = any(random);
        if self.parser != Parser::Report {
            damage(&mut input, other, random);
            return input;
        }
        // A report is damaged before it is packed, because a parser rejects almost every damaged packed text.
        if random.chance(0.9) {
            damage(&mut input, other, random);
        }
        if random.chance(0.0005) {
            input.extend(std::iter::repeat_n(b' ', 3 << 20));
        }
        let mut input = self.packed(&input);
        if random.chance(0.1) {
            damage(&mut input, other, random);
        }
        input
    }

    /// An input of the corpus in the form that the parser reads. Reports are packed. Failure messages and texts that are
    /// not JSON are unchanged.
    pub(super) fn packed(&self, input: &[u8]) -> Vec<u8> {
        let is_report = self.parser == Parser::Report && input.starts_with(b"{\"version\"");
        if is_report {
            packed(input).into_bytes()
        } else {
            input.to_vec()
        }
    }

    /// The end of an input, or its failure as an error.
    pub(super) fn attempt(&self, input: &[u8], random: &mut Random) -> Result<String, String> {
        let text = String::from_utf8_lossy(input);
        match self.parser {
            Parser::Exposition => self.exposition(&text, random),
            Parser::Fortio => self.fortio(&text),
            Parser::K6 => self.k6(&text),
            Parser::Report => self.report(&text),
        }
    }

    fn exposition(&self, text: &str, random: &mut Random) -> Result<String, String> {
        let zone = random.of([None, None, Some("package"), Some("psys")]);
        match reading::read(text, MEASURED_NODE, zone, T0) {
            Err(error) => Ok(refused(&error)),
            Ok(reading) => {
                require(not_finite(&reading), "a reading")?;
                self.chain.of_reading(&reading, random)
            }
        }
    }

    fn fortio(&self, text: &str) -> Result<String, String> {
        let result = match fortio::parse(text) {
            Err(error) => return Ok(refused(&error)),
            Ok(result) => result,
        };
        require(not_finite(&result), "Fortio's result")?;
        self.result(&result.into())
    }

    fn k6(&self, text: &str) -> Result<String, String> {
        let settings = CycleSettings {
            url: "http://one:8080".into(),
            agents: 4,
            rate: None,
            warm_up_seconds: 1.0,
            ramp_up_seconds: 0.0,
            duration_seconds: 2.0,
            tail_seconds: 1.0,
            timeout_seconds: 3.0,
        };
        match k6::parse(text, &settings) {
            Err(error) => Ok(refused(&error)),
            Ok(output) => {
                require(not_finite(&output.measured), "k6's result")?;
                self.result(&LoadResult::K6(output.measured))
            }
        }
    }

    /// The end of a load generator's result, from Fortio or k6.
    fn result(&self, result: &LoadResult) -> Result<String, String> {
        let requests = result.figures(&[200]);
        require(not_finite(&requests), "the figures of requests")?;
        let clock = json!({"offsetSeconds": 0.75, "uncertaintySeconds": 0.001});
        let report = json!({
            "version": REPORT_VERSION, "measured": result, "histogramDropped": false,
            "askedWarmUpSeconds": 0, "askedTailSeconds": 0,
            "clock": clock, "clockAfter": clock,
        });
        let report: InjectionReport =
            serde_json::from_value(report).map_err(|error| format!("a report: {error}"))?;
        match report.encode() {
            // A version or a URL may have any length.
            Err(error) => Ok(refused(&error)),
            Ok(message) => match InjectionReport::decode(&message) {
                Ok(report) => self.chain.of_report(&report),
                Err(error) => Err(format!("the observed report cannot be read: {error}")),
            },
        }
    }

    fn report(&self, text: &str) -> Result<String, String> {
        let report = match InjectionReport::decode(text) {
            Err(error) => return Ok(refused(&error)),
            Ok(report) => report,
        };
        require(not_finite(&report), "a report")?;
        let again = report
            .encode()
            .map(|message| InjectionReport::decode(&message));
        if let Ok(Err(error)) = again {
            return Err(format!("a parsed report cannot be read again: {error}"));
        }
        self.chain.of_report(&report)
    }
}

/// A report, packed like the injector packs it.
fn packed(json: &[u8]) -> String {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory cannot fail. An empty text would be refused.
    let bytes = packed.write_all(json).and_then(|()| packed.finish());
    BASE64_STANDARD.encode(bytes.unwrap_or_default())
}

/// The kind of an error: the first words of its `Debug` form and of the value in it.
pub(super) fn refused(error: &impl std::fmt::Debug) -> String {
    let text = format!("{error:?}");
    let words: Vec<_> = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase()))
        .take(1)
        .collect();
    format!("refused: {}", words.join(" "))
}
