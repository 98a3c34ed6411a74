//! Why an attempt cannot be trusted.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason why an attempt is void, with the numbers that show it. All causes lie outside the
/// candidate: what a candidate does to itself is an outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "reason", rename_all_fields = "camelCase")]
pub enum Void {
    /// Fortio did not run to its end.
    #[error("{how}")]
    FortioInterrupted {
        /// Which run, and by what.
        how: String,
    },
    /// The clocks of meter and injector could not be compared closely enough.
    #[error("{}", clock_offset_unknown(*.uncertainty_seconds, *.limit_seconds))]
    ClockOffsetUnknown {
        /// How far the offset may be off, in seconds; absent where there was no answer.
        uncertainty_seconds: Option<f64>,
        /// How far it may.
        limit_seconds: f64,
    },
    /// A clock was stepped during the attempt.
    #[error(
        "the clocks of meter and injector moved by {moved_seconds:.3} s against each other during \
         the load, and {limit_seconds} s are allowed"
    )]
    ClockStepped {
        /// By how much, in seconds.
        moved_seconds: f64,
        /// By how much they may.
        limit_seconds: f64,
    },
    /// Load was missing before or after the measured run, so an end of the window is not in steady
    /// load.
    #[error("the load was not steady: {what}")]
    LoadNotSteady {
        /// What was missing.
        what: String,
    },
    /// The load did not end where the injector's clock says, as the node saw it.
    #[error(
        "by the injector's clock the load ended at {told_unix_seconds:.3}, and {seen_by} fell at \
         {seen_unix_seconds:.3}: {:.3} s apart, where at most {limit_seconds:.3} s are allowed",
        (seen_unix_seconds - told_unix_seconds).abs()
    )]
    LoadNotSeen {
        /// The end of the tail, in Unix seconds of the meter's clock.
        told_unix_seconds: f64,
        /// When the load's step was seen, likewise.
        seen_unix_seconds: f64,
        /// How far these may be apart.
        limit_seconds: f64,
        /// What the step was seen in.
        seen_by: String,
    },
    /// The meter's counter moves in steps too large for the energy in question.
    #[error(
        "the meter counts in steps of {resolution_joules:.6} J, which is more than {:.1} % of \
         {joules:.3} J",
        100.0 * limit_share
    )]
    MeterTooCoarse {
        /// The counter's step, in joules.
        resolution_joules: f64,
        /// The energy that it measured: net where that is known, else gross.
        joules: f64,
        /// The largest share of it that a step may be.
        limit_share: f64,
    },
    /// The board's supply was too weak.
    #[error("the node was under-voltage for {seconds:.3} s of the attempt")]
    UnderVoltage {
        /// For how long, in seconds.
        seconds: f64,
    },
    /// The board was throttled before there was any load.
    #[error("the node was throttled ({cause}) for {seconds:.3} s before the load")]
    NodeThrottled {
        /// The meter's word for it.
        cause: String,
        /// For how long, in seconds.
        seconds: f64,
    },
    /// Others on the node were busier in the window than in the idle baselines, or the other way round.
    #[error(
        "neighbours used {extra:.3} {unit} more {busier}, where {allowed:.3} are allowed: {who}"
    )]
    NeighbourActive {
        /// Who it was, the busiest first.
        who: String,
        /// How much more they used.
        extra: f64,
        /// How much more they may.
        allowed: f64,
        /// In what: CPUs, or shares of the node where the meter serves no CPU time.
        unit: String,
        /// When.
        busier: Busier,
    },
    /// CPU time of the node's processors went to others.
    #[error(
        "{cpus:.3} CPUs of the node's processors were taken {when} by work outside the node ({stolen_cpus:.3} of them by \
         the hypervisor), where {allowed_cpus} are allowed"
    )]
    CpuTaken {
        /// In which window.
        when: String,
        /// How much was used outside of the node's cgroups or stolen.
        cpus: f64,
        /// How much of it was stolen.
        stolen_cpus: f64,
        /// How much may.
        allowed_cpus: f64,
    },
    /// The two idle baselines differ by more than chance, and it matters.
    #[error(
        "the node drew {before_watts:.3} W idle before the load and {after_watts:.3} W after it \
         (± {standard_error_watts:.3} W): that is {effect_joules:.3} J in the window, and \
         {allowed_joules:.3} J are allowed"
    )]
    BaselineDrift {
        /// Mean power of the first idle baseline.
        before_watts: f64,
        /// Mean power of the second.
        after_watts: f64,
        /// Standard error of their difference.
        standard_error_watts: f64,
        /// What the difference may do to the net energy, in joules.
        effect_joules: f64,
        /// How much of that is allowed.
        allowed_joules: f64,
    },
    /// What the node spent on others differs between the window's halves.
    #[error(
        "others than the measured pods drew {first_watts:.3} W in the first half of the window and \
         {second_watts:.3} W in the second, and a difference of {allowed_watts:.3} W is allowed"
    )]
    HalfWindowDrift {
        /// In the first half.
        first_watts: f64,
        /// In the second half.
        second_watts: f64,
        /// How far these may be apart.
        allowed_watts: f64,
    },
    /// The candidate's answers are not as long as in the run's earlier trials.
    #[error(
        "an answer had {mean_bytes:.1} bytes on average, and {earlier_bytes:.1} in earlier trials of \
         the same candidate; {allowed_bytes:.1} more or less are allowed"
    )]
    ResponsesDiffer {
        /// Mean length of a body in this trial.
        mean_bytes: f64,
        /// The same in an earlier trial.
        earlier_bytes: f64,
        /// How far these may be apart.
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
    /// There is no reading at all.
    #[error("there is no reading of the node's meter")]
    MeterMissing {},
    /// The meter invents its numbers.
    #[error("the meter is fake: its power comes from {source_name}")]
    MeterFake {
        /// The meter's source.
        source_name: String,
    },
    /// Scrapes were answered, but what they showed did not move on.
    #[error(
        "the meter stood still: scrapes over {seconds:.3} s showed the same reading, \
         where at most {limit_seconds:.3} s are allowed"
    )]
    MeterStale {
        /// For how long the scrapes showed the same.
        seconds: f64,
        /// For how long they may.
        limit_seconds: f64,
    },
    /// The meter began to count anew.
    #[error(
        "the meter restarted: it counted since {from_unix_seconds:.3}, then since {to_unix_seconds:.3}"
    )]
    MeterRestarted {
        /// When it had begun at first, in Unix seconds.
        from_unix_seconds: f64,
        /// When it began again, in Unix seconds.
        to_unix_seconds: f64,
    },
    /// Another meter, source or zone was read at the end than at the beginning.
    #[error("the meter's {what} changed from {from} to {to}")]
    MeterChanged {
        /// What changed.
        what: String,
        /// What it was.
        from: String,
        /// What it became.
        to: String,
    },
    /// The instrument was at the end of its scale.
    #[error(
        "the meter's sensor was at the end of its scale in {readings} readings of the attempt, so its power is too \
         low: use a smaller shunt, or a sensor of a larger range"
    )]
    MeterSaturated {
        /// In how many readings.
        readings: f64,
    },
    /// The node's kernel, frequency governor or firmware changed.
    #[error("the node's {what} changed from {from} to {to}")]
    NodeChanged {
        /// What changed.
        what: String,
        /// What it was.
        from: String,
        /// What it became.
        to: String,
    },
    /// A counter that figures rest on went backwards: a reset, a wrap or a restart.
    #[error("the counter of {counter} went from {from:.6} down to {to:.6} at {at_unix_seconds:.3}")]
    CounterDecreased {
        /// Whose counter it is, and of what.
        counter: String,
        /// What it was.
        from: f64,
        /// What it became.
        to: f64,
        /// The later reading's time, in Unix seconds.
        at_unix_seconds: f64,
    },
    /// More energy than the node can draw, as when a counter that lost a little is taken for one
    /// that wrapped.
    #[error(
        "the counter of {counter} rose by {joules:.3} J in {seconds:.3} s, \
         which is more than the node's {max_watts:.3} W can do"
    )]
    EnergyBeyondNode {
        /// Whose counter it is.
        counter: String,
        /// By how much it rose.
        joules: f64,
        /// In what time.
        seconds: f64,
        /// The most that the node can draw, in watts.
        max_watts: f64,
    },
    /// The meter gave its pods more than it had.
    #[error(
        "the pods were given {pods_joules:.3} J of the node's {active_joules:.3} J of active energy"
    )]
    PodsBeyondNode {
        /// What the pods were given, in joules.
        pods_joules: f64,
        /// What there was to give, in joules.
        active_joules: f64,
    },
    /// There was no reading for too long, or none around a window's end.
    #[error(
        "the readings were interrupted: none covers the {:.3} s from {from_unix_seconds:.3} to \
         {to_unix_seconds:.3}, where at most {limit_seconds:.3} s are allowed",
        to_unix_seconds - from_unix_seconds
    )]
    ReadingsInterrupted {
        /// The last reading before the gap, in Unix seconds.
        from_unix_seconds: f64,
        /// The first reading after it, in Unix seconds.
        to_unix_seconds: f64,
        /// The longest gap allowed, in seconds; 0 outside of the readings.
        limit_seconds: f64,
    },
    /// A measured pod was not there all the time.
    #[error("the measured pod {pod} is not in the reading at {at_unix_seconds:.3}")]
    PodReplaced {
        /// The pod: its UID, and its name where known.
        pod: String,
        /// The reading that lacks it, in Unix seconds.
        at_unix_seconds: f64,
    },
    /// The measured window is too short for its meter.
    #[error("the measured window lasted {seconds:.3} s, and {required_seconds:.3} s are needed")]
    WindowTooShort {
        /// How long it lasted.
        seconds: f64,
        /// How long it must last.
        required_seconds: f64,
    },
}

impl Void {
    /// The stable code of the reason, as it stands in conditions, metrics and the ledger.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::FortioInterrupted { .. } => "FortioInterrupted",
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
            Self::MeterStale { .. } => "MeterStale",
            Self::MeterRestarted { .. } => "MeterRestarted",
            Self::MeterChanged { .. } => "MeterChanged",
            Self::MeterSaturated { .. } => "MeterSaturated",
            Self::NodeChanged { .. } => "NodeChanged",
            Self::CounterDecreased { .. } => "CounterDecreased",
            Self::EnergyBeyondNode { .. } => "EnergyBeyondNode",
            Self::PodsBeyondNode { .. } => "PodsBeyondNode",
            Self::ReadingsInterrupted { .. } => "ReadingsInterrupted",
            Self::PodReplaced { .. } => "PodReplaced",
            Self::WindowTooShort { .. } => "WindowTooShort",
        }
    }
}

/// When others on the node were busier.
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
            "the offset between the clocks of meter and injector is known to {uncertainty_seconds:.3} s only, \
             and {limit_seconds} s are allowed"
        ),
        None => "the injector could not compare its clock with the meter's".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    /// Every reason, as [`super::Void::reason`] spells it.
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
