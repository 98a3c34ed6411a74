"""The operator as the chart installs it."""

import json
import re

from rendered import (
    KEPLER,
    PI,
    REPOSITORY,
    container,
    environment,
    find,
    may_get_the_meters_daemonsets,
    meter,
    operator,
    pod,
    refusal,
    render,
)


def test_there_is_never_more_than_one_operator():
    spec = operator(*PI)["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}


def test_the_operator_is_probed_and_its_service_reaches_it():
    objects = render(*PI)
    deployment, service = (
        find(objects, kind, "frugality-operator") for kind in ("Deployment", "Service")
    )
    main = container(deployment)
    [port] = main["ports"]
    assert port["containerPort"] == 8080
    assert main["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": port["name"]}
    assert main["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": port["name"]}
    assert service["spec"]["ports"] == [{"name": "http", "port": 8080, "targetPort": port["name"]}]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()


def test_the_operator_keeps_off_the_measured_node_and_fits_a_small_board():
    spec = pod(operator(*PI))
    [preference] = spec["affinity"]["nodeAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert preference["preference"]["matchExpressions"] == [
        {"key": "frugality.dev/role", "operator": "NotIn", "values": ["measured"]}
    ]
    assert container(operator(*PI))["resources"] == {
        "requests": {"cpu": "10m", "memory": "32Mi"},
        "limits": {"memory": "128Mi"},
    }


def test_the_operator_reads_the_chart_s_meter():
    objects = render(*PI)
    env = environment(find(objects, "Deployment", "frugality-operator"))
    daemonset = find(objects, "DaemonSet", "frugality-meter")
    label, value = env["FRUGALITY_METER_SELECTOR"].split("=")
    assert daemonset["spec"]["template"]["metadata"]["labels"][label] == value
    assert env["FRUGALITY_METER_NAMESPACE"] == daemonset["metadata"]["namespace"]
    assert env["FRUGALITY_METER_DAEMON_SETS"] == "frugality-meter"
    may_get_the_meters_daemonsets(objects, daemonset["metadata"]["namespace"], ["frugality-meter"])
    assert int(env["FRUGALITY_METER_PORT"]) == container(daemonset)["ports"][0]["containerPort"]


def test_the_operator_reads_a_kepler_that_is_there_already():
    settings = ("--set", "energy.kepler.namespace=monitoring", "--set", "energy.kepler.port=9102")
    objects = render(*KEPLER, *settings)
    assert not [o for o in objects if o["kind"] == "DaemonSet"]
    env = environment(find(objects, "Deployment", "frugality-operator"))
    assert env["FRUGALITY_METER_NAMESPACE"] == "monitoring"
    assert env["FRUGALITY_METER_SELECTOR"] == "app.kubernetes.io/name=kepler"
    assert env["FRUGALITY_METER_DAEMON_SETS"] == "kepler"
    may_get_the_meters_daemonsets(objects, "monitoring", ["kepler"])
    assert env["FRUGALITY_METER_PORT"] == "9102"


def test_the_operator_gets_the_settings_of_the_chart():
    env = environment(
        operator(
            *PI,
            *("--set-string", "injector.image.tag=7", "--set-string", "injector.k6Image.tag=8"),
            *("--set", "energy.maxNodeWatts=12.5"),
        )
    )
    assert env["POD_NAMESPACE"] == "[metadata.namespace]"
    assert env["MALLOC_ARENA_MAX"] == "1"
    assert env["POD_NAME"] == "[metadata.name]"
    assert env["FRUGALITY_INJECTOR_IMAGE"] == "ghcr.io/frugality-dev/injector:7"
    assert env["FRUGALITY_INJECTOR_K6_IMAGE"] == "ghcr.io/frugality-dev/injector-k6:8"
    assert env["FRUGALITY_DATABASE_IMAGE"] == "ghcr.io/cloudnative-pg/postgresql:15"
    assert env["FRUGALITY_MAX_NODE_WATTS"] == "12.5"
    assert "FRUGALITY_MAX_NODE_WATTS" not in environment(operator(*PI))
    assert env["FRUGALITY_LOG"] == "info"
    assert env["FRUGALITY_LOG_FORMAT"] == "json"


def test_the_operator_gets_the_resources_of_its_pods():
    env = environment(operator(*PI))
    assert json.loads(env["FRUGALITY_INJECTOR_RESOURCES"]) == {
        "requests": {"cpu": "100m", "memory": "64Mi"},
        "limits": {"memory": "1Gi"},
    }
    assert json.loads(env["FRUGALITY_HELPER_RESOURCES"]) == {
        "requests": {"cpu": "10m", "memory": "32Mi"},
        "limits": {"memory": "256Mi"},
    }
    # A whole number becomes a quantity, which is a string.
    env = environment(operator(*PI, "--set", "injector.resources.limits.cpu=1"))
    limits = json.loads(env["FRUGALITY_INJECTOR_RESOURCES"])["limits"]
    assert limits == {"cpu": "1", "memory": "1Gi"}


def test_benchmarks_tolerate_the_measured_nodes_taint():
    env = environment(operator(*PI))
    assert json.loads(env["FRUGALITY_TOLERATIONS"]) == [
        {"key": "frugality.dev/role", "operator": "Exists"}
    ]
    env = environment(operator(*PI, "--set-json", "benchmarks.tolerations=[]"))
    assert json.loads(env["FRUGALITY_TOLERATIONS"]) == []


def test_benchmarks_get_the_installations_priority_and_secrets():
    env = environment(operator(*PI))
    assert "FRUGALITY_PRIORITY_CLASS_NAME" not in env
    assert json.loads(env["FRUGALITY_IMAGE_PULL_SECRETS"]) == []
    given = ("benchmarks.priorityClassName=measuring", "benchmarks.imagePullSecrets[0].name=registry")
    env = environment(operator(*PI, *(word for it in given for word in ("--set", it))))
    assert env["FRUGALITY_PRIORITY_CLASS_NAME"] == "measuring"
    assert json.loads(env["FRUGALITY_IMAGE_PULL_SECRETS"]) == [{"name": "registry"}]


def test_images_carry_the_workspace_s_version_and_are_pulled_only_if_missing():
    version = re.search(
        r'^version = "(.+)"$', (REPOSITORY / "Cargo.toml").read_text(), re.MULTILINE
    )[1]
    for workload, name in ((operator(*PI), "operator"), (meter(*PI), "meter")):
        assert container(workload)["image"] == f"ghcr.io/frugality-dev/{name}:{version}"
        assert container(workload)["imagePullPolicy"] == "IfNotPresent"
    env = environment(operator(*PI))
    assert env["FRUGALITY_INJECTOR_IMAGE"] == f"ghcr.io/frugality-dev/injector:{version}"
    assert env["FRUGALITY_INJECTOR_K6_IMAGE"] == f"ghcr.io/frugality-dev/injector-k6:{version}"


def test_images_can_be_fixed_by_digest_and_pulled_with_secrets():
    digest = "sha256:" + "0" * 64
    names = ("image", "injector.image", "injector.k6Image", "meter.image")
    images = [f"{name}.digest={digest}" for name in names]
    settings = [*PI, *(word for image in images for word in ("--set", image))]
    for workload in (operator, meter):
        assert container(workload(*settings))["image"] == f"{container(workload(*PI))['image']}@{digest}"
    for name in ("FRUGALITY_INJECTOR_IMAGE", "FRUGALITY_INJECTOR_K6_IMAGE"):
        assert environment(operator(*settings))[name] == f"{environment(operator(*PI))[name]}@{digest}"
    secrets = ("--set", "imagePullSecrets[0].name=registry")
    for workload in (operator, meter):
        assert "imagePullSecrets" not in pod(workload(*PI))
        assert pod(workload(*PI, *secrets))["imagePullSecrets"] == [{"name": "registry"}]
    assert "digest" in refusal(*PI, "--set", "image.digest=latest")


def test_priority_classes_are_the_cluster_s_default_unless_set():
    assert "priorityClassName" not in pod(operator(*PI))
    assert "priorityClassName" not in pod(meter(*PI))
    settings = ("--set", "priorityClassName=low", "--set", "meter.priorityClassName=high")
    assert pod(operator(*PI, *settings))["priorityClassName"] == "low"
    assert pod(meter(*PI, *settings))["priorityClassName"] == "high"
