# shellcheck shell=bash
# The box's network. injector-1 is in the box's network namespace. A bridge in that namespace connects the nodes.
# Each board has its own network namespace, and a veth pair connects it to the bridge. Nothing leads out of the box.

network_server() {
  echo 1 >/proc/sys/net/ipv4/ip_forward
  ip link set lo up
  ip link add lab0 type bridge
  ip address add "${LAB_NODE_ADDRESS[$LAB_SERVER_NODE]}/$LAB_NODE_PREFIX" dev lab0
  ip link set lab0 up
  ip route add "$LAB_SERVICE_RANGE" dev lab0
}

# network_board NODE: makes the board's namespace, its veth pair, and the routes to and from its pods.
network_board() {
  local node=$1 address=${LAB_NODE_ADDRESS[$1]} server=$LAB_SERVER_NODE
  ip netns add "$node"
  ip link add "to-$node" type veth peer name eth0 netns "$node"
  ip link set "to-$node" master lab0 up
  ip route add "${LAB_NODE_POD_RANGE[$node]}" via "$address"
  ip -n "$node" link set lo up
  ip -n "$node" address add "$address/$LAB_NODE_PREFIX" dev eth0
  ip -n "$node" link set eth0 up
  ip -n "$node" route add "$LAB_SERVICE_RANGE" dev eth0
  ip -n "$node" route add "${LAB_NODE_POD_RANGE[$server]}" via "${LAB_NODE_ADDRESS[$server]}"
  nsenter --net="/run/netns/$node" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
}

# network_unplug NODE: deletes the namespace, which deletes the veth pair, and deletes the route.
network_unplug() {
  ip netns delete "$1"
  ip route delete "${LAB_NODE_POD_RANGE[$1]}"
}
