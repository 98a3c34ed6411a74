# shellcheck shell=bash
# Starts, finds, enters and ends the box, which is one process with its descendants.

# Prints the box's outermost process. PID and start time identify it, because the kernel reuses PIDs.
box_pid() {
  local pid started
  [[ -r $LAB_DIR/box.pid ]] || return 1
  read -r pid started <"$LAB_DIR/box.pid" || return 1
  [[ -r /proc/$pid/stat && $(process_start "$pid") == "$started" ]] || return 1
  echo "$pid"
}

process_start() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

# Prints the PID on this machine of the box's first process. nsenter enters the namespaces of this process.
box_init_pid() {
  local pid
  pid=$(box_pid) && pgrep --parent "$pid"
}

# box_exec COMMAND...: runs the command inside the box, in the same directory, but not on the measured core.
box_exec() {
  local pid
  pid=$(box_init_pid) || die "the box is not up" "Start it with: $LAB_COMMAND up"
  # shellcheck disable=SC2016 # the inner shell's own parameters
  taskset --cpu-list "$LAB_SYSTEM_CPUS" nsenter --target "$pid" --mount --net --pid \
    env "KUBECONFIG=$LAB_DIR/kubeconfig" "PATH=$LAB_DIR/bin:$PATH" \
    bash -c 'cd "$1" && shift && exec "$@"' bash "$PWD" "$@"
}

# node_exec NODE COMMAND...: runs the command in the node's mount and network namespaces, which contain the socket
# of its container runtime.
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

# Prints the nodes that are up, boards included.
nodes_up() {
  local node
  for node in "${LAB_NODES[@]}" "${LAB_BOARDS[@]}"; do
    ! node_pid "$node" >/dev/null || echo "$node"
  done
}

kube() { box_exec "$LAB_DIR/bin/kubectl" "$@"; }

# Prints a hash of everything that defines a box. It shows whether this checkout would start the same box.
box_fingerprint() {
  local binary
  {
    cat "$LAB_HOME"/box/* "$LAB_HOME"/lib/{settings,network,supervise,cgroups}.sh
    # Of the box's own parts alone: a new version of a tool is not another box.
    for binary in "${BINARIES[@]}"; do part_dir "${BINARY_PART[$binary]}"; done
  } | sha256sum | cut -c1-16
}

box_refuse_bad_place() {
  case $LAB_DIR/ in
    /run/* | /var/run/* | /var/log/* | /proc/* | /sys/*)
      die "the state directory must not be $LAB_DIR: the box mounts its own /run, /var/log and /proc" \
        "Set FRUGALITY_LAB_DIR to another directory."
      ;;
  esac
}

box_refuse_other_box() {
  local strangers
  strangers=$(cgroup_processes "$LAB_CGROUP_ROOT" | head -n 3 | tr '\n' ' ')
  [[ -z $strangers ]] || die "another box on this machine uses the cgroup $LAB_CGROUP_ROOT (processes $strangers…)" \
    "End the other box with 'lab down' and its FRUGALITY_LAB_DIR," \
    "or start this box with another cgroup: FRUGALITY_LAB_CGROUP_ROOT=$LAB_CGROUP_ROOT-2"
}

# Removes the state of an ended box, except the images in its nodes' stores: they take long to load and do not
# depend on the cluster.
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

# Closes inherited file descriptors, because the box must not hold the caller's locks and pipes open.
let_go() {
  local open
  for open in /proc/"$BASHPID"/fd/*; do
    open=${open##*/}
    ((open <= 2)) || exec {open}>&-
  done
}

# box_environment COMMAND...: executes the command with only the environment that the box's programs need.
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
  # All these cgroups are leaves, because cgroup v2 allows processes only in leaves.
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
  # The subshell executes unshare, so the PID stays the same.
  printf '%s %s\n' "$pid" "$(process_start "$pid")" >"$LAB_DIR/box.pid"
  wait_for 10 "the box starts" box_init_pid || die "the box's first process ended at once" "$(tail -n 5 "$LAB_LOG_DIR/box.log")"
}

box_stop() {
  local pid init try
  if pid=$(box_pid); then
    init=$(box_init_pid) || init=$pid
    # --kill-child kills the box's first process too. The kernel then kills all processes of its PID namespace.
    kill -KILL "$pid"
    for ((try = 0; try < 300; try++)); do
      [[ -e /proc/$pid || -e /proc/$init || -n $(cgroup_processes "$LAB_CGROUP_ROOT") ]] || break
      sleep 0.1
    done
    say "ended the box (process $pid and its descendants)"
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
