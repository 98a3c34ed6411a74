//! Every decision, as pure functions from data to data: what has been seen goes in, all that is to
//! be done comes out. Nothing here is async, holds a client or reads a clock.
//!
//! State is derived: which step comes next follows from the objects that exist and from the
//! ledger. The status is only ever written.

pub mod facts;
pub mod identity;
pub mod ledger;
pub mod nodes;
mod pass;
mod prepare;
pub mod resources;
pub mod settings;
pub mod status;
pub mod text;
pub mod time;
pub mod trial;
pub mod turn;
pub mod verdict;

use self::{
    facts::{ChildKind, Config, Observed},
    ledger::Ledger,
    pass::Pass,
    resources::ChildObject,
    settings::Settings,
    verdict::without_figures,
};
use crate::api::{
    FrugalityBenchmark, FrugalityBenchmarkStatus, FrugalityTrial, FrugalityTrialStatus, Verdict,
    reason,
};

/// All that one pass is to do, in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Take or give back the right to measure; where taking fails, nothing else of the plan is done.
    pub lock: Option<LockAction>,
    /// Read this meter for this trial; no other of this benchmark.
    pub watch: Option<Watch>,
    /// A new entry of the ledger.
    pub open: Option<Box<FrugalityTrial>>,
    /// A new record of an entry, by its name.
    pub record: Option<(String, Box<FrugalityTrialStatus>)>,
    /// Objects to create.
    pub create: Vec<ChildObject>,
    /// Objects to delete, with their pods first.
    pub delete: Vec<(ChildKind, String)>,
    /// The new status.
    pub status: FrugalityBenchmarkStatus,
    /// Events to publish on the benchmark.
    pub events: Vec<EventNote>,
    /// When to look again, in seconds.
    pub requeue_seconds: f64,
}

/// What to do with the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockAction {
    /// Take it.
    Take {
        /// Version to be replaced; `None` creates it.
        resource_version: Option<String>,
    },
    /// Give it back.
    Release {
        /// Version to be replaced.
        resource_version: String,
    },
}

/// A meter to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Name of the trial, or [`facts::PREFLIGHT`].
    pub trial: String,
    /// Node that the meter measures.
    pub node: String,
    /// Address of the meter; `None` while it has none.
    pub meter_ip: Option<String>,
    /// Whether the trial's injector Job exists.
    pub injector_seen: bool,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    /// Whether it is a warning.
    pub warning: bool,
    /// Reason code.
    pub reason: String,
    /// For people.
    pub note: String,
}

/// Decides what to do for one benchmark.
#[must_use]
pub fn plan(
    benchmark: &FrugalityBenchmark,
    observed: &Observed,
    config: &Config,
    now_unix_seconds: f64,
) -> Plan {
    let run = identity::run_id(benchmark);
    let ledger = Ledger::of(&run, &observed.trials);
    let parsed = Settings::parse(&benchmark.spec);
    let pass = Pass {
        benchmark,
        observed,
        config,
        now_unix_seconds,
        run: &run,
        ledger: &ledger,
        settings: parsed.as_ref().ok(),
    };
    let mut plan = match &parsed {
        Ok(settings) => pass.decide(settings),
        Err(error) => pass.conclude(
            None,
            without_figures(Verdict::Invalid, reason::INVALID_SPEC, error.to_string()),
        ),
    };
    plan.events.extend(pass.verdict_event(&plan.status));
    plan
}
