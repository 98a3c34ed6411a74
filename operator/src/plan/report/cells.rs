//! Cells of `kubectl get`: short texts, because a row must fit 120 characters.

use frugality_measure::reading::Provenance;

use crate::{
    api::{DecidingFigure, Figure},
    load::units::Units,
    text::{brief, brief_ratio, joule_unit, rough, rounded, short_joule_unit},
};

/// Most characters of several candidates' names in one cell. A single name is never cut.
const MOST_NAME_CHARS: usize = 16;

/// Whether a cell may show an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalDisplay {
    /// The figure stands as `5.12±0.08`.
    Shown,
    /// The figure stands alone: its row has no room, or the point was chosen by its result.
    Hidden,
}

/// The distance to the farther end of the interval that decides. An interval of a geometric mean is longer above it.
fn half(figure: &Figure) -> f64 {
    let (lower, upper) = figure.bounds();
    (upper - figure.value).max(figure.value - lower)
}

/// Joules with their unit and their kind, such as `5.12±0.08 mJ net` or `~0.42 mJ gross`. `None` if the power is invented.
#[must_use]
pub fn energy(
    joules: &Figure,
    kind: DecidingFigure,
    provenance: Provenance,
    units: &Units,
    interval: IntervalDisplay,
) -> Option<String> {
    let kind = match kind {
        DecidingFigure::Gross => "gross",
        DecidingFigure::Net => "net",
        DecidingFigure::Attributed => "attr.",
        DecidingFigure::NetAttributed => "net attr.",
    };
    let amount = amount_of_joules(joules, provenance, units, interval)?;
    Some(format!("{amount} {kind}"))
}

/// Joules with their unit, under a heading that names their kind. `~` marks modelled joules that show no interval.
#[must_use]
pub fn amount_of_joules(
    joules: &Figure,
    provenance: Provenance,
    units: &Units,
    interval: IntervalDisplay,
) -> Option<String> {
    let amount = joules_alone(joules, provenance, units, interval)?;
    Some(units.each(amount))
}

/// The same without the counted unit.
pub(super) fn joules_alone(
    joules: &Figure,
    provenance: Provenance,
    units: &Units,
    interval: IntervalDisplay,
) -> Option<String> {
    // A cell with two units has no room for a leading zero.
    let (factor, unit) = if units.is_of_requests() {
        joule_unit(joules.value)
    } else {
        short_joule_unit(joules.value)
    };
    let scaled = joules.times(factor);
    let has_interval = interval == IntervalDisplay::Shown
        && half(&scaled) > 0.0
        && !scaled.is_repeatability_only()
        && units.is_of_requests();
    let amount = match provenance {
        Provenance::Fake => return None,
        _ if has_interval => brief(scaled.value, half(&scaled)),
        Provenance::Metered => digits(scaled.value, half(&scaled), units),
        Provenance::Modelled => rough(scaled.value, &[]),
    };
    Some(format!("{amount} {unit}"))
}

/// A number with the digits that its uncertainty allows. A cell with two units has room for two digits.
fn digits(value: f64, uncertainty: f64, units: &Units) -> String {
    if units.is_of_requests() {
        rounded(value, uncertainty)
    } else {
        two_digits(value)
    }
}

/// A number whose uncertainty is not shown, or not known.
fn two_digits(value: f64) -> String {
    rounded(value, value.abs())
}

/// A rate: `812` or `11.4k`. Of other units than requests, the cell of the energy names the unit. Without energy, this cell
/// names it.
#[must_use]
pub fn rate(rate: &Figure, units: &Units, has_energy: bool) -> String {
    let amount = rate_alone(rate);
    if has_energy {
        amount
    } else {
        units.rate(amount)
    }
}

/// The number of a rate.
pub(super) fn rate_alone(rate: &Figure) -> String {
    thousands(rate.value, half(rate))
}

/// CPU time in milliseconds, with the unit if it is not per request.
#[must_use]
pub fn cpu(milliseconds: &Figure, units: &Units) -> String {
    let amount = rounded(milliseconds.value, half(milliseconds));
    if units.is_of_requests() {
        amount
    } else {
        units.each(format!("{amount} ms"))
    }
}

/// A time: milliseconds without unit per request, else with the unit. If the cell of the energy names a unit of work, this
/// cell names the execution.
#[must_use]
pub fn time(milliseconds: &Figure, units: &Units) -> String {
    units.each_whole(time_alone(milliseconds, units))
}

/// The same without the counted unit.
pub(super) fn time_alone(milliseconds: &Figure, units: &Units) -> String {
    let (value, uncertainty) = (milliseconds.value, half(milliseconds));
    if units.is_of_requests() {
        rounded(value, uncertainty)
    } else if value < 1000.0 {
        format!("{} ms", digits(value, uncertainty, units))
    } else {
        let seconds = digits(value / 1000.0, uncertainty / 1000.0, units);
        format!("{seconds} s")
    }
}

/// A number with the suffix of its size.
fn thousands(value: f64, uncertainty: f64) -> String {
    // The rounded number chooses the suffix: 999.9 is 1.00k.
    let shown: f64 = rounded(value, uncertainty).parse().unwrap_or(value);
    let (factor, suffix) = match shown.abs() {
        1e9.. => (1e-9, "G"),
        1e6.. => (1e-6, "M"),
        1e3.. => (1e-3, "k"),
        _ => (1.0, ""),
    };
    format!("{}{suffix}", rounded(value * factor, uncertainty * factor))
}

/// A ratio with its deciding interval: `0.39 [0.38–0.40]`. An end that is not 1 is not rounded to 1.
#[must_use]
pub fn ratio(ratio: &Figure) -> String {
    brief_ratio(ratio)
}

/// The names of the leading candidates: `nginx-a, nginx-b`. Names that have no room are counted: `nginx-a +2`.
#[must_use]
pub fn names(names: &[&str]) -> Option<String> {
    let fits = |text: &String| text.chars().count() <= MOST_NAME_CHARS;
    let first = (*names.first()?).to_owned();
    let cut = |shown: usize| match names.len() - shown {
        0 => names.join(", "),
        left => format!("{} +{left}", names[..shown].join(", ")),
    };
    let several = (2..=names.len()).rev().map(cut).find(fits);
    Some(several.unwrap_or_else(|| if names.len() == 1 { first } else { cut(1) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Expanded;

    fn of_requests() -> Units {
        Units {
            one: "request".into(),
            whole: "request",
            score: None,
            work: None,
        }
    }

    fn of_work() -> Units {
        Units {
            one: "node".into(),
            whole: "execution",
            score: None,
            work: Some("node".into()),
        }
    }

    fn about(value: f64, half: f64) -> Figure {
        Figure {
            value,
            lower: value - half,
            upper: value + half,
            expanded: None,
        }
    }

    fn of_unknown_accuracy(value: f64, half: f64) -> Figure {
        Figure {
            expanded: Some(Expanded {
                lower: value - half,
                upper: value + half,
                covers_meter: false,
                repeatability_only: true,
            }),
            ..about(value, half)
        }
    }

    #[test]
    fn joules_show_unit_and_kind_and_if_they_are_modelled() {
        use DecidingFigure::{Gross, Net, NetAttributed};
        use Provenance::{Fake, Metered, Modelled};
        let requests = of_requests();
        let shown = |joules: Figure, kind, provenance, units: &Units, interval| {
            energy(&joules, kind, provenance, units, interval).unwrap_or_default()
        };
        let metered = about(0.005_12, 0.000_08);
        for (joules, kind, provenance, interval, text) in [
            (
                metered,
                Net,
                Metered,
                IntervalDisplay::Shown,
                "5.12±0.08 mJ net",
            ),
            (
                metered,
                Net,
                Metered,
                IntervalDisplay::Hidden,
                "5.12 mJ net",
            ),
            (
                metered,
                Net,
                Modelled,
                IntervalDisplay::Hidden,
                "~5.1 mJ net",
            ),
            (
                metered,
                Net,
                Modelled,
                IntervalDisplay::Shown,
                "5.12±0.08 mJ net",
            ),
            (metered, Net, Fake, IntervalDisplay::Shown, ""),
            (
                of_unknown_accuracy(0.000_424, 0.000_02),
                Gross,
                Modelled,
                IntervalDisplay::Shown,
                "~0.42 mJ gross",
            ),
            (
                about(0.000_087_2, 0.0),
                NetAttributed,
                Metered,
                IntervalDisplay::Shown,
                "87.2 µJ net attr.",
            ),
        ] {
            assert_eq!(shown(joules, kind, provenance, &requests, interval), text);
        }
        let of_a_node = about(0.000_005_12, 0.000_000_1);
        assert_eq!(
            shown(
                of_a_node,
                Gross,
                Metered,
                &of_work(),
                IntervalDisplay::Shown
            ),
            "5.1 µJ/node gross"
        );
    }

    #[test]
    fn rates_have_a_suffix_and_times_a_unit_if_they_are_not_per_request() {
        for (value, half, text) in [
            (11_400.0, 100.0, "11.4k"),
            (10_767.0, 419.0, "10.8k"),
            (32_975.0, 2431.0, "33k"),
            (999.9, 1.0, "1.00k"),
            (812.0, 3.0, "812"),
            (1_234_567.0, 10_000.0, "1.23M"),
            (0.05, 0.002, "0.050"),
        ] {
            assert_eq!(rate(&about(value, half), &of_requests(), true), text);
        }
        let executed = about(40_174.0, 100.0);
        assert_eq!(rate(&executed, &of_work(), true), "40.2k");
        assert_eq!(rate(&executed, &of_work(), false), "40.2k nodes/s");
        assert_eq!(time(&about(0.352, 0.001), &of_requests()), "0.352");
        assert_eq!(time(&about(20_100.0, 100.0), &of_work()), "20 s/exec");
        assert_eq!(time(&about(35.2, 0.1), &of_work()), "35 ms/exec");
        let cycles = Units {
            one: "cycle".into(),
            whole: "cycle",
            score: None,
            work: None,
        };
        assert_eq!(rate(&about(94.9, 1.0), &cycles, false), "94.9 cycles/s");
        assert_eq!(time(&about(42.1, 0.1), &cycles), "42 ms");
    }

    #[test]
    fn an_end_of_a_ratio_is_not_rounded_to_1() {
        for (value, lower, upper, text) in [
            (0.392, 0.382, 0.402, "0.39 [0.38–0.40]"),
            (0.401, 0.376, 0.430, "0.40 [0.38–0.43]"),
            (0.334, 0.319, 0.350, "0.33 [0.32–0.35]"),
            (0.992, 0.986, 0.998, "0.992 [0.986–0.998]"),
            (0.9, 0.7, 1.3, "0.90 [0.70–1.30]"),
            (0.9998, 0.9996, 0.999_95, "0.99980 [0.99960–0.99995]"),
            (0.5, 0.499_999, 0.500_001, "0.50000 [0.50000–0.50000]"),
            (
                0.999_99,
                0.999_98,
                0.999_996,
                "0.999990 [0.999980–0.999996]",
            ),
        ] {
            let figure = Figure {
                value,
                lower,
                upper,
                expanded: None,
            };
            assert_eq!(ratio(&figure), text);
        }
    }

    #[test]
    fn names_that_have_no_room_are_counted() {
        for (given, text) in [
            (&["rust"][..], "rust"),
            (&["nginx-a", "nginx-b"], "nginx-a, nginx-b"),
            (&["nginx-a", "nginx-b", "lighttpd"], "nginx-a +2"),
            (&["a", "b", "c", "d", "e", "f", "g"], "a, b, c, d, e +2"),
            (&["a-name-of-16-ch", "b"], "a-name-of-16-ch +1"),
        ] {
            assert_eq!(names(given).as_deref(), Some(text));
        }
        assert_eq!(names(&[]), None);
    }
}
