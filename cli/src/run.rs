//! From an image to a verdict: writes a benchmark, prints how long it takes, creates it and follows it.

mod budget;
mod deployment;
mod draft;

use clap::ValueEnum as _;
use frugality_operator::api::{FrugalityBenchmark, Reason};
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;
use serde_json::Value;

pub use self::budget::{BudgetError, ImageLimit};
use self::{
    deployment::{DeploymentError, Template},
    draft::Draft,
};
use crate::{
    cluster::{Access, Cluster, ClusterError},
    estimate,
    gate::is_fixed,
    input::duration_text,
    manifest::{self, Checked, ManifestError},
    watch::{Followed, WatchError, follow},
};

/// Help below the options.
pub const HELP: &str = "\
Budgets, each for IMAGE:
  mJ=5 or J=0.005  most energy of the measured node per successful request, gross (at the maximum rate, gross decides)
  ms=20            longest mean time of a successful request
  rps=500          fewest successful requests per second
  errors=0.01      largest share of requests without an expected answer
  ratio=1.05       largest ratio of IMAGE's energy to the energy of --against

If the measured node has no power meter, its joules are computed from CPU use. A budget on them then needs --allow-modelled.

Without a budget nothing is judged: the figures are printed, and the exit code is 15.

The benchmark is created, and never replaced. If a benchmark of this name exists with the same settings, the command follows
its run. The container must answer 200 at /healthz when it can work, or at --readiness-path, and listen on the port in $PORT.

Exit codes: the ones of watch and gate (docs/cli.md has all of them)

Examples:
  # How many joules does a request take?
  kubectl frugality run ghcr.io/you/shop:1.3 --path /products
  # Against the release before, as a file for Git
  kubectl frugality run ghcr.io/you/shop:1.3 --against ghcr.io/you/shop:1.2 --budget ratio=1.05 --dry-run -o yaml
  # With the settings of a Deployment, and a new image
  kubectl frugality run ghcr.io/you/shop:1.3 --from-deployment shop --namespace shop --budget mJ=5 --budget ms=20";

/// The options of `kubectl frugality run`.
#[derive(Clone, Debug, clap::Args)]
#[allow(
    clippy::struct_field_names,
    reason = "--dry-run is the name that kubectl has"
)]
pub struct RunOptions {
    /// Image to measure. Default: the image of --from-deployment.
    #[arg(required_unless_present = "from_deployment")]
    image: Option<String>,
    /// Image to compare with. May be repeated.
    #[arg(long, value_name = "IMAGE")]
    against: Vec<String>,
    /// Name of the benchmark. Default: from the image's name.
    #[arg(long)]
    name: Option<String>,
    /// Path and query of the request that is sent again and again.
    #[arg(long, default_value = "/")]
    path: String,
    /// Path that answers 200 when the server can work. Default: /healthz; with --from-deployment, its readiness probe.
    #[arg(long, value_name = "PATH")]
    readiness_path: Option<String>,
    /// Port on which the servers listen, above 1023. Default: 8080; with --from-deployment, its port.
    #[arg(long)]
    port: Option<i32>,
    /// Number of connections.
    #[arg(long, default_value_t = draft::CONNECTIONS)]
    connections: i32,
    /// Number of trials per image. At least 5 for a report, more for narrower intervals.
    #[arg(long, default_value_t = draft::BLOCKS)]
    blocks: i32,
    /// Length of each measured window, for example 60s. Default: 60s.
    #[arg(long, value_parser = duration_text)]
    duration: Option<String>,
    /// Limit that IMAGE must keep. May be repeated.
    #[arg(long = "budget", value_name = "UNIT=LIMIT", value_parser = ImageLimit::parse)]
    budgets: Vec<ImageLimit>,
    /// Judge joules also if they are computed from CPU use, without a power meter (`spec.energy.allowModelled`).
    #[arg(long)]
    allow_modelled: bool,
    /// Deployment whose settings all images get: environment, port, resources, pull secrets.
    #[arg(long, value_name = "NAME")]
    from_deployment: Option<String>,
    /// Print the benchmark and create nothing. `server`: the API server checks it too. Without a value: `client`.
    #[arg(
        long,
        value_enum,
        value_name = "WHERE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "client"
    )]
    dry_run: Option<DryRun>,
    /// Form of the benchmark that --dry-run prints.
    #[arg(long, short, value_enum, default_value_t = Form::Yaml, requires = "dry_run")]
    output: Form,
    /// Exit with 0 when the benchmark is created. Do not wait for the verdict.
    #[arg(long, conflicts_with = "dry_run")]
    detach: bool,
    /// The cluster.
    #[command(flatten)]
    access: Access,
}

/// Where a benchmark that is not created is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DryRun {
    /// On this machine, without a cluster.
    Client,
    /// Also by the API server.
    Server,
}

/// The form of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// A file for Git.
    Yaml,
    /// The same as JSON.
    Json,
}

/// Why an image was not measured.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The cluster refused.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The benchmark would be refused.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The budgets contradict each other or the images.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The Deployment has no settings to copy.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The run can't be followed.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// A benchmark with this name and other settings exists.
    #[error(
        "FrugalityBenchmark {name} exists in namespace {namespace} with other settings. Choose another name with --name, or delete it: kubectl delete fb {name} --namespace {namespace}"
    )]
    Exists {
        /// Name of the benchmark.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// The value of --dry-run after a blank in place of `=`.
    #[error("`{0}` is not an image: write --dry-run={0}, and the image")]
    NoImage(String),
    /// Not representable.
    #[error("cannot write YAML: {0}")]
    Yaml(#[from] serde_yaml::Error),
    /// Not representable.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// How the command ended.
#[derive(Clone, Debug)]
pub enum Done {
    /// The text for standard output. Nothing was followed.
    Printed(String),
    /// With the run.
    Followed(Followed),
}

impl RunOptions {
    /// Writes the benchmark, creates it and follows it.
    pub async fn run(&self) -> Result<Done, RunError> {
        let image = self.image.as_deref().unwrap_or_default();
        if self.dry_run.is_some() && DryRun::from_str(image, false).is_ok() {
            return Err(RunError::NoImage(image.to_owned()));
        }
        let template = match &self.from_deployment {
            None => Template::default(),
            Some(name) => {
                let cluster = self.access.connect().await?;
                let text = cluster.get::<Deployment>(name).await?;
                Template::of(&serde_json::from_str(&text)?)?
            }
        };
        for note in &template.left_out {
            eprintln!("left out: {note}");
        }
        let (object, checked) = self.draft(&template).checked()?;
        let name = checked.benchmark.name_any();
        eprint!("{}", estimate::text(&name, &checked.forecast));
        if self.dry_run == Some(DryRun::Client) {
            return Ok(Done::Printed(self.form(&object)?));
        }
        let cluster = self.access.connect().await?;
        let is_new = self.create(&cluster, &object, &checked).await?;
        if self.dry_run.is_some() {
            return Ok(Done::Printed(self.form(&object)?));
        }
        let namespace = &cluster.namespace;
        eprintln!(
            "{}",
            if is_new {
                format!("created FrugalityBenchmark {name} in namespace {namespace}")
            } else {
                format!(
                    "FrugalityBenchmark {name} exists in namespace {namespace} with these settings"
                )
            }
        );
        let images = checked.benchmark.spec.candidates.iter();
        let mut images = images.map(|candidate| &candidate.server.image);
        if let Some(tag) = images.find(|image| !is_fixed(image)).filter(|_| !is_new) {
            eprintln!(
                "warning: the existing run is used. If {tag} was pushed again, the new image is not measured. Use another tag, or a digest (@sha256:…)."
            );
        }
        if self.detach {
            return Ok(Done::Printed(format!(
                "To follow it: kubectl frugality watch {name} --namespace {namespace}\n"
            )));
        }
        let followed = follow(&cluster, &name).await?;
        if followed.is_because(Reason::ModelledPowerNotAllowed) {
            eprintln!(
                "To judge modelled joules, delete the benchmark (kubectl delete fb {name} --namespace {namespace}) and repeat the command with --allow-modelled."
            );
        }
        Ok(Done::Followed(followed))
    }

    fn draft<'a>(&'a self, template: &'a Template) -> Draft<'a> {
        let image = self.image.as_deref().unwrap_or(&template.image);
        Draft {
            name: self.name.as_deref(),
            namespace: self.access.namespace.as_deref(),
            images: std::iter::once(image)
                .chain(self.against.iter().map(String::as_str))
                .collect(),
            server: &template.server,
            path: &self.path,
            readiness_path: self.readiness_path.as_deref(),
            port: self.port,
            connections: self.connections,
            blocks: self.blocks,
            duration: self.duration.as_deref(),
            budgets: &self.budgets,
            allows_modelled: self.allow_modelled,
        }
    }

    fn form(&self, object: &Value) -> Result<String, RunError> {
        Ok(match self.output {
            Form::Yaml => serde_yaml::to_string(object)?,
            Form::Json => serde_json::to_string_pretty(object)? + "\n",
        })
    }

    /// Creates the benchmark. `false` if it exists with the same settings.
    async fn create(
        &self,
        cluster: &Cluster,
        object: &Value,
        checked: &Checked,
    ) -> Result<bool, RunError> {
        let name = checked.benchmark.name_any();
        let is_dry = self.dry_run.is_some();
        match cluster
            .create::<FrugalityBenchmark>(object.clone(), is_dry)
            .await
        {
            Ok(()) => return Ok(true),
            Err(ClusterError::Refused { code: 409, .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let text = cluster.get::<FrugalityBenchmark>(&name).await?;
        let existing: Option<FrugalityBenchmark> = serde_json::from_str(&text).ok();
        let is_same = |it: &FrugalityBenchmark| {
            it.spec == checked.benchmark.spec && it.metadata.deletion_timestamp.is_none()
        };
        if existing.is_some_and(|it| is_same(&it)) {
            return Ok(false);
        }
        Err(RunError::Exists {
            name,
            namespace: cluster.namespace.clone(),
        })
    }
}

/// The checked draft.
type Written = (Value, Checked);

impl Draft<'_> {
    /// The benchmark, checked as admission does. A long run gets a longer deadline than the default.
    fn checked(&self) -> Result<Written, RunError> {
        let whole = self.object(Some(draft::LONGEST_DEADLINE))?;
        let forecast = manifest::check(whole)?.forecast;
        let object = self.object(draft::deadline(forecast.whole.seconds).as_deref())?;
        let checked = manifest::check(object.clone())?;
        Ok((object, checked))
    }
}
