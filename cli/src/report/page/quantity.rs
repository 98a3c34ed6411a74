//! The quantities that charts show, in the units in which they show them.

use frugality_operator::{
    api::{CandidateResult, Figure, Optimum, SweepResult},
    text,
};

use super::view::PageView;

/// The figure of a result.
pub(super) type OfResult<'a> = dyn Fn(&CandidateResult) -> Option<Figure> + 'a;

/// A quantity that charts show.
pub(super) struct ReportedQuantity<'a> {
    /// Name and unit.
    pub(super) title: String,
    pub(super) figure: Box<OfResult<'a>>,
    pub(super) best: Best,
}

/// Which set of best points belongs to a quantity, and its name.
pub(super) struct Best {
    pub(super) name: &'static str,
    pub(super) of: fn(&SweepResult) -> Option<&Optimum>,
}

/// Energy, rate and time.
pub(super) fn quantities<'a>(view: &'a PageView<'_>) -> Vec<ReportedQuantity<'a>> {
    let energy = energy_unit(view);
    let factor = energy.factor;
    let mut quantities = vec![
        ReportedQuantity {
            title: format!("Energy, {}", energy.text),
            figure: Box::new(move |it| view.joules(it).map(|it| it.times(factor))),
            best: Best {
                name: "most per joule",
                of: |it| it.most_requests_per_joule.as_ref(),
            },
        },
        ReportedQuantity {
            title: format!("Throughput, {}s/s", view.unit()),
            figure: Box::new(|it| it.requests_per_second),
            best: Best {
                name: "highest rate",
                of: |it| it.most_requests_per_second.as_ref(),
            },
        },
        ReportedQuantity {
            title: format!("Time, ms/{} (mean)", view.units.whole),
            figure: Box::new(|it| view.milliseconds(it)),
            best: Best {
                name: "knee",
                of: |it| it.knee.as_ref(),
            },
        },
    ];
    quantities.extend(energy_delay(view));
    quantities
}

/// Energy times time. `None` without load levels.
fn energy_delay<'a>(view: &'a PageView<'_>) -> Option<ReportedQuantity<'a>> {
    let results = view.status.results.iter();
    let products = results.filter_map(|it| it.energy_delay_joule_seconds);
    let least = products.map(|it| it.value).reduce(f64::min)?;
    let (factor, unit) = text::joule_unit(least);
    let (kind, per) = (view.kind_word(), view.unit());
    let mark = view.provenance.mark();
    Some(ReportedQuantity {
        title: format!("Energy-delay product, {kind} {unit}·s/{per}{mark}"),
        figure: Box::new(move |it| {
            view.milliseconds(it)?;
            Some(it.energy_delay_joule_seconds?.times(factor))
        }),
        best: Best {
            name: "least energy-delay",
            of: |it| it.least_energy_delay.as_ref(),
        },
    })
}

/// The unit of energy for all candidates.
pub(super) struct EnergyUnit {
    /// From joules to this unit.
    pub(super) factor: f64,
    /// Such as `gross mJ/request (modelled)`.
    pub(super) text: String,
}

/// The unit that fits the smallest figure.
pub(super) fn energy_unit(view: &PageView<'_>) -> EnergyUnit {
    let joules = view.status.results.iter().filter_map(|it| view.joules(it));
    let least = joules.map(|it| it.value).reduce(f64::min);
    let (factor, unit) = text::joule_unit(least.unwrap_or(1.0));
    EnergyUnit {
        factor,
        text: format!(
            "{} {unit}/{}{}",
            view.kind_word(),
            view.unit(),
            view.provenance.mark()
        ),
    }
}
