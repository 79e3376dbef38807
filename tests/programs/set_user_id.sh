#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: set_user_id.sh SOURCE BIN
# A set-user-id program ignores the variables of NDX: whoever starts it could otherwise have it load
# code, or write where the program's owner may. Each variable is first seen to work on a copy of the
# same program without that bit.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
unset NDX_LOG NDX_PROVIDER_PATH NDX_PLUGIN_PATH
# The leak checker cannot attach to a process of another user.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

echo '# no room reads a variable without regard to that bit'
found=$(grep -rnw getenv --include='*.c' --include='*.h' --include='*.cpp' "$src/core" "$src/providers" \
	"$src/plugins" "$src/shims")
[ -z "$found" ] || fail "use secure_getenv(): $found"

if [ "$(id -u)" -ne 0 ]; then
	echo 'skip: only root can make a program of another user'
	exit 77
fi
chmod 755 "$work"
mkdir "$work/plain" "$work/suid" "$work/providers" "$work/plugins"
for name in ndx-info ndx-negotiate ndx-reqresp; do
	cp "$bin/$name" "$work/plain/$name" || fail 'no copy'
	cp "$bin/$name" "$work/suid/$name" || fail 'no copy'
	chown 65534:65534 "$work/suid/$name" || fail 'no other owner'
	chmod 4755 "$work/suid/$name" || fail 'no bit'
done
if ! "$work/suid/ndx-info" --version >"$work/version.log" 2>&1; then
	cat "$work/version.log"
	echo 'skip: another user cannot read the libraries of this build'
	exit 77
fi
# The dynamic linker obeys this variable only where it regards the program as an ordinary one.
if LD_SHOW_AUXV=1 "$work/suid/ndx-info" --version | grep -q AT_SECURE; then
	echo 'skip: the file system of temporary files has no set-user-id programs (nosuid)'
	exit 77
fi

# obeyed STATUS TEXT VARIABLE VALUE PROGRAM ARGUMENT...: with the variable the program says TEXT; the
# copy with the bit does not, and ends with STATUS, as without the variable
obeyed() {
	wanted=$1 text=$2 variable=$3 value=$4 name=$5
	shift 5
	env "$variable=$value" timeout 60 "$work/plain/$name" "$@" >"$work/plain.log" 2>&1 </dev/null
	grep -qF -e "$text" "$work/plain.log" || fail "$variable has no effect on an ordinary program"
	env "$variable=$value" timeout 60 "$work/suid/$name" "$@" >"$work/suid.log" 2>&1 </dev/null
	status=$?
	[ $status -eq "$wanted" ] || fail "$variable: status $status of the set-user-id $name"
	[ -s "$work/suid.log" ] || fail "the set-user-id $name says nothing"
	if grep -qF -e "$text" "$work/suid.log"; then
		fail "a set-user-id program obeys $variable"
	fi
	echo "# $variable"
}

obeyed 0 'ndx debug' NDX_LOG debug ndx-reqresp both --adapter loop --requests 1
obeyed 0 'bogus' NDX_ADAPTER bogus ndx-reqresp both --requests 1
echo 'this is no INI file' >"$work/bad.ini"
obeyed 0 'bad.ini' NDX_CONFIG "$work/bad.ini" ndx-reqresp both --requests 1
cp "$bin/../lib/ndx/ndx-plugin-example.so" "$work/plugins/" || fail 'no plugin'
obeyed 0 "$work/plugins" NDX_PLUGIN_PATH "$work/plugins" ndx-negotiate plugins
if [ -f "$bin/../lib/ndx/ndx-provider-ofi.so" ]; then
	# What is loaded says that it is another one.
	cp "$bin/../lib/ndx/ndx-provider-ofi.so" "$work/providers/ndx-provider-copy.so" || fail 'no copy'
	obeyed 3 'holds provider "ofi", not "copy"' NDX_PROVIDER_PATH "$work/providers" ndx-reqresp both \
		--adapter copy --requests 1
fi
echo 'set-user-id: all well'
