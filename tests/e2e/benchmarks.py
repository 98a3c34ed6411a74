"""The benchmarks of the session, in the order in which they are applied.

The box has one measured node and one node for the injector, so the operator runs them one after another.
"""

import json
from dataclasses import dataclass, field

from kube import ROOT, Object, kubectl

EXAMPLE = "examples/rust-vs-python.yaml"
SHORT = "examples/short.patch.yaml"
RUST = "ghcr.io/frugality-dev/contacts-rust:0.1.0"
# Real Fortio as a server: it answers 200 on /debug. On / it answers with the status and size in the query.
FORTIO = "localhost/frugality/fortio:1.68.2"
FORTIO_ARGS = [
    "server",
    "-http-port",
    "8080",
    *(f"-{p}-port=disabled" for p in ("grpc", "redirect", "tcp", "udp")),
]


@dataclass(frozen=True)
class Benchmark:
    """One benchmark of the session."""

    namespace: str
    name: str
    spec: Object = field(default_factory=dict)
    """Empty for the example."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def manifest(self) -> Object:
        metadata = {"namespace": self.namespace, "name": self.name}
        return {
            "apiVersion": "frugality.dev/v1alpha1",
            "kind": "FrugalityBenchmark",
            "metadata": metadata,
            "spec": self.spec,
        }

    def apply(self) -> None:
        if self.spec:
            kubectl("apply", "-f", "-", stdin=json.dumps(self.manifest))
            return
        apply_example(self.namespace, EXAMPLE, SHORT)


def apply_example(namespace: str, example: str, patch: str) -> str:
    """Applies an example with one benchmark in its short form, and returns the benchmark's name."""
    (name,) = apply_examples(namespace, example, patch)
    return name


def apply_examples(namespace: str, example: str, patch: str) -> list[str]:
    """Applies an example with several benchmarks in its short form, and returns their names."""
    command = ("patch", "-f", example, "--local", "--type=merge", "--patch-file", patch, "-o", "json")
    patched = kubectl(*command).stdout
    applied = kubectl("apply", "--namespace", namespace, "-f", "-", "-o", "name", stdin=patched)
    return [line.rpartition("/")[2] for line in applied.stdout.split()]


def spec(**changes: object) -> Object:
    """A small valid spec, with changes."""
    small = {
        "candidates": [{"name": "rust", "image": RUST}],
        "request": {"path": "/contacts/{uuid}"},
        "load": {"duration": "20s", "warmUp": "2s"},
        "trials": {"blocks": 1, "idleBaseline": "5s"},
    }
    return {name: value for name, value in (small | changes).items() if value is not None}


DATABASE = {"seed": {"contacts": 1000}}

LONG = Benchmark("e2e-long", "rust-vs-python")
DELETED = Benchmark("e2e-deleted", "deleted", spec(database=DATABASE, deadline="5m"))
# On a database that the operator runs itself.
KILLED = Benchmark(
    "e2e-killed",
    "killed",
    spec(
        database=DATABASE | {"provider": "Standalone"},
        trials={"blocks": 1, "idleBaseline": "5s", "maxAttempts": 10},
        deadline="10m",
    ),
)
GO = "ghcr.io/frugality-dev/streamdata-go:0.1.0"
# A balancer before two services, as in examples/rust-vs-go-streamdata.yaml.
BALANCED = Benchmark(
    "e2e-balanced",
    "balanced",
    spec(
        candidates=[
            {
                "name": "go",
                "image": GO,
                "args": ["balance"],
                "backends": [{"name": "service", "image": GO, "args": ["serve"], "replicas": 2}],
            }
        ],
        request={
            "method": "POST",
            "path": "/streamdata",
            "body": '{"name":"n","deviceId":"d","patientId":"p","data":[]}',
        },
        deadline="5m",
    ),
)
MNESIA = "ghcr.io/frugality-dev/mnesia-erlang:0.1.0"
SCRIPT = """
import http from 'k6/http';
import { check } from 'k6';
export const options = { noConnectionReuse: true };
let cycle = 0;
export default function () {
  cycle += 1;
  const body = JSON.stringify({ name: 'object', text: 'text' });
  const headers = { 'Content-Type': 'application/json' };
  const created = http.post(`${__ENV.URL}/objects`, body, { headers: headers });
  check(created, { 'was created': (answer) => answer.status === 201 });
  http.get(`${__ENV.URL}/stats`);
  check(cycle, { 'is no tenth': (cycle) => cycle % 10 !== 0 });
}
"""
# Two members of a cluster, as in examples/mnesia-cluster.yaml.
SCRIPTED = Benchmark(
    "e2e-scripted",
    "scripted",
    spec(
        candidates=[
            {
                "name": "mnesia",
                "image": MNESIA,
                "peers": True,
                "replicas": 2,
                "readinessPath": "/readyz",
                "env": [{"name": "MODE", "value": "sync_transaction"}],
            }
        ],
        request=None,
        scenario={"script": SCRIPT, "rampUp": "1s"},
        load={"duration": "20s", "warmUp": "2s", "rate": 40, "connections": 8},
        deadline="5m",
    ),
)
UNREADABLE_SCRIPT = Benchmark(
    "e2e-scripted",
    "unreadable",
    spec(
        candidates=[{"name": "fortio", "image": FORTIO, "args": FORTIO_ARGS, "readinessPath": "/debug"}],
        request=None,
        scenario={"script": "export const options = { vus: 3 }; export default function () {}"},
        deadline="5m",
    ),
)
PROGRAMS = "ghcr.io/frugality-dev/programs:0.1.0"


def executed(name: str, argv: list[str], batch: Object, **load: str) -> Benchmark:
    """One program alone."""
    candidate = {"name": "program", "image": PROGRAMS, "command": argv[:1], "args": argv[1:]}
    load = {"warmUp": "2s", "connections": 1} | load
    return Benchmark(
        "e2e-batch",
        name,
        spec(candidates=[candidate], request=None, batch=batch, load=load, deadline="5m"),
    )


# As in examples/boards-cpu.yaml, at less depth.
EXECUTED = executed(
    "executed",
    ["stockfish", "bench", "16", "1", "11"],
    {
        "score": {"pattern": "Nodes/second *: ([0-9]+)", "unit": "nodes/s"},
        "work": {"pattern": "Nodes searched *: ([0-9]+)", "unit": "node"},
    },
    duration="20s",
)
# Its work and its score are large numbers: bytes and bit/s.
SENT = executed(
    "sent",
    ["sh", "-c", "iperf3 -s -1 -D && sleep 0.2 && iperf3 -c 127.0.0.1 -t 5 -J"],
    {
        "executions": 4,
        "score": {"pattern": r'"bits_per_second":\s*([0-9.e+]+)', "unit": "bit/s"},
        "work": {"pattern": r'"bytes":\s*([0-9]+)', "unit": "byte"},
    },
)
# Prints no score, and ends with an exit code.
NOT_EXECUTED = executed(
    "not-executed",
    ["sh", "-c", "echo 'there is no board' >&2; exit 3"],
    {"timeout": "10s"},
    duration="20s",
)
ANSWERS_500 = Benchmark(
    "e2e-bad",
    "answers-500",
    spec(
        candidates=[{"name": "broken", "image": FORTIO, "args": FORTIO_ARGS, "readinessPath": "/debug"}],
        request={"path": "/?status=500"},
        # Fortio reconnects after every failure. At the greatest rate it would run out of ports.
        load={"duration": "20s", "warmUp": "2s", "rate": 50},
        deadline="3m",
    ),
)
NO_IMAGE = Benchmark(
    "e2e-bad",
    "no-image",
    spec(
        candidates=[{"name": "missing", "image": "localhost/frugality/no-such-server:0.1.0"}], deadline="2m"
    ),
)
# The base image of the box. It names no user.
AS_ROOT = Benchmark(
    "e2e-bad",
    "as-root",
    spec(candidates=[{"name": "root", "image": "docker.io/library/debian:bookworm-slim"}], deadline="2m"),
)
CRASHES = Benchmark(
    "e2e-bad",
    "crashes",
    spec(
        candidates=[
            {
                "name": "crashing",
                "image": "docker.io/library/debian:bookworm-slim",
                "command": ["sh", "-c", "echo lost its configuration; exit 3"],
                "runAsUser": 65532,
            }
        ],
        deadline="2m",
    ),
)
WRONG_PORT = Benchmark(
    "e2e-bad",
    "wrong-port",
    spec(
        candidates=[
            {"name": "deaf", "image": FORTIO, "args": FORTIO_ARGS, "port": 9090, "readinessPath": "/debug"}
            | {"readyWithin": "15s"}
        ],
        deadline="2m",
    ),
)
NO_DATABASE = Benchmark(
    "e2e-bad",
    "no-database",
    spec(database=DATABASE | {"image": "localhost/frugality/postgresql:15-missing"}, deadline="2m"),
)
NO_INJECTOR = Benchmark(
    "e2e-bad", "no-injector", spec(placement={"injectorNodeSelector": {"example.com/no-such-label": "yes"}})
)
MODELLED = Benchmark(
    "e2e-bad",
    "modelled",
    spec(
        database=DATABASE,
        trials={"blocks": 5, "idleBaseline": "5s"},
        budgets=[{"candidate": "rust", "maxJoulesPerRequest": 0.02}],
    ),
)

# The tests of test_life.py apply these after all others. As short as the schema allows, without a database.
TURN = spec(
    candidates=[{"name": "fortio", "image": FORTIO, "args": FORTIO_ARGS, "readinessPath": "/debug"}],
    request={"path": "/?size=100"},
    load={"duration": "20s", "warmUp": "2s", "rate": 100},
    deadline="5m",
)

# Ends without a turn, because the power of the box is modelled.
NO_JOULES = {
    "trials": {"blocks": 5, "idleBaseline": "5s"},
    "budgets": [{"candidate": "rust", "maxJoulesPerRequest": 0.02}],
}
EXPIRES = Benchmark("e2e-life", "expires", spec(**NO_JOULES, ttlAfterFinished="1m"))
AGAIN = Benchmark("e2e-life", "again", spec(**NO_JOULES))
CREATED_SUSPENDED = Benchmark("e2e-life", "created-suspended", TURN | {"suspend": True})
PAUSED = Benchmark("e2e-life", "paused", TURN)
LIFE = [PAUSED, CREATED_SUSPENDED, EXPIRES, AGAIN]

# NO_INJECTOR and MODELLED are not in it: they are refused without a turn.
QUEUE = [
    LONG,
    DELETED,
    KILLED,
    BALANCED,
    SCRIPTED,
    UNREADABLE_SCRIPT,
    EXECUTED,
    SENT,
    NOT_EXECUTED,
    ANSWERS_500,
    NO_IMAGE,
    AS_ROOT,
    CRASHES,
    WRONG_PORT,
    NO_DATABASE,
]
ALL = [*QUEUE, NO_INJECTOR, MODELLED]
NAMESPACES = sorted({benchmark.namespace for benchmark in [*ALL, *LIFE]})
assert (ROOT / EXAMPLE).exists()
