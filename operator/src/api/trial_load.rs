//! The load generator's result in an entry of the ledger, and everything that depends on which generator it was.

use frugality_measure::{
    batch::ExecutionsResult, fortio::FortioResult, k6::K6Result, latency::Histogram,
};

/// The load generator's result of the measured window.
#[derive(Clone, Copy, Debug)]
pub enum TrialLoad<'a> {
    /// One request, sent repeatedly.
    Fortio(&'a FortioResult),
    /// A script, run repeatedly.
    K6(&'a K6Result),
    /// A program that runs to completion, executed repeatedly.
    Batch(&'a ExecutionsResult),
}

impl<'a> TrialLoad<'a> {
    /// Latencies of all requests, of a script's cycles without failure, or of a program's successful executions.
    #[must_use]
    pub fn latency(self) -> &'a Histogram {
        match self {
            Self::Fortio(result) => &result.latency,
            Self::K6(result) => &result.cycles,
            Self::Batch(result) => &result.executions,
        }
    }

    /// Whether [`Self::latency`] has the latencies of errors too. Fortio's histogram does not distinguish them.
    #[must_use]
    pub fn mixes_errors_into_latency(self) -> bool {
        match self {
            Self::Fortio(_) => true,
            Self::K6(_) | Self::Batch(_) => false,
        }
    }

    /// Whether requests were sent at the times that a rate asks for, in an open loop.
    #[must_use]
    pub fn is_open(self) -> bool {
        match self {
            Self::K6(result) => result.rate.is_some(),
            Self::Fortio(_) | Self::Batch(_) => false,
        }
    }

    /// Whether the injector sends each unit. A busy injector can then limit the candidate. The runner in the candidate's
    /// own container starts the executions of a batch.
    #[must_use]
    pub fn is_paced_by_injector(self) -> bool {
        match self {
            Self::Fortio(_) | Self::K6(_) => true,
            Self::Batch(_) => false,
        }
    }

    /// Cycles that were due and did not begin, because all agents were busy.
    #[must_use]
    pub fn dropped_cycles(self) -> u64 {
        match self {
            Self::K6(result) => result.dropped_cycles,
            Self::Fortio(_) | Self::Batch(_) => 0,
        }
    }

    /// What failed, for people: the codes of the answers with their numbers, and what the script or the runner reported.
    #[must_use]
    pub fn failures(self) -> Vec<String> {
        match self {
            Self::Fortio(result) => {
                let codes = result.codes.iter().map(|(code, count)| match code {
                    -1 => format!("{count} × no answer"),
                    code => format!("{count} × {code}"),
                });
                codes.collect()
            }
            Self::K6(result) => {
                let codes = result.requests.codes.iter();
                let codes = codes.map(|(code, count)| match code.as_str() {
                    "0" => format!("{count} × no answer"),
                    code => format!("{count} × {code}"),
                });
                let checks = result.checks.iter().filter(|(_, check)| check.failed > 0);
                let checks = checks.map(|(name, check)| format!("{} × not {name}", check.failed));
                let thrown = result.first_failures.iter().cloned();
                codes.chain(checks).chain(thrown).collect()
            }
            Self::Batch(result) => result.first_failures.clone(),
        }
    }
}
