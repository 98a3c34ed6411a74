//! Carries out a run with the operator's own plan: its order of blocks, its repetition of void blocks, its verdict.
//! The caller supplies only the attempts.

use frugality_operator::{
    api::{
        FrugalityBenchmark, FrugalityBenchmarkStatus, FrugalityTrial, FrugalityTrialSpec,
        FrugalityTrialStatus, LABEL_MEASUREMENT, Outcome,
    },
    plan::{
        facts::{Config, Observed, PodPolicy},
        ledger::{Ledger, Next, Start},
        names, plan,
        settings::Settings,
        verdict::{Judgement, judge},
    },
};
use serde_json::{Value, json};

use crate::Error;

/// The creation time of every virtual benchmark, in Unix seconds.
pub const T0: f64 = 1_795_236_900.0;
/// Name of the measured node.
pub const MEASURED_NODE: &str = "pi-1";
/// An upper bound of the virtual nodes' power, in watts.
pub const MAX_NODE_WATTS: f64 = 30.0;

/// A benchmark that can be run many times.
#[derive(Clone, Debug)]
pub struct Experiment {
    benchmark: FrugalityBenchmark,
    settings: Settings,
    run: String,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The operator's judgement.
    pub judgement: Judgement,
    /// The ledger, earlier runs included.
    pub entries: Vec<FrugalityTrial>,
}

impl Experiment {
    /// A benchmark with this spec. An error if the operator cannot read the spec.
    pub fn new(spec: &Value) -> Result<Self, Error> {
        let benchmark: FrugalityBenchmark = serde_json::from_value(json!({
            "apiVersion": "frugality.dev/v1alpha1",
            "kind": "FrugalityBenchmark",
            "metadata": {
                "name": "accuracy", "namespace": "accuracy", "uid": "accuracy-uid", "generation": 1,
                "creationTimestamp": "2026-11-21T04:55:00Z",
            },
            "spec": spec,
        }))?;
        Ok(Self {
            settings: Settings::parse(&benchmark.spec)?,
            run: names::run_id(&benchmark),
            benchmark,
        })
    }

    /// The settings that the operator derives from the spec.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Runs the benchmark until the operator has a judgement. `seed` sets the order in the blocks.
    pub fn carry_out(
        &self,
        seed: u64,
        attempt: impl FnMut(&Start) -> Result<FrugalityTrialStatus, Error>,
    ) -> Result<Ended, Error> {
        self.carry_out_after(&[], seed, attempt)
    }

    /// Runs the benchmark after earlier runs of the same measurement. `earlier` is the ledger of these runs.
    pub fn carry_out_after(
        &self,
        earlier: &[FrugalityTrial],
        seed: u64,
        mut attempt: impl FnMut(&Start) -> Result<FrugalityTrialStatus, Error>,
    ) -> Result<Ended, Error> {
        let settings = Settings {
            seed,
            ..self.settings.clone()
        };
        let mut entries: Vec<FrugalityTrial> = earlier.to_vec();
        let run = match earlier.len() {
            0 => self.run.clone(),
            entries => format!("{}-{entries}", self.run),
        };
        loop {
            let ledger = Ledger::of(&run, &entries);
            if let Some(judgement) = judge(&settings, &ledger) {
                return Ok(Ended { judgement, entries });
            }
            let Next::Start(start) = ledger.next(&settings) else {
                let problem = "the plan neither judges the run nor starts an attempt";
                return Err(Error::Unexpected(problem.to_owned()));
            };
            let mut entry = self.entry(&start);
            entry.spec.run.clone_from(&run);
            entry.spec.rate_per_second =
                ledger.level_rate(&settings, start.block, &start.candidate);
            // Not the point of `entry`, whose settings have another seed.
            settings
                .point_name_of(start.block)
                .clone_into(&mut entry.spec.point);
            entry.status = Some(attempt(&start)?);
            entries.push(entry);
        }
    }

    /// The entry of the ledger that the operator creates at the start of an attempt.
    #[must_use]
    pub fn entry(&self, start: &Start) -> FrugalityTrial {
        let name = names::trial_name(
            "accuracy",
            &self.run,
            start.block,
            &start.candidate,
            start.attempt,
        );
        let mut entry = FrugalityTrial::new(
            &name,
            FrugalityTrialSpec {
                benchmark: "accuracy".to_owned(),
                run: self.run.clone(),
                point: self.settings.point_name_of(start.block).to_owned(),
                block: start.block,
                position: start.position,
                attempt: start.attempt,
                candidate: start.candidate.clone(),
                rate_per_second: None,
                measured_node: MEASURED_NODE.to_owned(),
                injector_node: "injector-1".to_owned(),
                seed: self.benchmark.spec.trials.seed,
                frozen: None,
                images: None,
            },
        );
        let labels = entry.metadata.labels.get_or_insert_default();
        labels.insert(LABEL_MEASUREMENT.to_owned(), "accuracy".to_owned());
        entry
    }

    /// The status that the operator writes for a benchmark with this ledger.
    #[must_use]
    pub fn status(&self, entries: Vec<FrugalityTrial>) -> FrugalityBenchmarkStatus {
        let observed = Observed {
            trials: entries,
            cloud_native_pg_installed: true,
            ..Observed::default()
        };
        let config = Config {
            injector_image: "example.org/injector:1".to_owned(),
            injector_k6_image: "example.org/injector-k6:1".to_owned(),
            database_image: "example.org/postgresql:15".to_owned(),
            meter_port: 28282,
            max_node_watts: Some(MAX_NODE_WATTS),
            time_url: None,
            pods: PodPolicy::default(),
        };
        plan(&self.benchmark, &observed, &config, T0 + 100_000.0).status
    }
}

/// The record of an ended attempt with this outcome, reason code and message.
#[must_use]
pub fn record(outcome: Outcome, reason: &str, message: String) -> FrugalityTrialStatus {
    FrugalityTrialStatus {
        outcome: Some(outcome),
        reason: Some(reason.to_owned()),
        message: Some(message),
        candidate_pods: vec!["candidate-uid-1".to_owned()],
        ..FrugalityTrialStatus::default()
    }
}
