//! The figures of one trial, for `kubectl get fbt` and for its event.

use frugality_measure::{energy::EnergyFigures, figures::RequestFigures, reading::Provenance};

use crate::{
    api::{Figure, FrugalityTrialSpec, FrugalityTrialStatus, TrialColumns},
    load::units::Units,
    plan::{
        report::cells::{self, IntervalDisplay},
        verdict::is_rate_limited_alone,
    },
};

pub use crate::plan::objects::is_of_candidate;

/// A single trial has no interval.
const INTERVAL: IntervalDisplay = IntervalDisplay::Hidden;

/// The figures of a measured trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialFigures {
    gross: Option<Figure>,
    provenance: Provenance,
    rate: Option<Figure>,
    time: Option<Figure>,
    errors: u64,
}

impl TrialFigures {
    /// The figures of a trial. If the injector shared the node, gross joules are left out because they include the
    /// injector's.
    #[must_use]
    pub fn new(
        spec: &FrugalityTrialSpec,
        requests: &RequestFigures,
        energy: &EnergyFigures,
    ) -> Self {
        let gross = energy.gross_joules_per_request;
        Self {
            gross: gross.filter(|_| !spec.is_node_shared()).map(Figure::exact),
            provenance: energy.provenance,
            rate: requests.requests_per_second.map(Figure::exact),
            time: requests.ms_per_request.map(Figure::exact),
            errors: requests.errors,
        }
    }

    /// The figures of a record. `None` if the attempt was not measured.
    #[must_use]
    pub fn of(spec: &FrugalityTrialSpec, record: &FrugalityTrialStatus) -> Option<Self> {
        Some(Self::new(
            spec,
            record.requests.as_ref()?,
            record.energy.as_ref()?,
        ))
    }

    /// The cells of `kubectl get fbt`.
    #[must_use]
    pub fn columns(&self, units: &Units) -> TrialColumns {
        let energy = self
            .gross
            .and_then(|joules| cells::amount_of_joules(&joules, self.provenance, units, INTERVAL));
        let has_energy = energy.is_some();
        TrialColumns {
            energy,
            rate: self.rate.map(|it| cells::rate(&it, units, has_energy)),
            latency: self.time.map(|it| cells::time(&it, units)),
            errors: Some(self.errors.to_string()),
        }
    }

    /// The numbers of the cells with their whole units: `gross 12.6 mJ/request`, `399 requests/s`, `9.52 ms/request`.
    #[must_use]
    pub fn words(&self, units: &Units) -> Vec<String> {
        let (one, whole) = (&units.one, units.whole);
        let energy = self.gross.and_then(|joules| {
            let amount = cells::joules_alone(&joules, self.provenance, units, INTERVAL)?;
            Some(format!("gross {amount}/{one}"))
        });
        let rate = (self.rate).map(|it| format!("{} {one}s/s", cells::rate_alone(&it)));
        let time = self.time.map(|it| {
            let unit = if units.is_of_requests() { " ms" } else { "" };
            format!("{}{unit}/{whole}", cells::time_alone(&it, units))
        });
        [energy, rate, time].into_iter().flatten().collect()
    }
}

/// What the verdict may later say about a measured trial. A person can then stop the run early. The trials of a candidate
/// together decide it.
#[must_use]
pub fn warning(record: &FrugalityTrialStatus) -> Option<String> {
    is_rate_limited_alone(record).then(|| {
        "the injector set this rate: if it does so in most trials, the result withholds these figures (InjectorLimited)"
            .to_owned()
    })
}
