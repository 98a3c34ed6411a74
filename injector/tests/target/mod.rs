//! A target on loopback that counts the requests it receives. It also serves the time, like a meter.

#![allow(dead_code, reason = "each test program uses a part")]

use std::{
    collections::HashSet,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// The time at `/time` is ahead of the real time by this offset.
pub(crate) const CLOCK_OFFSET_SECONDS: f64 = 12.5;

#[derive(Clone, Copy)]
pub(crate) enum Answer {
    Status(u16),
    /// 200, after a delay that grows by this amount per second since the target's start.
    Slower {
        milliseconds_per_second: f64,
    },
    /// The target accepts the connection and reads the request, but does not answer.
    Never,
    /// 200, except that each such request gets no answer.
    NeverEach(u64),
    /// 200 with a body of this many bytes.
    Bytes(usize),
    /// 200 with a body that ends with the connection.
    Endless,
    /// 204, without a body.
    NoContent,
    /// 200, except that the target closes the connection after each such request without an answer.
    CloseEach(u64),
    /// 200. Each such answer announces that the target closes the connection.
    AnnounceEach(u64),
    /// 200. The target closes each connection after an answer, without announcing it.
    CloseAlways,
    /// 200. The target closes a connection that is idle for this time.
    CloseIdle(Duration),
    /// 200 with so many chunks of 32 KiB.
    Chunks(usize),
}

#[derive(Default)]
struct Seen {
    requests: u64,
    clock_requests: u64,
    paths: HashSet<String>,
    last_request: String,
}

/// A running target. Its threads end with the test process.
pub(crate) struct Target {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl Target {
    /// Starts a target that answers each request with `answer`, after `delay`.
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

    /// Number of requests so far, without requests of `/time`.
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

    /// Waits until the target has received this number of requests.
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

/// The URL of a port without a listener.
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
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.requests += 1;
            seen.paths.insert(path);
            seen.last_request = request;
            seen.requests
        };
        match answer {
            Answer::Never => thread::sleep(Duration::from_secs(60)),
            Answer::NeverEach(each) if number.is_multiple_of(each) => {
                thread::sleep(Duration::from_secs(60));
            }
            Answer::NeverEach(_) => {
                thread::sleep(delay);
                respond(&mut stream, 200, "hello");
            }
            Answer::Bytes(length) => respond(&mut stream, 200, &"x".repeat(length)),
            Answer::Endless => {
                let _ = stream.write_all(b"HTTP/1.1 200 Test\r\n\r\nhello");
                return;
            }
            Answer::NoContent => {
                let _ = stream.write_all(b"HTTP/1.1 204 Test\r\n\r\n");
            }
            Answer::CloseEach(each) if number.is_multiple_of(each) => return,
            Answer::CloseIdle(limit) => {
                stream.set_read_timeout(Some(limit)).unwrap();
                respond(&mut stream, 200, "hello");
            }
            Answer::AnnounceEach(each) if number.is_multiple_of(each) => {
                let answer =
                    "HTTP/1.1 200 Test\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
                let _ = stream.write_all(answer.as_bytes());
                return;
            }
            Answer::CloseAlways => {
                respond(&mut stream, 200, "hello");
                return;
            }
            Answer::AnnounceEach(_) | Answer::CloseEach(_) => respond(&mut stream, 200, "hello"),
            Answer::Chunks(number) => {
                let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000)).repeat(number);
                let answer = format!(
                    "HTTP/1.1 200 Test\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}0\r\n\r\n"
                );
                let _ = stream.write_all(answer.as_bytes());
            }
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
    // If the client has closed the connection, the next read ends the loop.
    let _ = stream.write_all(head.as_bytes());
}

/// One request with its body. `None` at the end of the connection.
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
