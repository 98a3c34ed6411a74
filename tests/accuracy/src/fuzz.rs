//! Damaged input for the parsers of foreign text: the meters' exposition, Fortio's JSON, and the
//! injector's report.
//!
//! Nothing may panic, and whatever is accepted has finite numbers only, all the way to the status. The
//! inputs are made from a corpus of real ones, with damage that knows numbers, labels and lines; from
//! a seed, so that every one can be made again.

mod chain;
mod corpus;
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

/// Section of the random numbers; one for each parser.
const SECTION: u64 = 1000;
/// Inputs of a random stream: enough that making a stream costs nothing, few enough for all threads.
const BATCH: u64 = 1000;

/// What came of one parser's inputs.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Inputs.
    pub inputs: u64,
    /// How many came to which end.
    pub ends: BTreeMap<String, u64>,
    /// Inputs that must not end so, at most one of each kind: what is wrong, and the input.
    pub failures: BTreeMap<String, Vec<u8>>,
    /// For each end that no input of the corpus came to, the shortest input that did.
    pub news: BTreeMap<String, Vec<u8>>,
}

/// Tries `inputs` inputs (in whole thousands) on a parser.
pub fn run(parser: Parser, corpus: &Corpus, seed: u64, inputs: u64) -> Result<Summary, Error> {
    let target = Target::new(parser)?;
    let section = SECTION + parser as u64;
    // The corpus as it is comes first: its ends are known, and none of them may be a failure either.
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

/// How an input ends, or what must not be.
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
