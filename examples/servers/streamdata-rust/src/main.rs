//! Candidate servers in Rust: a service that stores the readings of devices, and a balancer in front of it.
//!
//! `examples/servers/README.md` lists their answers, and the differences from the Go servers.

mod answers;
mod backends;
mod balance;
mod headers;
mod payload;
mod serve;
mod settings;
mod watch;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use clap::{Parser, Subcommand};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::settings::{Listen, Service};

/// The time limit for requests in flight after SIGTERM, in seconds.
const GRACE_SECONDS: u64 = 1;

/// Stores the readings of devices, or balances the load over services that store them.
#[derive(Debug, Parser)]
#[command(name = "streamdata-rust", version, disable_help_subcommand = true)]
struct Arguments {
    /// The role of this process.
    #[command(subcommand)]
    role: Role,
}

/// The role of a process.
#[derive(Debug, Clone, Copy, Subcommand)]
enum Role {
    /// Stores the last readings of each device: POST /streamdata, GET /streamdata/{deviceId}, GET /healthz
    #[command(after_help = SERVE_HELP)]
    Serve,
    /// Forwards to the service's addresses in turn; GET /stats and GET /healthz are its own
    #[command(after_help = BALANCE_HELP)]
    Balance,
}

const SERVE_HELP: &str = "Environment:
  PORT            TCP port to listen on (default 8080)
  LISTEN_ADDRESS  IP address to listen on (default 0.0.0.0)";

const BALANCE_HELP: &str = "Environment:
  SERVICE_HOST    host of the service, resolved every second: each address is a backend; several
                  hosts separated by commas
  SERVICE_PORT    TCP port of the service
  PORT            TCP port to listen on (default 8080)
  LISTEN_ADDRESS  IP address to listen on (default 0.0.0.0)";

fn main() -> ExitCode {
    let Arguments { role } = Arguments::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .init();
    match start(role) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The reason why the process could not start or continue.
#[derive(Debug, thiserror::Error)]
enum ServerError {
    /// An environment variable is missing or wrong.
    #[error(transparent)]
    Settings(#[from] settings::SettingsError),
    /// The threads could not be started.
    #[error("cannot start the threads: {0}")]
    Runtime(#[source] std::io::Error),
    /// The signal handlers could not be set.
    #[error("cannot listen for signals: {0}")]
    Signal(#[source] std::io::Error),
    /// The port could not be opened.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address in the settings.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// The listening socket failed later.
    #[error("the server stopped: {0}")]
    Serve(#[source] std::io::Error),
}

fn start(role: Role) -> Result<(), ServerError> {
    let listen = Listen::from_environment()?;
    let service = match role {
        Role::Serve => None,
        Role::Balance => Some(Service::from_environment()?),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(ServerError::Runtime)?;
    let result = runtime.block_on(async {
        let router = match service {
            None => serve::router(),
            Some(service) => balance::router(service),
        };
        run(listen, router).await
    });
    // A hanging lookup must not keep the process running.
    runtime.shutdown_background();
    result
}

async fn run(listen: Listen, router: Router) -> Result<(), ServerError> {
    let mut stop = StopSignal::new().map_err(ServerError::Signal)?;
    let address = listen.address();
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| ServerError::Listen { address, source })?
        .tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::warn!("cannot set TCP_NODELAY: {error}");
            }
        });
    tracing::info!("listening on {address}");

    let (stopping, stopped) = oneshot::channel();
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
