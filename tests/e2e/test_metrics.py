"""A real Prometheus reads operator and meters, and answers the queries of dashboard, alerts and document."""

import contextlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

import box
import waiting
from benchmarks import LONG
from gitops import controller
from kube import OPERATOR_NAMESPACE, ROOT, Object, get

sys.path.append(str(ROOT / "tests/metrics"))
from queries import RULES, documented, expressions

pytestmark = pytest.mark.benchmarks(LONG)
ADDRESS = "127.0.0.1:19090"
FILES = box.ARTIFACTS / "prometheus"
# Parts of queries that may find nothing: there are no failures, the run has ended, and the box's power is modelled.
MAY_BE_EMPTY = (
    *("Failed", "Void", 'result!="Ok"', 'verdict="Fail"', "Invalid|Error", "absent(", "saturated"),
    *('reason="Queued"', "unless on", "estimated_end", 'provenance="Metered"', "_lower", "_upper"),
)
Query = Callable[[str], list[Object]]


def addresses(name: str, port: int) -> list[str]:
    pods = get("pods", "-n", OPERATOR_NAMESPACE, "-l", f"app.kubernetes.io/name={name}")["items"]
    return [f"{pod['status']['podIP']}:{port}" for pod in pods]


@pytest.fixture(scope="module")
def prometheus(long_run: Object) -> Iterator[Query]:
    """Asks Prometheus, which has the chart's alerts and reads operator and meters."""
    assert long_run
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir(parents=True)
    jobs = {"operator": addresses("frugality-operator", 8080), "meter": addresses("frugality-meter", 28282)}
    configuration = {
        "global": {"scrape_interval": "2s", "evaluation_interval": "2s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {"job_name": job, "honor_labels": True, "static_configs": [{"targets": targets}]}
            for job, targets in jobs.items()
        ],
    }
    file = FILES / "prometheus.yaml"
    file.write_text(json.dumps(configuration))
    serve = ("prometheus", f"--config.file={file}", f"--web.listen-address={ADDRESS}")

    def ask(expression: str) -> list[Object]:
        command = ["promtool", "query", "instant", "--format=json", f"http://{ADDRESS}", expression]
        done = subprocess.run(
            [*box.in_network_of(box.INJECTOR_NODE), *command], capture_output=True, text=True, timeout=30
        )
        assert done.returncode == 0, f"{expression}: {done.stderr}"
        return json.loads(done.stdout)

    def each_was_scraped_often() -> bool:
        """A rate needs two scrapes. The alerts are evaluated meanwhile."""
        targets = sum(len(it) for it in jobs.values())
        # Before it is ready, Prometheus refuses all queries.
        with contextlib.suppress(AssertionError):
            scrapes = [float(it["value"][1]) for it in ask("sum_over_time(up[5m])")]
            return len(scrapes) == targets and min(scrapes) >= 5
        return False

    with controller("prometheus", *serve, f"--storage.tsdb.path={FILES / 'data'}"):
        waiting.until(each_was_scraped_often, 60, "scrapes of operator and meters", every=1)
        yield ask
    shutil.rmtree(FILES / "data")


FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"


def page_of(address: str) -> str:
    command = [*box.in_network_of(box.INJECTOR_NODE), sys.executable, "-c", FETCH, f"http://{address}/metrics"]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout


def as_plain_text(page: str) -> str:
    """A page in OpenMetrics' format as promtool reads it: in the older format, in which totals are named in full."""
    totals = re.findall(r"^# TYPE (\S+) counter$", page, re.MULTILINE)
    for suffix, names in {
        "_total": [name for name in totals if not name.endswith("_total")],
        "_info": re.findall(r"^# TYPE (\S+) info$", page, re.MULTILINE),
    }.items():
        for name in names:
            page = re.sub(rf"^(# (?:TYPE|HELP) {name})(?= )", rf"\1{suffix}", page, flags=re.MULTILINE)
    return page.replace("_info info\n", "_info gauge\n").replace("# EOF\n", "")


@pytest.mark.parametrize(("name", "port"), [("frugality-operator", 8080), ("frugality-meter", 28282)])
def test_the_pages_keep_the_conventions_of_prometheus(long_run: Object, name: str, port: int) -> None:
    assert long_run
    pages = [page_of(address) for address in addresses(name, port)]
    assert pages
    for page in pages:
        command = ["promtool", "check", "metrics"]
        checked = subprocess.run(command, input=as_plain_text(page), capture_output=True, text=True, timeout=30)
        assert (checked.returncode, checked.stderr) == (0, ""), checked.stderr


def value(found: list[Object]) -> float:
    (series,) = found
    return float(series["value"][1])


def test_each_figure_is_the_statuss(prometheus: Query, long_run: Object) -> None:
    metadata, status = long_run["metadata"], long_run["status"]
    selected = f'namespace="{metadata["namespace"]}",benchmark="{metadata["name"]}"'
    (verdict,) = prometheus(f"frugality_benchmark_verdict{{{selected}}} == 1")
    assert verdict["metric"]["verdict"] == status["verdict"]
    shown = 0
    for result in status["results"]:
        of = f'{selected},candidate="{result["candidate"]}"'
        rate = value(prometheus(f"frugality_benchmark_requests_per_second{{{of}}}"))
        assert rate == pytest.approx(result["requestsPerSecond"]["value"], rel=1e-9)
        joules = result.get("grossJoulesPerRequest")
        series = prometheus(f'frugality_benchmark_joules_per_request{{{of},kind="gross"}}')
        assert bool(series) == bool(joules)
        if joules:
            shown += 1
            assert value(series) == pytest.approx(joules["value"], rel=1e-9)
            assert series[0]["metric"]["provenance"] == status["provenance"]
    assert shown


@pytest.mark.parametrize("expression", expressions())
def test_prometheus_answers_each_query(prometheus: Query, expression: str) -> None:
    found = prometheus(expression)
    has_default = expression.endswith("or vector(0)")
    if has_default or not any(word in expression for word in MAY_BE_EMPTY):
        assert found, expression


def test_each_documented_series_that_needs_no_failure_exists(prometheus: Query) -> None:
    found = {series["metric"]["__name__"] for series in prometheus('{__name__=~"frugality_.*"}')}
    missing = {name for name in documented() if not any(it.startswith(name) for it in found)}
    # An ended run has no estimated end. The box's model states no accuracy, so its joules have no interval.
    assert missing <= {
        "frugality_benchmark_estimated_end_timestamp_seconds",
        "frugality_benchmark_joules_per_request_lower",
        "frugality_benchmark_joules_per_request_upper",
    }


def test_the_operator_is_not_reported_as_missing(prometheus: Query) -> None:
    """Also not as pending: the alert waits for ten minutes, and Prometheus runs for seconds."""
    assert prometheus('ALERTS{alertname="FrugalityOperatorMissing"}') == []
