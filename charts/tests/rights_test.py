"""The rights that the chart gives, as a user would install it."""

from rendered import NAMESPACE, PI, find, flat, refusal, render, rights


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
        | rights("", "pods", "list watch")
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
        | rights("frugality.dev", "frugalitytrials", "create delete")
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
