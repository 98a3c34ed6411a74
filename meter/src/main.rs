//! `frugality-meter`: the node meter.
//!
//! Once an interval it reads the node's and its pods' CPU time from the cgroups ([`cgroup`]),
//! asks a power source how much energy the node drew ([`power`]), shares that energy among the
//! pods ([`attribution`]), gives the pods their names ([`pods`]) and publishes the whole as one
//! immutable snapshot ([`sampler`]), which the HTTP server ([`server`]) writes in Kepler's
//! format ([`exposition`]).

mod attribution;
mod cgroup;
mod cli;
mod exposition;
mod pods;
mod power;
mod sampler;
mod server;

use std::process::ExitCode;

use clap::Parser;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cli::{Cli, Command, RunArguments};
use crate::sampler::Sampler;

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

fn main() -> ExitCode {
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
