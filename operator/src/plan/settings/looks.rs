//! When the operator judges the run, and the error levels of its claims.

use frugality_measure::statistics::{multiplicity::share_of_try, sequential::nominal_level};

use super::error::SettingsError;
use crate::api::{FrugalityBenchmarkSpec, MIN_BLOCKS};

/// Probability that an interval misses the true value. Also the probability that all looks of all tries together
/// claim a difference that does not exist.
pub const ERROR: f64 = 0.05;

/// A number of blocks after which the operator judges the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedLook {
    /// Number of the look, from 1.
    pub number: usize,
    /// Number of blocks that the look uses.
    pub blocks: usize,
}

pub(super) fn looks(spec: &FrugalityBenchmarkSpec) -> Result<Vec<PlannedLook>, SettingsError> {
    let counts = match spec.trials.looks.as_slice() {
        [] => std::slice::from_ref(&spec.trials.blocks),
        looks => {
            if looks[0] < MIN_BLOCKS || looks.windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err(SettingsError::Looks);
            }
            looks
        }
    };
    Ok((1..)
        .zip(counts)
        .map(|(number, blocks)| PlannedLook {
            number,
            blocks: usize::try_from(*blocks).unwrap_or_default(),
        })
        .collect())
}

pub(super) fn claim_error(try_number: usize) -> f64 {
    ERROR * share_of_try(try_number)
}

/// Levels at each look: two-sided error of each claim's interval, and error of each of the two one-sided tests for
/// a tie. Two one-sided tests correspond to an interval with twice their error.
pub(super) fn claim_levels(
    looks: &[PlannedLook],
    asks_for_tie: bool,
    try_number: usize,
) -> Option<(f64, f64)> {
    let error = claim_error(try_number);
    let tie = if asks_for_tie {
        level_of(looks, 2.0 * error)? / 2.0
    } else {
        error
    };
    Some((level_of(looks, error)?, tie))
}

pub(super) fn level_of(looks: &[PlannedLook], overall: f64) -> Option<f64> {
    match looks {
        [_] => Some(overall),
        several => {
            let blocks: Vec<usize> = several.iter().map(|look| look.blocks).collect();
            nominal_level(&blocks, overall)
        }
    }
}
