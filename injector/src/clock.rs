//! Offset between the meter's clock and this node's clock. Windows have times of this node's clock, readings have
//! times of the meter's clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use frugality_measure::report::ClockOffset;
use thiserror::Error;

/// Number of exchanges with the meter. A scheduler sometimes delays one: the shortest round trip has the least
/// uncertainty.
const EXCHANGES: usize = 8;
const TIMEOUT: Duration = Duration::from_secs(1);
/// Longest valid answer of the meter, which is one number.
const ANSWER_LIMIT_BYTES: u64 = 64;

#[derive(Debug, Error)]
pub(crate) enum ClockError {
    #[error(transparent)]
    Http(#[from] ureq::Error),
    #[error("the meter's time is not a number of seconds: {0:?}")]
    Answer(String),
    #[error("this node's clock is before 1970")]
    Epoch,
}

/// Asks the meter for its time [`EXCHANGES`] times and keeps the exchange with the shortest round trip.
pub(crate) fn compare(url: &str) -> Result<ClockOffset, ClockError> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .proxy(None)
        .build()
        .into();
    let mut best: Option<ClockOffset> = None;
    for _ in 0..EXCHANGES {
        let offset = exchange(&agent, url)?;
        if best.is_none_or(|best| offset.uncertainty_seconds < best.uncertainty_seconds) {
            best = Some(offset);
        }
    }
    best.ok_or(ClockError::Epoch)
}

/// Assumes that the meter read its clock in the middle of the exchange. The meter read it at some time during the
/// exchange, so the error is at most half the round trip.
fn exchange(agent: &ureq::Agent, url: &str) -> Result<ClockOffset, ClockError> {
    let sent = SystemTime::now();
    let timer = Instant::now();
    let mut response = agent.get(url).call()?;
    let answer = response
        .body_mut()
        .with_config()
        .limit(ANSWER_LIMIT_BYTES)
        .read_to_string()?;
    let round_trip = timer.elapsed();

    let sent = sent
        .duration_since(UNIX_EPOCH)
        .map_err(|_| ClockError::Epoch)?;
    let meter = answer
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|seconds| seconds.is_finite());
    let meter = meter.ok_or(ClockError::Answer(answer))?;
    Ok(ClockOffset {
        offset_seconds: meter - (sent + round_trip / 2).as_secs_f64(),
        uncertainty_seconds: round_trip.as_secs_f64() / 2.0,
    })
}
