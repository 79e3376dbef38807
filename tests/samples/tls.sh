#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: tls.sh SOURCE BIN
# Peers that a server with TLS refuses, as its log tells them: openssl s_client without certificate,
# with one that has expired, with a wrong pre-shared key; plaintext in place of TLS, both ways; and
# plaintext where the other end is on another host. Certificates are made by the openssl program.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
export NDX_PLUGIN_PATH="$bin/../lib/ndx"
command -v openssl >/dev/null || {
	echo 'skip: there is no openssl here'
	exit 77
}

# authority NAME: NAME.pem and NAME.key
authority() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$1.key" \
		-out "$work/$1.pem" -subj "/CN=$1" -days 2 >"$work/openssl.log" 2>&1 || fail "no CA $1"
}

# leaf NAME DAYS SUBJECT ALTERNATIVE-NAMES AUTHORITY: NAME.pem and NAME.key
leaf() {
	echo "subjectAltName=$4" >"$work/names"
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$1.key" \
		-out "$work/request" -subj "$3" >"$work/openssl.log" 2>&1 || fail "no key $1"
	openssl x509 -req -in "$work/request" -CA "$work/$5.pem" -CAkey "$work/$5.key" \
		-CAcreateserial -days "$2" -extfile "$work/names" -out "$work/$1.pem" \
		>"$work/openssl.log" 2>&1 || fail "no certificate $1"
}

umask 077
authority ca
authority alien
leaf server 2 '/CN=the server' DNS:localhost,IP:127.0.0.1 ca
leaf client 2 '/CN=the client' DNS:client.example ca
leaf old -1 '/CN=an old client' DNS:old.example ca
leaf alien-leaf 2 '/CN=an alien' DNS:client.example alien
echo 'alice:000102030405060708090a0b0c0d0e0f' >"$work/psk"

# serve OPTION...: a server; its log is in server.log
serve() {
	server_start "$work" "$bin/ndx-negotiate" server 127.0.0.1:0 --adapter "$uri" --verbose "$@" ||
		fail "no server with $*"
}

# peer OPTION...: openssl s_client; the server has ended the connection when it returns
peer() {
	timeout -k 5 20 openssl s_client -connect "$server_address" -tls1_3 -quiet -no_ign_eof \
		-CAfile "$work/ca.pem" "$@" >"$work/peer.log" 2>&1 <"$work/quiet"
}

# says WHAT: a record of the server, which may still be on its way, names the peer and says this
says() {
	tries=0
	until grep -Eq "session [0-9]+ of 127\.0\.0\.1:[0-9]+: .*$1" "$work/server.log"; do
		[ $((tries += 1)) -le 100 ] || fail "the log does not say: $1"
		sleep 0.05
	done
}

# client OPTION...
client() {
	timeout -k 5 60 "$bin/ndx-negotiate" client "$@" --adapter "$uri" >"$work/client.log" 2>&1
}

# Nothing comes from the peer, and its input does not end before the server has spoken.
mkfifo "$work/quiet"
exec 4<>"$work/quiet"

echo '# a server that demands certificates'
serve --tls-cert "$work/server.pem" --tls-key "$work/server.key" --tls-ca "$work/ca.pem"
peer
says 'NDX_E_CONNECTION_REFUSED: TLS: the peer gave no certificate, and one is demanded'
peer -cert "$work/old.pem" -key "$work/old.key"
says "NDX_E_CONNECTION_REFUSED: TLS: the peer's certificate /CN=an old client: certificate has expired"
client "$server_address" && fail 'a client in plaintext'
grep -q 'this server takes TLS only' "$work/client.log" || fail 'the client is not told of TLS'
says 'NDX_E_INVALID_CONFIG: TLS: the client speaks plaintext, this server takes TLS only'
client "$server_address" --tls-ca "$work/ca.pem" --tls-cert "$work/old.pem" \
	--tls-key "$work/old.key" && fail 'an old certificate'
grep -q 'old.pem: the certificate has expired' "$work/client.log" || fail 'not told of the date'
client "$server_address" --tls-ca "$work/ca.pem" --tls-cert "$work/client.pem" \
	--tls-key "$work/client.key" || fail 'the right certificate'
server_stop

echo '# a server with a pre-shared key'
serve --tls-psk "$work/psk"
peer -psk ff0102030405060708090a0b0c0d0e0f -psk_identity alice
says 'NDX_E_CONNECTION_REFUSED: TLS: wrong pre-shared key: the ends have different keys for "alice"'
peer -psk 000102030405060708090a0b0c0d0e0f -psk_identity mallory
says 'pre-shared key.s identity "mallory" is not known here'
server_stop

echo '# a server in plaintext, and a client that wants TLS'
serve
client "$server_address" --tls-psk "$work/psk" && fail 'a client with TLS at a server without'
grep -q 'the server speaks plaintext, and this session does not go on without TLS' \
	"$work/client.log" || fail 'the client does not say why'
says 'the client speaks TLS, this server has none'
server_stop

echo '# plaintext stays on the loopback'
for program in 'ndx-negotiate server' 'ndx-reqresp server --negotiated'; do
	# shellcheck disable=SC2086 # a program and its words
	timeout -k 5 60 "$bin"/$program 0.0.0.0:0 --adapter "$uri" >"$work/wide.log" 2>&1 &&
		fail "$program on all interfaces"
	grep -q 'in plaintext: set tls, or allow_plaintext' "$work/wide.log" ||
		fail "$program does not say why"
done
client 192.0.2.1:7471 && fail 'plaintext to another host'
grep -q 'will not connect to 192.0.2.1:7471 .* in plaintext' "$work/client.log" ||
	fail 'the client does not say why'
server_start "$work" "$bin/ndx-negotiate" server 0.0.0.0:0 --adapter "$uri" --verbose \
	--allow-plaintext || fail 'no leave for plaintext'
grep -q 'in plaintext (allow_plaintext): any host' "$work/server.log" || fail 'the risk is not named'
server_stop

echo '# requests and responses over TLS'
server_start "$work" "$bin/ndx-reqresp" server 127.0.0.1:0 --negotiated --adapter "$uri" --count 1 \
	--wait --tls-psk "$work/psk" || fail 'no server with requests over TLS'
timeout -k 5 60 "$bin/ndx-reqresp" client "$server_address" --negotiated --adapter "$uri" --quiet \
	--wait --tls-psk "$work/psk" --requests 100 >"$work/client.log" 2>&1 || fail 'requests over TLS'
grep -q '100 verified, 0 wrong' "$work/client.log" || fail 'not verified over TLS'
server_end || fail 'the server with requests found fault'
timeout -k 5 60 "$bin/ndx-reqresp" server 127.0.0.1:0 --adapter "$uri" --tls-psk "$work/psk" \
	>"$work/client.log" 2>&1
[ $? -eq 2 ] || fail 'options of TLS without --negotiated'

echo '# many sessions with certificates, beside clients with one of another authority'
# both ends have the same certificate
timeout -k 5 120 "$bin/ndx-sessions-many" --sessions 60 --flight 20 --bad 4 --again 20 --blocks 2 \
	--cert "$work/server.pem" --key "$work/server.key" --ca "$work/ca.pem" \
	--cert-wrong "$work/alien-leaf.pem" --key-wrong "$work/alien-leaf.key" \
	>"$work/many.log" 2>&1 || fail "sessions beside a wrong certificate: $(cat "$work/many.log")"
grep -Eq '; 0 failed, a wrong key or certificate was refused [1-9]' "$work/many.log" ||
	fail 'no wrong certificate was refused'
timeout -k 5 60 "$bin/ndx-sessions-many" --sessions 20 --flight 10 --bad 2 --blocks 1 \
	--cert "$work/server.pem" --key "$work/server.key" --ca "$work/ca.pem" \
	--cert-wrong "$work/client.pem" --key-wrong "$work/client.key" >"$work/many.log" 2>&1 &&
	fail 'a right certificate as a wrong one'
grep -q 'hostile client: the server takes it' "$work/many.log" || fail 'not told of it'
echo 'tls: all well'
