# shellcheck shell=bash
# Starts the cluster in the box step by step, and prints its status.

node_ready() {
  local condition='{.status.conditions[?(@.type=="Ready")].status}'
  [[ $(kube get node "$1" --output "jsonpath=$condition" 2>/dev/null) == True ]]
}

# Succeeds if the node's pods have the node's CPUs and no others.
node_pinned() {
  local mount
  mount=$(cgroup_cpuset_mount)
  [[ -z $mount || $(<"$mount$LAB_CGROUP_ROOT/$1/kubepods/cpuset.cpus") == "${LAB_NODE_CPUS[$1]}" ]]
}

# The parts that `up --without` excludes.
declare -A LAB_WITHOUT=()

parse_without() {
  local part
  while (($#)); do
    case $1 in
      --without)
        (($# > 1)) || die "--without needs the name of a part"
        part=$2
        shift
        ;;
      --without=* | --without-*) part=${1#--without?} ;;
      *) die "up has no option '$1'" ;;
    esac
    [[ $part != cnpg ]] || part=cloudnative-pg
    case $part in
      coredns | cloudnative-pg | local-path-provisioner | fortio | helm) LAB_WITHOUT[$part]=1 ;;
      *) die "the box cannot be started without '$part'" ;;
    esac
    shift
  done
}

wanted() { [[ -z ${LAB_WITHOUT[$1]:-} ]]; }

wanted_binaries() {
  local binary
  for binary in "${BINARIES[@]}"; do
    ! wanted "${BINARY_PART[$binary]}" || echo "$binary"
  done
}

wanted_images() {
  echo pause base
  ! wanted coredns || echo coredns
  ! wanted local-path-provisioner || echo local-path-provisioner
  ! wanted cloudnative-pg || echo cloudnative-pg postgresql
}

# Loads images while the API server starts, because the container runtimes are ready earlier.
load_system_images() {
  local node image
  for node in "${LAB_NODES[@]}"; do
    wait_for 30 "the container runtime of $node starts" node_exec "$node" ctr version ||
      die "the container runtime of $node does not answer" "See $LAB_LOG_DIR/$node-containerd.log"
  done
  for image in "$@"; do
    # shellcheck disable=SC2046 # node names are words
    load_image "$(system_image_name "$image")" $(system_image_nodes "$image")
  done
}

install_addons() {
  wait_for 120 "the API server starts" kube get --raw /readyz ||
    die "the API server does not answer" "See the logs in $LAB_LOG_DIR"
  if wanted coredns; then
    step "install DNS" apply_dns || die "CoreDNS cannot be installed" "${PART_WITHOUT[coredns]}"
  fi
  if wanted local-path-provisioner; then
    step "install local-path storage" apply_storage ||
      die "local-path storage cannot be installed" "${PART_WITHOUT[local-path-provisioner]}"
  fi
  if wanted cloudnative-pg; then
    step "install CloudNativePG" apply_cloudnative_pg ||
      die "CloudNativePG cannot be installed" "${PART_WITHOUT[cloudnative-pg]}"
  fi
}

wait_for_nodes() {
  local node
  for node in "${LAB_NODES[@]}"; do
    wait_for 120 "node $node becomes ready" node_ready "$node" ||
      die "node $node does not become ready" "See $LAB_LOG_DIR/$node-kubelet.log"
    wait_for 30 "node $node gets its CPUs" node_pinned "$node" ||
      die "node $node does not get its CPUs" "See $LAB_LOG_DIR/$node.log"
  done
}

wait_for_addons() {
  if wanted coredns; then
    step "DNS rolls out" roll_out kube-system coredns ||
      die "CoreDNS does not become available" "${PART_WITHOUT[coredns]}"
  fi
  if wanted local-path-provisioner; then
    step "local-path storage rolls out" roll_out local-path-storage local-path-provisioner ||
      die "local-path storage does not become available" "${PART_WITHOUT[local-path-provisioner]}"
  fi
  if wanted cloudnative-pg; then
    step "CloudNativePG rolls out" roll_out cnpg-system cnpg-controller-manager ||
      die "CloudNativePG does not become available" "${PART_WITHOUT[cloudnative-pg]}"
  fi
}

cluster_up() {
  local image programs images started=$SECONDS
  parse_without "$@"
  box_pid >/dev/null || box_refuse_other_box
  mapfile -t programs < <(wanted_binaries)
  build_parts "${programs[@]}"
  read -r -d '' -a images < <(wanted_images) || true
  images_lock
  for image in "${images[@]}"; do ensure_system_image "$image"; done
  if box_pid >/dev/null; then
    box_report_other_checkout
    say "the box is up already (process $(box_pid))"
  else
    say "starting the box"
    box_start
  fi
  load_system_images "${images[@]}"
  exec {LAB_IMAGES_LOCK}>&-
  install_addons
  wait_for_nodes
  wait_for_addons
  # Only now, because the start is faster with all CPUs and nothing was measured yet.
  wait_for 10 "the control plane leaves the measured core" cgroup_cpus "$LAB_CGROUP_ROOT/system" "$LAB_SYSTEM_CPUS" ||
    die "the control plane cannot be kept off the measured core"
  say "the cluster is up, $((SECONDS - started))s after the command; try: $LAB_COMMAND kubectl get nodes"
}

# board_up NODE: adds one more node to measure. A benchmark uses this node only if its spec names the node.
board_up() {
  local node=$1
  if ! node_pid "$node" >/dev/null; then
    cgroup_make "$LAB_CGROUP_ROOT/$node"
    cgroup_make "$LAB_CGROUP_ROOT/system/$node"
    step "plug $node in" box_board "$node" plug || die "the board $node cannot be started" "See $LAB_LOG_DIR/$node.log"
  fi
  wait_for 30 "the container runtime of $node starts" node_exec "$node" ctr version ||
    die "the container runtime of $node does not answer" "See $LAB_LOG_DIR/$node-containerd.log"
  images_lock
  load_image "$(system_image_name pause)" "$node"
  wait_for 60 "node $node becomes ready" node_ready "$node" ||
    die "node $node does not become ready" "See $LAB_LOG_DIR/$node-kubelet.log"
  wait_for 30 "node $node gets its CPUs" node_pinned "$node" ||
    die "node $node does not get its CPUs" "See $LAB_LOG_DIR/$node.log"
  say "the board $node is up; to load images: $LAB_COMMAND load IMAGE..."
}

# board_down NODE: ends all processes of the board's cgroups, and removes the board.
board_down() {
  local node=$1 process cgroup
  node_pid "$node" >/dev/null || die "the board $node is not up"
  # The node's first process is killed first, because it would start the others again.
  for process in $(node_pid "$node") $(cgroup_processes "$LAB_CGROUP_ROOT/system/$node") $(cgroup_processes "$LAB_CGROUP_ROOT/$node"); do
    kill -KILL "$process" 2>/dev/null || true
  done
  for cgroup in system/"$node" "$node"; do
    cgroup_remove "$LAB_CGROUP_ROOT/$cgroup" || die "processes of $node do not end"
  done
  box_board "$node" unplug
  kube delete node "$node" --wait=false >/dev/null
  say "removed the board $node"
}

# Reports a box that another checkout started. The command uses that box, even if versions or settings differ.
box_report_other_checkout() {
  local checkout='' fingerprint='' key value
  while IFS='=' read -r key value; do
    case $key in
      checkout) checkout=$value ;;
      fingerprint) fingerprint=$value ;;
    esac
  done <"$LAB_DIR/box.env"
  if [[ $fingerprint != "$(box_fingerprint)" ]]; then
    say "note: the running box was started from $checkout with other versions or settings;"
    say "      this command uses that box. To start this checkout's box: $LAB_COMMAND down, then up"
  elif [[ $checkout != "$LAB_HOME" ]]; then
    say "using the box that was started from $checkout"
  fi
}

cluster_status() {
  local pid init node mount cpus
  if ! pid=$(box_pid); then
    say "no box is up (state directory $LAB_DIR)"
    return 1
  fi
  init=$(box_init_pid)
  mount=$(cgroup_cpuset_mount)
  echo "box        process $pid, up since $(ps -o lstart= -p "$pid"), $(cgroup_processes "$LAB_CGROUP_ROOT" | wc -l) processes"
  echo "state      $LAB_DIR (logs in $LAB_LOG_DIR)"
  echo "inside     nsenter --target $init --mount --net --pid, or: lab exec COMMAND"
  for node in $(nodes_up); do
    cpus=$(cat "$mount$LAB_CGROUP_ROOT/$node/kubepods/cpuset.cpus" 2>/dev/null) || cpus=unknown
    printf '%-10s cgroup %s, pods on CPU %s, pod logs %s\n' \
      "$node" "$LAB_CGROUP_ROOT/$node" "$cpus" "$LAB_DIR/nodes/$node/log/pods"
  done
  echo "system     cgroup $LAB_CGROUP_ROOT/system on CPU $(cat "$mount$LAB_CGROUP_ROOT/system/cpuset.cpus")"
  echo
  kube get nodes --label-columns frugality.dev/role --output wide
  echo
  kube get pods --all-namespaces --output wide
}
