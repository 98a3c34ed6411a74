# shellcheck shell=bash
# hack/demo sources this file to run in the user's own cluster. The functions check the cluster, list everything
# that is missing at once, and install the chart.

OWN_NAMESPACE=frugality-demo
REGISTRY=""
KUBE_FLAGS=()
CHART_FLAGS=()
SHARE_NODE=0
STANDALONE=0
# The cluster of --kind and --k3d.
THROW_AWAY=frugality-demo
LOADED=0
INSTALLED=0
PROBLEMS=0

own_kubectl() { command kubectl "${KUBE_FLAGS[@]}" "$@"; }

own_helm() {
  local flag flags=()
  # Helm's name for --context is --kube-context.
  for flag in "${KUBE_FLAGS[@]}"; do flags+=("${flag/--context=/--kube-context=}"); done
  command helm "${flags[@]}" --namespace frugality-system "$@"
}

# problem TEXT REMEDY...: prints one thing that is missing and its remedy, and counts it.
problem() {
  PROBLEMS=$((PROBLEMS + 1))
  printf '  missing: %s\n' "$1" >&2
  shift
  printf '           %s\n' "$@" >&2
}

own_cluster_check() {
  local tool answer
  for tool in kubectl helm; do
    command -v "$tool" >/dev/null || die "$tool is not in PATH" "hack/lab/lab build $tool builds it, and hack/lab/lab part $tool prints its path."
  done
  answer=$(own_kubectl version 2>&1) || die "the cluster does not answer: ${answer##*$'\n'}"
  say "the cluster: $(own_kubectl config view --minify --output 'jsonpath={.contexts[0].name} at {.clusters[0].cluster.server}')"
  look_at_release
  check_version "$answer"
  check_rights
  check_nodes
  if ((STANDALONE == 0)); then
    check_cloud_native_pg
    check_storage
  fi
  check_power
  ((LOADED)) || check_images
  ((PROBLEMS == 0)) || die "the items above are missing in the cluster; hack/demo changed nothing in it"
}

# create_cluster kind|k3d: creates a cluster of two nodes without taints, and loads the images that hack/images has written
# for this machine. Other images are pulled.
create_cluster() {
  local image archive folder
  command -v "$1" >/dev/null || die "$1 is not in PATH, and --$1 needs it"
  ((${#KUBE_FLAGS[@]} == 0)) || die "--$1 creates a cluster: leave out --context and --kubeconfig"
  ((${#CHART_FLAGS[@]})) || die "--$1 needs --board or --values: the nodes are containers, without a meter"
  say "creating the cluster $THROW_AWAY with $1"
  case $1 in
    kind)
      kind create cluster --name "$THROW_AWAY" --config - <<<'{kind: Cluster, apiVersion: kind.x-k8s.io/v1alpha4,
        nodes: [{role: control-plane}, {role: worker}, {role: worker}]}'
      ;;
    k3d) k3d cluster create "$THROW_AWAY" --agents 1 --wait ;;
  esac || die "$1 cannot create the cluster $THROW_AWAY"
  KUBE_FLAGS=(--context="$1-$THROW_AWAY")
  share_processors
  folder=build/$(architecture_of "$(uname -m)")
  [[ -z $REGISTRY && -e $folder/revision ]] || return 0
  for image in operator meter injector contacts-rust contacts-python; do
    archive=$folder/$image.tar
    say "loading $archive"
    case $1 in
      kind) kind load image-archive "$archive" --name "$THROW_AWAY" ;;
      k3d) k3d image import "$archive" --cluster "$THROW_AWAY" ;;
    esac || die "$1 cannot load $archive"
  done
  # The nodes' status lists the images only minutes later.
  LOADED=1
}

# Gives each node an equal number of separate processors. If the nodes share them, the work of one node makes attempts on
# another void (CpuTaken).
share_processors() {
  local node nodes each first=0
  mapfile -t nodes < <(own_kubectl get nodes --output name)
  # own_cluster_check prints why there are none.
  ((${#nodes[@]})) || return 0
  each=$(($(nproc) / ${#nodes[@]}))
  for node in "${nodes[@]#node/}"; do
    if ((each == 0)) || ! docker update --cpuset-cpus "$first-$((first + each - 1))" "$node" >/dev/null; then
      say "$node has no separate processors: attempts may be void (CpuTaken)"
    fi
    first=$((first + each))
  done
}

check_version() {
  local minor
  minor=$(sed -n 's/^Server Version: v1\.\([0-9]*\).*/\1/p' <<<"$1")
  ((${minor:-0} >= 29)) || problem "Kubernetes 1.29 or newer" "The cluster has: ${1##*$'\n'}"
}

check_rights() {
  local what
  for what in customresourcedefinitions clusterroles clusterrolebindings rolebindings namespaces; do
    own_kubectl auth can-i create "$what" --quiet 2>/dev/null || problem "the right to create $what" "Use the context of a cluster administrator."
  done
}

# Sets NODES to the names of the nodes that a benchmark may use: ready, and without a taint that keeps pods off.
check_nodes() {
  local name architecture ready taints
  NODES=()
  while IFS=$'\t' read -r name architecture ready taints; do
    [[ $ready == True && " $taints" != *" No"* ]] || continue
    NODES+=("$name")
    [[ $architecture == amd64 || $architecture == arm64 ]] ||
      problem "images for the architecture of $name, $architecture" "There are images for amd64 and arm64. A Raspberry Pi needs a 64-bit system."
  done < <(own_kubectl get nodes --output 'jsonpath={range .items[*]}{.metadata.name}{"\t"}{.status.nodeInfo.architecture}{"\t"}{.status.conditions[?(@.type=="Ready")].status}{"\t"}{.spec.taints[*].effect}{"\n"}{end}')
  ((${#NODES[@]} >= 2 || (SHARE_NODE && ${#NODES[@]} == 1))) ||
    problem "two nodes that are ready and untainted, one to measure and one to send the load; there are: ${NODES[*]:-none}" \
      "Add a node, or let load and servers share one node with --share-node."
}

check_cloud_native_pg() {
  local available
  own_kubectl get crd clusters.postgresql.cnpg.io --output name >/dev/null 2>&1 || {
    problem "CloudNativePG, for the database" "https://cloudnative-pg.io/documentation/current/installation_upgrade/" \
      "Or let the operator run the database: --standalone."
    return
  }
  available=$(own_kubectl get deployments --all-namespaces --selector app.kubernetes.io/name=cloudnative-pg --output 'jsonpath={.items[*].status.availableReplicas}')
  [[ $available == *[1-9]* ]] || problem "a CloudNativePG operator that is available: its CRDs are installed, but no replica is available" \
    "See: kubectl get deployments --all-namespaces --selector app.kubernetes.io/name=cloudnative-pg"
}

check_storage() {
  local default
  default=$(own_kubectl get storageclasses --output 'jsonpath={.items[?(@.metadata.annotations.storageclass\.kubernetes\.io/is-default-class=="true")].metadata.name}')
  [[ -n $default ]] || problem "a default StorageClass, for the database's volume" \
    "Mark one: kubectl annotate storageclass NAME storageclass.kubernetes.io/is-default-class=true"
}

# An installed chart keeps its images, unless --registry is given. The candidates' images come from the registry
# of the operator's image.
look_at_release() {
  local image=""
  if own_helm status frugality >/dev/null 2>&1; then
    INSTALLED=1
    image=$(own_kubectl --namespace frugality-system get deployment frugality-operator --output 'jsonpath={.spec.template.spec.containers[0].image}')
  fi
  if [[ -n $REGISTRY || $INSTALLED == 0 ]]; then
    REGISTRY=${REGISTRY:-$PUBLISHED}
    CHART_IMAGES=(--set "image.repository=$REGISTRY/operator" --set "injector.image.repository=$REGISTRY/injector"
      --set "injector.k6Image.repository=$REGISTRY/injector-k6" --set "meter.image.repository=$REGISTRY/meter")
  else
    REGISTRY=${image%/*}
    CHART_IMAGES=()
  fi
}

check_power() {
  ((${#CHART_FLAGS[@]} || INSTALLED)) || problem "a source of the nodes' power" \
    "Use --board pi-4b for a model of the board (frugality-meter boards lists the boards), or" \
    "--values FILE with your meters, as docs/power-on-a-pi.md describes."
}

# A node must have an image or be able to pull it. Only the public registry is asked, because another registry may require
# a login that this machine lacks. A node's status lists at most 50 images. A node that lists 50 may have more, so it is not checked.
check_images() {
  [[ $REGISTRY == "$PUBLISHED" || $REGISTRY == localhost/* ]] || return 0
  local node image names missing
  for node in "${NODES[@]}"; do
    names=$(own_kubectl get node "$node" --output 'jsonpath={range .status.images[*]}{.names}{"\n"}{end}')
    [[ $(wc -l <<<"$names") -lt 50 ]] || continue
    missing=()
    for image in operator meter injector contacts-rust contacts-python; do
      [[ $names == *"\"$REGISTRY/$image:$VERSION\""* ]] || ! registry_lacks "$image" || missing+=("$image")
    done
    ((${#missing[@]} == 0)) || problem "images $REGISTRY/…:$VERSION in the node $node, and in the registry: ${missing[*]}" \
      "Run hack/images --import-k3s $node (the node's status lists them within a few minutes), or" \
      "hack/images --arch all --push PREFIX, then hack/demo with --registry PREFIX."
  done
}

# registry_lacks IMAGE: succeeds if no node can pull this image of REGISTRY. Its name has no registry, or the registry
# refuses it without a login. If this machine can't reach the registry, the nodes may still reach it. If the nodes fail,
# rolled_out or the benchmark's status has the reason.
registry_lacks() {
  local host=${REGISTRY%%/*} path=${REGISTRY#*/}/$1 token types status=0
  [[ $host != localhost ]] || return 0
  types=application/vnd.oci.image.index.v1+json,application/vnd.docker.distribution.manifest.list.v2+json
  token=$(registry_answer "https://$host/token?scope=repository:$path:pull") || status=$?
  token=$(sed -n 's/.*"token": *"\([^"]*\)".*/\1/p' <<<"$token")
  ((status != 0)) || registry_answer --head --header "Authorization: Bearer $token" --header "Accept: $types" \
    "https://$host/v2/$path/manifests/$VERSION" >/dev/null || status=$?
  # curl's code for an answer with an HTTP error.
  ((status == 22))
}

registry_answer() { curl --silent --fail --max-time 10 "$@"; }

own_cluster_install() {
  if ((INSTALLED && ${#CHART_FLAGS[@]} + ${#CHART_IMAGES[@]} == 0)); then
    say "using the installed chart without changes"
  else
    say "installing the chart into frugality-system"
    # --take-ownership, because kubectl may have applied the CRDs before.
    own_helm upgrade --install frugality charts/frugality-operator --create-namespace --reset-then-reuse-values \
      --take-ownership "${CHART_IMAGES[@]}" "${CHART_FLAGS[@]}" >/dev/null
  fi
  rolled_out deployment/frugality-operator
  # With meter.enabled=false the user runs Kepler instead of the node meter.
  if own_kubectl --namespace frugality-system get daemonset/frugality-meter >/dev/null 2>&1; then
    rolled_out daemonset/frugality-meter
  fi
  own_kubectl create namespace "$OWN_NAMESPACE" --dry-run=client --output yaml | own_kubectl apply --filename - >/dev/null
  # Only this namespace, whatever benchmarkNamespaces of the installed chart is. The right ends with the namespace.
  own_kubectl --namespace "$OWN_NAMESPACE" create rolebinding frugality-operator-runs --clusterrole=frugality-operator-runs \
    --serviceaccount=frugality-system:frugality-operator --dry-run=client --output yaml | own_kubectl apply --filename - >/dev/null
  say "the operator is ready"
}

# Reasons that waiting does not fix.
HOPELESS='ErrImageNeverPull|ErrImagePull|ImagePullBackOff|InvalidImageName|CrashLoopBackOff|CreateContainerConfigError'

rolled_out() {
  local deadline=$((SECONDS + 300)) image why
  say "waiting for $1"
  image=$(own_kubectl --namespace frugality-system get "$1" --output 'jsonpath={.spec.template.spec.containers[0].image}')
  until own_kubectl --namespace frugality-system rollout status "$1" --timeout=5s >/dev/null 2>&1; do
    # Only pods with this image, because pods of an earlier installation may still run.
    why=$(own_kubectl --namespace frugality-system get pods --output \
      'jsonpath={range .items[*]}{range .status.containerStatuses[*]}{.image}{" "}{.state.waiting.reason}: {.state.waiting.message}{"\n"}{end}{end}' |
      grep -E "^$image ($HOPELESS)" | sort -u) || true
    [[ -z $why ]] || die "$1 does not start: $why" \
      "Set where the nodes get the images: --registry (hack/demo --help), or image, injector and meter in --values."
    ((SECONDS < deadline)) || die "$1 is not ready after 5 minutes" \
      "See: kubectl ${KUBE_FLAGS[*]} --namespace frugality-system describe pods"
  done
}

own_cluster_farewell() {
  case $CREATE in
    kind) printf '\nTo remove the cluster: kind delete cluster --name %s\n' "$THROW_AWAY" ;;
    k3d) printf '\nTo remove the cluster: k3d cluster delete %s\n' "$THROW_AWAY" ;;
    *) remove_from_own_cluster ;;
  esac
}

remove_from_own_cluster() {
  cat <<TEXT

To remove the benchmark, the chart and its CRDs from the cluster:
  kubectl ${KUBE_FLAGS[*]} delete namespace $OWN_NAMESPACE
  helm ${KUBE_FLAGS[*]/--context=/--kube-context=} uninstall frugality --namespace frugality-system
  kubectl ${KUBE_FLAGS[*]} delete crd frugalitybaselines.frugality.dev frugalitybenchmarks.frugality.dev frugalitytraces.frugality.dev frugalitytrials.frugality.dev
TEXT
}
