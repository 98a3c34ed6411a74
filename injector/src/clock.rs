//! How far the meter's clock is from this one. Windows are by this node's clock, readings by the
//! meter's.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use frugality_measure::report::ClockOffset;
use thiserror::Error;

/// The round trip is bounded below by the network, and now and then a scheduler adds to it: of several,
/// the shortest says most.
const EXCHANGES: usize = 8;
const TIMEOUT: Duration = Duration::from_secs(1);
/// The meter's answer is a number: anything longer is something else.
const ANSWER_LIMIT_BYTES: u64 = 64;

#[derive(Debug, Error)]
pub(crate) enum ClockError {
    #[error(transparent)]
    Http(#[from] ureq::Error),
    #[error("the meter's time is no number of seconds: {0:?}")]
    Answer(String),
    #[error("this node's clock is before 1970")]
    Epoch,
}

/// Asks the meter for its time, several times, and keeps the exchange with the shortest round trip.
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

/// The meter's time is taken to be true in the middle of the exchange; it was true at some moment within
/// it, so half the round trip is the most that this can be wrong.
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
