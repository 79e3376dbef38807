# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# To be sourced, behind samples/server.sh and with a folder for logs in $work: sessions over the
# transport of the sample plugin in Python, through a proxy.

# shellcheck disable=SC2154 # of those that source this: src, work, server_address

# proxy_plugins FOLDER PLUGINS: prints a search path with the sample plugin
proxy_plugins() {
	mkdir -p "$1/plugins" && cp "$src/plugins/python/samples/ndx-plugin-gateway.py" "$1/plugins" &&
		chmod 644 "$1/plugins/ndx-plugin-gateway.py" && echo "$1/plugins:$2"
}

# proxy_start SOURCE CUTS: sets proxy_address; ends with descriptor 8
proxy_start() {
	rm -f "$work/proxy.in" "$work/proxy.log"
	mkfifo "$work/proxy.in" || return
	timeout -k 5 120 "${python:-python3}" "$1/tests/fakes/connect_proxy.py" ada lovelace "$2" \
		<"$work/proxy.in" >"$work/proxy.log" 2>&1 &
	proxy_pid=$!
	exec 8>"$work/proxy.in"
	until grep -q '^listening on ' "$work/proxy.log"; do
		kill -0 $proxy_pid 2>/dev/null || return
	done
	proxy_address=$(sed -n 's/^listening on //p' "$work/proxy.log")
}

proxy_end() {
	exec 8>&-
	wait "$proxy_pid"
}

# through_proxy BIN SOURCE CLIENT_ADAPTER SERVER_ADAPTER SERVER_ADDRESS CUTS: a session, with data
# that both ends verify, and goodbyes
through_proxy() {
	server_start "$work" "$1/ndx-negotiate" server "$5" --adapter "$4" --count 1 \
		--allow-plaintext --variant gateway/described || return
	proxy_start "$2" "$6" || return
	timeout -k 5 100 "$1/ndx-negotiate" client "$server_address" --adapter "$3" --messages 50 \
		--attempts 6 --variant gateway/described --history \
		--set "proxy=$proxy_address,user=ada,token=lovelace" >"$work/client.log" 2>&1 || return
	proxy_end
	server_end || return
	grep -q '50 messages of 4096 bytes each way, 50 writes, 50 reads: 0 wrong' "$work/client.log" &&
		grep -q 'done; disconnected: graceful' "$work/client.log" &&
		grep -q '0 wrong; end of connection: graceful' "$work/server.log" &&
		grep -q "connected to $server_address" "$work/proxy.log" || return
	for stage in connect info validate ready; do
		[ "$(grep -c "^cut $stage, " "$work/proxy.log")" -eq "$6" ] || return
	done
}
