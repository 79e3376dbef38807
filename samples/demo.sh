#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: sh samples/demo.sh [REQUESTS [BYTES]]
# From a fresh clone to a client and a server that exchange verified requests over TCP and
# disconnect without losing a message: installs missing packages (Debian), builds into build/,
# starts the two as separate processes. Exit status 0 only if both sides have verified every
# request.
set -u
cd "$(dirname "$0")/.." || exit 1
requests=${1:-10000}
bytes=${2:-4096}
adapter='ofi:tcp?iface=lo'

# shellcheck source=tests/deps.sh
. tests/deps.sh
# shellcheck source=samples/server.sh
. samples/server.sh

# shellcheck disable=SC2086,SC2154 # a list, from tests/deps.sh
missing=$(! command -v dpkg-query >/dev/null || deps_missing $deps_build)
if [ -n "$missing" ] && [ "$(id -u)" -eq 0 ]; then
	echo "demo: as root, this installs the packages that the build lacks: $missing"
	if [ -t 0 ]; then
		echo 'demo: press Ctrl-C within 5 s to install nothing'
		sleep 5
	fi
fi
# shellcheck disable=SC2086,SC2154 # a list, from tests/deps.sh
deps_install $deps_build || exit 1
work=$(mktemp -d) || exit 1
trap 'server_stop; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# give_up TEXT: print it, with the log that explains it
give_up() {
	echo "demo: $1" >&2
	[ ! -s "$work/${2:-none}" ] || sed 's/^/  /' "$work/$2" >&2
	exit 1
}

echo "== build (into $PWD/build)"
{
	cmake -S . -B build && cmake --build build --parallel 2 --target ndx-info ndx-reqresp
} >"$work/build.log" 2>&1 || give_up 'the build failed' build.log

echo "== what there is"
build/bin/ndx-info --brief || give_up 'no adapter can be used; see above'

echo "== server"
server_limit=300
server_start "$work" build/bin/ndx-reqresp server --adapter "$adapter" --count 1 ||
	give_up 'the server did not start' server.log
cat "$work/server.log"

echo "== client: $requests requests of $bytes bytes"
timeout --foreground -k 5 300 build/bin/ndx-reqresp client "$server_address" --adapter "$adapter" \
	--requests "$requests" --size "$bytes" || give_up 'the client failed; the server said' server.log

echo "== server's end"
server_end || give_up 'the server failed' server.log
sed 1d "$work/server.log"
grep -q "$requests requests of $bytes bytes answered, 0 bad" "$work/server.log" ||
	give_up 'the server did not answer them all'
echo "demo: $requests requests verified, both sides said goodbye"
