#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: info.sh SOURCE BIN
# ndx-info: what it shows, its exit status, and the remedies it names for hosts made of files.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"

# info STATUS OPTIONS...: run it, expect that status
info() {
	wanted=$1
	shift
	timeout -k 5 60 "$bin/ndx-info" "$@" >"$work/info.log" 2>&1
	status=$?
	[ $status -eq "$wanted" ] || fail "ndx-info $*: ended with $status, not $wanted"
}

# shows PATTERN
shows() {
	grep -qe "$1" "$work/info.log" || fail "does not show: $1"
}

info 0
shows '^NDX '
shows '^loop  *usable'
shows 'max_transfer_length'
shows 'capabilities .*LOOPBACK'
shows 'A program that names no adapter gets '
info 0 --brief
info 0 loop
info 3 loop verbs:nothere0
shows 'verbs:nothere0'
info 3 lop
shows 'loop'
info 2 --jason
shows 'no option --jason'
info 0 --help
shows '^Exit status'
info 0 --json
shows '"uri": "loop"'
if command -v python3 >/dev/null; then
	python3 -m json.tool <"$work/info.log" >/dev/null || fail 'that is no JSON'
	# Every address of an interface that is up is one of each adapter on the interface, also of
	# those that cannot be used.
	ip -json address show up >"$work/ip.json" 2>/dev/null || echo '[]' >"$work/ip.json"
	python3 - "$work" <<-'END' || fail 'addresses are missing'
		import json, sys
		adapters = json.load(open(sys.argv[1] + '/info.log'))['adapters']
		loop = [a for a in adapters if a['uri'] == 'loop'][0]
		assert loop['addresses'] == ['127.0.0.1', '::1'], loop
		for link in json.load(open(sys.argv[1] + '/ip.json')):
		    for own in link.get('addr_info', []):
		        if own['family'] == 'inet6' and own['scope'] == 'link':
		            own['local'] += '%' + link['ifname']
		        for a in adapters:
		            if a['device'] == 'tcp' and a['interface'] == own.get('label', link['ifname']):
		                assert own['local'] in a['addresses'], (own, a)
	END
fi

echo '# a host whose RDMA port is down, and whose modules are not loaded'
port="$work/root/sys/class/infiniband/rxe0/ports/1"
mkdir -p "$port/gid_attrs/ndevs" "$work/root/dev"
echo '1: DOWN' >"$port/state"
echo 'eth7' >"$port/gid_attrs/ndevs/0"
info 0 --root "$work/root"
shows 'the port is down (1: DOWN)'
shows 'try: ip link set eth7 up'
shows 'try: modprobe ib_uverbs'
shows 'try: modprobe rdma_ucm'
echo '# a host without RDMA'
info 0 --root "$work"
shows 'try: apt-get install rdma-core'
# shellcheck disable=SC3045 # Debian's sh has it
(ulimit -l 64 && info 0 && shows 'RLIMIT_MEMLOCK is 64 KiB') || exit 1
echo 'ndx-info: all well'
