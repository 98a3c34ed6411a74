# shellcheck shell=bash
# shellcheck disable=SC2034 # read by the files that source this one
# Paths, names and addresses. Two boxes on one machine must differ in the state directory and the cgroup.
# Environment variables set both. Each box has its own networks.

LAB_CACHE_DIR=$(readlink -m "${FRUGALITY_CACHE:-$HOME/.cache/frugality}")
LAB_DIR=$(readlink -m "${FRUGALITY_LAB_DIR:-$LAB_CACHE_DIR/lab}")
LAB_LOG_DIR=$LAB_DIR/logs
LAB_PARTS_DIR=$LAB_CACHE_DIR/parts
LAB_IMAGES_DIR=$LAB_CACHE_DIR/images

# The cgroup of the whole box. A node's pods are in <root>/<node>/kubepods. The control plane, kubelets, container
# runtimes and their shims are in <root>/system.
LAB_CGROUP_ROOT=${FRUGALITY_LAB_CGROUP_ROOT:-/lab}

# pi-1 is measured. injector-1 is the server: the control plane, the operators and the load run there.
LAB_MEASURED_NODE=pi-1
LAB_SERVER_NODE=injector-1
LAB_NODES=("$LAB_MEASURED_NODE" "$LAB_SERVER_NODE")
# More boards, started on request, for candidates on different nodes. Their pods share a core with pi-1's pods,
# so at most one board should be busy at a time.
LAB_BOARDS=(pi-2)
declare -A LAB_NODE_ADDRESS=([pi-1]=10.240.0.11 [pi-2]=10.240.0.12 [injector-1]=10.240.0.2)
declare -A LAB_NODE_POD_RANGE=([pi-1]=10.42.1.0/24 [pi-2]=10.42.2.0/24 [injector-1]=10.42.0.0/24)
declare -A LAB_NODE_ROLE=([pi-1]=measured [pi-2]=board [injector-1]=injector)
LAB_NODE_PREFIX=24
# k3s uses the same ranges.
LAB_POD_RANGE=10.42.0.0/16
LAB_SERVICE_RANGE=10.43.0.0/16
LAB_API_SERVICE_ADDRESS=10.43.0.1
LAB_DNS_SERVICE_ADDRESS=10.43.0.10
LAB_API_URL=https://${LAB_NODE_ADDRESS[$LAB_SERVER_NODE]}:6443

# The path of the node's state directory inside its mount namespace. It is short, because socket names are limited,
# and it is the same on every node and machine.
LAB_NODE_STATE=/run/node

LAB_BASE_IMAGE=docker.io/library/debian:bookworm-slim
LAB_BASE_SUITE=bookworm
LAB_PAUSE_IMAGE=localhost/frugality/pause:1
LAB_DATABASE_IMAGE=localhost/frugality/postgresql:15

# The measured node's pods have the machine's first core. The rest of the box runs on the other cores.
LAB_CPU_COUNT=$(nproc --all)
if ((LAB_CPU_COUNT > 1)); then
  LAB_MEASURED_CPUS=0
  LAB_SYSTEM_CPUS=1-$((LAB_CPU_COUNT - 1))
  ((LAB_CPU_COUNT > 2)) || LAB_SYSTEM_CPUS=1
else
  LAB_MEASURED_CPUS=0
  LAB_SYSTEM_CPUS=0
fi
declare -A LAB_NODE_CPUS=([pi-1]=$LAB_MEASURED_CPUS [pi-2]=$LAB_MEASURED_CPUS [injector-1]=$LAB_SYSTEM_CPUS)
# The CPUs that kubelet reserves. The node's allocatable CPUs then equal the CPUs that its pods can use.
declare -A LAB_NODE_RESERVED_CPUS=([pi-1]=$((LAB_CPU_COUNT - 1)) [pi-2]=$((LAB_CPU_COUNT - 1)) [injector-1]=$((LAB_CPU_COUNT > 1 ? 1 : 0)))
