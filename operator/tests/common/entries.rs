//! Ledger entries with figures that a test chooses, for the tests of the verdict.

use frugality_measure::figures::RequestFigures;
use frugality_measure::{
    course::Course,
    energy::{
        Attributed, Bracket, Brackets, Conditions, CpuSeconds, EnergyFigures, NetAttributed,
        ReadingMark, Window, WorkloadFigures,
    },
    model::{LinearModel, Parts},
    pace::InjectorCpu,
    reading::{MeterIdentity, Provenance},
};
use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrial, FrugalityTrialSpec, FrugalityTrialStatus, Outcome},
    plan::{action::Plan, facts::Observed, names, plan, settings::Settings},
};
use kube::ResourceExt;

use super::{T0, config, run_of, schema::assert_taken, truth::meter};

/// The figures of one trial. `gross`, `net` and the attributed figures are in joules per request.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub(crate) gross: f64,
    pub(crate) net: Option<f64>,
    pub(crate) attributed_candidate: Option<f64>,
    pub(crate) attributed_both: Option<f64>,
    /// For the candidate alone, and for the candidate with the database.
    pub(crate) net_attributed: Option<[f64; 2]>,
    pub(crate) milliseconds: f64,
    pub(crate) requests_per_second: f64,
    pub(crate) errors: u64,
    pub(crate) successes: u64,
    pub(crate) provenance: Provenance,
    /// The power model of the meter, if the power is modelled.
    pub(crate) model: Option<LinearModel>,
    /// CPU time of the whole node in the window, in seconds.
    pub(crate) node_cpu_seconds: f64,
    /// CPU time of the candidate's pods and of the database's pods, in seconds.
    pub(crate) pods_cpu_seconds: [f64; 2],
    pub(crate) meter_uncertainty: Option<f64>,
    /// Standard uncertainty of the node's joules from the window's edges, as a share of these joules.
    pub(crate) ends_uncertainty: f64,
    pub(crate) body_bytes: Option<f64>,
    pub(crate) transactions: Option<f64>,
    pub(crate) occupancy: f64,
    /// Share of a fixed rate that was not reached.
    pub(crate) shortfall: Option<f64>,
    pub(crate) injector_cpu: Option<InjectorCpu>,
    /// Share of the measured node's CPUs in use.
    pub(crate) node_share: Option<f64>,
    /// Growth of the candidate's memory, in bytes per second.
    pub(crate) memory_growth: Option<f64>,
    /// Drift of the mean latency, in milliseconds per hour.
    pub(crate) latency_drift: Option<f64>,
    /// Length of the window, in seconds.
    pub(crate) seconds: f64,
    /// CPU use of the candidate in the idle baselines, in CPUs.
    pub(crate) idle_cpus: Option<f64>,
    /// Standard uncertainty of the net joules because the two baselines differ, in joules.
    pub(crate) drift_joules: Option<f64>,
    /// Mean power in the idle baselines before and after, in watts.
    pub(crate) idle_watts: [f64; 2],
    pub(crate) restarts: Option<i32>,
    /// Figures of each server, if the candidate has several servers.
    pub(crate) workloads: Vec<WorkloadFigures>,
}

impl Default for Trial {
    fn default() -> Self {
        Self {
            gross: 0.01,
            net: Some(0.006),
            attributed_candidate: Some(0.003),
            attributed_both: Some(0.005),
            net_attributed: Some([0.002, 0.004]),
            milliseconds: 10.0,
            requests_per_second: 400.0,
            errors: 0,
            successes: 1000,
            provenance: Provenance::Metered,
            model: None,
            node_cpu_seconds: 4.0,
            pods_cpu_seconds: [2.0, 1.0],
            meter_uncertainty: None,
            ends_uncertainty: 0.0,
            body_bytes: Some(1000.0),
            transactions: Some(1.0),
            occupancy: 0.99,
            shortfall: None,
            injector_cpu: None,
            node_share: None,
            memory_growth: None,
            latency_drift: None,
            seconds: 20.0,
            idle_watts: [2.0, 2.0],
            idle_cpus: Some(0.004),
            drift_joules: None,
            restarts: Some(0),
            workloads: Vec::new(),
        }
    }
}

/// A trial on a board with this power model. Each request takes `seconds` of time and `cpu_seconds` of the
/// node's CPU time. A tenth of the CPU time does not belong to the load. Of the rest, three fifths belong to
/// the candidate and one fifth to the database.
pub(crate) fn on_board(model: LinearModel, seconds: f64, cpu_seconds: f64) -> Trial {
    let gross = model.joules(Parts {
        idle_seconds: seconds,
        cpu_seconds,
    });
    let of_load = 0.9 * cpu_seconds;
    // The meter attributes energy times use times the pods' part of the use, on four CPUs.
    let attributed = |part: f64| gross * part * of_load / (4.0 * seconds);
    Trial {
        gross,
        net: Some(model.watts_per_cpu * of_load).filter(|net| *net > 0.0),
        attributed_candidate: Some(attributed(0.6)),
        attributed_both: Some(attributed(0.8)),
        milliseconds: 1000.0 * seconds,
        requests_per_second: 1.0 / seconds,
        seconds: 1000.0 * seconds,
        node_cpu_seconds: 1000.0 * cpu_seconds,
        pods_cpu_seconds: [600.0 * of_load, 200.0 * of_load],
        provenance: Provenance::Modelled,
        meter_uncertainty: model.relative_uncertainty(Parts {
            idle_seconds: seconds,
            cpu_seconds,
        }),
        model: Some(model),
        ..Trial::default()
    }
}

/// Five factors around 1 whose logarithms are −2k … 2k. Their geometric mean is 1. The upper end of the 95 %
/// interval is exp(t₄ · k · √2.5 / √5) with t₄ = 2.776445, which is exp(1.963243 k).
///
/// Their order shows no correlation, neither for one candidate nor for all candidates.
pub(crate) const SPREAD: [f64; 5] = [-1.0, 2.0, -2.0, 1.0, 0.0];

/// The factor of a block (from 1) for a spread of k.
pub(crate) fn factor(block: i32, k: f64) -> f64 {
    (k * SPREAD[usize::try_from((block - 1) % 5).unwrap()]).exp()
}

/// A ledger with the trial that `of` returns for each block and candidate.
pub(crate) fn ledger(
    benchmark: &FrugalityBenchmark,
    of: impl Fn(i32, &str) -> Trial,
) -> Vec<FrugalityTrial> {
    let mut entries = Vec::new();
    for block in 1..=benchmark.spec.trials.blocks {
        for (index, candidate) in benchmark.spec.candidates.iter().enumerate() {
            let position = i32::try_from(index + 1).unwrap();
            let mut entry = entry(benchmark, block, position, 1, &candidate.name);
            entry.status = Some(measured(benchmark, &of(block, &candidate.name)));
            entries.push(entry);
        }
    }
    entries
}

/// A ledger in the run's order. The control has its hidden name. `of` gets the block, the place (from 1) and
/// the entrant.
pub(crate) fn ordered_ledger(
    benchmark: &FrugalityBenchmark,
    of: impl Fn(i32, i32, &str) -> Trial,
) -> Vec<FrugalityTrial> {
    swept(benchmark, |_, block, place, entrant| {
        of(block, place, entrant)
    })
}

/// The same as [`ordered_ledger`] for several points. `of` gets the number of connections, the block, the
/// place (from 1) and the entrant.
pub(crate) fn swept(
    benchmark: &FrugalityBenchmark,
    of: impl Fn(u32, i32, i32, &str) -> Trial,
) -> Vec<FrugalityTrial> {
    let settings = Settings::parse(&benchmark.spec).unwrap();
    let entrants = settings.entrants();
    let mut entries = Vec::new();
    for (block, planned) in (1..).zip(settings.plan()) {
        let point = &settings.points[planned.point];
        for (place, index) in (1..).zip(planned.order) {
            let mut entry = entry(benchmark, block, place, 1, entrants[index]);
            entry.spec.point.clone_from(&point.name);
            let trial = of(point.connections, block, place, entrants[index]);
            entry.status = Some(measured(benchmark, &trial));
            entries.push(entry);
        }
    }
    entries
}

/// An entry without a record.
pub(crate) fn entry(
    benchmark: &FrugalityBenchmark,
    block: i32,
    position: i32,
    attempt: i32,
    candidate: &str,
) -> FrugalityTrial {
    let run = run_of(benchmark);
    let name = names::trial_name(&benchmark.name_any(), &run, block, candidate, attempt);
    FrugalityTrial::new(
        &name,
        FrugalityTrialSpec {
            benchmark: benchmark.name_any(),
            run,
            point: "c4-max".into(),
            block,
            position,
            attempt,
            candidate: candidate.into(),
            rate_per_second: None,
            measured_node: "pi-1".into(),
            injector_node: "injector-1".into(),
            seed: benchmark.spec.trials.seed,
            frozen: None,
            images: None,
        },
    )
}

/// Changes the entries as if the injector had run on the measured node.
pub(crate) fn share_the_node(trials: &mut [FrugalityTrial]) {
    for trial in trials {
        trial
            .spec
            .injector_node
            .clone_from(&trial.spec.measured_node);
    }
}

/// The record of an attempt that ended without figures.
pub(crate) fn without_figures(
    outcome: Outcome,
    reason: &str,
    message: &str,
) -> FrugalityTrialStatus {
    FrugalityTrialStatus {
        outcome: Some(outcome),
        reason: Some(reason.into()),
        message: Some(message.into()),
        ..FrugalityTrialStatus::default()
    }
}

pub(crate) fn measured(benchmark: &FrugalityBenchmark, trial: &Trial) -> FrugalityTrialStatus {
    let some = |value: f64| (trial.successes > 0).then_some(value);
    let database_pods = if benchmark.spec.database.is_some() {
        vec!["database-uid".to_owned()]
    } else {
        Vec::new()
    };
    FrugalityTrialStatus {
        outcome: Some(Outcome::Measured),
        reason: Some("Measured".into()),
        candidate_pods: vec!["candidate-uid".into()],
        database_pods,
        idle_before: Some(Window {
            start_unix_seconds: T0 - 20.0,
            end_unix_seconds: T0 - 5.0,
        }),
        window: Some(Window {
            start_unix_seconds: T0,
            end_unix_seconds: T0 + trial.seconds,
        }),
        course: trial.latency_drift.map(|drift| course(trial, drift)),
        requests: Some(RequestFigures {
            requests: trial.successes + trial.errors,
            successes: trial.successes,
            errors: trial.errors,
            requests_per_second: some(trial.requests_per_second),
            ms_per_request: some(trial.milliseconds),
            percentiles_ms: std::collections::BTreeMap::new(),
            dropped: 0,
            error_rate: Some(trial.errors as f64 / (trial.successes + trial.errors) as f64),
            occupancy: Some(trial.occupancy),
            shortfall: trial.shortfall,
            mean_body_bytes: trial.body_bytes,
            mean_body_standard_error_bytes: None,
            requests_per_cycle: None,
            work: None,
        }),
        energy: Some(energy(trial)),
        transactions_per_request: trial.transactions,
        restarts: trial.restarts,
        injector_cpu: trial.injector_cpu,
        ..FrugalityTrialStatus::default()
    }
}

/// Ten whole slices, and an eleventh that was cut off. The latency of the eleventh slice is far from the
/// others.
fn course(trial: &Trial, drift_ms_per_hour: f64) -> Course {
    let slice_seconds = trial.seconds / 10.5;
    let rise = drift_ms_per_hour / 1000.0 / 3600.0;
    let mean = |slice: i32| trial.milliseconds / 1000.0 + f64::from(slice) * slice_seconds * rise;
    Course {
        slice_seconds,
        whole_seconds: trial.seconds,
        requests: vec![100; 11],
        mean_seconds: (0..10).map(mean).chain([7.0]).collect(),
    }
}

fn energy(trial: &Trial) -> EnergyFigures {
    let some = |value: f64| (trial.successes > 0).then_some(value);
    let mark = ReadingMark {
        at_unix_seconds: T0,
        node_joules: 1000.0,
    };
    let bracket = Bracket {
        start: [mark; 2],
        end: [mark; 2],
    };
    EnergyFigures {
        node_joules: trial.gross * 1000.0,
        gross_joules_per_request: some(trial.gross),
        idle_before_watts: trial.idle_watts[0],
        idle_after_watts: trial.idle_watts[1],
        net_joules: trial.net.map(|net| net * 1000.0),
        net_joules_per_request: trial.net.and_then(some),
        net_detection_limit_joules: 0.5,
        net_withheld: trial
            .net
            .is_none()
            .then(|| "net energy of 0.1 J cannot be distinguished from 0".to_owned()),
        net_drift_joules: trial.drift_joules,
        candidate_idle_cpus: trial.idle_cpus,
        attributed: trial.attributed_candidate.map(|candidate| Attributed {
            candidate_joules: candidate * 1000.0,
            database_joules: None,
            system_joules: trial
                .node_share
                .map(|share| share * trial.gross * 1000.0 - candidate * 1000.0),
            candidate_joules_per_request: some(candidate),
            candidate_and_database_joules_per_request: trial.attributed_both.and_then(some),
        }),
        net_attributed: trial.net_attributed.map(|[candidate, both]| NetAttributed {
            candidate_joules: candidate * 1000.0,
            database_joules: Some((both - candidate) * 1000.0),
            candidate_joules_per_request: some(candidate),
            candidate_and_database_joules_per_request: some(both),
        }),
        cpu: Some(CpuSeconds {
            candidate_seconds: trial.pods_cpu_seconds[0],
            database_seconds: Some(trial.pods_cpu_seconds[1]),
            node_seconds: Some(trial.node_cpu_seconds),
            candidate_seconds_per_request: some(trial.pods_cpu_seconds[0] / 1000.0),
            candidate_and_database_seconds_per_request: some(
                trial.pods_cpu_seconds.iter().sum::<f64>() / 1000.0,
            ),
        }),
        workloads: trial.workloads.clone(),
        pods_withheld: trial
            .attributed_candidate
            .is_none()
            .then(|| "the counters of a pod were lost".to_owned()),
        candidate_peak_working_set_bytes: Some(12e6),
        candidate_working_set_growth_bytes_per_second: trial.memory_growth,
        database_peak_working_set_bytes: Some(90e6),
        provenance: trial.provenance,
        meter: MeterIdentity {
            model: trial.model,
            ..meter(trial.provenance)
        },
        zone: "psys".into(),
        readings_used: 30,
        largest_gap_seconds: 1.0,
        interval_seconds: 1.0,
        timestamp_uncertainty_seconds: 0.0,
        node_joules_relative_uncertainty: trial.ends_uncertainty,
        meter_relative_uncertainty: trial.meter_uncertainty,
        conditions: Conditions::default(),
        brackets: Brackets {
            idle_before: bracket,
            measured: bracket,
            idle_after: bracket,
        },
    }
}

/// The operator's plan for this ledger.
#[track_caller]
pub(crate) fn judged(benchmark: &FrugalityBenchmark, trials: Vec<FrugalityTrial>) -> Plan {
    let observed = Observed {
        trials,
        cloud_native_pg_installed: true,
        ..Observed::default()
    };
    let plan = plan(benchmark, &observed, &config(), T0 + 1000.0);
    assert_taken("FrugalityBenchmark", &plan.status);
    plan
}
