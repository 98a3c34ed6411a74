//! Latencies of requests, and their distribution over several runs.

use serde::{Deserialize, Serialize};

/// The percentages of the requests for which latencies are reported.
pub const PERCENTAGES: [f64; 5] = [50.0, 75.0, 90.0, 99.0, 99.9];

/// Latencies of a number of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Histogram {
    /// Number of requests.
    pub count: u64,
    /// The shortest latency; 0 without requests.
    pub min_seconds: f64,
    /// The longest latency; 0 without requests.
    pub max_seconds: f64,
    /// The exact sum of all latencies.
    pub sum_seconds: f64,
    /// Standard deviation over the requests.
    pub standard_deviation_seconds: f64,
    /// The distribution. Empty without requests, and if a report dropped the buckets.
    pub buckets: Vec<Bucket>,
    /// Interpolated within the buckets by the load generator; may be empty.
    pub percentiles: Vec<Percentile>,
}

/// Requests with a latency above `start_seconds`, up to `end_seconds`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Bucket {
    /// Lower end; in the first bucket the shortest latency itself.
    pub start_seconds: f64,
    /// Upper end; in the last bucket the longest latency itself.
    pub end_seconds: f64,
    /// Number of requests.
    pub count: u64,
}

/// The latency that `percentile` percent of the requests do not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Percentile {
    /// 0 to 100.
    pub percentile: f64,
    /// The latency, in seconds.
    pub seconds: f64,
}

/// The percentiles (0 to 100) of the latencies of all requests in `runs`, in seconds. Each run is given by
/// its buckets.
///
/// Within a bucket, requests count as evenly spread, as in Fortio (`CalcPercentile` of its stats package).
/// The function merges requests, not percentiles: the mean of several 99th percentiles is not a 99th
/// percentile.
///
/// `None` without requests, for a run without buckets, and for a percentage or a bucket out of range.
#[must_use]
pub fn merged_percentiles(runs: &[&[Bucket]], percentages: &[f64]) -> Option<Vec<f64>> {
    let is_whole = |bucket: &Bucket| {
        0.0 <= bucket.start_seconds
            && bucket.start_seconds <= bucket.end_seconds
            && bucket.end_seconds.is_finite()
    };
    let buckets: Vec<&Bucket> = runs.iter().copied().flatten().collect();
    if runs.iter().any(|run| run.is_empty()) || !buckets.iter().all(|b| is_whole(b)) {
        return None;
    }
    let mut ends: Vec<f64> = buckets
        .iter()
        .flat_map(|bucket| [bucket.start_seconds, bucket.end_seconds])
        .collect();
    ends.sort_by(f64::total_cmp);
    ends.dedup();
    // For each end, the number of requests below it, without and with the latencies that equal it.
    let below: Vec<[f64; 2]> = ends.iter().map(|end| counts(&buckets, *end)).collect();
    let all = below
        .last()
        .map(|[_, with]| *with)
        .filter(|all| *all > 0.0)?;
    percentages
        .iter()
        .map(|percentage| {
            if !(0.0..=100.0).contains(percentage) {
                return None;
            }
            let wanted = all * percentage / 100.0;
            let upper = below.iter().position(|[_, with]| *with >= wanted)?;
            let [without, _] = below[upper];
            let Some(lower) = upper.checked_sub(1).filter(|_| wanted <= without) else {
                return Some(ends[upper]);
            };
            let [_, before] = below[lower];
            let share = (wanted - before) / (without - before);
            Some(ends[lower] + share * (ends[upper] - ends[lower]))
        })
        .collect()
}

/// The number of requests below a latency, and up to it.
fn counts(buckets: &[&Bucket], seconds: f64) -> [f64; 2] {
    let of = |is_counted: fn(f64, f64) -> bool| {
        let shares = buckets.iter().map(|bucket| {
            let width = bucket.end_seconds - bucket.start_seconds;
            let share = if width > 0.0 {
                ((seconds - bucket.start_seconds) / width).clamp(0.0, 1.0)
            } else {
                f64::from(u8::from(is_counted(bucket.end_seconds, seconds)))
            };
            share * bucket.count as f64
        });
        shares.sum()
    };
    [
        of(|latency, end| latency < end),
        of(|latency, end| latency <= end),
    ]
}
