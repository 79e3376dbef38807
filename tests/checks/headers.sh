#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: headers.sh SOURCE BUILD CC
# Every public header compiles alone, as C11 and as C++17, with no warning; ndx.h includes every header of
# an application; and a program sends constant data without a cast. So do the headers for NetworkDirect
# programs, for which -pedantic is too much: Windows has structures without a name. These also compile
# within extern "C", as some programs include them.
set -eu
src=$1 cc=$3
bad=0

alone() { # alone HEADER LANGUAGE STANDARD [FOLDER OPTION]: in api, with -pedantic, or so
	# A header of macros only would be an empty translation unit, which -pedantic refuses.
	printf '#include <%s>\nextern int a_declaration_of_our_own;\n' "$1" |
		"$cc" -x "$2" "-std=$3" -Wall -Wextra -Wshadow -Wundef "${5:--pedantic}" -Werror \
			-I"$src/${4:-api}" -fsyntax-only - || {
		echo "   ^ <$1> does not compile alone as $3"
		bad=1
	}
}

within_c() { # within_c HEADER: of the shim
	printf 'extern "C" {\n#include <%s>\n}\n' "$1" |
		"$cc" -x c++ -std=c++17 -Wall -Wextra -Wfatal-errors -Werror -I"$src/shims/ndspi/include" \
			-fsyntax-only - || {
		echo "   ^ <$1> does not compile within extern \"C\""
		bad=1
	}
}

# A program that sends constant data: compile it as LANGUAGE and STANDARD.
send_constant() { # send_constant LANGUAGE STANDARD
	"$cc" -x "$1" "-std=$2" -Wall -Wextra -Wcast-qual -Wwrite-strings -pedantic -Werror \
		-I"$src/api" -fsyntax-only "$src/tests/checks/constant.c" || {
		echo "   ^ constant data cannot be sent without a cast in $2"
		bad=1
	}
}

have_cxx=1
echo 'int i;' | "$cc" -x c++ -fsyntax-only - 2>/dev/null || have_cxx=0
for h in $(cd "$src/api" && find ndx -name '*.h' | sort); do
	alone "$h" c c11
	[ $have_cxx -eq 0 ] || alone "$h" c++ c++17
done
for h in $(cd "$src/shims/ndspi/include" && ls ./*.h); do
	alone "${h#./}" c c11 shims/ndspi/include -Wall
	[ $have_cxx -eq 0 ] || alone "${h#./}" c++ c++11 shims/ndspi/include -Wall
	[ $have_cxx -eq 0 ] || alone "${h#./}" c++ c++20 shims/ndspi/include -Wall
	[ $have_cxx -eq 0 ] || within_c "${h#./}"
done
if [ -f "$src/api/ndx/ndx.h" ] && [ -f "$src/tests/checks/constant.c" ]; then
	send_constant c c11
	[ $have_cxx -eq 0 ] || send_constant c++ c++17
	for h in $(cd "$src/api" && ls ndx/*.h); do
		case $h in ndx/ndx.h | ndx/decls.h) continue ;; esac
		grep -q "^#include <$h>\$" "$src/api/ndx/ndx.h" || {
			echo "<ndx/ndx.h> does not include <$h>"
			bad=1
		}
	done
fi
if [ $bad -eq 0 ] && [ $have_cxx -eq 0 ]; then
	echo "skip: $cc compiles no C++ (install g++); as C11 every header is fine"
	exit 77
fi
exit $bad
