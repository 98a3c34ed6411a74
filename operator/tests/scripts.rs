//! The shell scripts of the Jobs that use the database, with a stand-in for `psql` that fails at first.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::common::{delivered::deliver, two, world::World};
use frugality_operator::plan::action::ChildObject;
use k8s_openapi::api::{batch::v1::Job, core::v1::Container};

/// The first container of that name in a Job of the run.
fn container(name: &str) -> Container {
    let of = |job: Job| {
        let pod = job.spec?.template.spec?;
        let mut containers = pod
            .init_containers
            .into_iter()
            .flatten()
            .chain(pod.containers);
        containers.find(|container| container.name == name)
    };
    let mut world = World::new([two()]);
    loop {
        let slot = world.wait();
        let created = world.pass(slot).create.into_iter();
        let found = created.filter_map(|child| match child {
            ChildObject::Job(job) => of(*job),
            _ => None,
        });
        if let Some(found) = found.into_iter().next() {
            return found;
        }
    }
}

/// A folder with stand-ins. `psql` can't connect for the first `refusals` calls. Each call of `date` advances
/// the clock by ten seconds. `sleep` returns at once.
struct StandIn(PathBuf);

impl StandIn {
    fn new(name: &str, refusals: u32) -> Self {
        let folder = std::env::temp_dir().join(format!("frugality-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let at = folder.display();
        let psql = format!(
            "#!/bin/sh
echo >> {at}/calls
if [ $(wc -l < {at}/calls) -le {refusals} ]; then echo 'psql: error: Connection refused' >&2; exit 2; fi
echo \"$*\" >> {at}/asked
case \"$*\" in *'-f -'*) cat >> {at}/asked;; esac\n"
        );
        let date = format!("#!/bin/sh\necho >> {at}/looks\necho $(wc -l < {at}/looks)0\n");
        for (program, text) in [
            ("psql", psql.as_str()),
            ("date", date.as_str()),
            ("sleep", "#!/bin/sh\n"),
        ] {
            let path = folder.join(program);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self(folder)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    /// Runs a container's command with these stand-ins.
    fn run(&self, container: &Container) -> Output {
        let words_file = self.path().join("last-words");
        let command = deliver(container).words;
        let script = command[2].replace("/dev/termination-log", words_file.to_str().unwrap());
        let path = format!(
            "{}:{}",
            self.path().display(),
            std::env::var("PATH").unwrap()
        );
        Command::new(&command[0])
            .args([&command[1], &script])
            .env("PATH", path)
            .envs(deliver(container).env)
            .env(
                "DATABASE_URL",
                "postgresql://database:5432/app?sslmode=disable",
            )
            .output()
            .unwrap()
    }

    /// The number of attempts to connect.
    fn calls(&self) -> usize {
        let calls = fs::read_to_string(self.path().join("calls")).unwrap();
        calls.lines().count()
    }

    /// The commands that the database received.
    fn asked(&self) -> String {
        fs::read_to_string(self.path().join("asked")).unwrap_or_default()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_jobs_wait_for_a_database_that_does_not_answer_yet() {
    for (name, sign) in [("seed", "rows=10000 -f -"), ("prepare", "CHECKPOINT")] {
        let database = StandIn::new(name, 2);
        let output = database.run(&container(name));
        assert!(output.status.success(), "{name}: {output:?}");
        let asked = database.asked();
        let count = |text: &str| asked.lines().filter(|line| line.contains(text)).count();
        assert_eq!(
            (count(sign), count("FROM :seeded AS t")),
            (1, 1),
            "{name}: {asked}"
        );
    }
}

#[test]
fn the_jobs_print_the_error_of_a_database_that_never_answers() {
    for name in ["seed", "prepare"] {
        let database = StandIn::new(&format!("{name}-never"), u32::MAX);
        let output = database.run(&container(name));
        assert_eq!(output.status.code(), Some(2), "{name}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(error, "psql: error: Connection refused\n", "printed once");
        assert_eq!(database.asked(), "");
        // The tries of a minute, and the last try, whose error the Job prints.
        assert_eq!(database.calls(), 7, "{name}");
    }
}
