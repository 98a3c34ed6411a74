//! Times of events. `kubectl describe` sorts only by `lastTimestamp`, which has whole seconds, and the sort is not
//! stable. Several events within one second would therefore appear in any order.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;

/// The last second in which each benchmark has an event, without past seconds.
#[derive(Clone, Debug, Default)]
pub struct Moments(Arc<Mutex<HashMap<String, i64>>>);

impl Moments {
    /// The whole second for a benchmark's next event: the current second, or the second after its last event.
    #[must_use]
    pub fn next(&self, benchmark_uid: &str, now: Timestamp) -> Timestamp {
        let second = now.as_second();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.retain(|_, at| *at >= second);
        let at = last.get(benchmark_uid).map_or(second, |at| at + 1);
        last.insert(benchmark_uid.to_owned(), at);
        Timestamp::from_second(at).unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_second_keep_their_order() {
        let moments = Moments::default();
        let at = |milliseconds: i64| Timestamp::from_millisecond(milliseconds).unwrap();
        let next = |uid: &str, now: i64| moments.next(uid, at(now)).as_second();
        assert_eq!(next("a", 10_100), 10);
        assert_eq!(next("a", 10_300), 11);
        assert_eq!(next("b", 10_400), 10);
        assert_eq!(next("a", 10_900), 12);
        assert_eq!(next("a", 11_200), 13);
        // The true second again, if it is later.
        assert_eq!(next("a", 20_000), 20);
        assert_eq!(
            moments.0.lock().unwrap().len(),
            1,
            "past seconds are removed"
        );
    }
}
