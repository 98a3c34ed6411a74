//! `frugality-operator`: reads its command line and wires the rooms together.

use std::{
    future::pending,
    net::{IpAddr, SocketAddr},
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool, atomic::Ordering},
    time::Duration,
};

use clap::{Parser, Subcommand, ValueEnum};
use frugality_operator::{
    api::{FrugalityBaseline, FrugalityBenchmark, FrugalityTrial},
    io::{
        check::{CheckError, check},
        controller,
        metrics::Metrics,
        observe::Places,
        probe::Prober,
        reader::Reader,
        server,
    },
    plan::facts::{Config, PodPolicy},
};
use k8s_openapi::api::core::v1::{LocalObjectReference, ResourceRequirements, Toleration};
use kube::{Api, Client, api::ListParams};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::{
    signal::{
        ctrl_c,
        unix::{SignalKind, signal},
    },
    time::sleep,
};
use tracing::{error, info, warn};
use tracing_subscriber::EnvFilter;

/// The operator of FrugalityBenchmark resources: measures joules per request.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Reconcile benchmarks until SIGTERM or SIGINT.
    Run(Box<Run>),
    /// Check an installation: the operator answers, and the API server knows every field of
    /// this version's resources. helm test runs it in the cluster.
    Check {
        /// The operator's address.
        #[arg(
            long,
            default_value = "http://frugality-operator.frugality-system.svc:8080"
        )]
        url: String,
    },
}

#[derive(Debug, clap::Args)]
struct Run {
    /// Namespace of the operator.
    #[arg(long, env = "POD_NAMESPACE", default_value = "frugality-system")]
    namespace: String,
    /// Name of the operator's pod, for events.
    #[arg(long, env = "POD_NAME")]
    pod_name: Option<String>,
    /// Address of the operator's pod. If the meter reports no time, injectors compare their clock with the operator's.
    #[arg(long, env = "POD_IP")]
    pod_ip: Option<IpAddr>,
    /// Image with Fortio and frugality-injector.
    #[arg(long, env = "FRUGALITY_INJECTOR_IMAGE")]
    injector_image: String,
    /// Image with k6 and frugality-injector, for scenarios and for requests that arrive at a rate (Open).
    #[arg(long, env = "FRUGALITY_INJECTOR_K6_IMAGE")]
    injector_k6_image: String,
    /// PostgreSQL image (tag ≥ 15) if a benchmark names none.
    #[arg(long, env = "FRUGALITY_DATABASE_IMAGE")]
    database_image: String,
    /// Requests and limits of the injector's container, as JSON.
    #[arg(long, env = "FRUGALITY_INJECTOR_RESOURCES", default_value = "{}", value_parser = json::<ResourceRequirements>)]
    injector_resources: ResourceRequirements,
    /// Requests and limits of the containers that prepare a trial, as JSON.
    #[arg(long, env = "FRUGALITY_HELPER_RESOURCES", default_value = "{}", value_parser = json::<ResourceRequirements>)]
    helper_resources: ResourceRequirements,
    /// Taints that the pods of benchmarks tolerate, as JSON.
    #[arg(long, env = "FRUGALITY_TOLERATIONS", default_value = "[]", value_parser = json::<Tolerations>)]
    tolerations: Tolerations,
    /// PriorityClass of the pods of benchmarks. Empty: the cluster's default.
    #[arg(long, env = "FRUGALITY_PRIORITY_CLASS_NAME", default_value = "")]
    priority_class_name: String,
    /// Pull Secrets for the pods of benchmarks, as JSON. Each namespace of a benchmark needs them.
    #[arg(long, env = "FRUGALITY_IMAGE_PULL_SECRETS", default_value = "[]", value_parser = json::<PullSecrets>)]
    image_pull_secrets: PullSecrets,
    /// Namespace of the meters' pods; the operator's own if absent.
    #[arg(long, env = "FRUGALITY_METER_NAMESPACE")]
    meter_namespace: Option<String>,
    /// Label selector of the meters' pods (frugality-meter or Kepler).
    #[arg(
        long,
        env = "FRUGALITY_METER_SELECTOR",
        default_value = "app.kubernetes.io/name=frugality-meter"
    )]
    meter_selector: String,
    /// Names of the meters' DaemonSets in that namespace, separated by commas; only their pods are read.
    #[arg(
        long,
        env = "FRUGALITY_METER_DAEMON_SETS",
        value_delimiter = ',',
        default_value = "frugality-meter"
    )]
    meter_daemon_sets: Vec<String>,
    /// Port of the meters.
    #[arg(long, env = "FRUGALITY_METER_PORT", default_value_t = 28282)]
    meter_port: u16,
    /// Upper limit of a measured node's power, in watts. The operator refuses readings that imply more.
    #[arg(long, env = "FRUGALITY_MAX_NODE_WATTS")]
    max_node_watts: Option<f64>,
    /// Where to serve /metrics, /healthz, /readyz and /time.
    #[arg(long, env = "FRUGALITY_LISTEN", default_value = "[::]:8080")]
    listen: SocketAddr,
    /// What to log, for example info or frugality_operator=debug.
    #[arg(long, env = "FRUGALITY_LOG", default_value = "info")]
    log: String,
    /// How to log.
    #[arg(long, env = "FRUGALITY_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

fn json<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text)
}

/// Not a bare list: clap would take that for an argument that is given several times.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
struct Tolerations(Vec<Toleration>);

/// As for [`Tolerations`].
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
struct PullSecrets(Vec<LocalObjectReference>);

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

/// Why the operator ended.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("no connection to a cluster: {0}")]
    Client(#[source] Box<kube::Error>),
    #[error("the meters' client: {0}")]
    Meters(#[from] reqwest::Error),
    #[error("cannot serve on {address}: {source}")]
    Serve {
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error(
        "the cluster does not know frugality.dev's resources ({0}); install the chart with crds.install=true, or apply crds/ first"
    )]
    NoCrd(#[source] Box<kube::Error>),
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error("--log: {0}")]
    Log(#[from] tracing_subscriber::filter::ParseError),
}

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(options) => run(*options).await,
        Command::Check { url } => check_installation(&url).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            error!("{failure}");
            eprintln!("frugality-operator: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Run) -> Result<(), Failure> {
    let logs = tracing_subscriber::fmt().with_env_filter(EnvFilter::try_new(&options.log)?);
    match options.log_format {
        LogFormat::Text => logs.init(),
        LogFormat::Json => logs.json().init(),
    }
    let client = client().await?;
    let metrics = Metrics::default();
    let ready = Arc::new(AtomicBool::new(false));
    let reader = Reader::new(options.meter_port)?.counting(metrics.clone());
    let places = Places {
        meter_namespace: options
            .meter_namespace
            .unwrap_or_else(|| options.namespace.clone()),
        namespace: options.namespace,
        meter_selector: options.meter_selector,
        meter_daemon_sets: options.meter_daemon_sets,
        tolerations: options.tolerations.0.clone(),
    };
    let config = Config {
        injector_image: options.injector_image,
        injector_k6_image: options.injector_k6_image,
        database_image: options.database_image,
        meter_port: options.meter_port,
        max_node_watts: options.max_node_watts,
        time_url: options
            .pod_ip
            .map(|ip| format!("http://{}/time", SocketAddr::new(ip, options.listen.port()))),
        pods: PodPolicy {
            injector_resources: options.injector_resources,
            helper_resources: options.helper_resources,
            tolerations: options.tolerations.0,
            priority_class_name: Some(options.priority_class_name).filter(|name| !name.is_empty()),
            image_pull_secrets: options.image_pull_secrets.0,
        },
    };
    info!(
        version = env!("CARGO_PKG_VERSION"),
        ?places,
        ?config,
        "starting"
    );
    let serving = tokio::spawn(server::serve(
        options.listen,
        metrics.clone(),
        ready.clone(),
    ));
    tokio::spawn(reader.clone().run());
    answering(&client).await?;
    ready.store(true, Ordering::Relaxed);
    let context = controller::PassContext::new(
        client,
        places,
        config,
        reader,
        Prober::new()?,
        metrics,
        options.pod_name,
    );
    tokio::select! {
        () = controller::run(Arc::new(context)) => Ok(()),
        () = overdue() => {
            warn!("a pass did not end in time: the operator ends without it");
            Ok(())
        }
        served = serving => Err(Failure::Serve {
            address: options.listen,
            source: served.map_or_else(std::io::Error::other, |result| {
                result.err().unwrap_or_else(|| std::io::Error::other("ended"))
            }),
        }),
    }
}

/// Once it is asked to end, the operator has this long: less than a pod's usual grace of 30 s. An API
/// server that never answers would keep it for ever, and nothing is lost: all state is in the cluster.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Returns when the operator was asked to end and had its time.
async fn overdue() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        Ok(()) = ctrl_c() => {}
    }
    sleep(LAST_WORDS).await;
}

/// Longest silence of the API server, after which the operator closes a connection and fails its requests. It is longer than
/// the time after which a watch without any event ends by itself (290 s and a margin, kube_runtime::watcher).
const LONGEST_SILENCE: Duration = Duration::from_secs(330);

async fn client() -> Result<Client, Failure> {
    let failed = |source| Failure::Client(Box::new(source));
    let config = kube::Config::infer().await;
    let mut config = config.map_err(|source| failed(kube::Error::InferConfig(source)))?;
    config.read_timeout = Some(LONGEST_SILENCE);
    // Otherwise a request over a connection that was silent for almost as long would fail at once.
    config.reset_reader_on_write = true;
    Client::try_from(config).map_err(failed)
}

async fn check_installation(url: &str) -> Result<(), Failure> {
    check(&client().await?, url).await?;
    println!(
        "the operator at {url} is ready, and the API server knows all that this version knows"
    );
    Ok(())
}

/// The API server answers and knows all resources.
async fn answering(client: &Client) -> Result<(), Failure> {
    let one = ListParams::default().limit(1);
    let no_crd = |source| Failure::NoCrd(Box::new(source));
    Api::<FrugalityBenchmark>::all(client.clone())
        .list_metadata(&one)
        .await
        .map_err(no_crd)?;
    Api::<FrugalityTrial>::all(client.clone())
        .list_metadata(&one)
        .await
        .map_err(no_crd)?;
    Api::<FrugalityBaseline>::all(client.clone())
        .list_metadata(&one)
        .await
        .map_err(no_crd)?;
    Ok(())
}
