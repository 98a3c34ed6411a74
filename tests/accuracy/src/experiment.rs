//! A run carried out by the operator's own plan: its order of blocks, its repetition of void ones, its
//! verdict. Only the attempts themselves are the caller's.

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

/// The time at which every virtual benchmark was created, in Unix seconds.
pub const T0: f64 = 1_795_236_900.0;
/// Node that is measured.
pub const MEASURED_NODE: &str = "pi-1";
/// More than the virtual nodes can draw, in watts.
pub const MAX_NODE_WATTS: f64 = 30.0;

/// A benchmark that can be carried out again and again.
#[derive(Clone, Debug)]
pub struct Experiment {
    benchmark: FrugalityBenchmark,
    settings: Settings,
    run: String,
}

/// What became of a run.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The judgement.
    pub judgement: Judgement,
    /// The ledger.
    pub entries: Vec<FrugalityTrial>,
}

impl Experiment {
    /// A benchmark of this spec.
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

    /// The spec in numbers.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Carries the benchmark out, its blocks in the order that `seed` gives, until the operator has
    /// a judgement.
    pub fn carry_out(
        &self,
        seed: u64,
        attempt: impl FnMut(&Start) -> Result<FrugalityTrialStatus, Error>,
    ) -> Result<Ended, Error> {
        self.carry_out_after(&[], seed, attempt)
    }

    /// The same again, after the runs of the same measurement whose entries these are.
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
            entry.status = Some(attempt(&start)?);
            entries.push(entry);
        }
    }

    /// An entry of the ledger as the operator opens it.
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
                measured_node: MEASURED_NODE.to_owned(),
                injector_node: "injector-1".to_owned(),
                seed: self.benchmark.spec.trials.seed,
            },
        );
        let labels = entry.metadata.labels.get_or_insert_default();
        labels.insert(LABEL_MEASUREMENT.to_owned(), "accuracy".to_owned());
        entry
    }

    /// The status that the operator gives a benchmark with this ledger.
    #[must_use]
    pub fn status(&self, entries: Vec<FrugalityTrial>) -> FrugalityBenchmarkStatus {
        let observed = Observed {
            trials: entries,
            cloud_native_pg_installed: true,
            ..Observed::default()
        };
        let config = Config {
            injector_image: "example.org/injector:1".to_owned(),
            database_image: "example.org/postgresql:15".to_owned(),
            meter_port: 28282,
            max_node_watts: Some(MAX_NODE_WATTS),
            time_url: None,
            pods: PodPolicy::default(),
        };
        plan(&self.benchmark, &observed, &config, T0 + 100_000.0).status
    }
}

/// The record of an attempt that ended so.
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
