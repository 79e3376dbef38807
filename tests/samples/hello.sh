#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: hello.sh SOURCE BIN
# The smallest programs say hello, and are the smallest: under 60 lines each.
set -u
bin=$2
# shellcheck source=samples/server.sh
. "$1/samples/server.sh"
work=$(mktemp -d)
trap 'server_stop; rm -rf "$work"' EXIT
server_limit=60

for file in "$1"/samples/hello/*.c; do
	[ "$(wc -l <"$file")" -lt 60 ] || {
		echo "$file has 60 lines or more"
		exit 1
	}
done
server_start "$work" "$bin/hello-server" || {
	cat "$work/server.log"
	exit 1
}
timeout -k 5 30 "$bin/hello-client" "$server_address" || exit 1
server_end
status=$?
cat "$work/server.log"
[ $status -eq 0 ] && grep -q '^received: hello' "$work/server.log"
