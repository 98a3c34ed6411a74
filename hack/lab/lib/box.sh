# shellcheck shell=bash
# The box as one process: starting it, finding it, entering it, ending it.

# The box is known by its outermost process: number and start time, because numbers come again.
box_pid() {
  local pid started
  [[ -r $LAB_DIR/box.pid ]] || return 1
  read -r pid started <"$LAB_DIR/box.pid" || return 1
  [[ -r /proc/$pid/stat && $(process_start "$pid") == "$started" ]] || return 1
  echo "$pid"
}

process_start() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

# The box's first process, as this machine numbers it: the one whose namespaces are entered.
box_init_pid() {
  local pid
  pid=$(box_pid) && pgrep --parent "$pid"
}

# box_exec COMMAND...: inside the box, in the same directory, off the measured core.
box_exec() {
  local pid
  pid=$(box_init_pid) || die "the box is not up" "Start it with: $LAB_COMMAND up"
  # shellcheck disable=SC2016 # the inner shell's own parameters
  taskset --cpu-list "$LAB_SYSTEM_CPUS" nsenter --target "$pid" --mount --net --pid \
    env "KUBECONFIG=$LAB_DIR/kubeconfig" "PATH=$LAB_DIR/bin:$PATH" \
    bash -c 'cd "$1" && shift && exec "$@"' bash "$PWD" "$@"
}

# node_exec NODE COMMAND...: in a node's own mount and network namespaces, where its container
# runtime's socket is.
node_exec() {
  local node=$1 pid
  shift
  pid=$(node_pid "$node") || die "the node $node is not running" "See the logs in $LAB_LOG_DIR"
  taskset --cpu-list "$LAB_SYSTEM_CPUS" nsenter --target "$pid" --mount --net --pid "$@"
}

node_pid() {
  local init
  init=$(box_init_pid) || return 1
  pgrep --parent "$init" --full "/box/node .* $1\$"
}

# The nodes that are up: those of every box, and the boards that were asked for.
nodes_up() {
  local node
  for node in "${LAB_NODES[@]}" "${LAB_BOARDS[@]}"; do
    ! node_pid "$node" >/dev/null || echo "$node"
  done
}

kube() { box_exec "$LAB_DIR/bin/kubectl" "$@"; }

# What decides whether a running box is the one that this checkout would start.
box_fingerprint() {
  local binary
  {
    cat "$LAB_HOME"/box/* "$LAB_HOME"/lib/{settings,network,supervise,cgroups}.sh
    # Of the box's own parts alone: a new version of a tool is no other box.
    for binary in "${BINARIES[@]}"; do part_dir "${BINARY_PART[$binary]}"; done
  } | sha256sum | cut -c1-16
}

box_refuse_bad_place() {
  case $LAB_DIR/ in
    /run/* | /var/run/* | /var/log/* | /proc/* | /sys/*)
      die "the state directory may not be $LAB_DIR: the box has a /run, /var/log, /proc of its own" \
        "Set FRUGALITY_LAB_DIR to another directory."
      ;;
  esac
}

box_refuse_other_box() {
  local strangers
  strangers=$(cgroup_processes "$LAB_CGROUP_ROOT" | head -n 3 | tr '\n' ' ')
  [[ -z $strangers ]] || die "another box on this machine uses the cgroup $LAB_CGROUP_ROOT (processes $strangers…)" \
    "End it from where it was started ('lab down' with its FRUGALITY_LAB_DIR)," \
    "or give this one another name: FRUGALITY_LAB_CGROUP_ROOT=$LAB_CGROUP_ROOT-2"
}

# Everything of an ended box but the images in its nodes' stores, which are kept: they take long to
# load and belong to no cluster.
box_sweep() {
  local node entry
  cgroup_remove "$LAB_CGROUP_ROOT" ||
    die "the cgroup $LAB_CGROUP_ROOT is still in use by: $(cgroup_processes "$LAB_CGROUP_ROOT" | tr '\n' ' ')"
  rm -rf "${LAB_DIR:?}"/{manifests,pki,kubeconfig,bin,box.pid,box.env}
  for node in "${LAB_NODES[@]}" "${LAB_BOARDS[@]}"; do
    [[ -d $LAB_DIR/nodes/$node ]] || continue
    for entry in "$LAB_DIR/nodes/$node"/*; do
      [[ ${entry##*/} == containerd ]] || rm -rf "$entry"
    done
  done
}

# The box must not hold what the caller has open: locks, pipes, the terminal.
let_go() {
  local open
  for open in /proc/"$BASHPID"/fd/*; do
    open=${open##*/}
    ((open <= 2)) || exec {open}>&-
  done
}

# box_environment COMMAND...: becomes it, with what the box's own programs need of the environment and no more.
box_environment() {
  exec env -i "PATH=$LAB_DIR/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" "HOME=$HOME" LANG=C.UTF-8 \
    "FRUGALITY_CACHE=$LAB_CACHE_DIR" "FRUGALITY_LAB_DIR=$LAB_DIR" "FRUGALITY_LAB_CGROUP_ROOT=$LAB_CGROUP_ROOT" "$@"
}

box_start() {
  local node
  box_sweep
  mkdir -p "$LAB_DIR/bin" "$LAB_LOG_DIR"
  rm -f "$LAB_LOG_DIR"/*.log
  local binary built
  for binary in "${BINARIES[@]}"; do
    built=$(part_dir "${BINARY_PART[$binary]}")/$binary
    [[ ! -x $built ]] || ln -s "$built" "$LAB_DIR/bin/$binary"
  done
  preflight
  step "make certificates" make_pki || die "openssl cannot make the cluster's certificates"
  # Processes are in leaves only: cgroup v2 wants it so.
  cgroup_make "$LAB_CGROUP_ROOT/system/control-plane"
  for node in "${LAB_NODES[@]}"; do
    cgroup_make "$LAB_CGROUP_ROOT/$node"
    cgroup_make "$LAB_CGROUP_ROOT/system/$node"
  done
  printf 'checkout=%s\nfingerprint=%s\n' "$LAB_HOME" "$(box_fingerprint)" >"$LAB_DIR/box.env"
  (
    cgroup_join "$LAB_CGROUP_ROOT/system/control-plane"
    cd /
    let_go
    box_environment setsid unshare --pid --fork --kill-child=KILL --net --mount --propagation private \
      "$LAB_HOME/box/init" "$LAB_HOME" </dev/null >"$LAB_LOG_DIR/box.log" 2>&1
  ) &
  local pid=$!
  # unshare has the same number as the subshell that became it.
  printf '%s %s\n' "$pid" "$(process_start "$pid")" >"$LAB_DIR/box.pid"
  wait_for 10 "the box starts" box_init_pid || die "the box's first process ended at once" "$(tail -n 5 "$LAB_LOG_DIR/box.log")"
}

box_stop() {
  local pid init try
  if pid=$(box_pid); then
    init=$(box_init_pid) || init=$pid
    # The kernel kills the box's first process with this one, and with that one all the others.
    kill -KILL "$pid"
    for ((try = 0; try < 300; try++)); do
      [[ -e /proc/$pid || -e /proc/$init || -n $(cgroup_processes "$LAB_CGROUP_ROOT") ]] || break
      sleep 0.1
    done
    say "ended the box (process $pid and all it started)"
  else
    say "no box is up"
  fi
  box_sweep
}

# box_board NODE plug|unplug
box_board() {
  local pid
  pid=$(box_init_pid) || die "the box is not up" "Start it with: $LAB_COMMAND up"
  (
    cd /
    let_go
    box_environment nsenter --target "$pid" --mount --net --pid "$LAB_HOME/box/board" "$LAB_HOME" "$@" </dev/null
  )
}
