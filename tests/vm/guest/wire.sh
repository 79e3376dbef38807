#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: wire cut|heal|lose DEVICE [BYTES]|empty|refusals|move|outage MS|delay MS|loss PERCENT|down|up
# In the guest: control the packets between the two devices, in both directions. Exit status 3: an
# outage lasted more than twice as long as requested.
PATH=/bin:/sbin:/usr/bin:/usr/sbin

usage() {
	echo 'usage: wire cut|heal|lose DEVICE [BYTES]|empty|refusals|move|outage MS|delay MS|loss PERCENT|down|up' >&2
	exit 2
}

# Each end sends through this tree: class 1:1 has what is said of all packets, class 1:2 loses those
# that a filter selects. The tree stays when the link is healed: removing it under traffic drops
# packets, and software RoCE then breaks the queue pair concerned.

# netem ARGUMENT...: lose or delay what either end sends
netem() {
	disciplines "$@" | tc -batch -
}

# disciplines ARGUMENT...: the commands for tc that do so at both ends, and select nothing. For one
# process, because they must be quick.
disciplines() {
	for device in v0 v1; do
		echo "qdisc replace dev $device root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
		echo "qdisc replace dev $device parent 1:1 handle 11: netem $* limit 10000"
		echo "qdisc replace dev $device parent 1:2 handle 12: netem loss 100%"
		echo "filter del dev $device parent 1:"
	done
}

# filter DEVICE FAMILY RANK CLASS [LENGTH MASK [OPCODE [SYNDROME]]]: the packets of RoCE that the
# device sends go to this class, or only those whose length field is LENGTH in the bits of MASK, or
# of that operation too, or also with that syndrome of an acknowledgement. Of several filters that
# of the smallest rank counts.
filter() {
	case $2 in
	ip) rank=$3 protocol=9 port=22 length=2 opcode=28 syndrome=40 ;;
	*) rank=$(($3 + 1)) protocol=6 port=42 length=4 opcode=48 syndrome=60 ;;
	esac
	echo "filter add dev $1 parent 1: protocol $2 prio $rank u32 match u8 17 0xff at $protocol match u16 4791 0xffff at $port${5:+ match u16 $5 $6 at $length}${7:+ match u8 $7 0xff at $opcode}${8:+ match u8 $8 0xff at $syndrome} flowid 1:$4"
}

# shorter DEVICE FAMILY LENGTH: packets whose length field is smaller pass. A filter compares bits,
# so each bit of LENGTH takes one.
shorter() {
	bit=32768 above=0
	while [ $bit -gt 0 ]; do
		if [ $(($3 & bit)) -ne 0 ]; then
			filter "$1" "$2" 1 1 $above "$(printf '0x%x' $((65536 - bit)))"
			above=$((above | bit))
		fi
		bit=$((bit / 2))
	done
}

# lose DEVICE|both [BYTES]: lose packets of RoCE that the device sends, or only those longer than
# BYTES, as behind a link of that MTU.
lose() {
	disciplines
	case $1 in
	v0 | v1) devices=$1 ;;
	*) devices='v0 v1' ;;
	esac
	for device in $devices; do
		if [ -n "${2:-}" ]; then
			shorter "$device" ip $(($2 + 1))
			shorter "$device" ipv6 $(($2 + 1 - 40)) # without the header
		fi
		filter "$device" ip 3 2
		filter "$device" ipv6 3 2
	done
}

# empty: lose sends and writes without data, as some virtual networks do. Selected by opcode
# (InfiniBand Architecture Specification, volume 1, table 38) and packet length.
empty() {
	disciplines
	for device in v0 v1; do
		for request in 0x04:24 0x05:28 0x0a:40 0x0b:44; do # SEND ONLY, WRITE ONLY; with immediate
			udp=${request#*:}
			filter $device ip 1 2 $((udp + 20)) 0xffff "${request%:*}"
			filter $device ipv6 1 2 "$udp" 0xffff "${request%:*}"
		done
	done
}

# refusals: lose the acknowledgements by which a device refuses a request for its key (syndrome NAK,
# remote access error: InfiniBand Architecture Specification, volume 1, table 45). They have 28 bytes
# with the header of UDP.
refusals() {
	disciplines
	for device in v0 v1; do
		filter $device ip 1 2 48 0xffff 0x11 0x62
		filter $device ipv6 1 2 28 0xffff 0x11 0x62
	done
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
		disciplines loss 100%
		sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"
		disciplines
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
empty) empty | tc -batch - ;;
refusals) refusals | tc -batch - ;;
lose)
	case ${2:-} in
	v0 | v1 | both) lose "$2" "${3:-}" | tc -batch - ;;
	*) usage ;;
	esac
	;;
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
*) usage ;;
esac
