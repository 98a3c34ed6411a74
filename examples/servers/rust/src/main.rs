//! Candidate server in Rust: an address book in PostgreSQL, over HTTP and CardDAV.
//!
//! `examples/servers/README.md` lists its answers, and the reasons why the Python server gives the same answers.
//! One thread runs everything, as in the article that `examples/rust-vs-python.yaml` repeats.

mod authentication;
mod contacts;
mod database;
mod dav;
mod properties;
mod report;
mod settings;
mod vcard;
mod xml;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::database::Database;
use crate::settings::Settings;

/// Time limit for requests in flight after SIGTERM, in seconds. The process ends within 5 s.
const GRACE_SECONDS: u64 = 4;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .init();
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The reason why the server could not start or continue.
#[derive(Debug, thiserror::Error)]
enum ServerError {
    /// An environment variable is missing or wrong.
    #[error(transparent)]
    Settings(#[from] settings::SettingsError),
    /// The database did not become usable in time.
    #[error(transparent)]
    Database(#[from] database::DatabaseError),
    /// The signal handlers could not be set.
    #[error("cannot listen for signals: {0}")]
    Signal(#[source] std::io::Error),
    /// The port could not be opened.
    #[error("cannot listen on port {port}: {source}")]
    Listen {
        /// The port in the settings.
        port: u16,
        /// The system's error.
        source: std::io::Error,
    },
    /// The listening socket failed later.
    #[error("the server stopped: {0}")]
    Serve(#[source] std::io::Error),
}

async fn run() -> Result<(), ServerError> {
    let settings = Settings::from_environment()?;
    let mut stop = StopSignal::new().map_err(ServerError::Signal)?;

    // SIGTERM ends process 1 of a container only if the process handles it. The wait for the database must
    // therefore end on SIGTERM too.
    let database = tokio::select! {
        database = Database::connect(&settings) => Arc::new(database?),
        () = stop.received() => return Ok(()),
    };

    let port = settings.port;
    // Accepts IPv4 too, if the machine has IPv6.
    let both = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await;
    let bound = match both {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
    };
    let listener = bound
        .map_err(|source| ServerError::Listen { port, source })?
        .tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::warn!("cannot set TCP_NODELAY: {error}");
            }
        });
    tracing::info!(
        "serving {} contacts on port {port} with a pool of {} connections",
        database.rows(),
        settings.pool_size
    );

    let (stopping, stopped) = oneshot::channel();
    let router = contacts::router(database, settings.credentials);
    let server = axum::serve(listener, router).with_graceful_shutdown(async move {
        stop.received().await;
        tracing::info!("stopping: finishing the requests in flight");
        // The send fails only if the server has already ended.
        let _ = stopping.send(());
    });
    tokio::select! {
        result = server => result.map_err(ServerError::Serve),
        () = grace(stopped) => {
            tracing::warn!("requests still in flight after {GRACE_SECONDS} s were cut");
            Ok(())
        }
    }
}

/// Ends `GRACE_SECONDS` after the server began to stop.
async fn grace(stopped: oneshot::Receiver<()>) {
    if stopped.await.is_err() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(Duration::from_secs(GRACE_SECONDS)).await;
}

/// SIGTERM from Kubernetes, or SIGINT from a terminal.
struct StopSignal {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignal {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => (),
            _ = self.interrupt.recv() => (),
        }
    }
}
