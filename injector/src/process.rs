//! One process of Fortio or k6: starts it, waits for it, interrupts it, kills it.

use std::{
    fmt, io,
    io::Read,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::{
    consts::{SIGCHLD, SIGINT, SIGTERM},
    iterator::Signals,
};

/// Longest standard output that is kept. Fortio's JSON takes about 15 kB.
const STDOUT_LIMIT_BYTES: u64 = 4 << 20;
/// Number of bytes kept from the end of standard error.
const STDERR_TAIL_BYTES: usize = 2048;

/// Why the injector ended a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The injector received the signal with this name.
    Signal(&'static str),
    /// The process did not end by itself within this time.
    Overdue(Duration),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(name) => write!(f, "{name}"),
            Self::Overdue(limit) => write!(f, "did not end within {} s", limit.as_secs_f64()),
        }
    }
}

enum Event {
    ChildChanged,
    Stop(&'static str),
}

/// Receives signals: a child has ended (SIGCHLD), or the injector must end (SIGINT, SIGTERM).
pub(crate) struct Watch {
    events: Receiver<Event>,
    stop: Option<Stop>,
}

impl Watch {
    pub(crate) fn start() -> io::Result<Self> {
        let mut signals = Signals::new([SIGCHLD, SIGINT, SIGTERM])?;
        let (sender, events) = mpsc::channel();
        thread::spawn(move || {
            for signal in signals.forever() {
                let event = match signal {
                    SIGCHLD => Event::ChildChanged,
                    SIGINT => Event::Stop("SIGINT"),
                    _ => Event::Stop("SIGTERM"),
                };
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        Ok(Self { events, stop: None })
    }

    /// The first signal that asked the injector to end, if any.
    pub(crate) fn stopped(&mut self) -> Option<Stop> {
        while let Ok(event) = self.events.try_recv() {
            self.note(&event);
        }
        self.stop
    }

    fn note(&mut self, event: &Event) {
        if let Event::Stop(name) = event {
            self.stop.get_or_insert(Stop::Signal(name));
        }
    }

    /// Waits for `process` and returns as soon as it ends. On a signal to the injector, and after `limit`, the
    /// injector sends SIGINT. Fortio and k6 then write their result; on SIGTERM Fortio would lose it. The injector
    /// kills the process after another `grace`.
    pub(crate) fn wait(
        &mut self,
        process: &mut Process,
        limit: Duration,
        grace: Duration,
    ) -> io::Result<Ended> {
        let mut deadline = Instant::now() + limit;
        let mut stop = None;
        loop {
            if let Some(status) = process.child.try_wait()? {
                return Ok(Ended { status, stop });
            }
            if stop.is_none() && self.stop.is_some() {
                stop = self.stop;
                process.signal(Signal::INT)?;
                deadline = Instant::now() + grace;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(event) => self.note(&event),
                Err(RecvTimeoutError::Timeout) if stop.is_none() => {
                    stop = Some(Stop::Overdue(limit));
                    process.signal(Signal::INT)?;
                    deadline = Instant::now() + grace;
                }
                // The grace is over, or the thread that receives signals has ended.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    process.child.kill()?;
                    return Ok(Ended {
                        status: process.child.wait()?,
                        stop,
                    });
                }
            }
        }
    }
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// Why the injector ended it, if the injector did.
    pub(crate) stop: Option<Stop>,
}

/// A running Fortio or k6. Threads read its output from the start, so the process never blocks on a full pipe.
pub(crate) struct Process {
    child: Child,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
}

/// The output of a process.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr_tail: String,
}

impl Process {
    pub(crate) fn spawn(program: &Path, arguments: &[String], stdin: Stdio) -> io::Result<Self> {
        Self::start(Command::new(program).args(arguments), stdin)
    }

    /// Like [`Process::spawn`], with this environment only: the child inherits no variable of the injector.
    pub(crate) fn spawn_apart(
        program: &Path,
        arguments: &[String],
        environment: &[(&str, &str)],
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).env_clear();
        Self::start(command.envs(environment.iter().copied()), Stdio::null())
    }

    fn start(command: &mut Command, stdin: Stdio) -> io::Result<Self> {
        let mut child = command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // In the injector's process group, Fortio or k6 would get a terminal's ^C in addition to the injector's
            // SIGINT. A second SIGINT ends them immediately.
            .process_group(0)
            .spawn()?;
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        Ok(Self {
            child,
            stdout: thread::spawn(move || stdout.map(beginning).unwrap_or_default()),
            stderr: thread::spawn(move || stderr.map(end).unwrap_or_default()),
        })
    }

    /// The kernel reuses a process ID only after the parent has waited for the child, so this ID is still the child's.
    fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// The output. Call it only after [`Watch::wait`], otherwise it blocks until the process ends.
    pub(crate) fn output(self) -> Output {
        let text = |reader: JoinHandle<Vec<u8>>| {
            String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
        };
        Output {
            stdout: text(self.stdout),
            stderr_tail: text(self.stderr),
        }
    }
}

/// The output up to the limit. A longer result is cut and is then invalid JSON.
fn beginning(from: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    // Bytes before a read error are kept: the JSON parser detects an incomplete result.
    let _ = from.take(STDOUT_LIMIT_BYTES).read_to_end(&mut kept);
    kept
}

fn end(mut from: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        kept.extend_from_slice(&chunk[..length]);
        let surplus = kept.len().saturating_sub(STDERR_TAIL_BYTES);
        kept.drain(..surplus);
    }
    kept
}
