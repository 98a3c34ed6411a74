//! A cgroup tree whose counters a test sets, a meter that reads it, and a reader of the meter's pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

/// A v1 cgroup file system and a pod log directory.
pub(crate) struct Node {
    directory: TempDir,
}

impl Node {
    pub(crate) fn new() -> Self {
        let node = Self {
            directory: TempDir::new().unwrap(),
        };
        fs::create_dir(node.pod_logs()).unwrap();
        node.set_cpu("", 0);
        node
    }

    pub(crate) fn cgroup_fs(&self) -> PathBuf {
        self.directory.path().join("cgroup")
    }

    pub(crate) fn pod_logs(&self) -> PathBuf {
        self.directory.path().join("pods")
    }

    /// Sets a counter by one write in place: the kernel's counters are never half written.
    pub(crate) fn set_cpu(&self, cgroup: &str, nanoseconds: u64) {
        self.write_cpu(cgroup, &format!("{nanoseconds:020}\n"));
    }

    /// Makes the node's counter unreadable until a test sets it again. Meanwhile the test can change several
    /// counters as if at one time.
    pub(crate) fn hide_node_cpu(&self) {
        self.write_cpu("", &format!("{:>20}\n", "not to be read"));
    }

    fn write_cpu(&self, cgroup: &str, text: &str) {
        let directory = self.cgroup_fs().join("cpuacct").join(cgroup);
        fs::create_dir_all(&directory).unwrap();
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(directory.join("cpuacct.usage"))
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    pub(crate) fn set_memory(&self, cgroup: &str, usage: u64, inactive_file: u64) {
        let directory = self.cgroup_fs().join("memory").join(cgroup);
        fs::create_dir_all(&directory).unwrap();
        let write = |file: &str, text: String| fs::write(directory.join(file), text).unwrap();
        write(
            "memory.stat",
            format!("total_inactive_file {inactive_file}\n"),
        );
        write("memory.usage_in_bytes", format!("{usage}\n"));
    }

    /// Writes a file of the node's sysfs.
    pub(crate) fn set_sysfs(&self, path: &str, text: &str) {
        let path = self.sysfs().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    pub(crate) fn sysfs(&self) -> PathBuf {
        self.directory.path().join("sys")
    }

    /// Writes a configuration of the node's power, and returns the flag for it.
    pub(crate) fn power(&self, config: &str) -> String {
        let path = self.directory.path().join("power.json");
        fs::write(&path, config).unwrap();
        format!("--power-config={}", path.display())
    }

    /// A directory for files that the meter writes.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.directory.path().join("scratch")
    }

    pub(crate) fn name_pod(&self, namespace: &str, name: &str, uid: &str) {
        fs::create_dir(self.pod_logs().join(format!("{namespace}_{name}_{uid}"))).unwrap();
    }

    pub(crate) fn remove_pod(&self, cgroup: &str) {
        fs::remove_dir_all(self.cgroup_fs().join("cpuacct").join(cgroup)).unwrap();
    }
}

/// A running meter. It is killed when dropped.
pub(crate) struct Meter {
    child: Child,
    address: String,
}

impl Meter {
    /// Starts `frugality-meter run` on a free port, reading every 50 ms.
    pub(crate) fn start(node: &Node, flags: &[&str]) -> Self {
        Self::start_on(&node.cgroup_fs(), node, flags)
    }

    /// Like [`Meter::start`], with cgroups from another directory.
    pub(crate) fn start_on(cgroup_fs: &Path, node: &Node, flags: &[&str]) -> Self {
        let mut child = run(cgroup_fs)
            .args(["--interval=50ms", "--listen=127.0.0.1:0"])
            .arg("--pod-logs")
            .arg(node.pod_logs())
            .arg("--sysfs")
            .arg(node.sysfs())
            .args(flags)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "the meter ended");
            if let Some((_, rest)) = line.split_once("address=") {
                break rest.split_whitespace().next().unwrap().to_owned();
            }
        };
        // The pipe must not fill up.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { child, address }
    }

    /// Status and body of a GET.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let (status, _, body) = self.get_with_head(path);
        (status, body)
    }

    pub(crate) fn get_with_head(&self, path: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: meter\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), body.to_owned())
    }

    /// An open connection without a request.
    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    pub(crate) fn scrape(&self) -> Page {
        let (status, body) = self.get("/metrics");
        assert_eq!(status, 200);
        Page::parse(&body)
    }

    /// Scrapes until `wanted` accepts the page.
    pub(crate) fn scrape_until(&self, what: &str, wanted: impl Fn(&Page) -> bool) -> Page {
        let began = Instant::now();
        loop {
            let page = self.scrape();
            if wanted(&page) {
                return page;
            }
            assert!(began.elapsed() < PATIENCE, "not seen: {what}");
            sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn wait_for_status(&self, path: &str, status: u16) -> String {
        let began = Instant::now();
        loop {
            let (now, body) = self.get(path);
            if now == status {
                return body;
            }
            assert!(began.elapsed() < PATIENCE, "{path} stays {now}");
            sleep(Duration::from_millis(10));
        }
    }

    /// Changes counters as if at one time: the meter sees none or all of the change.
    pub(crate) fn at_one_time(
        &self,
        node: &Node,
        node_cpu: u64,
        change: impl FnOnce(&Node),
    ) -> Page {
        node.hide_node_cpu();
        self.wait_for_status("/readyz", 503);
        let before = self.scrape().timestamp();
        change(node);
        node.set_cpu("", node_cpu);
        self.scrape_until("a fresh reading", |page| page.timestamp() > before)
    }

    /// Sends SIGTERM. Returns the exit status and the time until the meter's end.
    pub(crate) fn terminate(mut self) -> (ExitStatus, Duration) {
        let began = Instant::now();
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        assert!(sent.success());
        (self.child.wait().unwrap(), began.elapsed())
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        // The meter may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A plug that answers every request with the same text, until it is unplugged.
pub(crate) struct Plug {
    pub(crate) address: SocketAddr,
    body: Arc<Mutex<Option<String>>>,
}

impl Plug {
    pub(crate) fn new(body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Mutex::new(Some(body.to_owned())));
        let body = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(text) = body.lock().unwrap().clone() else {
                    continue;
                };
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                while lines.next().is_some_and(|line| !line.is_empty()) {}
                let length = text.len();
                let _ = write!(
                    &stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{text}"
                );
            }
        });
        Self {
            address,
            body: shared,
        }
    }

    pub(crate) fn set(&self, body: Option<&str>) {
        *self.body.lock().unwrap() = body.map(str::to_owned);
    }
}

/// The command `frugality-meter run` for node `pi-1`, without the environment's settings.
pub(crate) fn run(cgroup_fs: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_frugality-meter"));
    command
        .env_clear()
        .args(["run", "--node-name=pi-1", "--cpus=2", "--cgroup-fs"])
        .arg(cgroup_fs);
    command
}

/// A page in the plain Prometheus format. Every sample follows a TYPE line with the sample's name.
pub(crate) struct Page {
    pub(crate) types: BTreeMap<String, String>,
    samples: Vec<Sample>,
}

pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

impl Page {
    pub(crate) fn parse(text: &str) -> Self {
        let mut page = Self {
            types: BTreeMap::new(),
            samples: Vec::new(),
        };
        let mut family = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                name.clone_into(&mut family);
                let before = page.types.insert(name.to_owned(), kind.to_owned());
                assert_eq!(before, None, "{name} comes twice");
            } else if !line.starts_with("# HELP ") {
                let sample = Sample::parse(line);
                assert_eq!(sample.name, family, "a sample outside its family");
                page.samples.push(sample);
            }
        }
        page
    }

    /// The values of a metric whose labels include these.
    pub(crate) fn values(&self, name: &str, labels: &[(&str, &str)]) -> Vec<f64> {
        let fits = |sample: &&Sample| {
            sample.name == name
                && labels
                    .iter()
                    .all(|(label, value)| sample.labels.get(*label).is_some_and(|it| it == value))
        };
        self.samples
            .iter()
            .filter(fits)
            .map(|it| it.value)
            .collect()
    }

    /// The one value of a metric with these labels.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let values = self.values(name, labels);
        assert_eq!(values.len(), 1, "{name} {labels:?}");
        values[0]
    }

    /// The values that a label has on the samples of a metric.
    pub(crate) fn label_values(&self, name: &str, label: &str) -> BTreeSet<String> {
        self.samples
            .iter()
            .filter(|sample| sample.name == name)
            .filter_map(|sample| sample.labels.get(label).cloned())
            .collect()
    }

    pub(crate) fn timestamp(&self) -> f64 {
        self.value(
            "frugality_meter_reading_timestamp_seconds",
            &[("zone", "psys")],
        )
    }

    /// Names of the metrics, with the label sets of their samples.
    pub(crate) fn label_sets(&self) -> BTreeMap<&str, BTreeSet<Vec<&str>>> {
        let mut sets: BTreeMap<&str, BTreeSet<Vec<&str>>> = BTreeMap::new();
        for sample in &self.samples {
            let labels = sample.labels.keys().map(String::as_str).collect();
            sets.entry(&sample.name).or_default().insert(labels);
        }
        sets
    }
}

impl Sample {
    /// `name{label="value",…} value`; no test has quotes or commas in a label's value.
    fn parse(line: &str) -> Self {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap();
        let labels = labels
            .strip_suffix('}')
            .unwrap()
            .split(',')
            .map(|label| {
                let (label, value) = label.split_once('=').unwrap();
                (label.to_owned(), value.trim_matches('"').to_owned())
            })
            .collect();
        Self {
            name: name.to_owned(),
            labels,
            value: value.parse().unwrap(),
        }
    }
}
