# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# What the tests of the samples begin with; to be sourced with their arguments SOURCE BIN CC.
# shellcheck disable=SC2034 # for the scripts that source this
src=$1 bin=$2 uri='ofi:tcp?iface=lo'
unset NDX_ADAPTER NDX_CONFIG
# shellcheck source=samples/server.sh
. "$src/samples/server.sh"
work=$(mktemp -d)
trap 'server_stop; rm -rf "$work"' EXIT

# fail TEXT: what was expected, and all there is to see
fail() {
	echo "FAILED: $1"
	for log in "$work"/*.log; do
		[ ! -s "$log" ] || { echo "-- ${log##*/}" && cat "$log"; }
	done
	exit 1
}
