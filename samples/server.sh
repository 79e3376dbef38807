# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For scripts that start a server of NDX and then talk to it; to be sourced. Nothing sleeps: the
# server's first line of output says that it listens, and where.

# server_start FOLDER COMMAND...: start COMMAND in the background and wait until it prints a line
# that ends in "listening on ADDRESS:PORT" or is "port PORT". Sets server_address, or returns 1 if
# COMMAND ended before. The output goes to FOLDER/server.log. COMMAND is killed after $server_limit
# seconds.
server_start() {
	server_folder=$1
	shift
	server_address=
	rm -f "$server_folder/server.pipe"
	mkfifo "$server_folder/server.pipe" || return 1
	: >"$server_folder/server.log"
	timeout -k 5 "${server_limit:-120}" "$@" >"$server_folder/server.pipe" 2>&1 &
	server_pid=$!
	exec 3<"$server_folder/server.pipe"
	while read -r server_line <&3; do
		echo "$server_line" >>"$server_folder/server.log"
		case $server_line in
		*'listening on '*) server_address=${server_line##*listening on } ;;
		'port '*) server_address=${server_line#port } ;;
		*) continue ;;
		esac
		break
	done
	cat <&3 >>"$server_folder/server.log" &
	server_reader=$!
	exec 3<&-
	[ -n "$server_address" ]
}

# server_end: wait until the server ends by itself; returns its exit status
server_end() {
	wait "$server_pid"
	server_status=$?
	wait "$server_reader"
	server_pid=
	return $server_status
}

# server_stop: end the server if it still runs; for use in a trap
server_stop() {
	[ -n "${server_pid:-}" ] || return 0
	kill "$server_pid" 2>/dev/null
	server_end
}
