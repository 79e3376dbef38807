#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: try.sh use|all PACKAGE... | purge
# Runs in the root of run.sh, which has the packages in /srv: installs the packages that are named and
# uses what they have; purges all of them. $LONG is 1 for all of the conformance.
set -eu
what=$1
shift
work=$(mktemp -d)
server_pid=
trap '[ -z "$server_pid" ] || server_stop; rm -rf "$work"' EXIT
# shellcheck source=samples/server.sh
. /srv/try/server.sh

fail() {
	echo "   ^ $*"
	exit 1
}
# say COMMAND...: what it prints is only of interest if it fails
say() {
	"$@" >"$work/said" 2>&1 || {
		tail -n 40 "$work/said"
		fail "$*"
	}
}
ours() { # ours: what is installed of these packages
	dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${source:Package}\n' |
		sed -n 's/^.. *\(.*\) ndx$/\1/p'
}
files() { # files PACKAGE...: their files
	dpkg -L "$@" | sort -u | while read -r path; do
		[ -d "$path" ] || echo "$path"
	done
}

install() {
	debs=
	for package; do
		debs="$debs $(echo /srv/"$package"_*.deb)"
	done
	# shellcheck disable=SC2086 # a list
	say dpkg --force-unsafe-io --install $debs
	[ -z "$(dpkg --audit)" ] || fail "dpkg --audit: $(dpkg --audit)"
	ldconfig -p | grep -q 'libndx\.so' || fail 'ldconfig does not know libndx.so'
	# Nothing that a package has is without its libraries.
	files "$@" | grep -E '^/usr/(bin|lib)/' | grep -vE '\.(a|pc|cmake)$' >"$work/elves"
	while read -r file; do
		if ldd "$file" 2>/dev/null | grep 'not found'; then
			fail "$file of $(dpkg -S "$file")"
		fi
	done <"$work/elves"
	for program in $(files "$@" | grep '^/usr/bin/'); do
		say "$program" --help
	done
}

demo() { # demo ADAPTER: a client and a server
	server_start "$work" ndx-reqresp server --adapter "$1" --count 1 || {
		cat "$work/server.log"
		fail 'ndx-reqresp server'
	}
	say timeout 120 ndx-reqresp client "$server_address" --adapter "$1" --requests 1000 --size 4096
	grep 'disconnected: graceful' "$work/said"
	server_end || fail 'the server failed'
}

conformance() { # conformance URI CASES...: of each there is one that passes
	uri=$1
	shift
	for cases; do
		timeout 1800 ndx-conformance "$uri" --filter "$cases" >"$work/said" 2>&1 || {
			grep -A 5 '^not ok' "$work/said" || tail -n 40 "$work/said"
			fail "ndx-conformance $uri --filter '$cases'"
		}
		passed=$(grep '^ok ' "$work/said" | grep -vc '# SKIP') || fail "no case of $cases ran on $uri"
		echo "conformance of $uri, $cases: $passed passed"
	done
}

built() { # built C C++ COMPONENTS: the programs of $work/cmake for these components are built, and run
	say cmake -S "$work/cmake" -B "$work/built" -DCMAKE_C_COMPILER="$1" -DCMAKE_CXX_COMPILER="$2"
	say cmake --build "$work/built"
	for component in $3; do
		say "$work/built/$component.C" "$version"
		say "$work/built/$component.CXX" "$version"
	done
	rm -rf "$work/built"
}

consumers() { # consumers C C++: programs against libndx-dev, by pkg-config and by CMake
	version=$(pkg-config --modversion ndx)
	mkdir "$work/cmake"
	components=
	for source in /srv/try/consumer*.c; do
		library=$(basename "$source" .c)
		library=ndx${library#consumer}
		components="$components ${library#ndx-}"
		cp "$source" "$work/cmake/${library#ndx-}.c"
		cp "$source" "$work/cmake/${library#ndx-}.cxx"
		# shellcheck disable=SC2046 # a list
		say "$1" -std=c11 -Wall -Wextra -Werror -o "$work/program" "$source" $(pkg-config --cflags --libs "$library")
		say "$work/program" "$version"
		# shellcheck disable=SC2046 # a list
		say "$2" -x c++ -std=c++17 -Wall -Wextra -Werror -o "$work/program" "$source" -x none \
			$(pkg-config --cflags --libs "$library")
		say "$work/program" "$version"
	done
	cat >"$work/cmake/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.21)
project(consumer LANGUAGES C CXX)
set(components$components)
find_package(ndx ${version%.*} REQUIRED COMPONENTS \${components})
foreach(component IN LISTS components)
  add_executable(\${component}.C \${component}.c)
  add_executable(\${component}.CXX \${component}.cxx)
  target_link_libraries(\${component}.C PRIVATE ndx::\${component})
  target_link_libraries(\${component}.CXX PRIVATE ndx::\${component})
endforeach()
END
	built "$1" "$2" "$components"
	echo "programs by $1 and $2, by pkg-config and CMake, for$components: run"
	case $components in
	*ndspi*)
		# the package under the library's own name
		sed -i "s/^find_package.*/find_package(ndx-ndspi ${version%.*} REQUIRED COMPONENTS winrt)/
			s/^set(components.*/set(components ndspi winrt)/" "$work/cmake/CMakeLists.txt"
		built "$1" "$2" 'ndspi winrt'
		echo "programs by $1 and $2, by CMake with package ndx-ndspi: run"
		;;
	esac
	rm -rf "$work/cmake"
}

case $what in
use)
	install "$@"
	say ndx-info --brief
	cat "$work/said"
	# Without the package of a provider the rest works, and ndx-info says what to install.
	for deb in /srv/ndx-provider-*.deb; do
		[ -f "$deb" ] || continue
		package=$(basename "$deb")
		package=${package%%_*}
		grep -q "$package" "$work/said" || fail "ndx-info does not say to install $package"
	done
	;;
all)
	install "$@"
	say ndx-info --brief
	grep ' usable$' "$work/said"
	demo 'ofi:tcp?iface=lo'
	say ndx-negotiate both 127.0.0.1:0 --adapter loop --variant example/three-round
	say cp -R /usr/share/doc/ndx/examples "$work/examples"
	say make -C "$work/examples" CC=gcc CFLAGS='-Wall -Wextra -Werror'
	say "$work/examples/cookbook-token" 'ofi:tcp?iface=lo'
	say python3 -m ndx info
	grep '^loop .* usable$' "$work/said"
	say python3 /srv/try/module.py
	for uri in loop 'ofi:tcp?iface=lo'; do
		if [ "$LONG" -eq 1 ]; then
			conformance "$uri" '*'
		else
			conformance "$uri" 'adapter.limits_and*' 'connection.helpers*' 'data.sends_of*' \
				'disconnect.all_*' 'mw.create*' 'negotiated.read_limits*'
		fi
	done
	consumers gcc g++
	if command -v clang >/dev/null; then
		consumers clang clang++
	elif [ "$LONG" -eq 1 ]; then
		fail 'there is no clang'
	fi
	# shellcheck disable=SC2046 # a list
	dpkg --verify $(ours) | grep . && fail 'something has changed files of the packages'
	;;
purge)
	# shellcheck disable=SC2046 # a list
	say dpkg --purge $(ours)
	[ -z "$(ours)" ] || fail "is still there: $(ours)"
	[ -z "$(dpkg --audit)" ] || fail "dpkg --audit: $(dpkg --audit)"
	;;
esac
exit 0
