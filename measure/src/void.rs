//! Reasons for void attempts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason why an attempt is void, with the numbers that show it. All causes lie outside the candidate: an
/// effect that a candidate has on itself is an outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "reason", rename_all_fields = "camelCase")]
pub enum Void {
    /// Fortio did not run to its end.
    #[error("{how}")]
    LoadInterrupted {
        /// The run and the cause.
        how: String,
    },
    /// The clocks of meter and injector could not be compared closely enough.
    #[error("{}", clock_offset_unknown(*.uncertainty_seconds, *.limit_seconds))]
    ClockOffsetUnknown {
        /// The uncertainty of the offset, in seconds; absent if no meter answered.
        uncertainty_seconds: Option<f64>,
        /// The limit of the uncertainty, in seconds.
        limit_seconds: f64,
    },
    /// A clock was stepped during the attempt.
    #[error(
        "the offset between the clocks of meter and injector changed by {moved_seconds:.3} s during \
         the load (limit {limit_seconds} s)"
    )]
    ClockStepped {
        /// The movement, in seconds.
        moved_seconds: f64,
        /// The limit of the movement, in seconds.
        limit_seconds: f64,
    },
    /// Load was missing before or after the measured run. An end of the window is then not in steady load.
    #[error("the load was not steady: {what}")]
    LoadNotSteady {
        /// The missing load.
        what: String,
    },
    /// On the node, the load did not end at the time by the injector's clock.
    #[error(
        "{seen_by} fell {:.3} s away from the reported end of the load (limit {limit_seconds:.3} s): reported \
         {reported_unix_seconds:.3}, seen {seen_unix_seconds:.3} (Unix seconds)",
        (seen_unix_seconds - reported_unix_seconds).abs()
    )]
    LoadNotSeen {
        /// The end of the tail, in Unix seconds of the meter's clock.
        reported_unix_seconds: f64,
        /// The time of the load's step on the node, in Unix seconds of the meter's clock.
        seen_unix_seconds: f64,
        /// The largest allowed difference, in seconds.
        limit_seconds: f64,
        /// The counter that shows the step.
        seen_by: String,
    },
    /// The meter's counter moves in steps that are too large for the measured energy.
    #[error(
        "the meter's counter has steps of {resolution_joules:.6} J. That is more than {:.1} % of the attempt's \
         {joules:.3} J. Use a finer meter, or write a longer load.duration.",
        100.0 * limit_share
    )]
    MeterTooCoarse {
        /// The counter's step, in joules.
        resolution_joules: f64,
        /// The measured energy, in joules: net if known, else gross.
        joules: f64,
        /// The largest share of that energy that a step may be.
        limit_share: f64,
    },
    /// The board's supply was too weak.
    #[error(
        "the node's supply voltage was too low for {seconds:.3} s of the attempt. Use a stronger supply or a shorter cable."
    )]
    UnderVoltage {
        /// Duration, in seconds.
        seconds: f64,
    },
    /// The board was throttled before the load.
    #[error(
        "the node was throttled ({cause}) for {seconds:.3} s before the load. Cool the node, or write a longer trials.idleBaseline."
    )]
    NodeThrottled {
        /// The meter's name of the cause.
        cause: String,
        /// Duration, in seconds.
        seconds: f64,
    },
    /// Others on the node were busier in the window than in the idle baselines, or the reverse.
    #[error("others on the node used {extra:.3} {unit} more {busier} (limit {allowed:.3}): {who}")]
    NeighbourActive {
        /// The neighbours, the busiest first.
        who: String,
        /// Their additional use.
        extra: f64,
        /// The limit of the additional use.
        allowed: f64,
        /// The unit: CPUs, or shares of the node if the meter reports no CPU time.
        unit: String,
        /// The windows in which they were busier.
        busier: Busier,
    },
    /// Others took CPU time of the node's processors.
    #[error(
        "work outside the node took {cpus:.3} CPUs of the node's processors {when} (the hypervisor took {stolen_cpus:.3} \
         of them; limit {allowed_cpus})"
    )]
    CpuTaken {
        /// The window.
        when: String,
        /// CPU use outside the node's cgroups plus stolen time, in CPUs.
        cpus: f64,
        /// The stolen part, in CPUs.
        stolen_cpus: f64,
        /// The limit, in CPUs.
        allowed_cpus: f64,
    },
    /// The two idle baselines differ by more than chance, and the effect exceeds its limit.
    #[error(
        "the node drew {before_watts:.3} W idle before the load and {after_watts:.3} W after it \
         (standard error of the difference: {}). This changes net energy by up to {effect_joules:.3} J (limit \
         {allowed_joules:.3} J).",
        .standard_error_watts.map_or_else(|| "unknown".to_owned(), |it| format!("{it:.3} W"))
    )]
    BaselineDrift {
        /// Mean power of the first idle baseline, in watts.
        before_watts: f64,
        /// Mean power of the second idle baseline, in watts.
        after_watts: f64,
        /// Standard error of their difference, in watts; absent if the noise of idle power is unknown.
        standard_error_watts: Option<f64>,
        /// The largest effect of the difference on the net energy, in joules.
        effect_joules: f64,
        /// The limit of the effect, in joules.
        allowed_joules: f64,
    },
    /// The power of others differs between the window's halves.
    #[error(
        "work outside the measured pods drew {first_watts:.3} W in the first half of the window and \
         {second_watts:.3} W in the second half (limit of the difference: {allowed_watts:.3} W)"
    )]
    HalfWindowDrift {
        /// Power in the first half, in watts.
        first_watts: f64,
        /// Power in the second half, in watts.
        second_watts: f64,
        /// The largest allowed difference, in watts.
        allowed_watts: f64,
    },
    /// The candidate's answers have another length than in the run's earlier trials.
    #[error(
        "answers had {mean_bytes:.1} bytes on average, and {earlier_bytes:.1} bytes in an earlier trial of \
         the same candidate (limit of the difference: {allowed_bytes:.1} bytes)"
    )]
    ResponsesDiffer {
        /// Mean length of a body in this trial, in bytes.
        mean_bytes: f64,
        /// Mean length of a body in an earlier trial, in bytes.
        earlier_bytes: f64,
        /// The largest allowed difference, in bytes.
        allowed_bytes: f64,
    },
    /// The windows are empty, reversed or overlap: a clock or a record is wrong.
    #[error(
        "the idle baseline before, the measured window and the idle baseline after do not follow \
         one another: {windows}"
    )]
    WindowsOutOfOrder {
        /// The six times, in Unix seconds.
        windows: String,
    },
    /// No reading exists.
    #[error("there is no reading of the node's meter")]
    MeterMissing {},
    /// The meter invents its values.
    #[error("the meter is fake: its power comes from {source_name}")]
    MeterFake {
        /// The meter's source.
        source_name: String,
    },
    /// Scrapes were answered, but always showed the same values.
    #[error(
        "the meter stood still: scrapes over {seconds:.3} s showed the same reading \
         (limit {limit_seconds:.3} s)"
    )]
    MeterStale {
        /// How long the scrapes showed the same values, in seconds.
        seconds: f64,
        /// The limit, in seconds.
        limit_seconds: f64,
    },
    /// The instrument shows no more power under load than without.
    #[error(
        "the meter's source does not follow the load: {idle_watts:.3} W without load and {load_watts:.3} W under load, although \
         the node used {cpus:.2} CPUs more"
    )]
    PowerWithoutLoad {
        /// Power in an idle baseline, in watts.
        idle_watts: f64,
        /// Power in the half of the window next to it, in watts.
        load_watts: f64,
        /// CPU use in this half minus CPU use in the baseline, in CPUs.
        cpus: f64,
    },
    /// The meter restarted its counters.
    #[error(
        "the meter restarted during the attempt: its count began at {from_unix_seconds:.3}, and again at \
         {to_unix_seconds:.3} (Unix seconds)"
    )]
    MeterRestarted {
        /// Start of the meter's count before the restart, in Unix seconds.
        from_unix_seconds: f64,
        /// Start of the meter's count after the restart, in Unix seconds.
        to_unix_seconds: f64,
    },
    /// The meter, its source or its zone changed during the attempt.
    #[error("the meter's {what} changed from {from} to {to}")]
    MeterChanged {
        /// The changed property.
        what: String,
        /// The value before.
        from: String,
        /// The value after.
        to: String,
    },
    /// The instrument was at the end of its scale.
    #[error(
        "the meter's sensor was at the end of its scale in {readings} readings of the attempt, so its power is too \
         low: use a smaller shunt, or a sensor with a larger range"
    )]
    MeterSaturated {
        /// The number of such readings.
        readings: f64,
    },
    /// The node's kernel, frequency governor, firmware or machine changed.
    #[error("the node's {what} changed from {from} to {to}")]
    NodeChanged {
        /// The changed property.
        what: String,
        /// The value before.
        from: String,
        /// The value after.
        to: String,
    },
    /// A counter behind the figures decreased: a reset, a wrap or a restart.
    #[error(
        "the counter of {counter} fell from {from:.6} to {to:.6} at {at_unix_seconds:.3} (Unix seconds)"
    )]
    CounterDecreased {
        /// The counter's quantity and owner.
        counter: String,
        /// The value before.
        from: f64,
        /// The value after.
        to: f64,
        /// The later reading's time, in Unix seconds.
        at_unix_seconds: f64,
    },
    /// A counter that the meter reports is missing from a reading.
    #[error(
        "the counter of {counter} is missing from the reading at {at_unix_seconds:.3} (Unix seconds)"
    )]
    CounterMissing {
        /// The counter's quantity and owner.
        counter: String,
        /// The time of the reading without the counter, in Unix seconds.
        at_unix_seconds: f64,
    },
    /// The counter shows more energy than the node can draw. One cause is a counter that lost a little and is
    /// mistaken for a wrapped one.
    #[error(
        "the counter of {counter} rose by {joules:.3} J in {seconds:.3} s, \
         more than the node's limit of {max_watts:.3} W allows"
    )]
    EnergyBeyondNode {
        /// The counter's owner.
        counter: String,
        /// The rise, in joules.
        joules: f64,
        /// The time of the rise, in seconds.
        seconds: f64,
        /// The most that the node can draw, in watts.
        max_watts: f64,
    },
    /// The meter gave its pods more energy than the node's active energy.
    #[error(
        "the meter gave the pods {pods_joules:.3} J, more than the node's active energy of {active_joules:.3} J"
    )]
    PodsBeyondNode {
        /// The energy that the pods received, in joules.
        pods_joules: f64,
        /// The node's active energy, in joules.
        active_joules: f64,
    },
    /// Readings were missing for too long, or around a window's end.
    #[error(
        "the readings were interrupted: none covers the {:.3} s from {from_unix_seconds:.3} to \
         {to_unix_seconds:.3} (Unix seconds; limit {limit_seconds:.3} s)",
        to_unix_seconds - from_unix_seconds
    )]
    ReadingsInterrupted {
        /// The last reading before the gap, in Unix seconds.
        from_unix_seconds: f64,
        /// The first reading after the gap, in Unix seconds.
        to_unix_seconds: f64,
        /// The longest allowed gap, in seconds; 0 outside the readings.
        limit_seconds: f64,
    },
    /// A measured pod is missing from a reading.
    #[error("the measured pod {pod} is not in the reading at {at_unix_seconds:.3}")]
    PodReplaced {
        /// The pod: its UID, and its name if known.
        pod: String,
        /// The time of the reading without the pod, in Unix seconds.
        at_unix_seconds: f64,
    },
    /// The measured window is too short for its meter.
    #[error("the measured window lasted {seconds:.3} s, and {required_seconds:.3} s are needed")]
    WindowTooShort {
        /// Length of the window, in seconds.
        seconds: f64,
        /// The required length, in seconds.
        required_seconds: f64,
    },
}

impl Void {
    /// The stable code of the reason in conditions, metrics and the ledger.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::LoadInterrupted { .. } => "LoadInterrupted",
            Self::ClockOffsetUnknown { .. } => "ClockOffsetUnknown",
            Self::ClockStepped { .. } => "ClockStepped",
            Self::LoadNotSteady { .. } => "LoadNotSteady",
            Self::LoadNotSeen { .. } => "LoadNotSeen",
            Self::MeterTooCoarse { .. } => "MeterTooCoarse",
            Self::UnderVoltage { .. } => "UnderVoltage",
            Self::NodeThrottled { .. } => "NodeThrottled",
            Self::NeighbourActive { .. } => "NeighbourActive",
            Self::CpuTaken { .. } => "CpuTaken",
            Self::BaselineDrift { .. } => "BaselineDrift",
            Self::HalfWindowDrift { .. } => "HalfWindowDrift",
            Self::ResponsesDiffer { .. } => "ResponsesDiffer",
            Self::WindowsOutOfOrder { .. } => "WindowsOutOfOrder",
            Self::MeterMissing { .. } => "MeterMissing",
            Self::MeterFake { .. } => "MeterFake",
            Self::MeterStale { .. } | Self::PowerWithoutLoad { .. } => "MeterStale",
            Self::MeterRestarted { .. } => "MeterRestarted",
            Self::MeterChanged { .. } => "MeterChanged",
            Self::MeterSaturated { .. } => "MeterSaturated",
            Self::NodeChanged { .. } => "NodeChanged",
            Self::CounterDecreased { .. } => "CounterDecreased",
            Self::CounterMissing { .. } => "CounterMissing",
            Self::EnergyBeyondNode { .. } => "EnergyBeyondNode",
            Self::PodsBeyondNode { .. } => "PodsBeyondNode",
            Self::ReadingsInterrupted { .. } => "ReadingsInterrupted",
            Self::PodReplaced { .. } => "PodReplaced",
            Self::WindowTooShort { .. } => "WindowTooShort",
        }
    }
}

/// The windows in which others on the node were busier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Busier {
    /// In the measured window.
    InWindow,
    /// In the idle baselines.
    InBaselines,
}

impl fmt::Display for Busier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::InWindow => "in the measured window than in the idle baselines",
            Self::InBaselines => "in the idle baselines than in the measured window",
        })
    }
}

fn clock_offset_unknown(uncertainty_seconds: Option<f64>, limit_seconds: f64) -> String {
    match uncertainty_seconds {
        Some(uncertainty_seconds) => format!(
            "the offset between the clocks of meter and injector is known only within {uncertainty_seconds:.3} s \
             (limit {limit_seconds} s)"
        ),
        None => "the injector could not compare its clock with the meter's".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    /// Every reason, in the spelling of [`super::Void::reason`].
    fn reasons() -> Vec<&'static str> {
        let own = include_str!("void.rs");
        let (_, of_variants) = own.split_once("match self {").unwrap_or_default();
        of_variants
            .lines()
            .skip(1)
            .take_while(|line| line.contains("=>"))
            .filter_map(|line| line.split('"').nth(1))
            .collect()
    }

    #[test]
    fn every_reason_is_documented_and_has_a_test_that_triggers_it() {
        let reasons = reasons();
        assert!(reasons.len() >= 23, "{reasons:?}");
        let documents = [
            include_str!("../../docs/runbook.md"),
            include_str!("../../docs/measurement.md"),
        ];
        let tests = [
            include_str!("energy/tests/voids.rs"),
            include_str!("energy/tests/surroundings.rs"),
            include_str!("attempt/load.rs"),
            include_str!("../tests/attempt.rs"),
        ]
        .concat();
        for reason in reasons {
            let is_in = |text: &str, quote: char| text.contains(&format!("{quote}{reason}{quote}"));
            assert!(documents.iter().all(|text| is_in(text, '`')), "{reason}");
            assert!(is_in(&tests, '"'), "no test of {reason}");
        }
    }
}
