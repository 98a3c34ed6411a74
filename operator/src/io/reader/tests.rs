use std::sync::atomic::{AtomicUsize, Ordering};

use axum::{Router, body::Body, http::StatusCode, response::Redirect, routing::get};
use futures::stream;
use tokio::{net::TcpListener, time::sleep};

use super::*;
use crate::plan::facts::preflight;

const UID: &str = "uid";

fn watch(trial: &str) -> MeterWatch {
    MeterWatch {
        trial: trial.to_owned(),
        node: "pi-1".to_owned(),
        meter_ip: None,
        injector_seen: false,
        check_ended: false,
        steady: None,
    }
}

const METER: &str = "127.0.0.1";

/// Keeps a reading of the meter with the given joules.
fn keep(reader: &Reader, joules: u32) {
    let text =
        format!("kepler_node_cpu_joules_total{{node_name=\"pi-1\",zone=\"package\"}} {joules}\n");
    let reading = read(&text, "pi-1", None, f64::from(joules)).unwrap();
    let meter = Meter::of(&watch_at("any", "pi-1", METER)).unwrap();
    reader.keep(&meter, Ok(reading));
}

fn joules(session: &Session) -> Vec<f64> {
    session.readings.iter().map(|it| it.node_joules).collect()
}

#[test]
fn readings_during_a_pass_are_neither_seen_nor_copied_nor_lost() {
    let reader = Reader::new(0).unwrap();
    reader.watch(UID, vec![watch_at("trial", "pi-1", METER)]);
    keep(&reader, 1);
    let of_pass = reader.sessions(UID).remove("trial").unwrap();
    keep(&reader, 2);
    keep(&reader, 3);
    assert_eq!(joules(&of_pass), [1.0]);
    let meanwhile = reader.sessions(UID).remove("trial").unwrap();
    assert!(Arc::ptr_eq(&of_pass.readings, &meanwhile.readings));
    drop((of_pass, meanwhile));
    let after = reader.sessions(UID).remove("trial").unwrap();
    assert_eq!(joules(&after), [1.0, 2.0, 3.0]);
}

#[test]
fn the_time_at_which_a_check_was_seen_to_end_is_kept() {
    let reader = Reader::new(0).unwrap();
    let reported = |check_ended| {
        let watch = MeterWatch {
            check_ended,
            ..watch("trial")
        };
        reader.watch(UID, vec![watch]);
        let session = reader.sessions(UID).remove("trial").unwrap();
        session.check_ended_unix_seconds
    };
    assert_eq!(reported(false), None);
    let seen = reported(true);
    assert!(seen.is_some());
    assert_eq!((reported(true), reported(false)), (seen, seen));
}

#[test]
fn before_a_run_only_the_newest_readings_are_kept() {
    let reader = Reader::new(0).unwrap();
    let trial = &preflight("pi-1");
    reader.watch(UID, vec![watch_at(trial, "pi-1", METER)]);
    (1..=7).for_each(|at| keep(&reader, at));
    let session = reader.sessions(UID).remove(trial).unwrap();
    assert_eq!(joules(&session), [3.0, 4.0, 5.0, 6.0, 7.0]);
}

/// A page of the node's meter.
fn page(node: &str) -> String {
    format!("kepler_node_cpu_joules_total{{node_name=\"{node}\",zone=\"package\"}} 1\n")
}

/// Serves a meter of `node` on `ip`, and returns its port and the number of requests so far.
async fn meter(node: &'static str, ip: &str, port: u16) -> (u16, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let answer = move || {
        counter.fetch_add(1, Ordering::Relaxed);
        async move { page(node) }
    };
    let port = serve(ip, port, Router::new().route("/metrics", get(answer))).await;
    (port, asked)
}

async fn serve(ip: &str, port: u16, router: Router) -> u16 {
    let listener = TcpListener::bind((ip, port)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    port
}

fn watch_at(trial: &str, node: &str, ip: &str) -> MeterWatch {
    MeterWatch {
        node: node.to_owned(),
        meter_ip: Some(ip.to_owned()),
        ..watch(trial)
    }
}

/// The error of one scrape of the router's page.
async fn error_of(router: Router) -> String {
    let reader = Reader::new(serve("127.0.0.1", 0, router).await).unwrap();
    let running = tokio::spawn(reader.clone().run());
    reader.watch(UID, vec![watch_at("trial", "pi-1", "127.0.0.1")]);
    let session = loop {
        sleep(Duration::from_millis(20)).await;
        let session = reader.sessions(UID).remove("trial").unwrap();
        if session.last_error.is_some() || !session.readings.is_empty() {
            break session;
        }
    };
    running.abort();
    session.last_error.expect("a reading was taken")
}

#[tokio::test]
async fn a_meter_that_never_answers_delays_no_other() {
    let (port, _) = meter("pi-1", "127.0.0.1", 0).await;
    // Accepts connections and never answers.
    let dead = TcpListener::bind(("127.0.0.2", port)).await.unwrap();
    let reader = Reader::new(port).unwrap();
    let running = tokio::spawn(reader.clone().run());
    reader.watch("dead", vec![watch_at("trial", "pi-2", "127.0.0.2")]);
    reader.watch("live", vec![watch_at("trial", "pi-1", "127.0.0.1")]);
    sleep(Duration::from_secs(5)).await;
    let read = reader.sessions("live").remove("trial").unwrap();
    assert!(read.readings.len() >= 9, "{} readings", read.readings.len());
    let silent = reader.sessions("dead").remove("trial").unwrap();
    assert!(silent.readings.is_empty());
    assert!(silent.last_error.unwrap().starts_with("no answer from "));
    running.abort();
    drop(dead);
}

#[tokio::test]
async fn benchmarks_that_watch_one_meter_share_its_scrapes() {
    let (port, asked) = meter("pi-1", "127.0.0.1", 0).await;
    let reader = Reader::new(port).unwrap();
    let queued = |index: usize| format!("queued-{index}");
    for index in 0..100 {
        let watch = watch_at(&preflight("pi-1"), "pi-1", "127.0.0.1");
        reader.watch(&queued(index), vec![watch]);
    }
    let running = tokio::spawn(reader.clone().run());
    sleep(SCRAPE_INTERVAL * 3 / 2).await;
    // A later benchmark needs no scrape: it takes the last reading.
    reader.watch(
        &queued(100),
        vec![watch_at(&preflight("pi-1"), "pi-1", "127.0.0.1")],
    );
    sleep(SCRAPE_INTERVAL).await;
    for index in 0..=100 {
        let sessions = reader.sessions(&queued(index));
        assert_eq!(sessions[&preflight("pi-1")].readings.len(), 1, "{index}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);

    // An attempt is read twice per second, however many benchmarks wait for its node.
    reader.watch(UID, vec![watch_at("trial", "pi-1", "127.0.0.1")]);
    let before = asked.load(Ordering::Relaxed);
    sleep(SCRAPE_INTERVAL * 4).await;
    let scrapes = asked.load(Ordering::Relaxed) - before;
    let readings = reader.sessions(UID)["trial"].readings.len();
    assert!((3..=5).contains(&scrapes), "{scrapes} scrapes");
    assert!((3..=scrapes).contains(&readings), "{readings} readings");
    running.abort();
}

#[tokio::test]
async fn a_meter_that_no_benchmark_watches_is_left_alone() {
    let (port, asked) = meter("pi-1", "127.0.0.1", 0).await;
    let reader = Reader::new(port).unwrap();
    let running = tokio::spawn(reader.clone().run());
    reader.watch(UID, vec![watch_at("trial", "pi-1", "127.0.0.1")]);
    sleep(SCRAPE_INTERVAL * 3 / 2).await;
    assert!(asked.load(Ordering::Relaxed) >= 1);
    reader.watch_only(UID, &[]);
    sleep(SCRAPE_INTERVAL).await;
    let asked_so_far = asked.load(Ordering::Relaxed);
    sleep(SCRAPE_INTERVAL * 2).await;
    assert_eq!(asked.load(Ordering::Relaxed), asked_so_far);
    running.abort();
}

/// While the API server does not answer, no pass asks for the readings, and the meter goes on.
#[tokio::test(start_paused = true)]
async fn a_trials_readings_outlive_passes_that_fail_for_minutes() {
    let reader = Reader::new(0).unwrap();
    let preflight = preflight("pi-1");
    reader.watch(UID, vec![watch("trial"), watch(&preflight)]);
    let trials = |after: Duration| {
        let reader = reader.clone();
        async move {
            sleep(after).await;
            reader.begin_scrapes();
            reader.sessions(UID).into_keys().collect::<Vec<_>>()
        }
    };
    assert_eq!(trials(Duration::from_secs(300)).await, ["trial"]);
    assert_eq!(trials(Duration::from_secs(660)).await, [""; 0]);
    reader.watch(UID, vec![watch("trial")]);
    reader.keep_benchmarks(&HashSet::from([UID.to_owned()]));
    assert_eq!(reader.sessions(UID).len(), 1);
    reader.keep_benchmarks(&HashSet::new());
    assert_eq!(reader.sessions(UID).len(), 0);
}

#[tokio::test]
async fn a_redirect_is_an_error_and_is_not_followed() {
    let router = Router::new()
        .route("/metrics", get(|| async { Redirect::temporary("/other") }))
        .route("/other", get(|| async { page("pi-1") }));
    let error = error_of(router).await;
    assert!(
        error.contains("307") && error.contains("redirect") && error.contains("/other"),
        "{error}"
    );
}

#[tokio::test]
async fn an_error_shows_the_status_of_the_answer() {
    let router = Router::new().route(
        "/metrics",
        get(|| async { (StatusCode::SERVICE_UNAVAILABLE, page("pi-1")) }),
    );
    let error = error_of(router).await;
    assert!(error.contains("503"), "{error}");
}

#[tokio::test]
async fn a_page_without_end_is_cut_off_at_the_limit() {
    let router = Router::new().route(
        "/metrics",
        get(|| async {
            let chunk = "# padding\n".repeat(6_554);
            Body::from_stream(stream::repeat_with(move || {
                Ok::<_, std::convert::Infallible>(chunk.clone())
            }))
        }),
    );
    let error = error_of(router).await;
    assert!(error.contains("more than 8 MiB"), "{error}");
}
