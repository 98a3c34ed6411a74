//! An API server's answers from a list, and the program that asks for them.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Arc, Mutex},
    thread,
};

/// A new folder for one test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A server on loopback that gives one answer after another, and the last one for ever.
pub(crate) struct Api {
    kubeconfig: PathBuf,
    asked: Arc<Mutex<Vec<String>>>,
}

/// An HTTP status and a body.
pub(crate) type Answer = (u16, String);

impl Api {
    pub(crate) fn answering(name: &str, answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let kubeconfig = folder(name).join("kubeconfig");
        fs::write(&kubeconfig, kubeconfig_for(port)).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&asked);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let answer = &answers[number.min(answers.len() - 1)];
                let (line, stream) = request_of(stream.unwrap());
                // Before the answer: the program may end as soon as it has it.
                lines.lock().unwrap().push(line);
                give(stream, answer);
            }
        });
        Self { kubeconfig, asked }
    }

    /// The program with these arguments, with this server as the cluster of the context `pis` and of the context
    /// `shop`, whose namespace is `shop`. The current context is `pis`.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The same, not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-frugality"));
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig);
        command
    }

    /// Method and path of each request so far, with ` as USER` after them if it acts as another user.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn kubeconfig_for(port: u16) -> String {
    format!(
        "apiVersion: v1
kind: Config
current-context: pis
clusters:
  - name: here
    cluster: {{server: 'http://127.0.0.1:{port}'}}
users:
  - name: me
    user: {{}}
  - name: as-rosa
    user: {{as: rosa}}
contexts:
  - name: pis
    context: {{cluster: here, user: me}}
  - name: shop
    context: {{cluster: here, user: me, namespace: shop}}
  - name: rosa
    context: {{cluster: here, user: as-rosa}}
"
    )
}

/// Reads the request on a connection: its line without the HTTP version, and the user that it acts as.
fn request_of(stream: TcpStream) -> (String, TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut acts_as = String::new();
    let mut header = String::new();
    while reader.read_line(&mut header).unwrap() > 2 {
        if let Some((name, user)) = header.split_once(": ")
            && name.eq_ignore_ascii_case("impersonate-user")
        {
            acts_as = format!(" as {}", user.trim_end());
        }
        header.clear();
    }
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned() + &acts_as;
    (line, reader.into_inner())
}

fn give(mut stream: TcpStream, (status, body): &Answer) {
    let head = format!(
        "HTTP/1.1 {status} Answer\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
}

/// A failure as the API server describes it. `name` is the object that the request named.
pub(crate) fn refusal(code: u16, reason: &str, name: &str, message: &str) -> Answer {
    let status = serde_json::json!({
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": { "name": name, "kind": "frugalitybenchmarks" },
        "code": code,
    });
    (code, status.to_string())
}
