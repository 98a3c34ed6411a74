//! Calls benchmarks at rest to a pass: those whose turn it is, and from time to time all.

use std::{sync::Arc, time::Duration};

use kube::{Client, runtime::reflector::Store};
use tokio::{sync::Notify, time::MissedTickBehavior};
use tracing::warn;

use crate::{
    io::{
        known::KnownBenchmark,
        memory::Memory,
        observe::{ObserveError, Places, nodes_and_locks},
    },
    plan::{facts::Peer, placement::queue::waits},
};

/// Time between two looks at the queue while no lock changes. They find new nodes and deleted benchmarks.
const QUEUE_INTERVAL: Duration = Duration::from_secs(10);
/// Longest time of a look. A longer look hangs, because the client itself retries for minutes.
const LOOK_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two calls of all benchmarks. A benchmark at rest needs no request for a call. When kube's reflector
/// lists all benchmarks again, it announces the new versions before its store has them.
const ROLL_CALL_INTERVAL: Duration = Duration::from_secs(60);

/// Signals between the passes and the calls.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// A pass has taken or released a lock.
    pub(crate) locks_changed: Notify,
    /// The rest of some benchmarks has ended.
    pub(crate) woken: Notify,
}

/// Looks at the queue, and what it sees.
pub(crate) struct Caller {
    pub(crate) client: Client,
    pub(crate) places: Places,
    pub(crate) memory: Arc<Memory>,
    pub(crate) signals: Arc<Signals>,
    /// All benchmarks of the cluster.
    pub(crate) known: Store<KnownBenchmark>,
}

impl Caller {
    /// Calls until the task is aborted.
    pub(crate) async fn run(self) {
        call_for_ever(&self.signals, || self.look()).await;
    }

    /// Looks at the nodes and at the whole queue. Ends the rest of those whose turn it is, and of those that ended
    /// because of the nodes as they were.
    async fn look(&self) -> Result<(), ObserveError> {
        if !self.memory.needs_nodes() {
            return Ok(());
        }
        let (nodes, locks) = nodes_and_locks(&self.client, &self.places).await?;
        let known = self.known.state();
        let peers: Vec<Arc<Peer>> = known.iter().map(|it| it.peer.clone()).collect();
        let waits = waits(&peers, &locks, &nodes);
        if self.memory.look(nodes, &waits, &locks) {
            self.signals.woken.notify_one();
        }
        Ok(())
    }
}

/// Looks at each change of the locks, and at least every [`QUEUE_INTERVAL`]. Calls the roll every [`ROLL_CALL_INTERVAL`].
async fn call_for_ever<F>(signals: &Signals, look: impl Fn() -> F)
where
    F: Future<Output = Result<(), ObserveError>>,
{
    let mut ticks = tokio::time::interval(QUEUE_INTERVAL);
    let mut roll_calls = tokio::time::interval(ROLL_CALL_INTERVAL);
    for ticks in [&mut ticks, &mut roll_calls] {
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = signals.locks_changed.notified() => {}
            _ = roll_calls.tick() => signals.woken.notify_one(),
        }
        match tokio::time::timeout(LOOK_TIMEOUT, Box::pin(look())).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "cannot look at the queue"),
            Err(_) => warn!("the look at the queue took too long"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        future::{pending, ready},
    };

    use tokio::time::{Instant, timeout};

    use super::*;

    /// Calls for this time. Each look takes as long as `look` says by the number of the look.
    async fn call<F>(signals: &Signals, seconds: u64, look: impl Fn() -> F)
    where
        F: Future<Output = Result<(), ObserveError>>,
    {
        let time = Duration::from_secs(seconds);
        let ended = timeout(time, call_for_ever(signals, look)).await;
        assert!(ended.is_err(), "the calls have ended");
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_without_an_answer_is_given_up_and_the_next_looks_are_in_time() {
        let (began, looks) = (Instant::now(), Cell::new(0));
        let second = Cell::new(None);
        let look = || async {
            looks.set(looks.get() + 1);
            match looks.get() {
                // As if the list of the nodes never came.
                1 => pending().await,
                2 => second.set(Some(began.elapsed())),
                _ => {}
            }
            Ok(())
        };
        call(&Signals::default(), 95, look).await;
        assert_eq!(second.get(), Some(LOOK_TIMEOUT));
        assert!(looks.get() >= 7, "{} looks", looks.get());
    }

    #[tokio::test(start_paused = true)]
    async fn all_benchmarks_are_called_every_minute_though_no_look_finds_a_change() {
        let (signals, calls) = (Signals::default(), Cell::new(Vec::new()));
        let began = Instant::now();
        let called = async {
            loop {
                signals.woken.notified().await;
                let mut seconds = calls.take();
                seconds.push(began.elapsed().as_secs());
                calls.set(seconds);
            }
        };
        tokio::select! {
            () = call(&signals, 200, || ready(Ok(()))) => {}
            () = called => {}
        }
        assert_eq!(calls.take(), [0, 60, 120, 180]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_of_the_locks_is_looked_at_without_a_wait() {
        let (signals, looks) = (Signals::default(), Cell::new(0));
        let look = || {
            looks.set(looks.get() + 1);
            ready(Ok(()))
        };
        let changed = async {
            // After the looks at the start.
            tokio::time::sleep(Duration::from_secs(5)).await;
            let before = looks.get();
            signals.locks_changed.notify_one();
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(looks.get(), before + 1);
        };
        tokio::select! {
            () = call(&signals, 20, look) => {}
            () = changed => {}
        }
    }
}
