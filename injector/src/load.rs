//! The outcome of a load, the same for Fortio, k6 and executions.

use frugality_measure::figures::LoadSpan;
use frugality_measure::{
    course::Course,
    load::LoadResult,
    report::{ClockOffset, InjectionReport, REPORT_VERSION},
};

use crate::cpu::Sampler;

/// Whether the course contains every successful request. Otherwise course and figures would describe different
/// requests.
fn is_of(course: &Course, measured: LoadSpan) -> bool {
    let (told, succeeded) = (
        course.requests.iter().sum::<u64>(),
        measured.requests.saturating_sub(measured.errors),
    );
    if told != succeeded {
        eprintln!(
            "the course has {told} of {succeeded} successful requests, so the report has no course"
        );
    }
    told == succeeded
}

/// Results of warm-up, measured run and tail.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) warm_up: Option<LoadSpan>,
    pub(crate) measured: LoadResult,
    pub(crate) tail: Option<LoadSpan>,
    pub(crate) interrupted: Option<String>,
    pub(crate) asked_warm_up_seconds: f64,
    pub(crate) asked_tail_seconds: f64,
    /// The course, if the arguments request it.
    pub(crate) course: Option<Course>,
    /// The load generator's own JSON of the measured run, on one line.
    pub(crate) json_line: String,
}

impl Outcome {
    pub(crate) fn report(
        &self,
        clock: Option<ClockOffset>,
        clock_after: Option<ClockOffset>,
        cpu: Sampler,
    ) -> InjectionReport {
        let measured = self.measured.span();
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
            course: self.course.clone().filter(|course| is_of(course, measured)),
            cpu: cpu.of(measured),
        }
    }
}
