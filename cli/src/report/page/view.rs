//! What all parts of the page need to know.

use std::collections::BTreeSet;

use frugality_measure::reading;
use frugality_operator::{
    api::{
        ANCHOR, Arrivals, BASELINE, CandidateResult, DecidingFigure, Figure,
        FrugalityBenchmarkStatus, FrugalityTrace, FrugalityTrial,
    },
    load::units::Units,
    plan::ledger::Ledger,
    text,
};
use kube::ResourceExt as _;

use super::super::input::Objects;

/// The source of the power, as far as the page must show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageProvenance {
    Metered,
    Modelled,
    Fake,
    Unknown,
}

impl From<reading::Provenance> for PageProvenance {
    fn from(of: reading::Provenance) -> Self {
        match of {
            reading::Provenance::Metered => Self::Metered,
            reading::Provenance::Modelled => Self::Modelled,
            reading::Provenance::Fake => Self::Fake,
        }
    }
}

impl PageProvenance {
    fn of(status: &FrugalityBenchmarkStatus) -> Self {
        match status.provenance.as_deref() {
            Some("Metered") => Self::Metered,
            Some("Modelled") => Self::Modelled,
            Some("Fake") => Self::Fake,
            _ => Self::Unknown,
        }
    }

    /// Class of the page.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Metered => "metered",
            Self::Modelled => "modelled",
            Self::Fake => "fake",
            Self::Unknown => "unknown",
        }
    }

    /// What stands next to every figure of energy. Empty for a physical instrument.
    pub(super) fn mark(self) -> &'static str {
        match self {
            Self::Metered => "",
            Self::Modelled => " (modelled)",
            Self::Fake => " (fake)",
            Self::Unknown => " (source of power unknown)",
        }
    }
}

/// A benchmark as the page shows it.
pub(super) struct PageView<'a> {
    pub(super) objects: &'a Objects,
    /// Namespace and name.
    pub(super) key: String,
    pub(super) status: FrugalityBenchmarkStatus,
    pub(super) units: Units,
    pub(super) provenance: PageProvenance,
    /// Attempts of the status's run, in the order of time.
    pub(super) attempts: Vec<&'a FrugalityTrial>,
    /// The valid trials among them, in the order of blocks.
    pub(super) valid: Vec<&'a FrugalityTrial>,
    /// Names of the candidates, in the order of the results.
    pub(super) candidates: Vec<String>,
    /// Names of the candidates, and of all others that the ledger has attempts of.
    pub(super) entrants: Vec<String>,
    /// Names of the points, in the order of the results.
    pub(super) points: Vec<String>,
    /// The kind of joules that decides; without one, the first kind that a result has.
    pub(super) kind: Option<DecidingFigure>,
}

const KINDS: [DecidingFigure; 4] = [
    DecidingFigure::Gross,
    DecidingFigure::Net,
    DecidingFigure::Attributed,
    DecidingFigure::NetAttributed,
];

impl<'a> PageView<'a> {
    pub(super) fn of(objects: &'a Objects) -> Self {
        let benchmark = &objects.benchmark;
        let status = benchmark.current_status().cloned().unwrap_or_default();
        let parts = [benchmark.namespace(), Some(benchmark.name_any())];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        let is_of_run =
            |trial: &&FrugalityTrial| Some(trial.spec.run.as_str()) == status.run.as_deref();
        let results = &status.results;
        let kind = status.deciding_figure.or_else(|| {
            KINDS
                .into_iter()
                .find(|kind| results.iter().any(|it| it.joules(*kind).is_some()))
        });
        let attempts: Vec<_> = objects.trials.iter().filter(is_of_run).collect();
        let run = status.run.as_deref().unwrap_or_default();
        let ledger = Ledger::of(run, &objects.trials);
        let blocks: BTreeSet<i32> = ledger.entries().iter().map(|it| it.spec.block).collect();
        let blocks = blocks.into_iter().filter(|block| *block > 0);
        let valid = blocks.flat_map(|block| ledger.valid_in(block)).collect();
        let of_results = results.iter().map(|it| it.candidate.as_str());
        let of_ledger = attempts.iter().map(|it| it.spec.candidate.as_str());
        Self {
            objects,
            entrants: distinct(of_results.clone().chain(of_ledger)),
            candidates: distinct(of_results),
            attempts,
            valid,
            key: parts.join("/"),
            units: Units::of_results(results),
            provenance: PageProvenance::of(&status),
            points: distinct(results.iter().map(|it| it.point.as_str())),
            kind,
            status,
        }
    }

    /// What joules and rates are per.
    pub(super) fn unit(&self) -> &str {
        &self.units.one
    }

    pub(super) fn has_several_points(&self) -> bool {
        self.points.len() > 1
    }

    /// The word for the kind of joules, such as `gross`.
    pub(super) fn kind_word(&self) -> &'static str {
        self.kind.map_or("", DecidingFigure::word)
    }

    /// The joules of the kind that decides.
    pub(super) fn joules(&self, result: &CandidateResult) -> Option<Figure> {
        result.joules(self.kind?)
    }

    /// Number of an entrant's colour and shape.
    pub(super) fn series(&self, entrant: &str) -> usize {
        let mut entrants = self.entrants.iter();
        entrants.position(|it| it == entrant).unwrap_or(0)
    }

    /// The name of an entrant for people. The control has a hidden name.
    pub(super) fn label<'n>(&self, entrant: &'n str) -> &'n str {
        let spec = &self.objects.benchmark.spec;
        let is_named = spec.candidates.iter().any(|it| it.name == entrant)
            || [BASELINE, ANCHOR].contains(&entrant);
        match entrant {
            "" => "preparation",
            _ if !is_named && spec.trials.control.is_some() => "control",
            name => name,
        }
    }

    pub(super) fn at(&self, point: &str) -> String {
        text::at(point, self.has_several_points())
    }

    /// Whether some times include waiting and others do not: those at the levels of an open load, and at its highest rate.
    /// Without a histogram a result does not say which it is.
    pub(super) fn mixes_times(&self) -> bool {
        let results = || self.status.results.iter();
        let is_open = |it: &CandidateResult| it.arrivals == Some(Arrivals::Open);
        results().any(is_open)
            && results().any(|it| !is_open(it) && it.milliseconds_per_request.is_some())
    }

    /// The mean time, unless it leaves out waiting and other times of the page do not.
    pub(super) fn milliseconds(&self, result: &CandidateResult) -> Option<Figure> {
        let is_shown = !self.mixes_times() || result.arrivals == Some(Arrivals::Open);
        result.milliseconds_per_request.filter(|_| is_shown)
    }

    /// The course of an attempt.
    pub(super) fn trace_of(&self, trial: &FrugalityTrial) -> Option<&FrugalityTrace> {
        let name = trial.name_any();
        let mut traces = self.objects.traces.iter();
        traces.find(|it| it.name_any() == name)
    }

    /// The result of a candidate at a point.
    pub(super) fn result(&self, candidate: &str, point: &str) -> Option<&CandidateResult> {
        let mut results = self.status.results.iter();
        results.find(|it| it.candidate == candidate && it.point == point)
    }

    /// The trials that a result's figures come from. A run that ended at a look ignores later trials.
    pub(super) fn counted(
        &self,
        result: &CandidateResult,
    ) -> impl Iterator<Item = &'a FrugalityTrial> {
        let trials = usize::try_from(result.trials).unwrap_or(0);
        let valid = self.valid.iter().copied();
        let of_result = valid
            .filter(|it| it.spec.candidate == result.candidate && it.spec.point == result.point);
        of_result.take(trials)
    }
}

/// Each text once, in the order in which they first occur.
pub(super) fn distinct<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    texts
        .filter(|text| seen.insert(*text))
        .map(str::to_owned)
        .collect()
}
