#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: negotiate.sh SOURCE BIN
# ndx-negotiate: in one process over loop, as two over ofi:tcp, IPv4 and IPv6, several clients at
# once, a backup server, and what it says when something is wrong.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
export NDX_PLUGIN_PATH="$bin/../lib/ndx"

# client ADDRESS OPTION...
client() {
	timeout -k 5 60 "$bin/ndx-negotiate" client "$@" --adapter "$uri" >"$work/client.log" 2>&1
}

echo '# one process'
timeout -k 5 60 "$bin/ndx-negotiate" both --adapter loop >"$work/both.log" 2>&1 || fail 'loop'
grep -q '100 messages of 4096 bytes each way, 100 writes, 100 reads: 0 wrong' "$work/both.log" ||
	fail 'nothing verified on loop'
rm "$work/both.log"

for where in 127.0.0.1:0 '[::1]:0'; do
	echo "# two processes, $where"
	server_start "$work" "$bin/ndx-negotiate" server "$where" --adapter "$uri" --count 2 --size 100Ki ||
		fail 'no server'
	client "$server_address" --size 100Ki --messages 20 || fail 'a client'
	grep -q '20 messages of 102400 bytes each way, 20 writes, 20 reads: 0 wrong' "$work/client.log" ||
		fail 'nothing verified'
	grep -q 'done; disconnected: graceful' "$work/client.log" || fail 'no goodbye'
	client "$server_address" --size 1000 && fail 'two sizes'
	grep -q 'say --size 102400' "$work/client.log" || fail 'not told which size'
	server_end && fail 'a client that gave up is no success'
done

echo '# eight at once; the first address of each is nobody'
server_start "$work" "$bin/ndx-negotiate" server 127.0.0.1:0 --adapter "$uri" --count 8 ||
	fail 'no server'
pids=
for i in 1 2 3 4 5 6 7 8; do
	timeout -k 5 60 "$bin/ndx-negotiate" client "127.0.0.1:1,$server_address" --adapter "$uri" \
		--history >"$work/client$i.log" 2>&1 &
	pids="$pids $!"
done
for pid in $pids; do
	wait "$pid" || fail 'one of eight'
done
grep -q 'connect 127.0.0.1:1, .*NDX_E_CONNECTION_REFUSED' "$work/client1.log" ||
	fail 'the history does not have the attempt'
sed -n 's/^ndx-negotiate client:  *\([0-9.]*\) ms .*/\1/p' "$work/client1.log" | sort -nC ||
	fail 'the history is not in the order of time'
grep -q 'wait before the next attempt' "$work/client1.log" && fail 'the backup was kept waiting'
server_end || fail 'the server found fault'

echo '# TLS with a pre-shared key'
(umask 077 && echo 'alice:000102030405060708090a0b0c0d0e0f' >"$work/psk")
(umask 077 && echo 'alice:ff0102030405060708090a0b0c0d0e0f' >"$work/psk2")
server_start "$work" "$bin/ndx-negotiate" server 127.0.0.1:0 --adapter "$uri" --count 1 \
	--tls-psk "$work/psk" || fail 'no server with TLS'
client "$server_address" && fail 'plaintext to a server with TLS'
grep -q 'this server takes TLS only' "$work/client.log" || fail 'not told of TLS'
client "$server_address" --tls-psk "$work/psk2" && fail 'a wrong key'
grep -q 'wrong pre-shared key' "$work/client.log" || fail 'not told of the wrong key'
client "$server_address" --tls-psk "$work/psk" || fail 'a client with TLS'
grep -q 'done; disconnected: graceful' "$work/client.log" || fail 'no goodbye over TLS'
server_end || fail 'the server with TLS found fault'
client 127.0.0.1:1 --tls-verify some && fail 'no such word'
client 127.0.0.1:1 --tls-psk "$work/psk" --tls-verify some && fail 'no such word'
grep -q 'required, optional or none' "$work/client.log" || fail 'not told of the words'

echo '# what can negotiate here'
timeout -k 5 60 "$bin/ndx-negotiate" plugins >"$work/plugins.txt" 2>&1 || fail 'no list of plugins'
grep -q '^  roce/verbs-rc: ' "$work/plugins.txt" || fail 'roce is not listed'
grep -Eq '^    [a-z-]+=-?[0-9]+\.\.[0-9]+ \(' "$work/plugins.txt" || fail 'no range and default'
timeout -k 5 60 "$bin/ndx-negotiate" plugins --json >"$work/plugins.json" 2>"$work/err.txt" ||
	fail 'no list as JSON'
[ -s "$work/err.txt" ] && fail 'the list as JSON says something beside'
python3 - "$work/plugins.json" "$work/plugins.txt" <<'END' || fail 'the two lists differ'
import json, re, sys

plugins = json.load(open(sys.argv[1]))["plugins"]
text = open(sys.argv[2]).read()
for p in plugins:
    assert re.search("^%s[ ,]" % re.escape(p["name"]), text, re.M), p["name"]
    for v in p["variants"]:
        assert "  %s/%s: %s\n" % (p["name"], v["name"], v["help"]) in text, v
        for q in v["parameters"]:
            assert "    %s=" % q["name"] in text and q["help"] in text, q
            assert q["type"] in ("bool", "int", "string", "choice"), q
            assert ("choices" in q) == (q["type"] == "choice"), q
            assert ("least" in q) == (q["type"] in ("int", "string")), q
roce = next(p for p in plugins if p["name"] == "roce")
assert roce["failed"] is None and len(roce["variants"]) >= 2, roce
END
echo 'no library' >"$work/ndx-plugin-broken.so"
timeout -k 5 60 "$bin/ndx-negotiate" plugins --plugins "$work" >"$work/plugins.txt" 2>&1 ||
	fail 'a broken plugin hides the list'
grep -q '^  failed: ' "$work/plugins.txt" || fail 'a broken plugin has no reason'
rm "$work/ndx-plugin-broken.so"
cp "$bin/../lib/ndx/ndx-plugin-roce.so" "$work" && echo 'no module' >"$work/ndx-plugin-roce.zz"
timeout -k 5 60 "$bin/ndx-negotiate" plugins --plugins "$work" --json >"$work/plugins.json" 2>&1 ||
	fail 'a broken plugin of the same name hides the list'
python3 - "$work/plugins.json" <<'END' || fail 'a broken plugin hides behind one of its name'
import json, sys

plugins = json.load(open(sys.argv[1]))["plugins"]
assert sorted(p["failed"] is None for p in plugins) == [False, True], plugins
assert [len(p["variants"]) > 0 for p in plugins] == [p["failed"] is None for p in plugins], plugins
END
rm "$work/ndx-plugin-roce.so" "$work/ndx-plugin-roce.zz"
timeout -k 5 60 "$bin/ndx-negotiate" plugins --plugins /nowhere >"$work/plugins.txt" 2>&1 &&
	fail 'a folder that is not there'
timeout -k 5 60 "$bin/ndx-negotiate" plugins --plugins "$work" | grep -q '^no plugins found' ||
	fail 'an empty folder'

for how in '' --json; do
	# shellcheck disable=SC2086 # none or one
	timeout -k 5 60 "$bin/ndx-negotiate" plugins $how >/dev/full 2>"$work/err.txt" &&
		fail 'a full disk'
	grep -q 'cannot be written.*: No space' "$work/err.txt" || fail 'not told of a full disk'
done

echo '# requests and responses'
server_start "$work" "$bin/ndx-reqresp" server 127.0.0.1:0 --negotiated --adapter "$uri" --count 2 --wait ||
	fail 'no server'
for how in --wait --quiet; do
	timeout -k 5 60 "$bin/ndx-reqresp" client "$server_address" --negotiated --adapter "$uri" --quiet \
		--requests 300 $how >"$work/client.log" 2>&1 || fail 'requests over a negotiated connection'
	grep -q '300 verified, 0 wrong' "$work/client.log" || fail 'not verified'
	grep -q 'disconnected: graceful' "$work/client.log" || fail 'no goodbye'
done
server_end || fail 'the server found fault'

echo '# what is wrong is told'
client 127.0.0.1:1 --variant roce/verbs-rd && fail 'no such variant'
grep -q 'verbs-rc' "$work/client.log" || fail 'no suggestion'
NDX_PLUGIN_PATH='' client 127.0.0.1:1 --variant rose/verbs-rc && fail 'no such plugin'
grep -q 'NDX_PLUGIN_PATH=DIRECTORY, absolute, to where ndx-plugin-rose.so is' "$work/client.log" ||
	fail 'not told where plugins are looked for'
grep -q 'or say --plugins DIRECTORY' "$work/client.log" || fail 'not told of --plugins'
client 127.0.0.1:1 --variant rose/verbs-rc && fail 'no such plugin'
grep -q 'did you mean "roce"' "$work/client.log" || fail 'no suggestion of a plugin on the path'
client 127.0.0.1:1 --attempts 2 --history && fail 'connected to nobody'
grep -q 'wait before the next attempt' "$work/client.log" || fail 'the history does not have the pause'
grep -q 'layer transport, stage info' "$work/client.log" || fail 'the layer is not told'
echo 'negotiate: all well'
