"""Attempts to falsify a figure or a verdict, by a user with the edit roles of the cluster and the chart.

Each one ends in one of three ways. The API server refuses it, the trial's attempt is void with a reason, or
the figure is unchanged. The test checks in which way.

Not part of the default suite, because it takes a quarter of an hour: ``make adversary``.
"""

import base64
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

import box
import waiting
from benchmarks import Benchmark, spec
from conftest import remove_namespaces
from kube import OPERATOR_NAMESPACE, Object, conditions, get, kubectl

NAMESPACE = "e2e-adversary"
ADVERSARY = "adversary"
RUST = "ghcr.io/frugality-dev/contacts-rust:0.1.0"
PYTHON = "ghcr.io/frugality-dev/contacts-python:0.1.0"
INTERPRETER = "/opt/contacts/bin/python3"
# Longest wait for one benchmark: three attempts of about 50 s, or a database and two attempts.
TURN_SECONDS = 480
User = Callable[..., CompletedProcess[str]]

# Text that Kubernetes' expansion of variables would change. ASCII, because headers hold it.
TEXT = "$$ $(PORT) $$(PGPASSWORD) $(HOME)$$ `${x}` 5$"
PATH = "/$$/$(PORT)?q=$$(HOME)$$"
BODY = TEXT + " $ä€\n\ttab"

# A server of Python's standard library. A program adds `wrong(self, body)`, which returns the fault of a
# request, or None.
SERVER = """
import base64, http.server, json, os, socketserver, sys, threading, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True
    def answer(self):
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        fault = self.path != '/healthz' and wrong(self, body)
        said = (repr(fault) if fault else 'ok').encode()
        self.send_response(500 if fault else 200)
        self.send_header('Content-Length', str(len(said)))
        self.end_headers()
        self.wfile.write(said)
    do_GET = do_POST = answer
    def log_message(self, *words): pass
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64
def serve(): Server(('', int(os.environ.get('PORT', 8080))), Handler).serve_forever()
"""
QUIET = SERVER + "def wrong(self, body): return None\nserve()\n"
# Prints each request.
TELLING = QUIET.replace("    def log_message(self, *words): pass\n", "")
# Answers 500 if path, header or body differ from EXPECTED. Does not start if its argument or its variable
# differ.
ECHO = (
    SERVER
    + """
expected = json.loads(base64.b64decode(os.environ['EXPECTED']))
if [sys.argv[1], os.environ['TEXT']] != [expected['text']] * 2:
    sys.exit(f'changed on the way: {sys.argv[1]!r} {os.environ["TEXT"]!r}')
def wrong(self, body):
    got = {'path': self.path, 'header': self.headers.get('X-Text'), 'body': body.decode()}
    return {k: v for k, v in got.items() if v != expected[k]}
serve()
"""
)
# Keeps its CPU busy while it gets no requests: its idle power equals its power under load.
BURNER = (
    SERVER
    + """
asked = [0.0]
def wrong(self, body): asked[0] = time.monotonic()
def burn():
    while True:
        if time.monotonic() - asked[0] < 0.5: time.sleep(0.1)
        else: sum(range(20000)); time.sleep(0.001)
threading.Thread(target=burn, daemon=True).start()
serve()
"""
)
# Fails to start if it finds changes of another candidate in the database. Then it makes the same changes.
MISCHIEF = (
    SERVER
    + """
import asyncio, asyncpg
DEEDS = '''ALTER ROLE app SET enable_indexscan = off
ALTER ROLE app SET search_path = public, pg_catalog
ALTER DATABASE app SET work_mem = '64kB'
CREATE INDEX mischief ON contacts (etag)
CREATE VIEW mischief_view AS SELECT 1
CREATE FUNCTION hashtextextended(text, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'
CREATE TABLE mischief_table AS SELECT 1
'''
async def main():
    url = os.environ['DATABASE_URL']
    c = await asyncpg.connect(url)
    found = [await c.fetchval(q) for q in (
        'SHOW enable_indexscan', 'SHOW work_mem', 'SHOW search_path',
        "SELECT count(*) FROM pg_class WHERE relname LIKE 'mischief%'",
        "SELECT count(*) FROM pg_proc WHERE proname = 'hashtextextended'",
    )]
    if 'TEMPLATE' not in os.environ and found != ['on', '4MB', '"$user", public', 0, 1]:
        sys.exit(f'a candidate was here: {found}')
    for deed in DEEDS.splitlines(): await c.execute(deed)
    await c.close()
    if 'TEMPLATE' in os.environ:
        c = await asyncpg.connect(url.replace('/app?', '/app_seed?'))
        await c.execute('CREATE INDEX IF NOT EXISTS mischief_below ON contacts (etag)')
        await c.close()
asyncio.run(main())
def wrong(self, body): return None
serve()
"""
)


def candidate(name: str, program: str, *args: str, **env: str) -> Object:
    return {
        "name": name,
        "image": PYTHON,
        "command": [INTERPRETER, "-c", program],
        "args": list(args),
        "env": [{"name": key, "value": value} for key, value in env.items()],
    }


def benchmark(name: str, **changes: object) -> Object:
    small = {
        "candidates": [candidate("server", QUIET)],
        "request": {"path": "/"},
        "load": {"duration": "20s", "warmUp": "2s", "rate": 100},
        "trials": {"blocks": 1, "idleBaseline": "5s", "maxAttempts": 2},
        "deadline": "15m",
    }
    return Benchmark(NAMESPACE, name, spec(**{**small, **changes})).manifest


def encoded(**expected: str) -> str:
    return base64.b64encode(json.dumps(expected).encode()).decode()


@pytest.fixture(scope="module")
def adversary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """A user with the edit roles in one namespace, and without rights in other namespaces."""
    remove_namespaces([NAMESPACE], wait=True)
    kubectl("create", "namespace", NAMESPACE)
    kubectl("create", "serviceaccount", ADVERSARY, "-n", NAMESPACE)
    for role in ("edit", "frugality-edit"):
        kubectl(
            *("create", "rolebinding", role, f"--clusterrole={role}"),
            *(f"--serviceaccount={NAMESPACE}:{ADVERSARY}", "-n", NAMESPACE),
        )
    config = json.loads(kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
    token = kubectl("create", "token", ADVERSARY, "-n", NAMESPACE, "--duration=2h").stdout.strip()
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    file: Path = tmp_path_factory.mktemp(ADVERSARY) / "kubeconfig"
    file.write_text(json.dumps(config))

    def user(*arguments: str, stdin: str | None = None) -> CompletedProcess[str]:
        return kubectl("--kubeconfig", str(file), "-n", NAMESPACE, *arguments, stdin=stdin, check=False)

    yield user
    remove_namespaces([NAMESPACE], wait=False)


def allowed(result: CompletedProcess[str]) -> str:
    assert result.returncode == 0, result.stderr
    return result.stdout


def create(user: User, manifest: Object) -> None:
    allowed(user("create", "-f", "-", stdin=json.dumps(manifest)))


def refused(user: User, manifest: Object) -> str:
    result = user("create", "--dry-run=server", "-f", "-", stdin=json.dumps(manifest))
    assert result.returncode != 0, result.stdout
    return result.stderr


def until(what: str, ask: Callable[[], Any], seconds: float = TURN_SECONDS) -> Any:
    """The first answer that is not empty. A failure shows the namespace's benchmarks, trials and pods."""
    try:
        return waiting.until(ask, seconds, what, every=1)
    except waiting.NotSeenError as error:
        seen = kubectl("get", "fb,fbt,pods", "-n", NAMESPACE, "-o", "wide").stdout
        pytest.fail(f"{error}\n{seen}")


def ended(name: str) -> Object:
    """A benchmark with its verdict."""

    def complete() -> Object | None:
        found = get("fb", name, "-n", NAMESPACE)
        return found if conditions(found).get("Complete", {}).get("status") == "True" else None

    return until(f"the end of {name}", complete)


def verdict(name: str) -> tuple[str, str, str]:
    """Verdict, reason and message."""
    found = ended(name)
    complete = conditions(found)["Complete"]
    return found["status"]["verdict"], complete["reason"], complete["message"]


def trials(name: str) -> list[Object]:
    """The attempts of a benchmark in their order."""
    found = [t for t in get("fbt", "-n", NAMESPACE)["items"] if t["spec"]["benchmark"] == name]
    return sorted(found, key=lambda trial: (trial["spec"]["attempt"], trial["spec"]["position"]))


def measured(name: str) -> list[Object]:
    return [t["status"] for t in trials(name) if t.get("status", {}).get("outcome") == "Measured"]


def under_load(name: str, attempt: int) -> str:
    """Waits until the injector of this attempt sends requests. Returns the name of the attempt."""

    def loading() -> str | None:
        for trial in trials(name):
            status = trial.get("status", {})
            if trial["spec"]["attempt"] != attempt or "idleBefore" not in status:
                continue
            assert "outcome" not in status, f"ended before anything was done: {trial}"
            selector = f"frugality.dev/trial={trial['metadata']['name']},frugality.dev/role=injector"
            pods = get("pods", "-n", NAMESPACE, "-l", selector)["items"]
            if any(pod["status"].get("phase") == "Running" for pod in pods):
                return str(trial["metadata"]["name"])
        return None

    found: str = until(f"load of attempt {attempt} of {name}", loading)
    # Some seconds into the load.
    waiting.hold(4, loading, f"load of attempt {attempt} of {name}", every=1)
    return found


def outcome_of(trial: str, name: str) -> tuple[str, str]:
    """Waits for the end of an attempt. Returns its outcome and its reason."""

    def over() -> tuple[str, str] | None:
        (status,) = [t.get("status", {}) for t in trials(name) if t["metadata"]["name"] == trial]
        return (status["outcome"], status["reason"]) if "outcome" in status else None

    found: tuple[str, str] = until(f"the end of {trial}", over, 120)
    return found


def pod(name: str, labels: dict[str, str], port: int = 8080) -> Object:
    """A bare pod that answers every request with 200. It satisfies the restricted Pod Security Standard."""
    container = {
        "name": "server",
        "image": PYTHON,
        "command": [INTERPRETER, "-u", "-c", TELLING],
        "env": [{"name": "PORT", "value": str(port)}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    of_pod = {
        "containers": [container],
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": {"kubernetes.io/hostname": box.MEASURED_NODE},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": of_pod}


# ---- refused by the API server -------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["Port", "LISTEN_ADDRESSES", "Shared_Preload_Libraries", "archive_command", "search_path"]
)
def test_a_parameter_is_refused_in_every_spelling(adversary: User, name: str) -> None:
    database = {"seed": {"contacts": 10}, "parameters": {name: "1"}}
    assert f"database.parameters must not set {name}: allowed are" in refused(
        adversary, benchmark("refused", database=database)
    )


@pytest.mark.parametrize(
    "line", ["import 'https://example.org/a.js';", "const a = require('https://example.org/a.js');"]
)
def test_a_script_from_the_network_is_refused(adversary: User, line: str) -> None:
    script = f"{line}\nexport default function () {{}}"
    said = refused(adversary, benchmark("refused", request=None, scenario={"script": script}))
    assert "scenario.script imports from the network" in said


def test_a_header_that_would_not_arrive_is_refused(adversary: User) -> None:
    request = {"path": "/", "headers": [{"name": "X-Text", "value": " a"}]}
    assert "must not begin or end with a blank" in refused(adversary, benchmark("refused", request=request))


def test_a_users_meter_is_refused_in_the_operators_namespace(adversary: User) -> None:
    real = kubectl(
        *("get", "daemonset", "frugality-meter", "-n", OPERATOR_NAMESPACE),
        *("-o", "jsonpath={.spec.template.metadata.labels}"),
    ).stdout
    forged = pod("meter", json.loads(real), port=28282)
    result = adversary("create", "-n", OPERATOR_NAMESPACE, "-f", "-", stdin=json.dumps(forged))
    assert "is forbidden" in result.stderr, result.stdout
    # In the user's own namespace it is an ordinary pod. A later test reads its log.
    create(adversary, forged)


def test_a_user_cannot_write_a_verdict_or_a_ledger_entry(adversary: User) -> None:
    create(adversary, benchmark("forged", suspend=True))
    patch = ("--subresource=status", "--type=merge", "-p", '{"status":{"verdict":"Pass"}}')
    assert "is forbidden" in adversary("patch", "fb", "forged", *patch).stderr
    entry = {"apiVersion": "frugality.dev/v1alpha1", "kind": "FrugalityTrial", "metadata": {"name": "forged"}}
    assert "is forbidden" in adversary("create", "-f", "-", stdin=json.dumps(entry)).stderr
    assert "is forbidden" in adversary("delete", "fbt", "forged").stderr
    allowed(adversary("delete", "fb", "forged"))


# ---- an unchanged figure --------------------------------------------------------------------------


def test_a_new_benchmark_is_in_progress_at_once(adversary: User) -> None:
    """The next tests use this benchmark too. Its request has all text that Kubernetes would change."""
    request = {
        "method": "POST",
        "path": PATH,
        "headers": [{"name": "X-Text", "value": TEXT}],
        "body": BODY,
    }
    expected = encoded(path=PATH, header=TEXT, body=BODY, text=TEXT)
    manifest = benchmark(
        "bytes", request=request, candidates=[candidate("echo", ECHO, TEXT, TEXT=TEXT, EXPECTED=expected)]
    )
    said = allowed(adversary("create", "-f", "-", "-o", "json", stdin=json.dumps(manifest)))
    # For kstatus, an object without observedGeneration is current, and an object with -1 is in progress.
    assert json.loads(said)["status"] == {"observedGeneration": -1}


def test_every_byte_of_a_request_arrives(adversary: User) -> None:
    (status,) = measured_of("bytes")
    assert status["requests"]["errors"] == 0, status["fortio"]
    assert status["requests"]["successes"] > 1000


def measured_of(name: str, count: int = 1) -> list[Object]:
    """The measured trials of a benchmark. There must be this many."""
    found = ended(name)
    all_of_it = measured(name)
    assert len(all_of_it) == count, (found["status"], trials(name))
    assert "fake" not in str(found["status"].get("provenance", "")).lower()
    return all_of_it


def test_a_benchmark_without_budgets_never_passes(adversary: User) -> None:
    # Figures need five blocks. With fewer blocks the verdict is Reported or Inconclusive, but never Pass.
    name, reason, message = verdict("bytes")
    assert name != "Pass", (reason, message)
    assert conditions(ended("bytes"))["Succeeded"]["status"] != "True"


def test_kubectl_wait_after_a_rerun_waits_for_the_new_run(adversary: User) -> None:
    ended("bytes")
    allowed(adversary("patch", "fb", "bytes", "--type=merge", "-p", '{"spec":{"rerun":2}}'))
    began = time.monotonic()
    result = adversary("wait", "fb/bytes", "--for=condition=Complete", "--timeout=8s")
    assert result.returncode != 0, f"returned after {time.monotonic() - began:.1f} s: {result.stdout}"
    # The test does not need the re-run's figures.
    allowed(adversary("delete", "fb", "bytes", "--wait=false"))


LONG_NAMES = """
import http from 'k6/http';
import { check } from 'k6';
const text = %s;
export default function () {
  const answer = http.post(__ENV.URL + %s, %s, { headers: { 'X-Text': %s } });
  for (let i = 0; i < 40; i += 1) check(answer, { ['x'.repeat(30000) + i]: (it) => it.status === 200 });
}
"""


def test_every_byte_of_a_script_arrives_and_long_check_names_are_cut(adversary: User) -> None:
    script = LONG_NAMES % tuple(json.dumps(text, ensure_ascii=False) for text in (TEXT, PATH, BODY, TEXT))
    expected = encoded(path=PATH, header=TEXT, body=BODY, text=TEXT)
    create(
        adversary,
        benchmark(
            "script",
            candidates=[candidate("echo", ECHO, TEXT, TEXT=TEXT, EXPECTED=expected)],
            request=None,
            scenario={"script": script},
            load={"duration": "20s", "warmUp": "2s", "rate": 5, "connections": 4},
        ),
    )
    (status,) = measured_of("script")
    assert status["requests"]["errors"] == 0, status["k6"]
    # Each cycle is one request, and there are as many cycles as requested.
    assert status["requests"]["requestsPerCycle"] == pytest.approx(1, rel=0.02)
    assert status["requests"]["successes"] == pytest.approx(5 * 20, rel=0.05)
    names = status["k6"]["checks"]
    assert len(names) <= 17
    assert max(len(name) for name in names) <= 128

    def is_free() -> bool:
        locks = get("leases", "-n", OPERATOR_NAMESPACE, "-l", "frugality.dev/lock=node")["items"]
        return not any(lock["spec"].get("holderIdentity") for lock in locks)

    until("nodes that are given back", is_free, 90)


FORGED_CYCLES = """
import http from 'k6/http';
import { Trend } from 'k6/metrics';
const mine = new Trend('iteration_' + 'duration', true);
export default function () {
  http.get(__ENV.URL);
  for (let i = 0; i < 100; i += 1) mine.add(0.01);
}
"""


def test_a_script_cannot_add_to_k6s_own_metric(adversary: User) -> None:
    create(adversary, benchmark("invented", request=None, scenario={"script": FORGED_CYCLES}))
    name, reason, message = verdict("invented")
    assert (name, reason) == ("Error", "ScriptFailed"), message
    assert "adds to the metric iteration_duration, which is k6's own" in message
    assert measured("invented") == []


def test_net_joules_are_withheld_if_the_candidate_works_in_the_baseline(adversary: User) -> None:
    create(adversary, benchmark("burner", candidates=[candidate("burner", BURNER)]))
    (status,) = measured_of("burner")
    # The baselines would subtract its idle work. Therefore there is no net figure, and the message has the
    # reason.
    assert "netJoulesPerRequest" not in status["energy"], status["energy"]
    assert status["energy"]["netWithheld"]
    assert status["energy"]["candidateIdleCpus"] > 0.1, status["energy"]


def test_changes_of_the_database_do_not_reach_the_next_candidate(adversary: User) -> None:
    """Both candidates make the same changes. Neither starts in a database that the other one has changed."""
    create(
        adversary,
        benchmark(
            "rivals",
            candidates=[candidate("one", MISCHIEF), candidate("two", MISCHIEF)],
            database={"provider": "Standalone", "seed": {"contacts": 1000}},
        ),
    )
    first, second = measured_of("rivals", 2)
    assert first["restored"] == second["restored"]
    assert first["restored"]["rows"] == 1000
    kinds = {"indexes", "settings", "tables", "columns"}
    assert kinds <= set(first["restored"]["state"])


# ---- void -----------------------------------------------------------------------------------------


def test_a_change_of_the_database_template_makes_the_attempt_void(adversary: User) -> None:
    create(
        adversary,
        benchmark(
            "template",
            candidates=[candidate(name, MISCHIEF, TEMPLATE="yes") for name in ("one", "two")],
            database={"provider": "Standalone", "seed": {"contacts": 1000}},
            trials={"blocks": 1, "idleBaseline": "5s", "maxAttempts": 1},
        ),
    )
    name, reason, message = verdict("template")
    assert (name, reason) == ("Invalid", "TooManyVoidAttempts"), message
    first, second = [trial["status"] for trial in trials("template")]
    assert (first["outcome"], second["outcome"], second["reason"]) == ("Measured", "Void", "DataChanged")
    assert "indexes" in second["message"]
    assert ended("template")["status"].get("winner") is None


def test_another_server_in_the_candidates_place_makes_the_attempt_void(adversary: User) -> None:
    """Four attempts: a bare pod with the candidate's labels, an edited Service, Deployment and pod."""
    trials_of = {"blocks": 1, "idleBaseline": "5s", "maxAttempts": 4}
    create(adversary, benchmark("divert", trials=trials_of))

    trial = under_load("divert", 1)
    selector = f"frugality.dev/trial={trial},frugality.dev/role=candidate"
    (own,) = get("pods", "-n", NAMESPACE, "-l", selector)["items"]
    labels = own["metadata"]["labels"]
    copied = {key: value for key, value in labels.items() if key.startswith("frugality.dev/")}
    create(adversary, pod("stranger", copied))
    assert outcome_of(trial, "divert") == ("Void", "ForeignEndpoint")
    allowed(adversary("delete", "pod", "stranger", "--wait=true"))

    trial = under_load("divert", 2)
    patch = json.dumps({"spec": {"selector": {"app": "mine"}}})
    allowed(adversary("patch", "service", trial, "--type=merge", "-p", patch))
    assert outcome_of(trial, "divert") == ("Void", "ServiceChanged")

    trial = under_load("divert", 3)
    patch = json.dumps({"spec": {"minReadySeconds": 1}})
    allowed(adversary("patch", "deployment", trial, "--type=merge", "-p", patch))
    assert outcome_of(trial, "divert") == ("Void", "DeploymentChanged")

    trial = under_load("divert", 4)
    selector = f"frugality.dev/trial={trial},frugality.dev/role=candidate"
    (own,) = get("pods", "-n", NAMESPACE, "-l", selector)["items"]
    patch = json.dumps({"spec": {"containers": [{"name": "server", "image": RUST}]}})
    allowed(adversary("patch", "pod", own["metadata"]["name"], "-p", patch))
    assert outcome_of(trial, "divert") == ("Void", "PodChanged")

    name, reason, message = verdict("divert")
    assert (name, reason) == ("Invalid", "TooManyVoidAttempts"), message
    assert measured("divert") == []


def test_the_operator_never_scraped_the_forged_meter(adversary: User) -> None:
    logs = kubectl("logs", "meter", "-n", NAMESPACE).stdout
    assert "/metrics" not in logs
    meters = [status["energy"]["meter"] for name in ("script", "burner") for status in measured(name)]
    assert len(meters) > 1
    assert all(meter == meters[0] for meter in meters), meters
