//! The result of a load, for every load generator.

use crate::figures::RequestFigures;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::figures::LoadSpan;
use crate::{
    batch::{BatchError, ExecutionsResult},
    fortio::{self, FortioError, FortioResult},
    k6::{K6Error, K6Result},
    latency::Histogram,
};

/// An injector's observations in one measured run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LoadResult {
    /// One request, sent repeatedly.
    Fortio(FortioResult),
    /// A script, run repeatedly.
    K6(K6Result),
    /// A program that runs to completion, executed repeatedly.
    Batch(ExecutionsResult),
}

/// Why no figures can be computed from a result.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum LoadResultError {
    #[error(transparent)]
    Fortio(#[from] FortioError),
    #[error(transparent)]
    K6(#[from] K6Error),
    #[error(transparent)]
    Batch(#[from] BatchError),
}

impl From<FortioResult> for LoadResult {
    fn from(result: FortioResult) -> Self {
        Self::Fortio(result)
    }
}

impl LoadResult {
    /// The figures for the status. `expected` are the status codes of a success. A script defines its own
    /// success.
    #[must_use]
    pub fn figures(&self, expected: &[u16]) -> RequestFigures {
        match self {
            Self::Fortio(result) => fortio::figures(result, expected),
            Self::K6(result) => result.figures(),
            Self::Batch(result) => result.figures(),
        }
    }

    /// Start, length and counts of the load.
    #[must_use]
    pub fn span(&self) -> LoadSpan {
        match self {
            Self::Fortio(result) => result.span(),
            Self::K6(result) => result.span(),
            Self::Batch(result) => result.span(),
        }
    }

    /// Whether the run ended before the requested amount.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Fortio(result) => result.is_interrupted(),
            Self::K6(result) => result.is_interrupted(),
            // This result contains whole executions only. The report says if the load was interrupted.
            Self::Batch(_) => false,
        }
    }

    /// Whether the power is steady during the load. A program's execution has no steady power: its start may take
    /// another power than its end.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        match self {
            Self::Fortio(_) | Self::K6(_) => true,
            Self::Batch(_) => false,
        }
    }

    /// Latencies of all requests, of a script's cycles without failure, or of a program's successful
    /// executions.
    #[must_use]
    pub fn latency(&self) -> &Histogram {
        match self {
            Self::Fortio(result) => &result.latency,
            Self::K6(result) => &result.cycles,
            Self::Batch(result) => &result.executions,
        }
    }

    /// Removes the histograms' buckets. Counts and sums stay.
    pub(crate) fn drop_buckets(&mut self) {
        let (all, failed) = match self {
            Self::Fortio(result) => (&mut result.latency, &mut result.error_latency),
            Self::K6(result) => (&mut result.cycles, &mut result.failed_cycles),
            Self::Batch(result) => (&mut result.executions, &mut result.failed_executions),
        };
        all.buckets.clear();
        failed.buckets.clear();
    }

    /// Removes the names that a script gave. Counts stay.
    pub(crate) fn drop_names(&mut self) {
        if let Self::K6(result) = self {
            result.drop_names();
        }
    }

    pub(crate) fn keep_to_limits(&mut self) {
        if let Self::K6(result) = self {
            result.keep_to_limits();
        }
    }

    pub(crate) fn check(&self) -> Result<(), LoadResultError> {
        match self {
            Self::Fortio(result) => Ok(result.check()?),
            Self::K6(result) => Ok(result.check()?),
            Self::Batch(result) => Ok(result.check()?),
        }
    }

    /// Fortio's result, if Fortio generated the load.
    #[must_use]
    pub fn fortio(&self) -> Option<&FortioResult> {
        match self {
            Self::Fortio(result) => Some(result),
            Self::K6(_) | Self::Batch(_) => None,
        }
    }

    /// The mutable form of [`Self::fortio`].
    pub fn fortio_mut(&mut self) -> Option<&mut FortioResult> {
        match self {
            Self::Fortio(result) => Some(result),
            Self::K6(_) | Self::Batch(_) => None,
        }
    }
}
