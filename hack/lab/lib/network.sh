# shellcheck shell=bash
# The box's network: injector-1 is the box's own network namespace with a bridge as the wire between the
# nodes, and every board a namespace with a plug in that bridge. There is no way out of the box.

network_server() {
  echo 1 >/proc/sys/net/ipv4/ip_forward
  ip link set lo up
  ip link add lab0 type bridge
  ip address add "${LAB_NODE_ADDRESS[$LAB_SERVER_NODE]}/$LAB_NODE_PREFIX" dev lab0
  ip link set lab0 up
  ip route add "$LAB_SERVICE_RANGE" dev lab0
}

# network_board NODE: its namespace, its plug, and the ways to and from its pods.
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

# network_unplug NODE: the plug goes with the namespace, and the route with the plug.
network_unplug() {
  ip netns delete "$1"
  ip route delete "${LAB_NODE_POD_RANGE[$1]}"
}
