//! A target on loopback that counts the requests that reach it, and also plays the meter's clock.

#![allow(dead_code, reason = "each program of tests uses a part")]

use std::{
    collections::HashSet,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// By how much the clock at `/time` is ahead of the real one.
pub(crate) const CLOCK_OFFSET_SECONDS: f64 = 12.5;

#[derive(Clone, Copy)]
pub(crate) enum Answer {
    Status(u16),
    /// 200, each second after the target's start this much later.
    Slower {
        milliseconds_per_second: f64,
    },
    /// The connection is taken and the request read, and that is all.
    Never,
}

#[derive(Default)]
struct Seen {
    requests: u64,
    clock_requests: u64,
    paths: HashSet<String>,
    last_request: String,
}

/// Lives on in its threads until the test process ends.
pub(crate) struct Target {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl Target {
    /// Answers each request with `answer`, after `delay`.
    pub(crate) fn start(delay: Duration, answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = Arc::clone(&seen);
        let began = Instant::now();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, seen) = (stream.unwrap(), Arc::clone(&shared));
                thread::spawn(move || serve(stream, delay, answer, began, &seen));
            }
        });
        Self { address, seen }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    /// Requests so far, those for the time apart.
    pub(crate) fn requests(&self) -> u64 {
        self.seen().requests
    }

    pub(crate) fn clock_requests(&self) -> u64 {
        self.seen().clock_requests
    }

    pub(crate) fn distinct_paths(&self) -> u64 {
        self.seen().paths.len() as u64
    }

    pub(crate) fn last_request(&self) -> String {
        self.seen().last_request.clone()
    }

    /// Waits until so many requests have come.
    pub(crate) fn wait_for(&self, requests: u64) {
        let begin = Instant::now();
        while self.requests() < requests {
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "{} requests",
                self.requests()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The URL of a port where nothing listens.
pub(crate) fn refusing_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/", listener.local_addr().unwrap())
}

fn serve(
    mut stream: TcpStream,
    delay: Duration,
    answer: Answer,
    began: Instant,
    seen: &Mutex<Seen>,
) {
    stream.set_nodelay(true).unwrap();
    while let Some(request) = read_request(&mut stream) {
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        if path == "/time" {
            seen.lock().unwrap().clock_requests += 1;
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap()
                .as_secs_f64();
            respond(
                &mut stream,
                200,
                &format!("{:.6}\n", now + CLOCK_OFFSET_SECONDS),
            );
            continue;
        }
        {
            let mut seen = seen.lock().unwrap();
            seen.requests += 1;
            seen.paths.insert(path);
            seen.last_request = request;
        }
        match answer {
            Answer::Never => thread::sleep(Duration::from_secs(60)),
            Answer::Slower {
                milliseconds_per_second,
            } => {
                let later = began.elapsed().as_secs_f64() * milliseconds_per_second / 1000.0;
                thread::sleep(delay + Duration::from_secs_f64(later));
                respond(&mut stream, 200, "hello");
            }
            Answer::Status(status) => {
                thread::sleep(delay);
                respond(&mut stream, status, "hello");
            }
        }
    }
}

fn respond(stream: &mut TcpStream, status: u16, body: &str) {
    let head = format!(
        "HTTP/1.1 {status} Test\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // The other end may have gone: then the next read ends the connection.
    let _ = stream.write_all(head.as_bytes());
}

/// One request with its body, or nothing where the connection ends.
fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    let mut length = None;
    loop {
        match stream.read(&mut byte) {
            Ok(1) => bytes.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => return None,
        }
        if length.is_none() && bytes.ends_with(b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
            let body = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            length = Some(bytes.len() + body.map_or(0, |text| text.parse().unwrap()));
        }
        if length == Some(bytes.len()) {
            return Some(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}
