#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: wire cut|heal|empty|move|outage MS|delay MS|loss PERCENT|down|up
# In the guest: control the packets between the two devices, in both directions. Exit status 3: an
# outage lasted more than twice as long as requested.
PATH=/bin:/sbin:/usr/bin:/usr/sbin

# netem ARGUMENT...: lose or delay what either end sends. The discipline stays when the link is
# healed: removing it under traffic drops packets, and software RoCE then breaks the queue pair
# concerned.
netem() {
	discipline netem "$@" limit 10000
}

# discipline ARGUMENT...: set it at both ends, in one process, because it must be quick
discipline() {
	disciplines "$@" | tc -batch -
}

disciplines() {
	for device in v0 v1; do
		echo "qdisc replace dev $device root $*"
	done
}

# empty: lose sends and writes without data, as some virtual networks do. Selected by opcode
# (InfiniBand Architecture Specification, volume 1, table 38) and packet length.
empty() {
	for device in v0 v1; do
		echo "qdisc replace dev $device root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
		echo "qdisc add dev $device parent 1:2 netem loss 100%"
		for request in 0x04:24 0x05:28 0x0a:40 0x0b:44; do # SEND ONLY, WRITE ONLY; with immediate
			udp=${request#*:}
			echo "filter add dev $device parent 1: protocol ip prio 1 u32 match u16 $((udp + 20)) 0xffff at 2 match u8 17 0xff at 9 match u16 4791 0xffff at 22 match u8 ${request%:*} 0xff at 28 flowid 1:2"
			echo "filter add dev $device parent 1: protocol ipv6 prio 2 u32 match u16 $udp 0xffff at 4 match u8 17 0xff at 6 match u16 4791 0xffff at 42 match u8 ${request%:*} 0xff at 48 flowid 1:2"
		done
	done | tc -batch -
}

# move: from now on each end has another MAC address, and the other end's kernel knows it at once,
# as when a gateway fails over. (The ends accept packets for any address: init.sh.)
move() {
	mac=02:00:00:00:00:$(printf '%02x' $(($(clock) % 256)))
	ip neigh replace 10.9.0.2 dev v0 lladdr "$mac" nud reachable &&
		ip neigh replace fd09::2 dev v0 lladdr "$mac" nud reachable &&
		ip neigh replace 10.9.0.1 dev v1 lladdr "$mac" nud reachable &&
		ip neigh replace fd09::1 dev v1 lladdr "$mac" nud reachable
}

# clock: time in units of 1/100 s
clock() {
	read -r now _ </proc/uptime
	echo "${now%.*}${now#*.}"
}

# outage MS: by one tc process, which gets some time to start
outage() {
	{
		sleep 0.2
		clock >/tmp/outage
		disciplines netem loss 100% limit 10000
		sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"
		disciplines netem limit 10000
	} | tc -batch - || exit 1
	[ $((($(clock) - $(cat /tmp/outage)) * 10)) -le $((2 * $1)) ] || exit 3
}

# routes: each address reaches the other one over the link, not inside this host. Link down drops
# the routes.
routes() {
	ip route replace 10.9.0.2/32 dev v0 src 10.9.0.1 table 102
	ip route replace 10.9.0.1/32 dev v1 src 10.9.0.2 table 101
	ip -6 route replace fd09::2/128 dev v0 src fd09::1 table 102
	ip -6 route replace fd09::1/128 dev v1 src fd09::2 table 101
}

case ${1:-} in
cut) netem loss 100% ;;
empty) empty ;;
move) move ;;
loss) netem loss "$2%" ;;
delay) netem delay "${2}ms" ;;
outage) outage "$2" ;;
heal) netem ;; # also one that is whole
down) ip link set v1 down ;;
up)
	ip link set v1 up
	ip -6 addr replace fd09::1/64 dev v0 nodad
	ip -6 addr replace fd09::2/64 dev v1 nodad
	routes
	;;
routes) routes ;;
*)
	echo 'usage: wire cut|heal|empty|move|outage MS|delay MS|loss PERCENT|down|up' >&2
	exit 2
	;;
esac
