//! A node whose power is known exactly, the readings of its meter, and Fortio's report of a load.

use std::sync::Arc;

use frugality_measure::figures::LoadSpan;
use frugality_measure::{
    energy::Window,
    fortio::{Amount, FortioResult, ResponseSizes},
    latency::Histogram,
    load::LoadResult,
    model::LinearModel,
    pace::InjectorCpu,
    reading::{MeterIdentity, PodReading, Provenance, Reading},
    report::{ClockOffset, InjectionReport, REPORT_VERSION},
    slices::Slices,
};

use super::T0;

/// Power of the node without load.
pub(crate) const IDLE_WATTS: f64 = 2.0;
/// Length of every measured window. Fortio runs a little longer than requested.
pub(crate) const WINDOW_SECONDS: f64 = 20.012;
/// Seconds by which the meter's clock is ahead of the injector's clock.
pub(crate) const CLOCK_OFFSET_SECONDS: f64 = 0.75;
/// Share of a load's power that goes to the candidate's pod.
pub(crate) const CANDIDATE_SHARE: f64 = 0.625;
/// Share of a load's power that goes to the database's pod.
pub(crate) const DATABASE_SHARE: f64 = 0.25;
/// CPU seconds per joule of load.
pub(crate) const CPU_SECONDS_PER_JOULE: f64 = 0.5;
/// Working set of a server.
pub(crate) const WORKING_SET_BYTES: f64 = 12_000_000.0;

/// Power, requests and latency of a candidate in a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Work {
    /// Power above the idle power of the node.
    pub(crate) watts: f64,
    /// Expected answers in the window.
    pub(crate) requests: u64,
    /// Mean latency.
    pub(crate) milliseconds: f64,
}

impl Work {
    /// The true figures, which differ a little from block to block.
    pub(crate) fn of(candidate: &str, block: i32) -> Self {
        let drift = f64::from([0, 1, -1, 2, -2][usize::try_from(block % 5).unwrap()]);
        match candidate {
            "rust" => Self {
                watts: 3.0 + 0.03 * drift,
                requests: 8000 - u64::try_from(block).unwrap() * 10,
                milliseconds: 9.5 + 0.02 * drift,
            },
            _ => Self {
                watts: 3.5 - 0.02 * drift,
                requests: 3000 + u64::try_from(block).unwrap() * 7,
                milliseconds: 26.0 - 0.1 * drift,
            },
        }
    }

    /// Gross joules per successful request, by the definition.
    pub(crate) fn gross_joules(self) -> f64 {
        (IDLE_WATTS + self.watts) * WINDOW_SECONDS / self.requests as f64
    }

    /// Net joules per successful request, by the definition.
    pub(crate) fn net_joules(self) -> f64 {
        self.watts * WINDOW_SECONDS / self.requests as f64
    }

    /// Joules per successful request of candidate and database, by the definition.
    pub(crate) fn attributed_joules(self) -> f64 {
        (CANDIDATE_SHARE + DATABASE_SHARE) * self.net_joules()
    }

    /// CPU milliseconds per successful request of candidate and database.
    pub(crate) fn cpu_milliseconds(self) -> f64 {
        1000.0 * CPU_SECONDS_PER_JOULE * self.attributed_joules()
    }

    pub(crate) fn requests_per_second(self) -> f64 {
        self.requests as f64 / WINDOW_SECONDS
    }
}

/// A load on the node, from its warm-up to its tail.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoadOn {
    pub(crate) trial: String,
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) measured: Window,
    pub(crate) work: Work,
    /// UIDs of the candidate's pods, one per server.
    pub(crate) candidate_pods: Vec<String>,
    pub(crate) database_pod: Option<String>,
    /// The measured node and the injector's node.
    pub(crate) nodes: [String; 2],
}

impl LoadOn {
    /// Warm-up, measured run and tail without a gap, from `start` on.
    pub(crate) fn new(
        trial: &str,
        start: f64,
        warm_up_seconds: f64,
        work: Work,
        pods: (Vec<String>, Option<String>),
    ) -> Self {
        let measured_start = start + warm_up_seconds;
        let measured_end = measured_start + WINDOW_SECONDS;
        Self {
            trial: trial.to_owned(),
            start,
            end: measured_end + 3.0,
            measured: Window {
                start_unix_seconds: measured_start,
                end_unix_seconds: measured_end,
            },
            work,
            candidate_pods: pods.0,
            database_pod: pods.1,
            nodes: ["pi-1".into(), "injector-1".into()],
        }
    }

    fn joules_until(&self, at: f64) -> f64 {
        self.work.watts * (at.min(self.end) - self.start).max(0.0)
    }

    /// All requests, from the warm-up to the tail.
    pub(crate) fn requests(&self) -> u64 {
        let report = self.report(1.0);
        let spans = [&report.warm_up, &report.tail].into_iter().flatten();
        spans.fold(report.measured.span().requests, |sum, span| {
            sum + span.requests
        })
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some thousand requests"
    )]
    /// The injector's report, by the injector's clock. `success_share` of the requests get the expected
    /// answer, the others get 500.
    pub(crate) fn report(&self, success_share: f64) -> InjectionReport {
        let own = |at: f64| at - CLOCK_OFFSET_SECONDS;
        let measured = self.measured;
        let span = |start: f64, end: f64| LoadSpan {
            start_unix_seconds: own(start),
            duration_seconds: end - start,
            requests: (self.work.requests_per_second() * (end - start)) as u64,
            errors: 0,
        };
        let clock = Some(ClockOffset {
            offset_seconds: CLOCK_OFFSET_SECONDS,
            uncertainty_seconds: 0.002,
        });
        InjectionReport {
            version: REPORT_VERSION,
            measured: LoadResult::Fortio(fortio(
                self.work,
                own(measured.start_unix_seconds),
                success_share,
            )),
            histogram_dropped: true,
            asked_warm_up_seconds: measured.start_unix_seconds - self.start,
            asked_tail_seconds: self.end - measured.end_unix_seconds,
            warm_up: Some(span(self.start, measured.start_unix_seconds)),
            tail: Some(span(measured.end_unix_seconds, self.end)),
            gap_before_measured_seconds: Some(0.0),
            gap_after_measured_seconds: Some(0.0),
            interrupted: None,
            clock,
            clock_after: clock,
            course: None,
            slices: Some(slices(self.work, success_share)),
            cpu: Some(InjectorCpu::default()),
        }
    }
}

/// All requests in slices of two seconds.
fn slices(work: Work, success_share: f64) -> Slices {
    let (successes, errors) = counts(work, success_share);
    let spread = |all: u64| {
        let mut slices = vec![all / 10; 10];
        slices[0] += all % 10;
        slices
    };
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some milliseconds"
    )]
    let nanoseconds = (work.milliseconds * 1e6) as u64;
    let mean = |count: &u64| (*count > 0).then_some(nanoseconds);
    let successes = spread(successes);
    Slices {
        slice_seconds: WINDOW_SECONDS / 10.0,
        whole_seconds: WINDOW_SECONDS,
        mean_nanoseconds: successes.iter().map(mean).collect(),
        p99_nanoseconds: successes.iter().map(mean).collect(),
        errors: spread(errors),
        successes,
    }
}

/// Successes and errors.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of some thousand requests"
)]
fn counts(work: Work, success_share: f64) -> (u64, u64) {
    let successes = (work.requests as f64 * success_share).round() as u64;
    (successes, work.requests - successes)
}

fn fortio(work: Work, start_unix_seconds: f64, success_share: f64) -> FortioResult {
    let (successes, errors) = counts(work, success_share);
    let histogram = |count: u64| Histogram {
        count,
        min_seconds: 0.001,
        max_seconds: 0.1,
        sum_seconds: count as f64 * work.milliseconds / 1000.0,
        standard_deviation_seconds: 0.001,
        buckets: Vec::new(),
        percentiles: Vec::new(),
    };
    FortioResult {
        version: "1.69.5".into(),
        url: "http://server:8080/".into(),
        labels: String::new(),
        start_unix_seconds,
        duration_seconds: WINDOW_SECONDS,
        requested: Amount::DurationSeconds(20.0),
        requested_rate: None,
        uniform: false,
        skips_late: false,
        actual_rate: work.requests as f64 / WINDOW_SECONDS,
        threads: 4,
        latency: histogram(work.requests),
        error_latency: histogram(errors),
        codes: [(200, successes), (500, errors)]
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect(),
        sockets: 4,
        response_sizes: Some(ResponseSizes {
            min_bytes: 1300.0,
            max_bytes: 1500.0,
            mean_bytes: 1400.0,
            standard_deviation_bytes: Some(20.0),
            mean_header_bytes: Some(400.0),
        }),
    }
}

pub(crate) fn meter(provenance: Provenance) -> MeterIdentity {
    let (source, board) = match provenance {
        Provenance::Metered => ("hwmon", None),
        Provenance::Modelled => ("board-model", Some("pi-2b".to_owned())),
        Provenance::Fake => ("development", None),
    };
    MeterIdentity {
        name: "frugality-meter".into(),
        version: "0.1.0".into(),
        source: source.into(),
        configuration: None,
        board,
        model: (provenance == Provenance::Modelled).then_some(MODEL),
        provenance,
    }
}

/// Power model of the node, for a meter that models power. Its accuracy is unknown.
const MODEL: LinearModel = LinearModel {
    idle_watts: IDLE_WATTS,
    watts_per_cpu: 1.0 / CPU_SECONDS_PER_JOULE,
    uncertainty: None,
};

/// Share of one server. The second server takes twice as much as the first, the third three times as much.
pub(crate) fn share_of_server(place: usize, servers: usize) -> f64 {
    let parts = servers * (servers + 1) / 2;
    (place + 1) as f64 / parts as f64
}

/// A reading of the node's meter: the counters of the node and of `pods` at `at`.
pub(crate) fn reading(
    at: f64,
    provenance: Provenance,
    loads: &[LoadOn],
    pods: &[String],
) -> Reading {
    let load_joules: f64 = loads.iter().map(|load| load.joules_until(at)).sum();
    let idle_joules = 1000.0 + IDLE_WATTS * (at - T0);
    let of_pod = |uid: &String| {
        let joules: f64 = loads
            .iter()
            .map(|load| {
                let place = load.candidate_pods.iter().position(|pod| pod == uid);
                let share = if let Some(place) = place {
                    CANDIDATE_SHARE * share_of_server(place, load.candidate_pods.len())
                } else if load.database_pod.as_ref() == Some(uid) {
                    DATABASE_SHARE
                } else {
                    0.0
                };
                share * load.joules_until(at)
            })
            .sum();
        let part = loads
            .iter()
            .find_map(|load| {
                let place = load.candidate_pods.iter().position(|pod| pod == uid)?;
                Some(share_of_server(place, load.candidate_pods.len()))
            })
            .unwrap_or(1.0);
        PodReading {
            joules: Some(joules),
            cpu_seconds: Some(CPU_SECONDS_PER_JOULE * joules),
            working_set_bytes: Some(part * WORKING_SET_BYTES),
            ..PodReading::of(uid, "shop", uid)
        }
    };
    Reading {
        scraped_at_unix_seconds: at + 0.12,
        meter_unix_seconds: Some(at),
        meter: Arc::new(meter(provenance)),
        meter_start_unix_seconds: Some(T0 - 3600.0),
        interval_seconds: Some(1.0),
        max_watts: Some(12.0),
        zone: "psys".into(),
        node_joules: idle_joules + load_joules,
        active_joules: Some(load_joules),
        idle_joules: Some(idle_joules),
        node_cpu_seconds: Some(CPU_SECONDS_PER_JOULE * load_joules),
        platform: Arc::default(),
        throttled_seconds: Arc::default(),
        temperature_celsius: None,
        frequency_hertz: None,
        relative_uncertainty: None,
        resolution_joules: None,
        processors_busy_seconds: None,
        processors_interrupt_seconds: None,
        processors_stolen_seconds: None,
        source_age_seconds: None,
        saturated_readings: None,
        left_out: None,
        pods: pods.iter().map(of_pod).collect(),
    }
}
