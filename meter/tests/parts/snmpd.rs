//! A real SNMP agent: Debian's package snmpd. `make unit` installs it.

use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use tempfile::TempDir;

/// An agent on the loopback interface with one object, whose value a test sets. It is killed when dropped.
pub(crate) struct Agent {
    child: Child,
    directory: TempDir,
    port: u16,
}

impl Agent {
    /// An agent that answers for `oid` with a value of net-snmp's `kind`, such as `gauge`.
    pub(crate) fn start(community: &str, oid: &str, kind: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let port = free_port();
        let path = |name: &str| directory.path().join(name);
        let (script, value) = (path("value.sh"), path("value"));
        // The agent would keep the answer of a program that it starts for each question for half a minute.
        let text = format!(
            "while read -r line; do\n  case $line in\n    PING) echo PONG ;;\n    *) read -r oid\n      \
             if [ \"$line $oid\" = \"get .{oid}\" ]; then echo .{oid}; echo {kind}; cat {}; \
             else echo NONE; fi ;;\n  esac\ndone\n",
            value.display()
        );
        std::fs::write(&script, text).unwrap();
        std::fs::write(&value, "0\n").unwrap();
        let config = format!(
            "rocommunity {community} 127.0.0.1\npass_persist .{oid} /bin/sh {}\n",
            script.display()
        );
        std::fs::write(path("snmpd.conf"), config).unwrap();
        // Debian has no /usr/sbin in the path of users.
        let child = Command::new("/usr/sbin/snmpd")
            .args(["-f", "-Ln", "-C", "-c"])
            .arg(path("snmpd.conf"))
            .arg(format!("udp:127.0.0.1:{port}"))
            .env("SNMP_PERSISTENT_DIR", directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the test needs Debian's package snmpd: `make unit` installs it");
        Self {
            child,
            directory,
            port,
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn set(&self, value: impl std::fmt::Display) {
        // The agent must never see a file that is half written.
        let path = |name: &str| -> PathBuf { self.directory.path().join(name) };
        std::fs::write(path("new"), format!("{value}\n")).unwrap();
        std::fs::rename(path("new"), path("value")).unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A free port below the ones that the kernel gives to clients. Otherwise a question to an agent that is not up yet could
/// be sent from the agent's own port, and would come back as its answer.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 8_000).unwrap();
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed) % 4_000;
        // The socket is closed again, so the port is free.
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
