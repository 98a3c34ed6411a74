# shellcheck shell=bash
# The box's cgroups, in all hierarchies of cgroup v1 (pure or hybrid) or in the single hierarchy of v2.

cgroup_mounts() { findmnt --noheadings --raw --types cgroup,cgroup2 --output TARGET | sort -u; }

is_cgroup2() { [[ $(stat --file-system --format %T "$1") == cgroup2fs ]]; }

# cgroup_make PATH: makes the cgroup in all hierarchies, and sets CPUs and memory nodes, because a v1 cpuset without
# them accepts no process.
cgroup_make() {
  local mount part directory parent
  for mount in $(cgroup_mounts); do
    directory=$mount
    for part in ${1//\// }; do
      parent=$directory
      directory=$directory/$part
      if is_cgroup2 "$mount"; then cgroup2_enable "$parent"; fi
      mkdir -p "$directory"
      if [[ -e $directory/cpuset.mems && -e $directory/cpuset.cpus && -e $parent/cpuset.cpus ]] && ! is_cgroup2 "$mount"; then
        [[ -n $(<"$directory/cpuset.cpus") ]] || cat "$parent/cpuset.cpus" >"$directory/cpuset.cpus"
        [[ -n $(<"$directory/cpuset.mems") ]] || cat "$parent/cpuset.mems" >"$directory/cpuset.mems"
      fi
    done
  done
}

# Enables the controllers of a v2 parent for its children. It skips a controller that fails, because v1 uses it or
# because the parent has processes.
cgroup2_enable() {
  local controller
  for controller in $(<"$1/cgroup.controllers"); do
    { echo "+$controller" >"$1/cgroup.subtree_control"; } 2>/dev/null || true
  done
}

# Prints the mount point of the hierarchy with the cpuset controller.
cgroup_cpuset_mount() {
  local mount
  for mount in $(cgroup_mounts); do
    [[ ! -e $mount$LAB_CGROUP_ROOT/cpuset.cpus ]] || {
      echo "$mount"
      return
    }
  done
}

# cgroup_cpus PATH CPUS: sets the CPUs of a cgroup and of all its descendants. Children come first, because a parent
# cannot have fewer CPUs than a child. Returns 1 if the cgroup does not exist yet or a child appeared meanwhile.
cgroup_cpus() {
  local directory status=0
  local top=${LAB_CPUSET_MOUNT:=$(cgroup_cpuset_mount)}$1
  [[ -e $top/cpuset.cpus ]] || return 1
  # If the top cgroup has the right CPUs, its descendants have no others.
  [[ $(<"$top/cpuset.cpus") != "$2" ]] || return 0
  while IFS= read -r directory; do
    [[ $(<"$directory/cpuset.cpus") == "$2" ]] ||
      { echo "$2" >"$directory/cpuset.cpus"; } 2>/dev/null || status=1
  done < <(find "$top" -depth -type d 2>/dev/null)
  return "$status"
}

# cgroup_join PATH: moves the calling shell, and so its later children, into the cgroup.
cgroup_join() {
  local mount
  for mount in $(cgroup_mounts); do
    { echo "$BASHPID" >"$mount$1/cgroup.procs"; } 2>/dev/null ||
      is_cgroup2 "$mount" || die "cannot enter the cgroup $mount$1"
  done
}

cgroup_processes() {
  local mount
  for mount in $(cgroup_mounts); do
    [[ ! -d $mount$1 ]] || find "$mount$1" -name cgroup.procs -exec cat {} + 2>/dev/null
  done | sort -un
}

# cgroup_remove PATH: removes the cgroup and its descendants. It tries for ten seconds, because killed processes stay
# in a cgroup for a moment.
cgroup_remove() {
  local mount try
  for mount in $(cgroup_mounts); do
    for ((try = 0; try < 50; try++)); do
      [[ -d $mount$1 ]] || break
      find "$mount$1" -depth -type d -exec rmdir {} + 2>/dev/null && break
      sleep 0.2
    done
    [[ ! -d $mount$1 ]] || return 1
  done
}
