//! What a thousand benchmarks cost: requests to the API server, and CPU and memory of the operator's program. `make
//! scale` runs it and prints the figures. Another program can be measured with `FRUGALITY_OPERATOR=FILE`, and another
//! number of benchmarks with `FRUGALITY_SCALE=N`.

use std::{
    env, fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrial, Outcome, Reason},
    plan::names::{run_id, trial_name},
};
use futures::{StreamExt, stream};
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::json;

use super::{
    kubelet::Kubelet,
    server::User,
    stage::{Stage, patch_status, until},
};

/// How long each state is measured.
const WINDOW: Duration = Duration::from_secs(60);
/// Time until the operator has finished what a change asks of it.
const SETTLING: Duration = Duration::from_secs(20);
/// Longest time until all benchmarks have a status.
const PATIENCE: Duration = Duration::from_secs(600);
/// A spec and a status with figures take about this much. The benchmarks here get it as an annotation.
const BYTES_OF_A_BENCHMARK: usize = 12_000;
/// Requests at once, to create the benchmarks.
const AT_ONCE: usize = 16;
/// Clock ticks per second of the times in `/proc/PID/stat` (`USER_HZ` of Linux on all its platforms).
const TICKS_PER_SECOND: f64 = 100.0;

/// The operator's program, and its kubeconfig. When it is dropped, it ends. The log next to the kubeconfig stays.
struct Program(Child, PathBuf);

impl Drop for Program {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
        _ = fs::remove_file(&self.1);
    }
}

impl Program {
    fn start(stage: &Stage) -> Self {
        let config = env::temp_dir().join(format!("frugality-scale-{}", std::process::id()));
        let access = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "stage",
            "clusters": [{ "name": "stage", "cluster": { "server": stage.proxy.url() } }],
            "users": [{ "name": "operator", "user": { "token": User::Operator.token() } }],
            "contexts": [{ "name": "stage", "context": { "cluster": "stage", "user": "operator" } }],
        });
        fs::write(&config, access.to_string()).unwrap();
        let program = env::var_os("FRUGALITY_OPERATOR").map(PathBuf::from);
        let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_frugality-operator").into());
        let settings = stage.config();
        let log = fs::File::create(config.with_extension("log")).unwrap();
        let child = Command::new(program)
            .args(["run", "--namespace", &stage.namespace])
            .args(["--listen", "127.0.0.1:0"])
            .args(["--injector-image", &settings.injector_image])
            .args(["--injector-k6-image", &settings.injector_k6_image])
            .args(["--database-image", &settings.database_image])
            .args(["--meter-selector", "app=meter"])
            .args(["--meter-port", &stage.meter_port.to_string()])
            .env("KUBECONFIG", &config)
            // As in the chart.
            .env("MALLOC_ARENA_MAX", "1")
            .stdout(log)
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        Self(child, config)
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.0.id())).unwrap()
    }

    /// CPU time so far, in seconds.
    fn cpu_seconds(&self) -> f64 {
        let stat = self.file("stat");
        // The name of the program may contain spaces. The 14th and the 15th field are the 12th and 13th after it.
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        let ticks = fields.split(' ').skip(11).take(2);
        let ticks: f64 = ticks.map(|it| it.parse::<f64>().unwrap()).sum();
        ticks / TICKS_PER_SECOND
    }

    /// Memory by a field of `/proc/PID/status`, in MiB.
    fn mebibytes(&self, field: &str) -> f64 {
        let status = self.file("status");
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        let kibibytes = line.split_whitespace().nth(1).unwrap();
        kibibytes.parse::<f64>().unwrap() / 1024.0
    }

    /// Prints what the program costs in this state, after it has settled.
    async fn print_cost(&self, stage: &Stage, what: &str) {
        tokio::time::sleep(SETTLING).await;
        stage.proxy.forget();
        let (began, cpu) = (Instant::now(), self.cpu_seconds());
        tokio::time::sleep(WINDOW).await;
        let seconds = began.elapsed().as_secs_f64();
        println!(
            "{what:58} {:8.2} {:10.1} {:8.1} {:8.1}",
            stage.proxy.requests() as f64 / seconds,
            100.0 * (self.cpu_seconds() - cpu) / seconds,
            self.mebibytes("VmRSS:"),
            self.mebibytes("VmHWM:"),
        );
    }
}

fn number() -> usize {
    env::var("FRUGALITY_SCALE").map_or(1000, |number| number.parse().unwrap())
}

async fn create(stage: &Stage, name: &str) -> FrugalityBenchmark {
    let mut new = stage.manifest(name, &[]);
    let text = "x".repeat(BYTES_OF_A_BENCHMARK);
    new["metadata"]["annotations"] = json!({ "example.org/size": text });
    let new = serde_json::from_value(new).unwrap();
    let api = stage.api();
    api.create(&PostParams::default(), &new).await.unwrap()
}

/// A benchmark whose ledger says that its run has ended.
async fn create_ended(stage: &Stage, name: &str) {
    let benchmark = create(stage, name).await;
    let trial = trial_name(name, &run_id(&benchmark), 1, "rust", 1);
    let api: Api<FrugalityTrial> = stage.api();
    let entry = stage.entry(&benchmark, &trial);
    api.create(&PostParams::default(), &entry).await.unwrap();
    let end = json!({
        "outcome": Outcome::Failed, "reason": Reason::DeadlineExceeded.as_str(), "message": "too late",
        "finishedAt": "2026-01-01T00:00:00Z",
    });
    patch_status(&api, &trial, end).await;
}

/// Creates this many benchmarks: every second has ended, and the others are queued.
async fn create_others(stage: &Stage, others: usize) {
    stream::iter(0..others)
        .for_each_concurrent(AT_ONCE, |index| async move {
            let name = format!("b{index:04}");
            if index % 2 == 0 {
                create_ended(stage, &name).await;
            } else {
                create(stage, &name).await;
            }
        })
        .await;
}

/// Suspends all benchmarks that wait, and waits until their statuses say so.
async fn suspend_queued(stage: &Stage, others: usize) {
    let queued = (1..others).step_by(2).map(|index| format!("b{index:04}"));
    stream::iter(queued.chain(["new".to_owned()]))
        .for_each_concurrent(AT_ONCE, |name| async move {
            stage.edit(&name, json!({ "suspend": true })).await;
        })
        .await;
    until("nothing waits", || async {
        let reasons = reasons(stage).await.into_iter();
        let suspended = reasons.filter(|it| it == Reason::Suspended.as_str());
        suspended.count() == others / 2 + 2
    })
    .await;
}

/// All ledgers. Empty while the API server still prepares to serve them.
async fn trials(stage: &Stage) -> Vec<FrugalityTrial> {
    let listed = stage.api().list(&ListParams::default()).await;
    listed.map(|it| it.items).unwrap_or_default()
}

/// The reasons in the statuses of all benchmarks that have one.
async fn reasons(stage: &Stage) -> Vec<String> {
    let api = stage.api::<FrugalityBenchmark>();
    let all = api.list(&ListParams::default()).await.unwrap();
    let reason = |it: FrugalityBenchmark| it.status?.columns?.reason;
    all.items.into_iter().filter_map(reason).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes and prints figures: make scale"]
async fn cost_of_a_thousand_benchmarks() {
    let stage = Stage::new().await;
    let _kubelet = Kubelet::start(&stage);
    let others = number() - 1;
    let running = create(&stage, "running").await;
    let is_under_load = |before: usize| {
        let stage = &stage;
        move || async move {
            let trials = trials(stage).await;
            let of_it = trials.iter().filter(|it| it.spec.benchmark == "running");
            let loaded = of_it.filter(|it| {
                it.status
                    .as_ref()
                    .is_some_and(|it| it.idle_before.is_some())
            });
            loaded.count() > before
        }
    };
    println!(
        "{:58} {:>8} {:>10} {:>8} {:>8}",
        "", "requests", "% of", "MiB", "most"
    );
    println!(
        "{:58} {:>8} {:>10} {:>8} {:>8}",
        "", "per s", "one core", "resident", "MiB"
    );
    let program = Program::start(&stage);
    until("the load", is_under_load(0)).await;
    program.print_cost(&stage, "1 under load").await;
    drop(program);

    create_others(&stage, others).await;
    let program = Program::start(&stage);
    let began = Instant::now();
    while reasons(&stage).await.len() < number() {
        assert!(began.elapsed() < PATIENCE, "no status for all");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let all_told = began.elapsed().as_secs_f64();
    until("the load again", is_under_load(1)).await;
    let label = format!(
        "{}: 1 under load, {} ended, {} queued",
        number(),
        others.div_ceil(2),
        others / 2
    );
    program.print_cost(&stage, &label).await;
    println!(
        "after the start, all {} had a status within {all_told:.1} s",
        number()
    );

    let began = Instant::now();
    create(&stage, "new").await;
    let reason = async || {
        let status = stage.stored("new").await.status;
        status.and_then(|it| it.columns).and_then(|it| it.reason)
    };
    until("the status of a new benchmark", || async {
        reason().await.is_some()
    })
    .await;
    println!(
        "a new benchmark had a status after {:.2} s",
        began.elapsed().as_secs_f64()
    );

    let began = Instant::now();
    stage
        .edit(&running.name_any(), json!({ "suspend": true }))
        .await;
    let next = || async {
        let trials = trials(&stage).await;
        trials.iter().any(|it| {
            let has_ended = it.status.as_ref().is_some_and(|it| it.outcome.is_some());
            it.spec.benchmark != "running" && !has_ended
        })
    };
    until("the next benchmark's attempt", next).await;
    println!(
        "after the first was suspended, the next began its first attempt within {:.1} s",
        began.elapsed().as_secs_f64()
    );
    let label = format!("{}: 1 begun, the others called", number() + 1);
    program.print_cost(&stage, &label).await;

    suspend_queued(&stage, others).await;
    let label = format!(
        "{}: nothing changes, {} ended, {} suspended",
        number() + 1,
        others.div_ceil(2),
        others / 2 + 2
    );
    program.print_cost(&stage, &label).await;
}
