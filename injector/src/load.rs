//! The outcome of a load, the same for Fortio, k6 and executions.

use frugality_measure::figures::LoadSpan;
use frugality_measure::{
    load::LoadResult,
    report::{ClockOffset, InjectionReport, REPORT_VERSION},
    slices::Slices,
};

use crate::cpu::Sampler;

/// Results of warm-up, measured run and tail.
#[derive(Debug)]
pub(crate) struct LoadEnd {
    pub(crate) warm_up: Option<LoadSpan>,
    pub(crate) measured: LoadResult,
    pub(crate) tail: Option<LoadSpan>,
    pub(crate) interrupted: Option<String>,
    pub(crate) asked_warm_up_seconds: f64,
    pub(crate) asked_tail_seconds: f64,
    /// The measured run's slices, if they are known.
    pub(crate) slices: Option<Slices>,
    /// Whether the report must have a course.
    pub(crate) with_course: bool,
    /// The load generator's own JSON of the measured run, on one line.
    pub(crate) json_line: String,
}

impl LoadEnd {
    pub(crate) fn report(
        &self,
        clock: Option<ClockOffset>,
        clock_after: Option<ClockOffset>,
        cpu: Sampler,
    ) -> InjectionReport {
        let measured = self.measured.span();
        let slices = self.slices.clone().filter(|slices| {
            let is_of = slices.is_of(measured);
            if !is_of {
                eprintln!(
                    "the slices do not have the requests of the result, so the report has none"
                );
            }
            is_of
        });
        let has_success = |slices: &&Slices| slices.successes.iter().any(|number| *number > 0);
        let with_course = slices.as_ref().filter(|_| self.with_course);
        let gap = |before: LoadSpan, after: LoadSpan| {
            let gap = after.start_unix_seconds - before.end_unix_seconds();
            eprintln!("{gap:.3} s without load between two runs");
            gap
        };
        InjectionReport {
            version: REPORT_VERSION,
            measured: self.measured.clone(),
            histogram_dropped: false,
            asked_warm_up_seconds: self.asked_warm_up_seconds,
            asked_tail_seconds: self.asked_tail_seconds,
            warm_up: self.warm_up,
            tail: self.tail,
            gap_before_measured_seconds: self.warm_up.map(|warm_up| gap(warm_up, measured)),
            gap_after_measured_seconds: self.tail.map(|tail| gap(measured, tail)),
            interrupted: self.interrupted.clone(),
            clock,
            clock_after,
            course: with_course.filter(has_success).map(Slices::course),
            slices,
            cpu: cpu.of(measured),
        }
    }
}
