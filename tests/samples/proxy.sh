#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: proxy.sh SOURCE BIN
# A transport in Python carries sessions of ndx-negotiate through an HTTP proxy, whose address, name
# and password are parameters of the variant; also where the proxy cuts it.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
# shellcheck source=tests/samples/through_proxy.sh
. "$1/tests/samples/through_proxy.sh"
if [ ! -e "$bin/../lib/ndx/ndx-host-py.so" ] || ! command -v python3 >/dev/null; then
	echo 'skip: plugins in Python cannot be run here: install python3-dev'
	exit 77
fi
NDX_PLUGIN_PATH=$(proxy_plugins "$work" "$bin/../lib/ndx") || fail 'no plugins'
export NDX_PLUGIN_PATH

for cuts in 0 2; do
	echo "# through a proxy that cuts each stage $cuts times"
	through_proxy "$bin" "$1" "$uri" "$uri" 127.0.0.1:0 $cuts || fail "cuts: $cuts"
done
echo '# a wrong password'
server_start "$work" "$bin/ndx-negotiate" server 127.0.0.1:0 --adapter "$uri" \
	--variant gateway/described || fail 'no server'
proxy_start "$1" 0 || fail 'no proxy'
timeout -k 5 60 "$bin/ndx-negotiate" client "$server_address" --adapter "$uri" --attempts 1 \
	--variant gateway/described --set "proxy=$proxy_address,user=ada,token=wrong" \
	>"$work/client.log" 2>&1 && fail 'a wrong password is no obstacle'
grep -q 'the gateway says: HTTP/1.1 407 who are you' "$work/client.log" || fail 'no reason'
proxy_end
server_stop
