//! Sends damaged input to the parsers of foreign text: the meters' exposition, Fortio's JSON, k6's output, and the
//! injector's report.
//!
//! No code may panic. All values that a parser accepts must have only finite numbers, up to the status. The inputs are
//! real texts from a corpus with damaged numbers, labels and lines. The same seed makes the same inputs.

mod chain;
mod corpus;
mod expect;
mod finite;
mod mutate;
mod targets;

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::{Error, parallel, random::Random};
pub use corpus::{Corpus, quiet_panics};
pub use targets::{Parser, Target};

/// First section of the random numbers. Each parser has its own section.
const SECTION: u64 = 1000;
/// Inputs per random stream: enough to make the cost of a stream negligible, few enough to keep all threads busy.
const BATCH: u64 = 1000;

/// The results of one parser's inputs.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The number of inputs.
    pub inputs: u64,
    /// The number of inputs per end.
    pub ends: BTreeMap<String, u64>,
    /// Failures, at most one of each kind: the problem, and the input.
    pub failures: BTreeMap<String, Vec<u8>>,
    /// For each end that no input of the corpus reached, the shortest input that reached it.
    pub news: BTreeMap<String, Vec<u8>>,
}

/// Sends `inputs` inputs (in whole thousands) to a parser.
pub fn run(parser: Parser, corpus: &Corpus, seed: u64, inputs: u64) -> Result<Summary, Error> {
    let target = Target::new(parser)?;
    let section = SECTION + parser as u64;
    // The undamaged corpus comes first. Its ends are not new, and none of them may be a failure.
    let mut undamaged = Summary::default();
    let mut known = BTreeSet::new();
    for input in corpus.inputs() {
        let mut random = Random::new(seed, section, u64::MAX);
        let input = target.packed(input);
        match attempt(&target, &input, &mut random) {
            Ok(end) => {
                known.insert(end);
            }
            Err(failure) => keep_shorter(&mut undamaged.failures, &failure, &input),
        }
    }
    let batches = parallel::map(inputs.div_ceil(BATCH), |batch| {
        let mut random = Random::new(seed, section, batch);
        let mut summary = Summary::default();
        for _ in 0..BATCH {
            let input = target.damaged(corpus, &mut random);
            summary.inputs += 1;
            match attempt(&target, &input, &mut random) {
                Ok(end) => {
                    if !known.contains(&end) {
                        keep_shorter(&mut summary.news, &end, &input);
                    }
                    *summary.ends.entry(end).or_default() += 1;
                }
                Err(failure) => keep_shorter(&mut summary.failures, &failure, &input),
            }
        }
        summary
    });
    Ok(batches.into_iter().fold(undamaged, Summary::and))
}

/// The end of an input, or its failure as an error.
fn attempt(target: &Target, input: &[u8], random: &mut Random) -> Result<String, String> {
    catch_unwind(AssertUnwindSafe(|| target.attempt(input, random))).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

fn keep_shorter(kept: &mut BTreeMap<String, Vec<u8>>, key: &str, input: &[u8]) {
    match kept.get_mut(key) {
        Some(shortest) if shortest.len() > input.len() => input.clone_into(shortest),
        Some(_) => {}
        None => {
            kept.insert(key.to_owned(), input.to_vec());
        }
    }
}

impl Summary {
    fn and(mut self, other: Self) -> Self {
        self.inputs += other.inputs;
        for (end, count) in other.ends {
            *self.ends.entry(end).or_default() += count;
        }
        for (failure, input) in other.failures {
            keep_shorter(&mut self.failures, &failure, &input);
        }
        for (end, input) in other.news {
            keep_shorter(&mut self.news, &end, &input);
        }
        self
    }
}
