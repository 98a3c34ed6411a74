//! A real MQTT broker and real clients: Debian's packages mosquitto and mosquitto-clients. `make unit` installs them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);
const MISSING: &str =
    "the test needs Debian's packages mosquitto and mosquitto-clients: `make unit` installs them";

/// A broker on the loopback interface. It is killed when dropped, and its clients too: they would try to connect again
/// forever.
pub(crate) struct Broker {
    child: Child,
    clients: Mutex<Vec<Child>>,
    directory: TempDir,
    port: u16,
}

impl Broker {
    /// A broker that accepts everybody.
    pub(crate) fn start() -> Self {
        Self::with("allow_anonymous true", |_| {})
    }

    /// A broker with these lines in its configuration. `DIR` is replaced by the broker's directory. `prepare` writes
    /// files into the directory.
    pub(crate) fn with(lines: &str, prepare: impl FnOnce(&Path)) -> Self {
        let directory = TempDir::new().unwrap();
        prepare(directory.path());
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let lines = lines.replace("DIR", directory.path().to_str().unwrap());
        let text = format!("listener {port} 127.0.0.1\nuser root\n{lines}\n");
        std::fs::write(directory.path().join("mosquitto.conf"), text).unwrap();
        let child = Self::spawn(&directory);
        let broker = Self {
            child,
            clients: Mutex::default(),
            directory,
            port,
        };
        broker.wait();
        broker
    }

    fn spawn(directory: &TempDir) -> Child {
        // Debian has no /usr/sbin in the path of users.
        Command::new("/usr/sbin/mosquitto")
            .arg("-c")
            .arg(directory.path().join("mosquitto.conf"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect(MISSING)
    }

    fn wait(&self) {
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(began.elapsed() < PATIENCE, "the broker does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) fn start_again(&mut self) {
        self.child = Self::spawn(&self.directory);
        self.wait();
    }

    fn client(&self, program: &str, topic: &str) -> Command {
        let mut command = Command::new(program);
        let port = self.port.to_string();
        command.args(["-h", "127.0.0.1", "-p", &port, "-t", topic]);
        command
    }

    /// Publishes one message and waits until the broker has it.
    pub(crate) fn publish(&self, topic: &str, text: &str, flags: &[&str]) {
        let status = self
            .client("mosquitto_pub", topic)
            .args(["-q", "1", "-m", text])
            .args(flags)
            .status()
            .expect(MISSING);
        assert!(status.success());
    }

    /// A client that publishes many messages on a topic.
    pub(crate) fn publisher(&self, topic: &str) -> Publisher {
        let mut child = self
            .client("mosquitto_pub", topic)
            .arg("-l")
            .stdin(Stdio::piped())
            .spawn()
            .expect(MISSING);
        let lines = child.stdin.take().unwrap();
        self.clients.lock().unwrap().push(child);
        Publisher { lines }
    }

    /// Calls `each` with every message of a topic, in a thread. Returns when the client is subscribed.
    pub(crate) fn subscribe(&self, topic: &str, mut each: impl FnMut(&str) + Send + 'static) {
        let mut child = self
            .client("mosquitto_sub", topic)
            .stdout(Stdio::piped())
            .spawn()
            .expect(MISSING);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        self.clients.lock().unwrap().push(child);
        // The client prints the message only if it is subscribed.
        let began = Instant::now();
        let (first, seen) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut is_subscribed = false;
            for line in lines.map_while(Result::ok) {
                if line != PROBE {
                    each(&line);
                } else if !is_subscribed {
                    is_subscribed = true;
                    let _ = first.send(());
                }
            }
        });
        while seen.recv_timeout(Duration::from_millis(50)).is_err() {
            assert!(began.elapsed() < PATIENCE, "no subscription");
            self.publish(topic, PROBE, &[]);
        }
    }
}

const PROBE: &str = "are you there";

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop();
        for client in self.clients.get_mut().unwrap() {
            let _ = client.kill();
            let _ = client.wait();
        }
    }
}

/// A client that publishes a message per line. It ends with the broker.
pub(crate) struct Publisher {
    lines: ChildStdin,
}

impl Publisher {
    pub(crate) fn publish(&mut self, text: &str) {
        writeln!(self.lines, "{text}").unwrap();
        self.lines.flush().unwrap();
    }
}
