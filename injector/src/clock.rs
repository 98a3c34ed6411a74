//! Offset between the meter's clock and this node's clock. Windows have times of this node's clock, readings have
//! times of the meter's clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use frugality_measure::report::ClockOffset;
use thiserror::Error;

/// Number of exchanges with the meter. A scheduler sometimes delays one: the shortest round trip has the least
/// uncertainty.
const EXCHANGES: usize = 8;
const TIMEOUT: Duration = Duration::from_secs(1);
/// Longest wait of a new pod for its first connection: a judgement. A network plug-in that enforces policies refuses or drops
/// the pod's packets until it has seen the pod.
pub(crate) const NEW_POD_PATIENCE: Duration = Duration::from_secs(10);
/// Time between two tries.
const RETRY: Duration = Duration::from_millis(200);
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

impl ClockError {
    /// Whether there was no answer at all.
    fn is_without_connection(&self) -> bool {
        matches!(
            self,
            Self::Http(
                ureq::Error::Io(_) | ureq::Error::Timeout(_) | ureq::Error::ConnectionFailed
            )
        )
    }
}

/// Asks the meter for its time [`EXCHANGES`] times and keeps the exchange with the shortest round trip. If there is no
/// connection, tries again for as long as `patience`.
pub(crate) fn compare(url: &str, patience: Duration) -> Result<ClockOffset, ClockError> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .proxy(None)
        .build()
        .into();
    let began = Instant::now();
    let mut best = loop {
        match exchange(&agent, url) {
            Err(error) if error.is_without_connection() && began.elapsed() < patience => {
                std::thread::sleep(RETRY);
            }
            first => break first?,
        }
    };
    for _ in 1..EXCHANGES {
        let offset = exchange(&agent, url)?;
        if offset.uncertainty_seconds < best.uncertainty_seconds {
            best = offset;
        }
    }
    Ok(best)
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_new_pod_waits_for_its_first_connection() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let url = format!("http://{address}/time");
        assert!(compare(&url, Duration::ZERO).is_err());
        let meter = std::thread::spawn(move || {
            std::thread::sleep(3 * RETRY);
            let listener = TcpListener::bind(address).unwrap();
            for stream in listener.incoming().take(EXCHANGES) {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 1024]).unwrap();
                let answer =
                    "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\n12.5";
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        assert!(compare(&url, NEW_POD_PATIENCE).unwrap().offset_seconds < 0.0);
        meter.join().unwrap();
    }
}
