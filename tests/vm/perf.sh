#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: perf.sh SOURCE
# In the guest: ndx-perf from one device to the other, every operation in a sweep; a server that dies.
set -u
src=$1
# shellcheck source=samples/server.sh
. "$src/samples/server.sh"
work=$(mktemp -d)
trap 'server_stop; rm -rf "$work"' EXIT
server_limit=600

# wrong TEXT
wrong() {
	echo "perf: $1"
	cat "$work"/*.log "$work"/*.out
	exit 1
}
# client OPTIONS...
client() {
	timeout 500 ndx-perf client "$server_address" --adapter verbs:rxe1 --quiet "$@" \
		>"$work/client.out" 2>"$work/client.log"
}
# rows FIELD VALUE: how many lines of the CSV have it
rows() {
	awk -F, -v at="$1" -v value="$2" '$at == value' "$work/client.out" | wc -l
}

server_start "$work" ndx-perf server verbs:rxe0 --listen 10.9.0.1:0 || wrong 'no server'
client --op send,write,write-imm,read -t 0.3 --size 8,4Ki,64Ki --csv || wrong 'a sweep'
[ "$(rows 23 1)" -eq 24 ] || wrong 'not 24 complete rows'
client --op send,read --both -t 0.3 --size 1Ki --qps 2 --depth 8 --csv || wrong 'both directions'
[ "$(rows 23 1)" -eq 2 ] || wrong 'not both'
client --wait -t 0.3 --size 64 --json || wrong 'sleeping'
cat "$work/client.out"
timeout 300 ndx-perf client "$server_address" --adapter verbs:rxe1 --test bandwidth -t 60 --size 64 \
	--csv >"$work/client.out" 2>"$work/client.log" &
run=$!
for _ in $(seq 600); do
	! grep -q 'msg/s' "$work/client.log" || break
	sleep 0.1
done
# The guest's timeout is the command itself, with a child that watches.
kill -KILL "$server_pid"
wait $run
[ $? -eq 1 ] || wrong 'a client whose server died'
[ "$(rows 23 0)" -eq 1 ] || wrong 'no partial result'
