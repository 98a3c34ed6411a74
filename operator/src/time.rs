//! Conversions between Kubernetes' time formats and Unix seconds.

use jiff::{Timestamp, Unit};

/// Seconds since 1970, with fractions.
#[must_use]
pub fn unix_seconds(time: Timestamp) -> f64 {
    time.as_duration().as_secs_f64()
}

/// RFC 3339 with milliseconds; `None` if the time is outside the calendar.
#[must_use]
pub fn rfc3339(unix_seconds: f64) -> Option<String> {
    let time = timestamp(unix_seconds)?.round(Unit::Millisecond).ok()?;
    Some(format!("{time:.3}"))
}

/// RFC 3339 in whole seconds, as Kubernetes writes times; `None` if the time is outside the calendar.
#[must_use]
pub fn whole_second(time: Timestamp) -> Option<String> {
    Some(Timestamp::from_second(time.as_second()).ok()?.to_string())
}

/// The nearest whole number of seconds; `None` if it does not fit into an `i64`.
#[must_use]
pub fn whole_seconds(seconds: f64) -> Option<i64> {
    let duration = jiff::SignedDuration::try_from_secs_f64(seconds.round());
    duration.ok().map(|duration| duration.as_secs())
}

/// How far the local clock is ahead of a server's clock, in seconds. The local clock saw the question at `asked`
/// and the answer at `received`; `date` is the answer's `Date`. A `Date` is cut to whole seconds (RFC 9110,
/// 5.6.7), so several values fit. The function returns the value nearest to 0.
#[must_use]
pub fn ahead_seconds(asked: f64, received: f64, date: f64) -> f64 {
    let (least, most) = (asked - (date + 1.0), received - date);
    if least > 0.0 { least } else { most.min(0.0) }
}

/// Unix seconds of an HTTP `Date` header; `None` if the text is not a date.
#[must_use]
pub fn http_date(text: &str) -> Option<f64> {
    let date = jiff::fmt::rfc2822::parse(text).ok()?;
    Some(unix_seconds(date.timestamp()))
}

/// A timestamp from Unix seconds; `None` if the time is outside the calendar.
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

    #[test]
    fn clocks_are_compared_by_the_date_of_an_answer() {
        let date = http_date("Tue, 24 Nov 2026 03:08:45 GMT").unwrap();
        assert_eq!(rfc3339(date).unwrap(), "2026-11-24T03:08:45.000Z");
        assert_eq!(http_date("yesterday"), None);
        // The server's time is between 45 and 46 s.
        let ahead = |asked: f64, received: f64| ahead_seconds(date + asked, date + received, date);
        for (asked, received) in [(0.0, 0.1), (0.9, 1.2), (-0.1, 0.3)] {
            assert!(ahead(asked, received).abs() < 1e-6, "{asked} {received}");
        }
        assert!((ahead(180.5, 180.6) - 179.5).abs() < 1e-6);
        assert!((ahead(-180.1, -180.0) + 180.0).abs() < 1e-6);
    }
}
