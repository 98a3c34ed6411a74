//! Runs the command that the command line names.

use std::process::ExitCode;
use std::thread;

use clap::Parser;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};

use crate::bridge::{Bridge, BridgeError};
use crate::calibrate::{self, CalibrateError, InstrumentUncertainty};
use crate::cgroup::{CgroupError, CgroupReader};
use crate::cli::{
    self, CommandLine, MeterArguments, MeterCommand, MeterSettings, MeterSettingsError,
};
use crate::conditions::ConditionReader;
use crate::feed::Feed;
use crate::pods::PodNames;
use crate::power::board::boards_table;
use crate::power::choice::{ChoiceError, choose};
use crate::sampler::NodeSampler;
use crate::{probe, server};

/// Stack of the thread that reads. The kernel gives it memory only for the pages that are used.
const SAMPLER_STACK_BYTES: usize = 256 << 10;

/// Why the meter could not start or had to stop.
#[derive(Debug, thiserror::Error)]
enum MeterError {
    /// The flags contradict each other, or a flag is missing.
    #[error(transparent)]
    Settings(#[from] MeterSettingsError),
    /// The node has no usable power source.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The first reading of CPU time failed.
    #[error(transparent)]
    FirstReading(#[from] CgroupError),
    /// The bridge can't create Kepler's tree.
    #[error(transparent)]
    Bridge(#[from] BridgeError),
    /// The calibration has nothing to fit.
    #[error(transparent)]
    Calibrate(#[from] CalibrateError),
    /// The meter can't listen on this address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: std::net::SocketAddr,
        source: std::io::Error,
    },
    /// The runtime, the signal handler or the server failed.
    #[error("the server failed: {0}")]
    Server(#[from] std::io::Error),
}

/// Executes the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let outcome = match CommandLine::parse().command {
        MeterCommand::Run(arguments) => run(arguments),
        MeterCommand::Probe(arguments) => arguments
            .into_settings()
            .map_err(MeterError::from)
            .and_then(|settings| on_one_thread(probe(settings))),
        MeterCommand::Calibrate(arguments) => {
            let duration = arguments.duration;
            arguments
                .into_settings()
                .map_err(MeterError::from)
                .and_then(|settings| on_one_thread(calibrate(settings, duration)))
        }
        MeterCommand::Boards => {
            print!("{}", boards_table());
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

fn run(arguments: MeterArguments) -> Result<(), MeterError> {
    cli::start_logging(&arguments);
    let settings = arguments.into_settings()?;
    on_one_thread(measure_and_serve(settings))
}

/// One thread serves and polls, which keeps the meter small on a board of 1 GB.
fn on_one_thread(work: impl Future<Output = Result<(), MeterError>>) -> Result<(), MeterError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}

async fn measure_and_serve(settings: MeterSettings) -> Result<(), MeterError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let chosen = choose(&settings.power, &settings.surroundings)?;
    let source = chosen.supply.source().clone();
    let bridge = settings
        .bridge
        .as_deref()
        .map(|directory| {
            let (lag, refresh) = (chosen.supply.lag(), chosen.supply.stated_refresh());
            Bridge::open(directory, source.provenance, lag, refresh)
        })
        .transpose()?;
    let reader = CgroupReader::new(&settings.cgroup_fs, &settings.cgroup_root)?
        .with_processors(&settings.surroundings.procfs);
    let (mut sampler, first) = NodeSampler::start(
        Feed::start(reader, chosen),
        bridge,
        PodNames::new(settings.pod_logs.clone()),
        ConditionReader::find(&settings.surroundings.sysfs, &settings.surroundings.procfs),
        (settings.surroundings.cpus, settings.interval),
    )?;
    let listener = listen(&settings).await?;
    tracing::info!(
        address = %listener.local_addr()?,
        node = settings.node_name,
        cpus = settings.surroundings.cpus,
        source = source.name,
        path = source.path,
        "serving"
    );
    let (publish, published) = watch::channel(first);
    let (running, sampling) = oneshot::channel::<()>();
    thread::Builder::new()
        .name("sampler".into())
        .stack_size(SAMPLER_STACK_BYTES)
        .spawn(move || {
            // Dropped with the thread, also if it panics.
            let _running = running;
            sampler.run(&publish);
        })?;
    // The end of this future ends the process. The process does not wait for open keep-alive connections: a
    // scraper discards a scrape that is cut off.
    tokio::select! {
        _ = sampling => {}
        outcome = server::serve(listener, settings, published) => outcome?,
        _ = terminate.recv() => tracing::info!("SIGTERM, stopping"),
        _ = interrupt.recv() => tracing::info!("SIGINT, stopping"),
    }
    Ok(())
}

async fn listen(settings: &MeterSettings) -> Result<TcpListener, MeterError> {
    let address = settings.listen;
    let bound = frugality_listener::bind(address).await;
    bound.map_err(|source| MeterError::Listen { address, source })
}

async fn probe(settings: MeterSettings) -> Result<(), MeterError> {
    print!("{}", probe::report(&settings).await);
    Ok(())
}

async fn calibrate(
    settings: MeterSettings,
    duration: std::time::Duration,
) -> Result<(), MeterError> {
    let chosen = choose(&settings.power, &settings.surroundings)?;
    let source = chosen.supply.source().clone();
    let reader = CgroupReader::new(&settings.cgroup_fs, &settings.cgroup_root)?;
    let points =
        calibrate::measure(Feed::start(reader, chosen), settings.interval, duration).await?;
    let fit = calibrate::fit(&points)?;
    let instrument = source
        .relative_uncertainty
        .map(|share| InstrumentUncertainty {
            share,
            fixed_watts: source.fixed_uncertainty_watts,
        });
    print!("{}", fit.report(instrument));
    Ok(())
}
