# shellcheck shell=bash
# Tests the kernel features that the box needs before the box starts. A failure names the missing feature.

preflight() {
  local mount
  for mount in $(cgroup_mounts); do
    mkdir -p "$mount$LAB_CGROUP_ROOT" 2>/dev/null ||
      die "no cgroup can be made in $mount" "The box needs the right to make cgroups (a container needs to be privileged)."
  done
  in_namespaces true || die "no PID, network and mount namespaces can be made here" \
    "The box needs CAP_SYS_ADMIN (a container needs to be privileged)."
  in_namespaces ip link add name try type bridge || die "the kernel has no bridge" "The nodes' network needs one."
  in_namespaces ip link add name try type veth peer name other || die "the kernel has no veth" "Pods' networks need it."
  in_namespaces mount -t overlay -o "lowerdir=/etc:/usr" try /mnt || die "the kernel has no overlay file system" "Containers need it."
  local rule=(-t nat -A OUTPUT -m comment --comment try -m statistic --mode random --probability 0.5 -p tcp -j DNAT --to-destination 127.0.0.1:1)
  if in_namespaces iptables "${rule[@]}"; then return; fi
  in_namespaces iptables-legacy "${rule[@]}" || die "iptables does not work, neither nft nor legacy" "Services need it."
  # kubelet, kube-proxy and the CNI plugins find iptables by PATH, and the box's own directory is first in it.
  local name
  for name in iptables iptables-save iptables-restore; do
    ln -sf "$(command -v "${name/iptables/iptables-legacy}")" "$LAB_DIR/bin/$name"
  done
}

in_namespaces() { unshare --pid --fork --net --mount --propagation private "$@" >/dev/null 2>&1; }
