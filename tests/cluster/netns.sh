#!/usr/bin/env bash
# A small cluster on one machine: runs one rank of a program in each of several network namespaces,
# joined by a switch (a bridge in a namespace of its own) with links of a given speed.
#
#     rank 0             rank 1             rank 2             rank 3
#   10.77.0.1          10.77.0.2          10.77.0.3          10.77.0.4
#     eth0               eth0               eth0               eth0      tbf: sent by the rank
#       |                  |                  |                  |
#      p0 ---------------- p1 ---- bridge --- p2 ---------------- p3     tbf: received by it
#
#   tests/cluster/netns.sh [-n RANKS] [-r RATE] [-b BURST] [-d DELAY] -- PROGRAM [ARGUMENT]...
#
#   -n 4        ranks, at most 200          -r 1gbit    speed of each link, each way, in tc's units;
#   -d 0ms      added to what a rank sends              "none": unlimited
#   -b 131072   bytes that may pass at once, faster than that
#
# The program finds RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
# RINGTAIL_TOKEN in its environment, and NETNS_SWITCH, the bridge's namespace, for programs that
# disconnect ranks; its files are those of this machine. Exit status: that of the first rank that
# failed. Everything is removed at the end, however it ends.
#
# Needs root, and the Debian packages iproute2 and util-linux.
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }

ranks=4 rate=1gbit burst=131072 delay=0ms
while getopts n:r:b:d:h option; do
  case $option in
  n) ranks=$OPTARG ;;
  r) rate=$OPTARG ;;
  b) burst=$OPTARG ;;
  d) delay=$OPTARG ;;
  h) usage && exit 0 ;;
  *) usage >&2 && exit 2 ;;
  esac
done
shift $((OPTIND - 1))
if [ $# -eq 0 ] || ! [ "$ranks" -ge 1 ] || [ "$ranks" -gt 200 ]; then usage >&2 && exit 2; fi
if [ "$(id -u)" -ne 0 ]; then echo "netns.sh: network namespaces need root" >&2 && exit 1; fi
for tool in ip tc nsenter; do
  command -v $tool >/dev/null || { echo "netns.sh: $tool is missing (iproute2, util-linux)" >&2 && exit 1; }
done

readonly name=rt$$ grace_s=15
pids=()

take_down() {
  trap - EXIT
  trap '' INT TERM HUP  # once begun, it is finished
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  for namespace in "$name"sw $(seq -f "$name-%g" 0 $((ranks - 1))); do
    # What a rank has started may outlive it.
    { ip netns pids "$namespace" | xargs -r kill -KILL; } 2>/dev/null || true
    ip netns del "$namespace" 2>/dev/null || true  # with it go its links
  done
}
trap take_down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# What leaves through `device` of `namespace`.
shape() {
  local namespace=$1 device=$2
  [ "$rate" != none ] || return 0
  # tbf would cut packets of more than a burst, which takes several times as much of the processor; and of what a full
  # bucket cannot take while tbf's timer is late, the link loses its share.
  ip -n "$namespace" link set dev "$device" gso_max_size $((burst < 131072 ? burst / 2 : 65536))
  tc -n "$namespace" qdisc add dev "$device" root handle 1: \
    tbf rate "$rate" burst "${burst}b" latency 50ms
}

set_up() {
  ip netns add "$name"sw
  ip -n "$name"sw link add bridge type bridge
  ip -n "$name"sw link set bridge up
  local rank node
  for ((rank = 0; rank < ranks; ++rank)); do
    node=$name-$rank
    ip netns add "$node"
    ip -n "$node" link set lo up
    ip -n "$node" link add eth0 type veth peer name "p$rank" netns "$name"sw
    ip -n "$node" addr add "10.77.0.$((rank + 1))/24" dev eth0
    ip -n "$node" link set eth0 up
    # The one congestion control that every kernel has. Namespaces begin with this machine's,
    # whatever that is; with bbr a ring of four takes 2 to 3 % longer.
    nsenter --net="/run/netns/$node" sh -c 'echo reno > /proc/sys/net/ipv4/tcp_congestion_control'
    ip -n "$name"sw link set "p$rank" master bridge up
    shape "$node" eth0
    shape "$name"sw "p$rank"
    # A second limiter behind the first; netem holds what is on its way.
    [ "$delay" = 0ms ] || tc -n "$node" qdisc add dev eth0 parent 1: handle 2: netem delay "$delay" limit 100000
  done
}

if [ "$delay" != 0ms ] && [ "$rate" = none ]; then
  echo "netns.sh: -d needs a speed (-r)" >&2 && exit 2
fi
set_up

token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
for ((rank = 0; rank < ranks; ++rank)); do
  RANK=$rank WORLD_SIZE=$ranks LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=10.77.0.1 \
    MASTER_PORT=29500 RINGTAIL_TOKEN=$token NETNS_SWITCH="$name"sw \
    nsenter --net="/run/netns/$name-$rank" -- "$@" &
  pids+=($!)
done

# The first failure decides; the others have a while to end because of it.
status=0 timer=none
for ((left = ranks; left > 0; --left)); do
  result=0
  wait -n -p ended || result=$?
  if [ "$ended" = $timer ]; then break; fi
  if [ $result -ne 0 ] && [ $status -eq 0 ]; then
    status=$result
    sleep $grace_s &
    timer=$!
    pids+=($timer)
  fi
done
exit $status
