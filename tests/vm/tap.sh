# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For guest scripts that print TAP and start a server of NDX. To be sourced, with the folder of the
# source tree in $src. Logs belong into $work.
# shellcheck source=samples/server.sh
. "${src:?}/samples/server.sh"
work=$(mktemp -d)
trap 'server_stop; rm -rf "$work"' EXIT
count=0 failures=0

# verdict NAME STATUS: one line of TAP; on failure also the logs
verdict() {
	count=$((count + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $count - $1"
		return
	fi
	failures=$((failures + 1))
	echo "not ok $count - $1"
	for log in "$work"/*.log; do
		[ ! -s "$log" ] || sed "s|^|# ${log##*/}: |" "$log"
	done
}

# verdicts_end: print the plan; false if there was a failure
verdicts_end() {
	echo "1..$count"
	[ $failures -eq 0 ]
}
