//! The program: what its command line asks for.

use std::process::ExitCode;

use clap::Parser;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cli::{self, Cli, Command, RunArguments};
use crate::sampler::Sampler;
use crate::{cgroup, power, server};

/// Why the meter could not start or had to stop.
#[derive(Debug, thiserror::Error)]
enum MeterError {
    /// The flags contradict each other or leave something out.
    #[error(transparent)]
    Settings(#[from] cli::SettingsError),
    /// The first snapshot could not be taken.
    #[error(transparent)]
    FirstSnapshot(#[from] cgroup::CgroupError),
    /// The listen address is not to be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: std::net::SocketAddr,
        source: std::io::Error,
    },
    /// The runtime, the signal handler or the server failed.
    #[error("the server failed: {0}")]
    Server(#[from] std::io::Error),
}

/// Does what the command line of this process asks for.
#[must_use]
pub fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(arguments) => run(arguments),
        Command::Boards => {
            print!("{}", power::boards_table());
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("frugality-meter: {error}");
            ExitCode::FAILURE
        }
    }
}

/// One thread does everything: a sample takes well under a millisecond, and one stack keeps the
/// meter small on a board of 1 GB.
fn run(arguments: RunArguments) -> Result<(), MeterError> {
    cli::start_logging(&arguments);
    let settings = arguments.into_settings()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(measure_and_serve(settings))
}

async fn measure_and_serve(settings: cli::Settings) -> Result<(), MeterError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (mut sampler, first) = Sampler::start(&settings, settings.model.clone())?;
    let listener =
        TcpListener::bind(settings.listen)
            .await
            .map_err(|source| MeterError::Listen {
                address: settings.listen,
                source,
            })?;
    tracing::info!(
        address = %listener.local_addr()?,
        node = settings.node_name,
        cpus = settings.cpus,
        "serving"
    );
    let (publish, published) = watch::channel(first);
    // Ending this future ends the process: open keep-alive connections are not waited for, as a
    // scrape that is cut off is a scrape that is not used.
    tokio::select! {
        () = sampler.run(settings.interval, publish) => {}
        outcome = server::serve(listener, settings, published) => outcome?,
        _ = terminate.recv() => tracing::info!("SIGTERM, stopping"),
        _ = interrupt.recv() => tracing::info!("SIGINT, stopping"),
    }
    Ok(())
}
