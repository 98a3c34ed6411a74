//! What the doctor finds on the pages of the meters: the sources of power, and the nodes' clocks. Pure.

use frugality_measure::reading::{Provenance, Reading, ReadingError};

use super::findings::{Finding, Level};
use crate::cluster::ClusterError;

/// A clock that differs by more is probably not synchronised, in seconds. This is far above the error of NTP in a local
/// network (milliseconds) and above the time that an API server under load takes for an answer.
const MOST_OFFSET_SECONDS: f64 = 2.0;

/// Why a meter's page gave no reading.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    /// The API server did not pass the page on.
    #[error(transparent)]
    NotAsked(#[from] ClusterError),
    /// The page has no reading.
    #[error(transparent)]
    NoReading(#[from] ReadingError),
}

impl PageError {
    fn forbids(&self) -> bool {
        matches!(self, Self::NotAsked(error) if error.forbids())
    }
}

/// The answer of one node's meter.
#[derive(Debug)]
pub(super) struct Page {
    /// The node.
    pub(super) node: String,
    /// When it was asked, by the clock of this machine, in Unix seconds.
    pub(super) asked_unix_seconds: f64,
    /// When the answer was here, by the same clock.
    pub(super) answered_unix_seconds: f64,
    /// The reading in the answer.
    pub(super) reading: Result<Reading, PageError>,
}

/// What the nodes' power comes from.
pub(super) fn power(pages: &[Page]) -> Finding {
    let check = "power";
    if pages.is_empty() {
        return Finding::bad(
            check,
            Level::Warn,
            "No meter's pod was found.".to_owned(),
            "See the check `meters`.",
        );
    }
    let mut sources = Vec::new();
    let mut silent = Vec::new();
    let mut worst = Provenance::Metered;
    for page in pages {
        let node = &page.node;
        match &page.reading {
            Ok(reading) => {
                let meter = &reading.meter;
                worst = worst.max(meter.provenance);
                sources.push(format!("{node}: {} ({meter})", meter.provenance));
            }
            Err(error) if error.forbids() => return Finding::skip(check, &error.to_string()),
            Err(error) => silent.push(format!("The meter of {node} gave no reading: {error}.")),
        }
    }
    let message = format!("{}.", sources.join("; "));
    if !silent.is_empty() {
        silent.extend((!sources.is_empty()).then_some(message));
        return Finding::bad(
            check,
            Level::Warn,
            silent.join(" "),
            "Look at the log of the meter's pod. docs/power-on-a-pi.md describes the sources of power. A network policy can also be the cause: doctor asks through the API server, which the chart's networkPolicies do not allow. A benchmark then works nevertheless.",
        );
    }
    match worst {
        Provenance::Metered => Finding::ok(check, message),
        Provenance::Modelled => Finding::bad(
            check,
            Level::Warn,
            message,
            "Modelled joules are computed from CPU use, and are marked with ~. A budget on them needs spec.energy.allowModelled: true. docs/power-on-a-pi.md describes instruments.",
        ),
        Provenance::Fake => Finding::bad(
            check,
            Level::Warn,
            message,
            "These joules are invented: install a meter that reads an instrument (docs/power-on-a-pi.md). Kepler's setting dev.fake-cpu-meter must be off.",
        ),
    }
}

/// Whether the nodes' clocks agree with the clock of this machine.
pub(super) fn clocks(pages: &[Page]) -> Finding {
    let check = "clocks";
    let mut known = 0;
    for page in pages {
        match &page.reading {
            Ok(reading) => {
                let Some(offset) = offset_seconds(page, reading) else {
                    continue;
                };
                known += 1;
                if offset.abs() > MOST_OFFSET_SECONDS {
                    let direction = if offset > 0.0 { "ahead of" } else { "behind" };
                    return Finding::bad(
                        check,
                        Level::Warn,
                        format!(
                            "The clock of {} is at least {:.1} s {direction} the clock of this machine.",
                            page.node,
                            offset.abs()
                        ),
                        "Synchronise the clocks of nodes and of this machine, for example with chrony. An attempt during which a clock is set is void.",
                    );
                }
            }
            Err(error) if error.forbids() => return Finding::skip(check, &error.to_string()),
            Err(_) => {}
        }
    }
    match known {
        0 => Finding::skip(check, "no meter reports its time"),
        _ => Finding::ok(
            check,
            format!(
                "The clocks of {known} nodes show no difference above {MOST_OFFSET_SECONDS} s to the clock of this machine."
            ),
        ),
    }
}

/// How far the node's clock is at least ahead of this machine's, in seconds; negative if it is behind, and 0 if both may
/// be equal. The counters on the page were read after the question minus their age, and before the answer. Absent if the
/// meter does not report the time of its counters or its interval.
fn offset_seconds(page: &Page, reading: &Reading) -> Option<f64> {
    let read_at = reading.meter_unix_seconds?;
    let age = reading.interval_seconds? + reading.source_age_seconds.unwrap_or_default();
    let earliest = page.asked_unix_seconds - age;
    Some(if read_at < earliest {
        read_at - earliest
    } else {
        (read_at - page.answered_unix_seconds).max(0.0)
    })
}

#[cfg(test)]
mod tests {
    use frugality_measure::reading::read;

    use super::*;

    const ASKED: f64 = 1_760_000_000.0;

    /// What a node meter answers within 0.5 s. Its counters were read `offset` seconds after the question.
    fn page(node: &str, provenance: &str, offset: f64) -> Page {
        let at = format!("node_name=\"{node}\"");
        let text = format!(
            "kepler_node_cpu_joules_total{{{at},zone=\"package\"}} 7\n\
             frugality_meter_info{{{at},version=\"0.1.0\",provenance=\"{provenance}\",source=\"ina219\"}} 1\n\
             frugality_meter_interval_seconds{{{at}}} 0.1\n\
             frugality_meter_reading_timestamp_seconds{{{at},zone=\"package\"}} {}\n",
            ASKED + offset
        );
        Page {
            node: node.to_owned(),
            asked_unix_seconds: ASKED,
            answered_unix_seconds: ASKED + 0.5,
            reading: read(&text, node, None, ASKED).map_err(PageError::from),
        }
    }

    fn failing(error: ClusterError) -> Page {
        Page {
            reading: Err(error.into()),
            ..page("pi-9", "Metered", 0.0)
        }
    }

    fn forbidden() -> ClusterError {
        ClusterError::Refused {
            code: 403,
            message: "you may not".to_owned(),
        }
    }

    #[test]
    fn each_node_s_source_of_power_is_named() {
        let found = power(&[page("pi-1", "Metered", 0.0), page("pi-2", "Metered", 0.0)]);
        assert_eq!(found.level, Level::Ok);
        let text = "pi-1: Metered (frugality-meter 0.1.0 ina219); pi-2: Metered (frugality-meter 0.1.0 ina219).";
        assert_eq!(found.message, text);
    }

    #[test]
    fn a_silent_meter_hides_no_other() {
        let silent = || failing(ClusterError::Silent(10));
        let found = power(&[page("pi-1", "Metered", 0.0), silent(), silent()]);
        assert_eq!(found.level, Level::Warn);
        let silence =
            "The meter of pi-9 gave no reading: the API server did not answer within 10 s";
        let text = format!("{silence}. {silence}. pi-1: Metered (frugality-meter 0.1.0 ina219).");
        assert_eq!(found.message, text);
    }

    #[test]
    fn the_worst_source_of_power_decides() {
        let metered = || page("pi-1", "Metered", 0.0);
        let found = power(&[metered(), page("pi-2", "Modelled", 0.0)]);
        assert_eq!(found.level, Level::Warn);
        assert!(found.remedy.unwrap().contains("allowModelled"));
        let found = power(&[page("pi-3", "Fake", 0.0), metered()]);
        assert_eq!(found.level, Level::Warn);
        assert!(found.remedy.unwrap().contains("invented"));
    }

    #[test]
    fn a_meter_without_a_reading_is_a_warning_and_a_forbidden_one_is_not() {
        let silent = power(&[
            page("pi-1", "Metered", 0.0),
            failing(ClusterError::Silent(10)),
        ]);
        assert_eq!(silent.level, Level::Warn);
        assert!(
            silent.message.contains("pi-9 gave no reading"),
            "{silent:?}"
        );
        assert_eq!(power(&[failing(forbidden())]).level, Level::Skip);
        assert_eq!(clocks(&[failing(forbidden())]).level, Level::Skip);
        assert_eq!(power(&[]).level, Level::Warn);
    }

    #[test]
    fn a_clock_is_wrong_only_if_the_time_of_the_answer_can_t_explain_it() {
        for offset in [-2.0, -0.1, 0.0, 0.5, 2.4] {
            let found = clocks(&[page("pi-1", "Metered", offset)]);
            assert_eq!(found.level, Level::Ok, "{offset} {found:?}");
        }
        for (offset, words) in [
            (2.6, "pi-1 is at least 2.1 s ahead of"),
            (-3.0, "pi-1 is at least 2.9 s behind"),
        ] {
            let found = clocks(&[
                page("pi-2", "Metered", 0.0),
                page("pi-1", "Metered", offset),
            ]);
            assert_eq!(found.level, Level::Warn, "{offset} {found:?}");
            assert!(found.message.contains(words), "{found:?}");
        }
    }

    #[test]
    fn a_meter_that_does_not_report_its_time_says_nothing_about_clocks() {
        let mut page = page("pi-1", "Metered", 9.0);
        page.reading.as_mut().unwrap().meter_unix_seconds = None;
        assert_eq!(clocks(&[page]).level, Level::Skip);
    }
}
