//! Computes many independent cases on all processors.

use std::{panic::resume_unwind, thread};

/// The results of `work` for each number below `count`, in order. They do not depend on the number of threads.
pub fn map<R: Send>(count: u64, work: impl Fn(u64) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, |n| n.get() as u64);
    thread::scope(|scope| {
        let work = &work;
        let parts: Vec<_> = (0..threads)
            .map(|part| {
                let range = count * part / threads..count * (part + 1) / threads;
                scope.spawn(move || range.map(work).collect::<Vec<R>>())
            })
            .collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_number_is_worked_on_once_in_order() {
        for count in [0, 1, 2, 7, 1000] {
            assert_eq!(super::map(count, |n| n), (0..count).collect::<Vec<_>>());
        }
    }
}
