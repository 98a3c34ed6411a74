//! The columns of an export. Each has one declaration: its description, its name and its cell.

use frugality_measure::batch::Spread;
use frugality_operator::plan::report::trial::warning;
use kube::ResourceExt as _;
use serde::Serialize;

use super::attempt::ExportedAttempt;

/// One column of an export.
pub struct Column {
    /// Its heading in CSV and its key in JSON, with the unit.
    pub name: &'static str,
    /// Description, as Markdown.
    pub meaning: &'static str,
    pub(super) cell: fn(&ExportedAttempt<'_>) -> Option<Cell>,
}

/// The content of a cell. An absent cell is unknown or withheld, never 0.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Cell {
    Text(String),
    Real(f64),
    Integer(i64),
    Count(u64),
    Flag(bool),
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

macro_rules! cell_from {
    ($($from:ty => $variant:ident),*) => {
        $(impl From<$from> for Cell {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}
cell_from!(String => Text, f64 => Real, i64 => Integer, i32 => Integer, u64 => Count, bool => Flag);

macro_rules! columns {
    ($(#[doc = $meaning:literal] $name:literal = |$attempt:ident| $cell:expr;)*) => {
        /// All columns, in the order of an export.
        pub const COLUMNS: &[Column] = &[$(Column {
            name: $name,
            meaning: $meaning,
            cell: |$attempt| Some(Cell::from($cell)),
        }),*];
    };
}

columns! {
    /// Namespace of the benchmark.
    "namespace" = |a| a.trial.namespace()?;
    /// Name of the benchmark.
    "benchmark" = |a| &a.spec.benchmark;
    /// ID of the run.
    "run" = |a| &a.spec.run;
    /// Name of the ledger entry (`FrugalityTrial`).
    "trial" = |a| a.trial.name_any();
    /// Load settings, for example `c4-max`.
    "point" = |a| &a.spec.point;
    /// Block, from 1; 0 for the preparation of the run.
    "block" = |a| a.spec.block;
    /// Position within the block, from 1.
    "position" = |a| a.spec.position;
    /// Attempt at the block, from 1.
    "attempt" = |a| a.spec.attempt;
    /// Candidate; empty for the preparation of the run.
    "candidate" = |a| &a.spec.candidate;
    /// Node that is measured.
    "measuredNode" = |a| &a.spec.measured_node;
    /// Node of the injector.
    "injectorNode" = |a| &a.spec.injector_node;
    /// Seed of the order of the blocks.
    "seed" = |a| a.spec.seed;
    /// Time at which the attempt began (RFC 3339).
    "createdAt" = |a| a.trial.creation_timestamp()?.0.to_string();
    /// Time at which the outcome was written (RFC 3339).
    "finishedAt" = |a| a.status?.finished_at.as_ref()?;
    /// `Measured`, `Void` or `Failed`; unknown while the attempt is open.
    "outcome" = |a| format!("{:?}", a.status?.outcome?);
    /// Whether this is a measured trial of the newest attempt at its block, and no trial of that attempt is void. Only such trials are in the status, with `looks` up to the look that decided.
    "valid" = |a| a.is_valid;
    /// Reason code. The [runbook](runbook.md) explains each code.
    "reason" = |a| a.status?.reason.as_ref()?;
    /// The reason in words, with numbers.
    "message" = |a| a.status?.message.as_ref()?;
    /// Begin of the measured window, in Unix seconds.
    "windowStartUnixSeconds" = |a| a.status?.window?.start_unix_seconds;
    /// Length of the measured window, in seconds.
    "windowSeconds" = |a| a.status?.window?.seconds();
    /// What rates, times and joules are per: `request`, `cycle`, `execution` or `unit of work`.
    "unit" = |a| a.unit()?.to_owned();
    /// Requests that ended in the window. With a script: cycles. With a program: executions.
    "requests" = |a| a.requests()?.requests;
    /// Requests with an expected answer; cycles or executions that succeeded.
    "successes" = |a| a.requests()?.successes;
    /// `requests` − `successes`.
    "errors" = |a| a.requests()?.errors;
    /// `errors` / `requests`, from 0 to 1.
    "errorRatio" = |a| a.requests()?.error_rate?;
    /// Units of work of all successful executions together. If it is known, rates and joules are per unit of work.
    "work" = |a| a.requests()?.work?;
    /// Successful requests per second.
    "requestsPerSecond" = |a| a.requests()?.requests_per_second?;
    /// Mean latency of a successful request, in milliseconds.
    "millisecondsPerRequest" = |a| a.requests()?.ms_per_request?;
    /// Median latency, in milliseconds.
    "p50Milliseconds" = |a| a.percentile("p50")?;
    /// 75th percentile of the latency, in milliseconds.
    "p75Milliseconds" = |a| a.percentile("p75")?;
    /// 90th percentile of the latency, in milliseconds.
    "p90Milliseconds" = |a| a.percentile("p90")?;
    /// 99th percentile of the latency, in milliseconds.
    "p99Milliseconds" = |a| a.percentile("p99")?;
    /// 99.9th percentile of the latency, in milliseconds.
    "p99_9Milliseconds" = |a| a.percentile("p99.9")?;
    /// Share of the injector's CPU in use, from 0 to 1.
    "injectorCpuShare" = |a| a.status?.injector_cpu.as_ref()?.share(a.status?.window?.seconds())?;
    /// Whether this attempt alone shows that the injector set the rate. Rate, times and gross joules are then not the candidate's.
    "isInjectorLimited" = |a| a.requests().and(a.status).map(|it| warning(it).is_some())?;
    /// Cycles that did not begin, because no agent was free. With open arrivals and no script: requests.
    "droppedCycles" = |a| a.status?.k6.as_ref()?.dropped_cycles;
    /// How often a check of the script did not hold, over all checks. Only with a script that has checks.
    "failedChecks" = |a| a.failed_checks()?;
    /// Arithmetic mean of the executions' scores, in the unit of `batch.score`.
    "meanScore" = |a| a.score()?.mean;
    /// Standard deviation of the scores (not of their mean). Unknown for one execution.
    "scoreStandardDeviation" = |a| a.score().and_then(Spread::standard_deviation)?;
    /// Source of the node's power: `Metered`, `Modelled` or `Fake`.
    "provenance" = |a| a.energy()?.provenance.to_string();
    /// The meter and its power source.
    "meter" = |a| a.energy()?.meter.to_string();
    /// The meter's zone that the readings are from, for example `psys`.
    "zone" = |a| &a.energy()?.zone;
    /// Relative standard uncertainty of the node's energy, as the meter reports it.
    "meterRelativeUncertainty" = |a| a.energy()?.meter_relative_uncertainty?;
    /// Gross energy of the node in the window, in joules.
    "nodeJoules" = |a| a.energy()?.node_joules;
    /// Relative standard uncertainty of `nodeJoules` from the window's ends, without the meter's own accuracy.
    "nodeJoulesRelativeUncertainty" = |a| a.energy()?.node_joules_relative_uncertainty;
    /// `nodeJoules` per successful request. Unknown if the injector shared the node.
    "grossJoulesPerRequest" = |a| a.energy_of_candidate()?.gross_joules_per_request?;
    /// Mean power of the node in the idle baseline before the load, in watts.
    "idleBeforeWatts" = |a| a.energy()?.idle_before_watts;
    /// Mean power of the node in the idle baseline after the load, in watts.
    "idleAfterWatts" = |a| a.energy()?.idle_after_watts;
    /// Gross minus the idle baseline, in joules. Unknown below this attempt's own detection limit. The verdict has a limit of all trials together, too.
    "netJoules" = |a| a.energy()?.net_joules?;
    /// `netJoules` per successful request. Unknown if the injector shared the node.
    "netJoulesPerRequest" = |a| a.energy_of_candidate()?.net_joules_per_request?;
    /// Detection limit of this attempt's net energy, in joules.
    "netDetectionLimitJoules" = |a| a.energy()?.net_detection_limit_joules;
    /// Why the net figures are unknown.
    "netWithheld" = |a| a.energy()?.net_withheld.as_ref()?;
    /// Standard uncertainty of the net energy from idle baselines that differ, in joules.
    "netDriftJoules" = |a| a.energy()?.net_drift_joules?;
    /// CPU use of the candidate's pods in the idle baselines, in CPUs.
    "candidateIdleCpus" = |a| a.energy()?.candidate_idle_cpus?;
    /// Energy that the meter attributed to the candidate's pods, in joules.
    "candidateJoules" = |a| a.attributed()?.candidate_joules;
    /// Energy that the meter attributed to the database's pods, in joules.
    "databaseJoules" = |a| a.attributed()?.database_joules?;
    /// The rest of the node's active energy, in joules.
    "systemJoules" = |a| a.attributed()?.system_joules?;
    /// `candidateJoules` per successful request.
    "candidateJoulesPerRequest" = |a| a.attributed()?.candidate_joules_per_request?;
    /// `candidateJoules` + `databaseJoules` per successful request.
    "candidateAndDatabaseJoulesPerRequest" = |a| a.attributed()?.candidate_and_database_joules_per_request?;
    /// The candidate's part of the net energy by CPU time above idle, per successful request, in joules.
    "netCandidateJoulesPerRequest" = |a| a.net_attributed()?.candidate_joules_per_request?;
    /// The part of candidate and database together, per successful request, in joules.
    "netCandidateAndDatabaseJoulesPerRequest" = |a| a.net_attributed()?.candidate_and_database_joules_per_request?;
    /// CPU time of the candidate's pods in the window, in seconds.
    "candidateCpuSeconds" = |a| a.cpu()?.candidate_seconds;
    /// CPU time of the database's pods in the window, in seconds.
    "databaseCpuSeconds" = |a| a.cpu()?.database_seconds?;
    /// CPU time of the whole node in the window, in seconds.
    "nodeCpuSeconds" = |a| a.cpu()?.node_seconds?;
    /// Why the figures per pod (attributed joules, CPU time) are unknown.
    "podsWithheld" = |a| a.energy()?.pods_withheld.as_ref()?;
    /// Largest working set of the candidate's pods together in the window, in bytes.
    "candidatePeakWorkingSetBytes" = |a| a.energy()?.candidate_peak_working_set_bytes?;
    /// Slope of that working set in the window, in bytes per second. Unknown in short windows.
    "candidateWorkingSetGrowthBytesPerSecond" = |a| a.energy()?.candidate_working_set_growth_bytes_per_second?;
    /// Largest working set of the database's pods together in the window, in bytes.
    "databasePeakWorkingSetBytes" = |a| a.energy()?.database_peak_working_set_bytes?;
    /// Slope of the mean latency in the window, in seconds per second. Unknown in short windows.
    "latencyDriftSecondsPerSecond" = |a| a.status?.latency_drift_seconds_per_second()?;
    /// Restarts of the candidate's containers during the attempt.
    "restarts" = |a| a.status?.restarts?;
    /// Rows of the seeded table, right before the load.
    "databaseRows" = |a| a.status?.database.as_ref()?.rows;
    /// Digest of these rows.
    "databaseDigest" = |a| &a.status?.database.as_ref()?.digest;
    /// Transactions of the database per request, warm-up and tail included.
    "transactionsPerRequest" = |a| a.status?.transactions_per_request?;
    /// Digests of the images that ran: `container=digest`, separated by spaces.
    "images" = |a| a.images()?;
}
