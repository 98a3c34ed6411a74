//! Times between Kubernetes' and the arithmetic's form.

use jiff::{Timestamp, Unit};

/// Seconds since 1970, with fractions.
#[must_use]
pub fn unix_seconds(time: Timestamp) -> f64 {
    time.as_duration().as_secs_f64()
}

/// RFC 3339 with milliseconds; `None` outside the calendar.
#[must_use]
pub fn rfc3339(unix_seconds: f64) -> Option<String> {
    let time = timestamp(unix_seconds)?.round(Unit::Millisecond).ok()?;
    Some(format!("{time:.3}"))
}

/// RFC 3339 in whole seconds, as Kubernetes writes times; `None` outside the calendar.
#[must_use]
pub fn whole_second(time: Timestamp) -> Option<String> {
    Some(Timestamp::from_second(time.as_second()).ok()?.to_string())
}

/// The nearest whole number of seconds; `None` where it fits no `i64`.
#[must_use]
pub fn whole_seconds(seconds: f64) -> Option<i64> {
    let duration = jiff::SignedDuration::try_from_secs_f64(seconds.round());
    duration.ok().map(|duration| duration.as_secs())
}

/// A timestamp; `None` outside the calendar.
#[must_use]
pub fn timestamp(unix_seconds: f64) -> Option<Timestamp> {
    jiff::SignedDuration::try_from_secs_f64(unix_seconds)
        .ok()
        .and_then(|duration| Timestamp::from_duration(duration).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let text = rfc3339(1_795_236_942.869).unwrap();
        assert_eq!(text, "2026-11-21T04:55:42.869Z");
        assert!((unix_seconds(text.parse().unwrap()) - 1_795_236_942.869).abs() < 1e-6);
        assert_eq!(rfc3339(f64::NAN), None);
    }
}
