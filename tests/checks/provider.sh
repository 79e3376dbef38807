#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: provider.sh SOURCE BUILD CC
# What "cmake --install" lays down is enough to write a provider: samples/provider is built outside
# the tree, by pkg-config and by CMake, and the installed ndx-conformance finds no fault in it.
set -eu
src=$1 build=$2 cc=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
runs=
# shellcheck disable=SC2086 # a list
trap '[ -z "$runs" ] || kill $runs 2>/dev/null; exit 130' HUP INT TERM

if ! cmake --install "$build" --prefix "$tmp/ndx" >"$tmp/log" 2>&1; then
	cat "$tmp/log"
	exit 1
fi
if [ ! -x "$tmp/ndx/bin/ndx-conformance" ]; then
	echo "skip: this build has no ndx-conformance"
	exit 77
fi
cp -R "$src/samples/provider" "$tmp/source"
cd "$tmp/source"
PKG_CONFIG_PATH=$(dirname "$(find "$tmp/ndx" -name ndx-provider.pc)")
export PKG_CONFIG_PATH

if echo 'int i;' | "$cc" -x c++ -fsyntax-only - 2>/dev/null; then
	echo '#include <ndx/spi/system.h>
int main() { return ndxp_now_ns() == 0; }' >"$tmp/kit.cpp"
	# shellcheck disable=SC2046 # a list of options
	"$cc" -x c++ -std=c++17 -Wall -Wextra -Werror -o "$tmp/kit" "$tmp/kit.cpp" -x none \
		$(pkg-config --cflags --libs ndx-provider) || {
		echo "   ^ the kit, in C++"
		exit 1
	}
fi
mkdir "$tmp/pkg-config" "$tmp/cmake"
# shellcheck disable=SC2046 # a list of options
"$cc" -std=c11 -O2 -Wall -Wextra -Werror -fPIC -fvisibility=hidden -shared -Wl,--no-undefined \
	-o "$tmp/pkg-config/ndx-provider-null.so" ./*.c $(pkg-config --cflags --libs ndx-provider)
if ! { cmake -S . -B "$tmp/cmake" -DCMAKE_PREFIX_PATH="$tmp/ndx" -DCMAKE_C_COMPILER="$cc" \
	-DCMAKE_C_FLAGS='-Wall -Wextra -Werror' && cmake --build "$tmp/cmake"; } >"$tmp/log" 2>&1; then
	cat "$tmp/log"
	echo "   ^ samples/provider, by CMake"
	exit 1
fi
# A queue without a function that each must have is refused, also behind fault.
mkdir "$tmp/hole"
sed -i.whole '/\.send = /d' null_data.c
# shellcheck disable=SC2046 # a list of options
"$cc" -std=c11 -fPIC -shared -o "$tmp/hole/ndx-provider-null.so" ./*.c \
	$(pkg-config --cflags --libs ndx-provider)
mv null_data.c.whole null_data.c
for uri in null fault:null; do
	if NDX_PROVIDER_PATH=$tmp/hole timeout 60 "$tmp/ndx/bin/ndx-conformance" "$uri" "$uri" \
		--filter 'data.sends_of*' >"$tmp/log" 2>&1 ||
		! tr -s ' \n' ' ' <"$tmp/log" | grep -q 'lacks a function of the data path'; then
		cat "$tmp/log"
		echo "   ^ $uri without send is not refused"
		exit 1
	fi
done
for way in pkg-config cmake; do
	module=$tmp/$way/ndx-provider-null.so
	exported=$(nm -D --defined-only "$module" | awk '$2 != "w" { print $3 }')
	if [ "$exported" != ndx_provider ]; then
		echo "$exported"
		echo "   ^ the provider built by $way exports more than ndx_provider"
		exit 1
	fi
done

# conform WAY GROUP...: the installed suite over the provider built in this way, each group of cases
# in a process of its own, because cases mostly wait.
conform() {
	way=$1
	shift
	for group; do
		# A provider that reports no end makes a close wait without end.
		NDX_PROVIDER_PATH=$tmp/$way timeout 300 "$tmp/ndx/bin/ndx-conformance" null null \
			--filter "$group.*" >"$tmp/$way.$group" 2>&1 || echo "$group" >>"$tmp/failed" &
		runs="$runs $!"
	done
	wait
	runs=
	if [ -f "$tmp/failed" ]; then
		while read -r group; do
			grep -v '^ok ' "$tmp/$way.$group"
		done <"$tmp/failed"
		echo "   ^ ndx-conformance null null, the provider built by $way"
		exit 1
	fi
}
"$tmp/ndx/bin/ndx-conformance" --list >"$tmp/list"
groups=$(sed -nE 's/^([a-z]+)\.[a-z0-9_]+ lines=.*/\1/p' "$tmp/list" | sort -u)
# shellcheck disable=SC2086 # a list
conform pkg-config $groups
conform cmake data
cat "$tmp"/pkg-config.* | awk '/^# [0-9]+ passed, 0 failed/ { passed += $2; skipped += $6 }
	END { print passed " passed, 0 failed, " skipped " skipped"; exit passed < 300 }' || {
	echo "   ^ these are not all cases"
	exit 1
}
