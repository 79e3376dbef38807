#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: topology.sh BIN [PLUGINS]
# A client and a server in two networks with a switch between them, IPv6 only, as a traffic
# generator and a device under test are connected:
#
#     client fd00:6e64:78::1 --- switch (a bridge) --- server fd00:6e64:78::2
#
# The networks are network name spaces of this machine; neither root nor hardware is needed. MAC
# addresses are not configured: neighbour discovery finds them. The two negotiate a connection over
# TCP, then move verified data over ofi:tcp at the negotiated address. BIN has ndx-negotiate,
# PLUGINS (default: ../lib/ndx of BIN) the plugins. Where name spaces are not allowed, the script
# says so and ends with 77.
set -u
here=$(cd "$(dirname "$0")" && pwd)
bin=${1:?usage: topology.sh BIN [PLUGINS]}
NDX_PLUGIN_PATH=${2:-$(cd "$bin/../lib/ndx" && pwd)}
export NDX_PLUGIN_PATH
PATH=$PATH:/usr/sbin:/sbin

skip() {
	echo "skip: $*" >&2
	exit 77
}
fail() {
	echo "topology.sh: $*" >&2
	for log in server client; do
		[ ! -s "$work/$log.log" ] || sed "s/^/  $log: /" "$work/$log.log" >&2
	done
	exit 1
}

# Everything below runs in name spaces that end with this process.
if [ -z "${TOPOLOGY_INSIDE:-}" ]; then
	for tool in ip nsenter unshare; do
		command -v $tool >/dev/null || skip "no $tool here: install iproute2 and util-linux"
	done
	why=$(unshare --user --map-root-user --net --mount true 2>&1) ||
		skip "this system does not allow name spaces: $why"
	TOPOLOGY_INSIDE=1 exec unshare --user --map-root-user --net --mount sh "$0" "$bin" \
		"$NDX_PLUGIN_PATH"
fi

why=$(mkdir -p /run/netns 2>&1 && mount -t tmpfs none /run/netns 2>&1) ||
	skip "no place for name spaces: $why"
for place in client switch server; do
	why=$(ip netns add $place 2>&1) || skip "no name space for the $place: $why"
done
work=$(mktemp -d)
# shellcheck source=samples/server.sh
. "$here/server.sh"
trap 'server_stop; rm -rf "$work"' EXIT

# at PLACE COMMAND...
at() {
	place=$1
	shift
	nsenter --net="/run/netns/$place" "$@"
}

# wire PLACE ADDRESS: connect the place to the switch
wire() {
	ip link add "port-$1" netns switch type veth peer name eth0 netns "$1" &&
		ip -n switch link set "port-$1" master bridge up &&
		ip -n "$1" link set lo up && ip -n "$1" link set eth0 up &&
		ip -n "$1" -6 address add "$2/64" dev eth0
}

ip -n switch link add bridge type bridge stp_state 0 forward_delay 0 || fail 'no bridge'
ip -n switch link set bridge up || fail 'the bridge stays down'
wire client fd00:6e64:78::1 || fail 'no cable to the client'
wire server fd00:6e64:78::2 || fail 'no cable to the server'

# An address can be used after duplicate address detection (RFC 4862), a second or two.
for place in client server; do
	limit=$(($(date +%s) + 20))
	while [ -n "$(ip -n $place -6 address show dev eth0 tentative)" ]; do
		[ "$(date +%s)" -lt $limit ] || fail "the $place has no address"
	done
	[ -z "$(ip -n $place -4 address show dev eth0)" ] || fail "the $place has IPv4"
done
[ -z "$(ip -n client -6 neighbour show to fd00:6e64:78::2)" ] || fail 'the client knows the server already'

# shellcheck disable=SC2034 # for server.sh
server_limit=60
adapter='ofi:tcp?iface=eth0&trust=lan'
# talk ADAPTER ADDRESS SIZE: a session with the server at that address, and data of that size
talk() {
	server_start "$work" nsenter --net=/run/netns/server "$bin/ndx-negotiate" server \
		"[$2]:0" --adapter "$1" --allow-plaintext --count 1 --size "$3" || fail 'no server'
	at client timeout 40 "$bin/ndx-negotiate" client "$server_address" --adapter "$1" \
		--allow-plaintext --size "$3" >"$work/client.log" 2>&1 || fail "the client of $1 at $2"
	server_end || fail "the server of $1 at $2"
	cat "$work/client.log"
}
talk "$adapter" fd00:6e64:78::2 64
talk "$adapter" fd00:6e64:78::2 64k

# Each side has found the other by neighbour discovery, through the switch.
for pair in 'client ::2' 'server ::1'; do
	ip -n "${pair% *}" -6 neighbour show to "fd00:6e64:78${pair#* }" >"$work/found"
	grep -q lladdr "$work/found" || fail "the ${pair% *} has found nobody"
	echo "${pair% *} has found $(cat "$work/found")"
done
mac=$(ip -n server link show eth0 | awk '/link\/ether/ { print $2 }')
bridge -n switch fdb show br bridge | grep -q "$mac dev port-server" || fail 'the switch has not seen it'

# An adapter of all interfaces: the data use the address of the session, not the adapter's first
# one.
talk 'ofi:tcp?trust=lan' fd00:6e64:78::2 64

# Link-local addresses alone suffice. The server's address has no interface name, because the
# client's interface may have another name.
local=$(ip -n server -6 -o address show dev eth0 scope link | awk '{ sub("/.*", "", $4); print $4 }')
talk 'ofi:tcp?trust=lan' "$local%eth0" 64
for place in client server; do
	ip -n $place -6 address flush dev eth0 scope global || fail "the $place keeps its address"
done
talk "$adapter" "$local%eth0" 64
echo 'topology: client - switch - server, all well'
