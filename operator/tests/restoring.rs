//! The Job that restores the database, run with a real PostgreSQL: Debian's package `postgresql`, which `make
//! test` installs.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::{fs::chown, process::CommandExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use frugality_operator::{
    api::DatabaseFacts,
    plan::{
        action::ChildObject,
        facts::pods::{counted_transactions, database_facts},
    },
};
use k8s_openapi::api::core::v1::Container;
use serde_json::json;

use crate::common::{self, delivered::deliver, two_with};

/// The UID of `nobody`, because PostgreSQL does not start as root.
const UNPRIVILEGED: u32 = 65_534;

/// Changes that a candidate can make to its database, to its role, and to the names in the operator's SQL.
const MISCHIEF: [&str; 11] = [
    "CREATE INDEX evil ON contacts (etag)",
    "CREATE VIEW evil_view AS SELECT 1",
    "CREATE TABLE evil_table AS SELECT 1",
    "CREATE FUNCTION public.hashtextextended(text, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'",
    "CREATE FUNCTION public.count() RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'",
    "UPDATE contacts SET etag = 'x' WHERE id = 1",
    "ALTER DATABASE app SET work_mem = '64kB'",
    "ALTER ROLE app SET enable_indexscan = off",
    "ALTER ROLE app SET search_path = public, pg_catalog",
    "ALTER ROLE app SET statement_timeout = 1",
    "ALTER ROLE app SET default_transaction_read_only = on",
];

struct Postgres {
    server: Child,
    folder: PathBuf,
    path: String,
    port: u16,
}

impl Postgres {
    /// `None` if PostgreSQL is not installed. `make test` fails in this case.
    fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            assert!(
                std::env::var_os("FRUGALITY_WITH_TESTS").is_none(),
                "PostgreSQL is missing: apt-get install postgresql"
            );
            eprintln!("not run: PostgreSQL is not installed");
            return None;
        };
        let folder = std::env::temp_dir().join(format!("frugality-restore-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let benchmark = two_with(&[("/database/provider", json!("Standalone"))]);
        let server = common::made(&benchmark, |builder, _, node| {
            builder.database_server(benchmark.spec.database.as_ref().unwrap(), node)
        });
        let ChildObject::Deployment(server) = server else {
            panic!("not a Deployment");
        };
        let pod = server.spec.unwrap().template.spec.unwrap();
        let words: Vec<String> = deliver(&pod.containers[0])
            .words
            .iter()
            .map(|word| word.replace("port=5432", &format!("port={port}")))
            .map(|word| word.replace("listen_addresses='*'", "listen_addresses=127.0.0.1"))
            .collect();
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .envs([("PATH", path.as_str()), ("PGUSER", "app")])
            .envs([("PGPASSWORD", "secret"), ("PGDATABASE", "app")])
            .env("PGDATA", folder.join("data"))
            .env("SOCKETS", &folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if is_root() {
            chown(&folder, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
            command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        }
        let postgres = Self {
            server: command.spawn().unwrap(),
            folder,
            path,
            port,
        };
        let begin = Instant::now();
        while postgres.ask("app", &["SELECT 1"]).is_none() {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "PostgreSQL does not start"
            );
            thread::sleep(Duration::from_millis(200));
        }
        Some(postgres)
    }

    fn url(&self, database: &str) -> String {
        format!(
            "postgresql://app:secret@127.0.0.1:{}/{database}?sslmode=disable",
            self.port
        )
    }

    /// PostgreSQL's answer to the last command. `None` if PostgreSQL refuses a command.
    fn ask(&self, database: &str, commands: &[&str]) -> Option<String> {
        let mut psql = Command::new("psql");
        psql.env("PATH", &self.path).args([
            self.url(database).as_str(),
            "-X",
            "-qAt",
            "-v",
            "ON_ERROR_STOP=1",
        ]);
        for command in commands {
            psql.args(["-c", command]);
        }
        let output = psql.output().unwrap();
        let answers = String::from_utf8(output.stdout).unwrap();
        output.status.success().then(|| answers.trim().to_owned())
    }

    /// The transactions so far, as the container that prepares a trial reports them.
    fn transactions(&self) -> u64 {
        let benchmark = two_with(&[("/database/seed/contacts", json!(500))]);
        let job = common::made(&benchmark, |builder, _, node| {
            builder.prepare(benchmark.spec.database.as_ref().unwrap(), "trial", node)
        });
        counted_transactions(&self.said(&first_container(job))).unwrap()
    }

    /// Runs the Job, and returns its report.
    fn restore(&self) -> DatabaseFacts {
        let facts = database_facts(&self.said(&seed())).unwrap();
        assert!(facts.state.len() >= 8, "{facts:?}");
        facts
    }

    /// Runs a container, and returns its last words.
    fn said(&self, container: &Container) -> String {
        let words_file = self.folder.join("last-words");
        let _ = fs::remove_file(&words_file);
        let delivered = deliver(container);
        let script =
            delivered.words[2].replace("/dev/termination-log", words_file.to_str().unwrap());
        let output = Command::new(&delivered.words[0])
            .args([&delivered.words[1], &script])
            .envs(&delivered.env)
            .env("DATABASE_URL", self.url("app"))
            .env("PATH", &self.path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        fs::read_to_string(words_file).unwrap()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGINT is PostgreSQL's fast shutdown, which leaves no process behind.
        let pid = self.server.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = self.server.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    folders
        .filter(|folder| folder.join("initdb").exists())
        .max()
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
}

/// The container that fills and restores the database.
fn seed() -> Container {
    let benchmark = two_with(&[("/database/seed/contacts", json!(500))]);
    let job = common::made(&benchmark, |builder, _, node| {
        builder.seed(benchmark.spec.database.as_ref().unwrap(), node, None)
    });
    first_container(job)
}

fn first_container(object: ChildObject) -> Container {
    let pod = object.into_pod().unwrap().spec.unwrap();
    pod.containers.into_iter().next().unwrap()
}

#[test]
fn a_candidate_leaves_nothing_behind_and_a_changed_template_is_seen() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    // An evicted seed can leave a part of the data.
    let left = [
        "CREATE TABLE contacts (id int)",
        "CREATE TABLE left_over (id int)",
    ];
    postgres.ask("app", &left).unwrap();
    let first = postgres.restore();
    assert_eq!(first.rows, 500);
    let left = "SELECT count(*) FROM pg_class WHERE relname = 'left_over'";
    assert_eq!(postgres.ask("app", &[left]).unwrap(), "0");
    assert_eq!(postgres.restore(), first);

    let before = postgres.transactions();
    let forged = "CREATE VIEW public.pg_stat_database AS SELECT current_database() AS datname, 0 AS xact_commit, 0 AS xact_rollback";
    postgres.ask("app", &[forged]).unwrap();
    postgres.ask("app", &MISCHIEF).unwrap();
    // Sessions report their transactions up to a second late.
    thread::sleep(Duration::from_secs(1));
    assert!(
        postgres.transactions() > before,
        "the candidate's own view was read"
    );
    assert_eq!(postgres.restore(), first);
    let left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'evil%'";
    assert_eq!(postgres.ask("app", &[left]).unwrap(), "0");
    assert_eq!(
        postgres.ask("app", &["SHOW enable_indexscan"]).unwrap(),
        "on"
    );
    assert_eq!(postgres.ask("app", &["SHOW work_mem"]).unwrap(), "4MB");

    for (tampering, kind) in [
        ("CREATE INDEX evil ON contacts (etag)", "indexes"),
        ("CREATE VIEW evil_view AS SELECT 1", "views"),
        (
            "CREATE FUNCTION evil() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "functions",
        ),
        ("CREATE TABLE evil_table AS SELECT 1 AS one", "rows"),
        ("ALTER TABLE contacts SET (fillfactor = 50)", "tables"),
        // The result is dead rows only.
        ("UPDATE contacts SET etag = etag", "tables"),
        (
            "ALTER TABLE contacts ALTER etag SET STATISTICS 0",
            "columns",
        ),
        ("CREATE DATABASE evil_database", "databases"),
    ] {
        let before = postgres.restore();
        postgres.ask("app_seed", &[tampering]).unwrap();
        let after = postgres.restore();
        assert_ne!(after.state.get(kind), before.state.get(kind), "{tampering}");
    }
    counts_all_transactions(&postgres);
    let before = postgres.restore();
    postgres
        .ask("app_seed", &["DELETE FROM contacts WHERE id = 7"])
        .unwrap();
    assert_eq!(postgres.restore().rows, before.rows - 1);
}

/// The Job that restores the database counts first, also the last transactions of a session that is still open.
fn counts_all_transactions(postgres: &Postgres) {
    postgres.restore();
    let before = postgres.transactions();
    let mut session = Command::new("psql")
        .env("PATH", &postgres.path)
        .args([postgres.url("app").as_str(), "-X", "-q"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = session.stdin.take().unwrap();
    stdin
        .write_all("SELECT 1;\n".repeat(200).as_bytes())
        .unwrap();
    stdin.write_all(b"\\echo done\n").unwrap();
    let answers = BufReader::new(session.stdout.take().unwrap());
    assert!(answers.lines().any(|line| line.unwrap() == "done"));
    let counted = counted_transactions(&postgres.said(&seed())).unwrap();
    drop(stdin);
    session.wait().unwrap();
    // The two Jobs make a few themselves.
    let between = counted - before;
    assert!((200..220).contains(&between), "{between} transactions");
}
