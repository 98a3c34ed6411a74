"""Renders the chart as a user would and checks the objects for the cluster."""

import json
import re
import shutil
import subprocess
import threading

import pytest
import yaml
from rendered import (
    AUTO,
    CHART,
    GENERIC,
    GROUP,
    KEPLER,
    KUBERNETES,
    NAMESPACE,
    PI,
    PLUG,
    REPOSITORY,
    binary,
    container,
    environment,
    find,
    flat,
    helm,
    meter,
    operator,
    pod,
    refusal,
    render,
    rights,
    run,
)

# ---- packaging ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [(), PI, GENERIC, KEPLER], ids=["defaults", "pi", "generic", "kepler"]
)
def test_lint_is_clean(settings):
    result = helm("lint", "--strict", str(CHART), *KUBERNETES, *settings)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "[WARNING]" not in result.stdout and "[ERROR]" not in result.stdout, result.stdout


def definitions(*arguments):
    return {
        o["metadata"]["name"]: o
        for o in render(*PI, *arguments)
        if o["kind"] == "CustomResourceDefinition"
    }


def test_the_definitions_are_the_generated_ones_and_are_upgraded_and_kept():
    generated = {
        o["metadata"]["name"]: o
        for o in (yaml.safe_load(p.read_text()) for p in (REPOSITORY / "crds").glob("*.yaml"))
    }
    assert set(generated) == {
        "frugalitybaselines.frugality.dev",
        "frugalitybenchmarks.frugality.dev",
        "frugalitytraces.frugality.dev",
        "frugalitytrials.frugality.dev",
    }
    rendered = definitions()
    assert {name: o["spec"] for name, o in rendered.items()} == {
        name: o["spec"] for name, o in generated.items()
    }, "run make generate: crds/ and the chart's files/crds/ differ"
    for o in rendered.values():
        # Without this annotation, Helm deletes the definition with the release, which deletes all
        # benchmarks.
        assert o["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
        assert o["metadata"]["labels"]["app.kubernetes.io/part-of"] == "frugality"
    # Helm never upgrades definitions in this folder.
    assert not (CHART / "crds").exists()


def test_the_chart_can_leave_out_the_definitions():
    assert definitions("--set", "crds.install=false") == {}


def test_a_cluster_too_old_for_the_validation_rules_is_refused():
    assert "incompatible with Kubernetes" in refusal(*PI, "--kube-version", "1.28.9")


@pytest.mark.parametrize(
    "version, recursive", [("1.29.0", False), ("1.30.9+k3s1", False), ("1.31.0+k3s1", True)]
)
def test_a_field_that_the_cluster_does_not_know_is_not_sent(version, recursive):
    mounts = container(meter(*PI, "--kube-version", version))["volumeMounts"]
    assert {"recursiveReadOnly" in mount for mount in mounts} == {recursive}


def test_everything_but_the_rights_to_run_benchmarks_is_in_the_release_s_namespace():
    cluster_wide = {
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
    elsewhere = set()
    for o in render(*PI):
        if o["kind"] not in cluster_wide and o["metadata"]["namespace"] != NAMESPACE:
            elsewhere.add((o["kind"], o["metadata"]["namespace"], o["metadata"]["name"]))
        for subject in o.get("subjects", []):
            assert subject["namespace"] == NAMESPACE
    assert elsewhere == {("RoleBinding", "default", "frugality-operator-runs")}


def notes(tmp_path, *settings):
    """Renders NOTES.txt as a value of a template: Helm renders notes only on a cluster."""
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    file = chart / "templates" / "NOTES.txt"
    text = file.read_text()
    file.unlink()
    (chart / "templates" / "notes.yaml").write_text(
        '{{ define "notes" }}'
        + text
        + '{{ end }}{kind: Notes, metadata: {name: x}, text: {{ include "notes" . | toJson }}}'
    )
    return find(render(*settings, chart=chart), "Notes", "x")["text"]


@pytest.mark.parametrize(
    "settings, energy", [(PI, "pi-4b"), (KEPLER, "namespace kepler")], ids=["pi", "kepler"]
)
def test_notes_say_what_to_do_next(settings, energy, tmp_path):
    shown = notes(tmp_path, *settings)
    assert f"kubectl --namespace {NAMESPACE} rollout status deployment/frugality-operator" in shown
    assert f"helm test frugality --namespace {NAMESPACE}" in shown
    assert energy in shown
    assert "kubectl get frugalitybenchmarks" in shown
    assert "--clusterrole=frugality-edit" in shown
    # Rendered without a cluster, so without CloudNativePG.
    assert "CloudNativePG was not found" in shown
    assert "crds/" not in shown


def test_notes_say_that_the_user_must_apply_the_definitions(tmp_path):
    shown = notes(tmp_path, *PI, "--set", "crds.install=false")
    assert "kubectl apply --server-side -f crds/" in shown


def test_a_new_chart_with_the_same_images_restarts_nothing(tmp_path):
    # A restart of a meter voids the current attempt on its node.
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    about = chart / "Chart.yaml"
    about.write_text(re.sub(r"(?m)^version: .*$", "version: 999.0.0", about.read_text()))
    newer = render(*PI, chart=chart)
    for before in (operator(*PI), meter(*PI)):
        after = find(newer, before["kind"], before["metadata"]["name"])
        assert after["metadata"] != before["metadata"]
        assert after["spec"] == before["spec"]


# ---- rights -------------------------------------------------------------------------------------


def test_no_role_has_a_wildcard_secrets_or_the_kubelet():
    roles = [o for o in render(*PI) if o["kind"] in ("Role", "ClusterRole")]
    assert len(roles) == 9
    for role in roles:
        for rule in role["rules"]:
            words = [
                w
                for key in ("apiGroups", "resources", "verbs", "resourceNames")
                for w in rule.get(key, [])
            ]
            assert "*" not in "".join(words), rule
            assert "nonResourceURLs" not in rule, rule
            for resource in rule["resources"]:
                # The operator creates a database's login and never reads it.
                assert resource.split("/")[0] != "secrets" or rule["verbs"] == ["create"], rule
                assert not resource.startswith("nodes/"), rule


def test_the_operator_reads_in_the_whole_cluster_and_writes_only_the_status_there():
    objects = render(*PI)
    assert flat(find(objects, "ClusterRole", "frugality-operator")["rules"]) == (
        rights("frugality.dev", "frugalitybenchmarks", "get list watch")
        | rights("frugality.dev", "frugalitybenchmarks/status", "update")
        | rights("frugality.dev", "frugalitytrials", "list")
        | rights("frugality.dev", "frugalitybaselines", "get list")
        | rights("apps", "deployments", "get list")
        | rights("", "services", "get list")
        | rights("batch", "jobs", "get list")
        | rights("postgresql.cnpg.io", "clusters", "get list")
        | rights("", "pods", "list")
        | rights("discovery.k8s.io", "endpointslices", "list")
        | rights("", "nodes", "list")
        | rights("events.k8s.io", "events", "list")
    )
    assert flat(find(objects, "Role", "frugality-operator")["rules"]) == (
        rights("coordination.k8s.io", "leases", "create delete list update")
    )


def test_the_operator_has_exactly_the_rights_that_a_run_needs():
    assert flat(find(render(*PI), "ClusterRole", "frugality-operator-runs")["rules"]) == (
        rights("frugality.dev", "frugalitybenchmarks", "delete")
        | rights("frugality.dev", "frugalitybenchmarks/finalizers", "update")
        | rights("frugality.dev", "frugalitytrials", "create")
        | rights("frugality.dev", "frugalitytrials/status", "patch")
        | rights("frugality.dev", "frugalitytraces", "create")
        | rights("frugality.dev", "frugalitybaselines", "create update")
        | rights("frugality.dev", "frugalitybaselines/status", "update")
        | rights("apps", "deployments", "create delete")
        | rights("", "services", "create delete")
        | rights("batch", "jobs", "create delete")
        | rights("", "secrets", "create")
        | rights("", "services/finalizers", "update")
        | rights("postgresql.cnpg.io", "clusters", "create delete")
        | rights("", "events", "create")
    )


def runs(*settings):
    """The namespaces in which the operator may run benchmarks. None is the whole cluster."""
    return [
        o["metadata"].get("namespace")
        for o in render(*PI, *settings)
        if "roleRef" in o and o["roleRef"]["name"] == "frugality-operator-runs"
    ]


def test_benchmarks_run_only_in_the_namespaces_that_the_administrator_names():
    assert runs() == ["default"]
    assert runs("--set", "benchmarkNamespaces={shop,bank}") == ["shop", "bank"]
    assert runs("--set", "benchmarkNamespaces=null") == []
    assert runs("--set-json", "benchmarkNamespaces=[]") == []
    assert runs("--set", "benchmarkNamespaces={*}") == [None]
    assert "write either * alone" in refusal(*PI, "--set", "benchmarkNamespaces={*,shop}")


def test_rights_in_the_whole_cluster_need_policies_that_limit_them():
    settings = (*PI, "--set", "benchmarkNamespaces={*}", "--kube-version")
    assert "needs Kubernetes 1.30" in refusal(*settings, "1.29.9+k3s1")
    names = {o["metadata"]["name"] for o in render(*settings, "1.30.0+k3s1") if "Policy" in o["kind"]}
    assert {"frugality-operator-pods", "frugality-operator-deletions"} < names


def test_every_policy_is_bound_refuses_and_is_about_the_operator_s_account_alone():
    objects = render(*PI)
    policies = [o for o in objects if o["kind"] == "ValidatingAdmissionPolicy"]
    bindings = [o for o in objects if o["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert sorted(b["spec"]["policyName"] for b in bindings) == sorted(
        p["metadata"]["name"] for p in policies
    )
    assert all(b["spec"]["validationActions"] == ["Deny"] for b in bindings)
    account = f"request.userInfo.username == 'system:serviceaccount:{NAMESPACE}:frugality-operator'"
    for policy in policies:
        assert policy["spec"]["failurePolicy"] == "Fail"
        conditions = [c["expression"] for c in policy["spec"].get("matchConditions", [])]
        if policy["metadata"]["name"] != "frugality-database-images":
            assert conditions == [account]


def test_only_the_operator_s_account_is_bound_and_only_to_its_roles():
    # Without the hooks of helm test.
    objects = [
        o for o in render(*PI) if "helm.sh/hook" not in o["metadata"].get("annotations", {})
    ]
    bindings = [o for o in objects if o["kind"] in ("RoleBinding", "ClusterRoleBinding")]
    assert {(b["kind"], b["roleRef"]["kind"], b["roleRef"]["name"]) for b in bindings} == {
        ("RoleBinding", "Role", "frugality-operator"),
        ("RoleBinding", "Role", "frugality-operator-meters"),
        ("RoleBinding", "ClusterRole", "frugality-operator-runs"),
        ("ClusterRoleBinding", "ClusterRole", "frugality-operator"),
    }
    for binding in bindings:
        [subject] = binding["subjects"]
        assert (subject["kind"], subject["name"]) == ("ServiceAccount", "frugality-operator")
    find(objects, "ServiceAccount", "frugality-operator")


def test_the_cluster_s_own_roles_include_the_users_roles_only_if_the_administrator_wants():
    objects = render(*PI, "--set", "userRoles.aggregate=false")
    for name in ("frugality-edit", "frugality-view"):
        labels = find(objects, "ClusterRole", name)["metadata"]["labels"]
        assert not [label for label in labels if "aggregate" in label]


def test_users_edit_benchmarks_and_only_read_the_ledger():
    objects = render(*PI)
    aggregated = "rbac.authorization.k8s.io/aggregate-to-"
    edit = find(objects, "ClusterRole", "frugality-edit")
    view = find(objects, "ClusterRole", "frugality-view")
    for role, to in ((edit, {"edit", "admin"}), (view, {"view"})):
        labels = role["metadata"]["labels"]
        assert {
            label.removeprefix(aggregated) for label in labels if label.startswith(aggregated)
        } == to
    every = "create delete deletecollection get list patch update watch"
    assert flat(edit["rules"]) == (
        rights("frugality.dev", "frugalitybenchmarks", every)
        | rights("frugality.dev", "frugalitybaselines", every)
        | rights("frugality.dev", "frugalitytrials", "get list watch")
        | rights("frugality.dev", "frugalitytraces", "get list watch")
    )
    assert flat(view["rules"]) == (
        rights("frugality.dev", "frugalitybenchmarks", "get list watch")
        | rights("frugality.dev", "frugalitybaselines", "get list watch")
        | rights("frugality.dev", "frugalitytrials", "get list watch")
        | rights("frugality.dev", "frugalitytraces", "get list watch")
    )


# ---- security of every pod ----------------------------------------------------------------------


def pods(*arguments):
    """The spec of every pod of the chart, by the name of the pod or its controller."""
    return {
        o["metadata"]["name"]: o["spec"] if o["kind"] == "Pod" else o["spec"]["template"]["spec"]
        for o in render(*arguments)
        if o["kind"] in ("Pod", "Deployment", "DaemonSet", "Job")
    }


@pytest.mark.parametrize(
    "name", ["frugality-operator", "frugality-operator-test", "frugality-operator-doctor"]
)
def test_all_pods_but_the_meter_satisfy_the_restricted_standard(name):
    # https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted, and stricter.
    pod = pods(*PI)[name]
    context = pod["securityContext"]
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes", "initContainers"} & set(pod)
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == 65532
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    [main] = pod["containers"]
    assert main["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert all("hostPort" not in port for port in main.get("ports", []))


def test_there_are_no_other_pods():
    assert set(pods(*PI)) == {
        "frugality-operator",
        "frugality-operator-test",
        "frugality-operator-doctor",
        "frugality-meter",
    }


def mebibytes(pod, kind):
    [main] = pod["containers"]
    amount = main["resources"][kind]["memory"]
    assert amount.endswith("Mi")
    return int(amount.removesuffix("Mi"))


def test_all_of_it_fits_a_board_with_1_gb():
    every = pods(*PI).values()
    # The k3s server alone takes about half of the memory of such a board.
    assert sum(mebibytes(pod, "requests") for pod in every) <= 64
    assert sum(mebibytes(pod, "limits") for pod in every) <= 256


@pytest.mark.parametrize(
    "settings, allowed",
    [
        ((), ["ghcr.io/cloudnative-pg/postgresql", "ghcr.io/cloudnative-pg/"]),
        (
            ("--set", "database.image=registry:5000/pg:16@sha256:0a"),
            ["registry:5000/pg", "ghcr.io/cloudnative-pg/"],
        ),
        (
            ("--set", "database.allowedImages={example.com/pg}"),
            ["ghcr.io/cloudnative-pg/postgresql", "example.com/pg"],
        ),
    ],
)
def test_images_of_the_database_are_of_the_default_s_repository_or_allowed(settings, allowed):
    policy = find(render(*PI, *settings), "ValidatingAdmissionPolicy", "frugality-database-images")
    expressions = {v["name"]: v["expression"] for v in policy["spec"]["variables"]}
    assert json.loads(expressions["allowed"]) == allowed


def test_a_cluster_without_admission_policies_is_given_none():
    kinds = {o["kind"] for o in render(*PI, "--kube-version", "1.29.0")}
    assert not {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} & kinds


# ---- helm test ----------------------------------------------------------------------------------


def test_helm_test_asks_the_operator_s_service_without_any_rights():
    objects = render(*PI)
    pod, account = (
        find(objects, kind, "frugality-operator-test") for kind in ("Pod", "ServiceAccount")
    )
    for o in (pod, account):
        annotations = o["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == "test"
        assert "hook-succeeded" in annotations["helm.sh/hook-delete-policy"]
    assert pod["spec"]["serviceAccountName"] == account["metadata"]["name"]
    assert int(account["metadata"]["annotations"]["helm.sh/hook-weight"]) < 0
    service = find(objects, "Service", "frugality-operator")
    [port] = service["spec"]["ports"]
    [main] = pod["spec"]["containers"]
    host = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    assert main["args"] == ["check", f"--url=http://{host}:{port['port']}"]
    assert main["image"] == container(operator(*PI))["image"]
    # The Service must not select this pod. The pod must avoid the measured node.
    assert not service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    template = operator(*PI)["spec"]["template"]["spec"]
    assert pod["spec"]["affinity"] == template["affinity"]


# ---- the operator -------------------------------------------------------------------------------


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


def may_get_the_meters_daemonsets(objects, namespace, names):
    role = find(objects, "Role", "frugality-operator-meters")
    binding = find(objects, "RoleBinding", "frugality-operator-meters")
    assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == namespace
    assert role["rules"] == [
        {
            "apiGroups": ["apps"],
            "resources": ["daemonsets"],
            "resourceNames": names,
            "verbs": ["get"],
        }
    ]


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


# ---- the meter ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, missing",
    [
        ((), "no meter.idleWatts and no meter.wattsPerCpu is set"),
        (("--set", "meter.idleWatts=2"), "no meter.wattsPerCpu is set"),
        (("--set", "meter.wattsPerCpu=2"), "no meter.idleWatts is set"),
    ],
)
def test_an_unknown_board_without_watts_is_refused_and_the_message_says_what_to_write(
    settings, missing
):
    message = refusal(*settings)
    assert missing in message
    assert "--set meter.idleWatts=" in message and "--set meter.wattsPerCpu=" in message
    assert "--set meter.board=pi-4b" in message and "Raspberry Pi" in message
    assert "--set meter.enabled=false" in message


def test_a_model_s_accuracy_is_stated_for_both_watts_or_not_at_all():
    names = ("meter.idleWattsRelativeUncertainty", "meter.wattsPerCpuRelativeUncertainty")
    both = ("--set", f"{names[0]}=0.05", "--set", f"{names[1]}=0.1")
    for board in (GENERIC, PI):
        env = environment(meter(*board, *both))
        assert env["FRUGALITY_METER_IDLE_WATTS_RELATIVE_UNCERTAINTY"] == "0.05"
        assert env["FRUGALITY_METER_WATTS_PER_CPU_RELATIVE_UNCERTAINTY"] == "0.1"
        assert not [name for name in environment(meter(*board)) if "UNCERTAINTY" in name]
        for name in names:
            message = refusal(*board, "--set", f"{name}=0.1")
            assert f"Only {name} is set" in message and "or neither" in message
    assert "write idleWattsRelativeUncertainty and" in refusal(*AUTO, *both)


def test_a_known_board_with_watts_is_refused():
    message = refusal(*PI, "--set", "meter.idleWatts=2")
    assert "leave out meter.idleWatts" in message and "meter.board=generic" in message


def test_the_meter_is_root_without_any_privilege():
    spec = pod(meter(*PI))
    inner = container(meter(*PI))["securityContext"]
    assert not {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"} & set(spec)
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsUser"] == 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert inner == {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_meter_mounts_host_paths_for_its_sources_and_can_write_to_none():
    daemonset = meter(*PI)
    sources = {
        v["name"]: v["hostPath"]["path"] for v in daemonset["spec"]["template"]["spec"]["volumes"]
    }
    mounts = container(daemonset)["volumeMounts"]
    assert {sources[m["name"]]: m["mountPath"] for m in mounts} == {
        "/sys/class": "/host/sys/class",
        "/sys/devices": "/host/sys/devices",
        "/sys/fs/cgroup": "/host/sys/fs/cgroup",
        "/var/log/pods": "/var/log/pods",
    }
    for mount in mounts:
        assert mount["readOnly"] is True
        assert mount["recursiveReadOnly"] == "IfPossible"
        assert "mountPropagation" not in mount


def test_the_meter_sees_the_device_tree_only_if_asked_and_never_all_of_the_firmware():
    daemonset = meter(*PI, "--set", "meter.deviceTree=true")
    paths = [v["hostPath"]["path"] for v in daemonset["spec"]["template"]["spec"]["volumes"]]
    assert [path for path in paths if "firmware" in path] == ["/sys/firmware/devicetree"]
    mount = next(m for m in container(daemonset)["volumeMounts"] if m["name"] == "device-tree")
    assert mount["readOnly"] is True
    assert mount["mountPath"] == "/host/sys/firmware/devicetree"


def power_files(*arguments):
    data = find(render(*arguments), "ConfigMap", "frugality-meter-power")["data"]
    return {name: json.loads(text) for name, text in data.items()}


def test_every_node_gets_its_power_source():
    assert power_files(*PI, *PLUG) == {
        "power.json": {
            "nodes": {"pi-1": {"source": {"type": "shelly-gen2", "host": "192.168.1.20"}}}
        }
    }
    daemonset = meter(*PI, *PLUG)
    env = environment(daemonset)
    mounts = {m["name"]: m for m in container(daemonset)["volumeMounts"]}
    assert env["FRUGALITY_METER_POWER_CONFIG"] == mounts["power"]["mountPath"] + "/power.json"
    assert mounts["power"]["readOnly"] is True
    # Nodes without a source use the board's model.
    assert env["FRUGALITY_METER_BOARD"] == "pi-4b"


def test_without_power_sources_there_is_no_configuration():
    objects = render(*PI)
    assert not [o for o in objects if o["kind"] == "ConfigMap"]
    assert "FRUGALITY_METER_POWER_CONFIG" not in environment(meter(*PI))


def test_a_source_for_all_nodes_needs_no_board_and_refuses_watts():
    assert power_files(*AUTO)["power.json"]["default"] == {"source": {"type": "auto"}}
    assert "FRUGALITY_METER_IDLE_WATTS" not in environment(meter(*AUTO))
    assert "below meter.power.default" in refusal(*AUTO, "--set", "meter.idleWatts=2")


def test_a_changed_source_restarts_the_meters():
    def annotation(*arguments):
        return meter(*arguments)["spec"]["template"]["metadata"]["annotations"]

    other = annotation(*AUTO, "--set", "meter.power.default.maxWatts=12")
    assert annotation(*AUTO) != other


def test_nodes_with_a_label_have_a_meter_of_their_own_and_never_two():
    objects = render(*PI, *GROUP)
    rest, group = (
        find(objects, "DaemonSet", name) for name in ("frugality-meter", "frugality-meter-ina")
    )
    assert group["spec"]["template"]["spec"]["nodeSelector"] == {"frugality.dev/power": "ina226"}
    [term] = rest["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "frugality.dev/power", "operator": "NotIn", "values": ["ina226"]}
    ]
    assert environment(group)["FRUGALITY_METER_POWER_CONFIG"].endswith("/ina.json")
    assert power_files(*PI, *GROUP)["ina.json"]["default"] == {"source": {"type": "hwmon"}}
    # The operator finds the pods of both DaemonSets by the same label, and treats them as meters.
    names = environment(operator(*PI, *GROUP))["FRUGALITY_METER_DAEMON_SETS"]
    assert names == "frugality-meter,frugality-meter-ina"
    may_get_the_meters_daemonsets(objects, "frugality-system", names.split(","))
    label, value = environment(operator(*PI))["FRUGALITY_METER_SELECTOR"].split("=")
    for daemonset in (rest, group):
        labels = daemonset["spec"]["template"]["metadata"]["labels"]
        assert labels[label] == value
        assert daemonset["spec"]["selector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize(
    "settings, told",
    [
        (GROUP[:4], "missing property 'power'"),
        ((*GROUP, "--set", "meter.affinity.podAffinity.x=1"), "exclude each other"),
    ],
)
def test_groups_that_would_leave_a_node_without_or_with_two_meters_are_refused(settings, told):
    assert told in refusal(*PI, *settings)


def test_passwords_come_from_a_secret_and_files_of_the_host_are_read_only():
    daemonset = meter(
        *PI,
        *PLUG,
        "--set",
        "meter.power.secretName=plugs",
        "--set",
        "meter.power.hostDirectories={/run/frugality-pmic}",
    )
    volumes = {v["name"]: v for v in daemonset["spec"]["template"]["spec"]["volumes"]}
    mounts = {m["mountPath"]: m for m in container(daemonset)["volumeMounts"]}
    secret = mounts["/etc/frugality/secrets"]
    assert volumes[secret["name"]]["secret"] == {"secretName": "plugs", "defaultMode": 0o400}
    pmic = mounts["/run/frugality-pmic"]
    assert volumes[pmic["name"]]["hostPath"]["path"] == "/run/frugality-pmic"
    assert secret["readOnly"] is True and pmic["readOnly"] is True


def test_the_bridge_writes_in_one_directory_ten_times_a_second():
    daemonset = meter(*PI, "--set", "meter.bridge.enabled=true")
    env = environment(daemonset)
    assert env["FRUGALITY_METER_INTERVAL"] == "100ms"
    [mount] = [m for m in container(daemonset)["volumeMounts"] if not m.get("readOnly")]
    assert mount["mountPath"] == env["FRUGALITY_METER_BRIDGE"]
    [volume] = [
        v for v in daemonset["spec"]["template"]["spec"]["volumes"] if v["name"] == mount["name"]
    ]
    assert volume["hostPath"] == {"path": "/run/frugality/kepler", "type": "DirectoryOrCreate"}
    assert "FRUGALITY_METER_BRIDGE" not in environment(meter(*PI))


def test_the_meter_runs_on_every_node_and_is_probed():
    daemonset = meter(*PI)
    assert daemonset["spec"]["template"]["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert not {"nodeSelector", "affinity"} & set(daemonset["spec"]["template"]["spec"])
    [port] = container(daemonset)["ports"]
    assert port["containerPort"] == 28282
    assert container(daemonset)["livenessProbe"]["httpGet"] == {
        "path": "/healthz",
        "port": port["name"],
    }
    assert container(daemonset)["readinessProbe"]["httpGet"] == {
        "path": "/readyz",
        "port": port["name"],
    }


def test_the_meter_gets_the_settings_of_a_known_board():
    env = environment(meter(*PI))
    assert env["NODE_NAME"] == "[spec.nodeName]"
    assert env["FRUGALITY_METER_BOARD"] == "pi-4b"
    assert env["FRUGALITY_METER_INTERVAL"] == "500ms"
    assert env["FRUGALITY_METER_CGROUP_FS"] == "/host/sys/fs/cgroup"
    assert env["FRUGALITY_METER_CGROUP_ROOT"] == "/"
    assert env["FRUGALITY_METER_POD_LOGS"] == "/var/log/pods"
    # Without these variables the meter uses the board's own watts and the CPUs that it finds.
    assert not {
        "FRUGALITY_METER_IDLE_WATTS",
        "FRUGALITY_METER_WATTS_PER_CPU",
        "FRUGALITY_METER_CPUS",
    } & set(env)


def test_the_meter_gets_the_settings_of_a_board_with_given_watts():
    env = environment(meter(*GENERIC, "--set", "meter.cpus=1"))
    assert env["FRUGALITY_METER_BOARD"] == "generic"
    assert env["FRUGALITY_METER_IDLE_WATTS"] == "0"
    assert env["FRUGALITY_METER_WATTS_PER_CPU"] == "1.5"
    assert env["FRUGALITY_METER_CPUS"] == "1"


@pytest.mark.parametrize(
    "path, mounted, read",
    [
        ("/var/log/pods", "/var/log/pods", "/var/log/pods"),
        ("/run/lab/{node}/logs/pods", "/run/lab", "/var/log/pods/$(NODE_NAME)/logs/pods"),
        ("/run/lab/of-{node}", "/run/lab", "/var/log/pods/of-$(NODE_NAME)"),
    ],
)
def test_nodes_that_share_a_machine_have_cgroups_and_logs_of_their_own(path, mounted, read):
    daemonset = meter(
        *PI, "--set", f"meter.podLogsPath={path}", "--set", "meter.cgroupRoot=/lab/{node}"
    )
    [logs] = [
        v for v in daemonset["spec"]["template"]["spec"]["volumes"] if v["name"] == "pod-logs"
    ]
    assert logs["hostPath"]["path"] == mounted
    env = environment(daemonset)
    assert env["FRUGALITY_METER_POD_LOGS"] == read
    # The meter itself replaces {node} here.
    assert env["FRUGALITY_METER_CGROUP_ROOT"] == "/lab/{node}"
    # Kubernetes expands only variables that are defined earlier in the list.
    names = list(env)
    assert names.index("NODE_NAME") < names.index("FRUGALITY_METER_POD_LOGS")


# ---- the binaries -------------------------------------------------------------------------------


def understood(name):
    result = run(binary(name), "run", "--help")
    assert result.returncode == 0, result.stderr
    return set(re.findall(r"\[env: (\w+)=", result.stdout))


@pytest.mark.parametrize(
    "settings",
    [
        PI,
        (*GENERIC, "--set", "meter.cpus=1"),
        KEPLER,
        (*AUTO, *GROUP, "--set", "meter.bridge.enabled=true"),
    ],
    ids=["pi", "generic", "kepler", "sources"],
)
def test_the_binaries_know_every_variable_that_the_chart_sets(settings):
    for o in render(*settings):
        if o["kind"] in ("Deployment", "DaemonSet"):
            assert container(o)["args"] == ["run"]
            name = o["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"]
            # glibc reads this one.
            unknown = set(environment(o)) - understood(name) - {"MALLOC_ARENA_MAX"}
            assert not unknown, o["metadata"]["name"]


def test_the_boards_that_the_chart_names_are_the_boards_that_the_meter_knows():
    result = run(binary("frugality-meter"), "boards")
    known = set(re.findall(r"^([a-z][\w-]+) ", result.stdout, re.MULTILINE)) - {"generic"}
    assert known, result.stdout
    texts = [refusal()]
    texts += [(CHART / f).read_text() for f in ("values.yaml", "values.schema.json", "README.md")]
    for text in texts:
        assert set(re.findall(r"\bpi-(?:zero-)?\d\w+(?:-plus)?\b", text)) == known


@pytest.mark.parametrize("settings", [PI, GENERIC], ids=["pi", "generic"])
def test_the_meter_starts_with_the_settings_of_the_chart(settings):
    env = environment(meter(*settings)) | {
        "NODE_NAME": "pi-1",
        "FRUGALITY_METER_CGROUP_FS": "/sys/fs/cgroup",
        "FRUGALITY_METER_SYSFS": "/sys",
        "FRUGALITY_METER_LISTEN": "127.0.0.1:0",
    }
    with subprocess.Popen(
        [binary("frugality-meter"), "run"], env=env, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = threading.Timer(20, process.kill)
        deadline.start()
        log = []
        for line in process.stderr:
            log.append(line)
            if "serving" in line:
                process.terminate()
        deadline.cancel()
    assert process.returncode == 0, "".join(log)
    assert any("serving" in line for line in log), "".join(log)
