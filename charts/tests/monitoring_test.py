"""The chart's objects for the Prometheus operator and Grafana."""

import yaml

from rendered import AUTO, CHART, GROUP, KEPLER, NAMESPACE, PI, refusal, render

MONITORING = "monitoring.coreos.com/v1"
ALL = ("--set", "monitoring.monitors=true,monitoring.rules=true,monitoring.dashboard=true")


def of_monitoring(*arguments):
    objects = render(*arguments)
    added = [
        o for o in objects if o["apiVersion"] == MONITORING or o["metadata"]["name"] == "frugality-dashboard"
    ]
    return {o["kind"]: o for o in added}


def selects(selector, labels):
    return selector["matchLabels"].items() <= labels.items()


def test_a_cluster_without_the_prometheus_operator_gets_none_of_its_objects():
    assert of_monitoring(*PI) == {}


def test_the_monitors_find_operator_and_meters_by_their_ports():
    arguments = (*AUTO, *GROUP, *ALL)
    objects = render(*arguments)
    monitors = of_monitoring(*arguments)
    selector = monitors["ServiceMonitor"]["spec"]["selector"]
    (service,) = [o for o in objects if o["kind"] == "Service" and selects(selector, o["metadata"]["labels"])]
    (endpoint,) = monitors["ServiceMonitor"]["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    selector = monitors["PodMonitor"]["spec"]["selector"]
    templates = [o["spec"]["template"] for o in objects if o["kind"] in ("DaemonSet", "Deployment")]
    meters = [it for it in templates if selects(selector, it["metadata"]["labels"])]
    # The group's meters too, and not the operator.
    assert len(meters) == len([o for o in objects if o["kind"] == "DaemonSet"]) == 2
    (of_meters,) = monitors["PodMonitor"]["spec"]["podMetricsEndpoints"]
    for meter in meters:
        (container,) = meter["spec"]["containers"]
        assert of_meters["port"] in {port["name"] for port in container["ports"]}
    for o in monitors.values():
        assert o["metadata"]["namespace"] == NAMESPACE
    # Otherwise Prometheus renames the metrics' own label "namespace".
    assert endpoint["honorLabels"] is of_meters["honorLabels"] is True


def test_a_kepler_of_the_cluster_has_its_own_monitor():
    assert set(of_monitoring(*KEPLER, *ALL)) == {"ServiceMonitor", "PrometheusRule", "ConfigMap"}


def test_rules_and_dashboard_are_the_files_that_tests_check():
    objects = of_monitoring(*PI, *ALL)
    files = CHART / "files/monitoring"
    assert objects["PrometheusRule"]["spec"] == yaml.safe_load((files / "rules.yaml").read_text())
    dashboard = objects["ConfigMap"]["data"]["frugality.json"]
    assert dashboard.strip() == (files / "dashboard.json").read_text().strip()


def test_labels_and_interval_are_the_users():
    objects = of_monitoring(
        *PI, *ALL, "--set", "monitoring.labels.release=stack", "--set", "monitoring.interval=1m"
    )
    for o in objects.values():
        assert o["metadata"]["labels"]["release"] == "stack"
    assert objects["ServiceMonitor"]["spec"]["endpoints"][0]["interval"] == "1m"
    assert objects["PodMonitor"]["spec"]["podMetricsEndpoints"][0]["interval"] == "1m"
    assert "interval" in refusal(*PI, "--set", "monitoring.interval=often")
