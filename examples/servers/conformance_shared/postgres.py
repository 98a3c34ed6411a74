"""Start and end a separate PostgreSQL with the built-in contacts, on the loopback address."""

import contextlib
import os
import pwd
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from program import LOOPBACK, free_port, wait_until

ROLE, PASSWORD, DATABASE = "app", "p@ss/word", "contacts"
SEED = Path(os.environ["SEED_SQL"])


class Postgres:
    """A PostgreSQL server with an application role that is not a superuser."""

    def __init__(self, folder: Path) -> None:
        self.bin = Path(os.environ["POSTGRES_BIN"])
        self.data = folder / "data"
        self.log = folder / "postgres.log"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        # PostgreSQL refuses to run as root.
        self.user = os.environ.get("POSTGRES_USER") or pwd.getpwuid(os.getuid()).pw_name
        account = pwd.getpwnam(self.user)
        folder.mkdir()
        os.chown(folder, account.pw_uid, account.pw_gid)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        self.folder = folder
        self._run(
            "initdb", "-D", str(self.data), "-E", "UTF8", "--locale=C.UTF-8", "-A", "trust", "-U", "postgres"
        )
        (self.data / "pg_hba.conf").write_text(
            "local all postgres trust\nhost all all 127.0.0.1/32 scram-sha-256\n", encoding="utf-8"
        )
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as config:
            config.write(
                f"listen_addresses = '{LOOPBACK}'\nport = {self.port}\n"
                f"unix_socket_directories = '{folder}'\nmax_connections = 90\nfsync = off\n"
                "log_line_prefix = '%a|'\n"
            )
        self.start()
        self.psql(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'", database="postgres")
        self.create(DATABASE)

    def _as_user(self) -> dict:
        return {"user": self.user} if os.getuid() == 0 else {}

    def _run(self, command: str, *arguments: str) -> None:
        subprocess.run(
            [self.bin / command, *arguments],
            check=True,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            **self._as_user(),
        )

    def url(self, port: int | None = None, *, database: str = DATABASE) -> str:
        quoted = PASSWORD.replace("@", "%40").replace("/", "%2F")
        return f"postgresql://{ROLE}:{quoted}@{LOOPBACK}:{port or self.port}/{database}?sslmode=disable"

    def create(self, database: str) -> None:
        """Create a database that the application's role owns."""
        self.psql(f"CREATE DATABASE {database} OWNER {ROLE}", database="postgres")

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [self.bin / "postgres", "-D", self.data],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                **self._as_user(),
            )
        ready = [self.bin / "pg_isready", "-q", "-h", LOOPBACK, "-p", str(self.port)]
        wait_until(lambda: subprocess.run(ready).returncode == 0, "PostgreSQL accepts connections")

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)  # fast shutdown
            self.process.wait(timeout=30)
            self.process = None

    def psql(self, sql: str, *, database: str = DATABASE) -> str:
        """Run SQL as the superuser and return its unaligned output."""
        command = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.port)]
        command += ["-U", "postgres", "-d", database, "-f", "-"]
        done = subprocess.run(command, check=True, input=sql.encode(), stdout=subprocess.PIPE)
        return done.stdout.decode().removesuffix("\n")

    def seed(self, rows: int, *, database: str = DATABASE) -> None:
        """Run the operator's seed as the application's role."""
        command = ["psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-v", f"rows={rows}", "-f", SEED]
        command.append(self.url(database=database))
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    @contextlib.contextmanager
    def table_locked(self) -> Iterator[None]:
        """Hold a lock that makes every SELECT on the contacts wait."""
        command = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.port)]
        command += ["-U", "postgres", "-d", DATABASE]
        session = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert session.stdin is not None
        assert session.stdout is not None
        try:
            session.stdin.write(b"BEGIN; LOCK TABLE contacts; SELECT 'locked';\n")
            session.stdin.flush()
            assert session.stdout.readline() == b"locked\n"
            yield
        finally:
            session.stdin.close()
            session.wait(timeout=10)
            session.stdout.close()
