#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: install.sh SOURCE BUILD CC
# What "cmake --install" lays down is enough for a user's program, wherever the prefix is: headers,
# libraries, .pc files and the CMake package agree, in C and in C++.
set -eu
src=$1 build=$2 cc=$3
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

if ! cmake --install "$build" --prefix "$tmp/prefix" >"$tmp/log" 2>&1; then
	cat "$tmp/log"
	exit 1
fi
{
	(cd "$src/api" && find ndx -name '*.h')
	[ ! -f "$build/lib/libndx-ndspi.so" ] ||
		for folder in "$src/shims/ndspi/include" "$build/shims/ndspi/names"; do
			(cd "$folder" && find . -name '*.h' | sed 's|^\./|ndx/ndspi/|')
		done
} | sort >"$tmp/headers"
(cd "$tmp/prefix/include" && find . -type f | sed 's|^\./||' | sort) >"$tmp/installed"
diff -u "$tmp/headers" "$tmp/installed" || {
	echo "   ^ the installed headers are not those of api/ and shims/"
	exit 1
}
if find "$tmp/prefix" \( -name '*.a' -o -name 'test_*' \) | grep -v '/libndx-\(provider\|wmain\)\.a$'; then
	echo "   ^ this is not for users"
	exit 1
fi
for program in "$tmp/prefix/bin"/*; do
	[ -f "$program" ] || continue
	"$program" --help >"$tmp/log" 2>&1 || {
		cat "$tmp/log"
		echo "   ^ $(basename "$program") --help, as installed"
		exit 1
	}
done

# Elsewhere than it was installed: no file may know the first place.
mkdir "$tmp/moved"
mv "$tmp/prefix" "$tmp/moved/ndx"
PKG_CONFIG_PATH=$(dirname "$(find "$tmp/moved" -name ndx.pc)")
export PKG_CONFIG_PATH
LD_LIBRARY_PATH=$(pkg-config --variable=libdir ndx)
export LD_LIBRARY_PATH
version=$(pkg-config --modversion ndx)
minor=${version%.*}

# A program loads the version that it was linked with: until 1.0 the same minor version.
soname=$(echo "$version" | awk -F. '{ print $1 == 0 ? $1 "." $2 : $1 }')
for file in "$LD_LIBRARY_PATH"/libndx*.so.*.*.*; do
	want=$(basename "$file" | sed 's/\.so\..*//').so.$soname
	readelf -d "$file" | grep -qF "soname: [$want]" || {
		readelf -d "$file" | grep SONAME
		echo "   ^ $file is not $want"
		exit 1
	}
done

# A program finds its libraries, and a library its plugins, without help from the environment.
if [ -x "$tmp/moved/ndx/bin/ndx-negotiate" ]; then
	env -u LD_LIBRARY_PATH -u NDX_PLUGIN_PATH "$tmp/moved/ndx/bin/ndx-negotiate" both 127.0.0.1:0 \
		--adapter loop --variant example/three-round >"$tmp/log" 2>&1 || {
		cat "$tmp/log"
		echo "   ^ ndx-negotiate does not find its libraries or its plugins where it was moved"
		exit 1
	}
fi

# The links of the installed pages lead to what is installed; there are some to examples and headers.
if [ -d "$src/samples/cookbook" ] && command -v python3 >/dev/null; then
	python3 "$here/links.py" "$tmp/moved/ndx" links >"$tmp/log" || {
		cat "$tmp/log"
		echo "   ^ the links of the pages, as installed"
		exit 1
	}
	for link in examples/cookbook/copy.c examples/provider ../../../include/ndx/status.h conformance.md; do
		grep -rqF "]($link)" "$tmp/moved/ndx/share/doc/ndx" || {
			echo "   ^ no installed page links to $link"
			exit 1
		}
	done
fi

# The samples, in a tree that has them, are installed, compile, and run without help.
if [ -d "$src/samples/cookbook" ]; then
	for sample in hello cookbook provider; do
		diff -r "$src/samples/$sample" "$tmp/moved/ndx/share/doc/ndx/examples/$sample" || {
			echo "   ^ the installed samples are not those of samples/$sample"
			exit 1
		}
	done
	cp -R "$tmp/moved/ndx/share/doc/ndx/examples" "$tmp/examples"
	if ! make -C "$tmp/examples" CC="$cc" CFLAGS='-Wall -Wextra -Werror' >"$tmp/log" 2>&1; then
		cat "$tmp/log"
		echo "   ^ the samples, as installed, do not compile"
		exit 1
	fi
	for sample in "$tmp/examples/hello"/*.c "$tmp/examples/cookbook"/*.c; do
		program=$(echo "${sample#"$tmp"/examples/}" | sed 's|^hello/||; s|[/_]|-|g; s|\.c$||')
		[ "$program" = cookbook-cookbook ] || [ -x "$tmp/examples/$program" ] || {
			echo "   ^ make does not make $program"
			exit 1
		}
	done
	if [ -f "$LD_LIBRARY_PATH/ndx/ndx-provider-ofi.so" ] &&
		! env -u LD_LIBRARY_PATH "$tmp/examples/cookbook-token" >"$tmp/log" 2>&1; then
		cat "$tmp/log"
		echo "   ^ cookbook-token, as made from what is installed"
		exit 1
	fi
fi

# One program for each library, by pkg-config and by CMake: consumer.c, consumer-X.c for ndx-X.
languages=c enabled=C
if echo 'int i;' | "$cc" -x c++ -fsyntax-only - 2>/dev/null; then
	languages='c c++' enabled='C;CXX'
fi
mkdir "$tmp/cmake"
components=
for pc in "$PKG_CONFIG_PATH"/ndx*.pc; do
	library=$(basename "$pc" .pc)
	[ "$library" != ndx-provider ] || continue # for providers, not for programs
	component=${library#ndx-}
	source=$here/consumer${library#ndx}.c
	components="$components${components:+;}$component"
	cp "$source" "$tmp/cmake/$component.c"
	cp "$source" "$tmp/cmake/$component.cxx"
	for language in $languages; do
		case $language in
		c) standard=c11 ;;
		*) standard=c++17 ;;
		esac
		# shellcheck disable=SC2046 # a list of options
		"$cc" -x "$language" "-std=$standard" -Wall -Wextra -Werror -o "$tmp/$library" "$source" \
			-x none $(pkg-config --cflags --libs "$library")
		"$tmp/$library" "$version" || {
			echo "   ^ the program with $library, in $language"
			exit 1
		}
	done
done
cat >"$tmp/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.21)
project(consumer LANGUAGES ${ENABLED})
find_package(${PACKAGE} ${ASKED} REQUIRED COMPONENTS ${COMPONENTS})
foreach(component IN LISTS COMPONENTS PROGRAMS)
  foreach(language IN LISTS ENABLED)
    string(TOLOWER ${language} extension)
    add_executable(${component}.${language} ${component}.${extension})
    target_link_libraries(${component}.${language} PRIVATE ndx::${component})
  endforeach()
endforeach()
END
# fresh: an empty $tmp/asked, but for what CMake has found out about the compilers
fresh() {
	rm -rf "$tmp/before"
	[ -d "$tmp/asked" ] || return 0
	mv "$tmp/asked" "$tmp/before"
	mkdir -p "$tmp/asked/CMakeFiles"
	grep '^CMAKE_' "$tmp/before/CMakeCache.txt" >"$tmp/asked/CMakeCache.txt"
	cp -R "$tmp/before/CMakeFiles"/[0-9]* "$tmp/asked/CMakeFiles"
}
# ask PACKAGE VERSION COMPONENTS [PROGRAMS]: a program's CMake asks for these, for the programs of the
# components and these ones; what it says in $tmp/log
ask() {
	fresh
	cmake -S "$tmp/cmake" -B "$tmp/asked" -DCMAKE_PREFIX_PATH="$tmp/moved/ndx" -DPACKAGE="$1" \
		-DASKED="$2" -DCOMPONENTS="$3" -DPROGRAMS="${4:-}" -DCMAKE_C_COMPILER="$cc" \
		-DENABLED="$enabled" >"$tmp/log" 2>&1
}
runs() { # runs PACKAGE COMPONENTS [PROGRAMS]: what asks for this version is built, and runs
	if ! ask "$1" "$minor" "$2" "${3:-}" || ! cmake --build "$tmp/asked" >>"$tmp/log" 2>&1; then
		cat "$tmp/log"
		echo "   ^ find_package($1 $minor COMPONENTS $2)"
		exit 1
	fi
	for program in "$tmp"/asked/*.C "$tmp"/asked/*.CXX; do
		[ -f "$program" ] || continue
		"$program" "$version" || {
			echo "   ^ $(basename "$program"), as CMake built it with package $1"
			exit 1
		}
	done
}
refused() { # refused PACKAGE VERSION COMPONENT TEXT: CMake refuses, and says why
	if ask "$1" "$2" "$3" || ! tr -s ' \n' ' ' <"$tmp/log" | grep -qF "$4"; then
		cat "$tmp/log"
		echo "   ^ find_package($1 $2 COMPONENTS $3) does not say: $4"
		exit 1
	fi
}
runs ndx "$components"
refused ndx "$minor" streams 'no component streams'
packages=ndx
if [ -f "$tmp/ndx-ndspi" ]; then # built with g++
	packages='ndx ndx-ndspi'
	runs ndx-ndspi '' ndspi
	runs ndx-ndspi winrt ndspi
	refused ndx-ndspi "$minor" stream 'no component stream'
fi
# Until 1.0 a program of another minor version does not go with this one, also not an older one.
case $minor in
0.0) ;;
0.*)
	for package in $packages; do
		refused "$package" "0.$((${minor#0.} - 1))" "${package#ndx-}" "version: $version"
	done
	;;
esac

# The dynamic linker refuses a libndx of another version below the libraries that use its inside.
cp -R "$LD_LIBRARY_PATH" "$tmp/other"
LC_ALL=C sed -i 's/NDX_PRIVATE_[0-9]/NDX_PRIVATE_x/' "$tmp/other/libndx.so.$version"
for library in ndx-negotiation ndx-stream; do
	[ -f "$tmp/$library" ] || continue
	if LD_LIBRARY_PATH=$tmp/other "$tmp/$library" >"$tmp/log" 2>&1 ||
		! grep -qF "NDX_PRIVATE_$version" "$tmp/log"; then
		cat "$tmp/log"
		echo "   ^ lib$library loads with a libndx of another version"
		exit 1
	fi
done

# Where the library of a stack is missing, ndx-info names its package, and the rest works.
module=$LD_LIBRARY_PATH/ndx/ndx-provider-ofi.so
missing() { # missing LIBRARY PACKAGE: the module needs LIBRARY.so.1, a name as long as libfabric
	cp "$tmp/module" "$module"
	LC_ALL=C sed -i "s/libfabric\\.so\\.1/$1.so.1/g" "$module"
	if ! "$tmp/moved/ndx/bin/ndx-info" >"$tmp/log" 2>&1 ||
		! tr -s ' \n' ' ' <"$tmp/log" | grep -qF "Debian: $2)" ||
		! grep -q '^loop  *usable' "$tmp/log"; then
		cat "$tmp/log"
		echo "   ^ ndx-info does not name $2, the package of $1.so.1"
		exit 1
	fi
}
if [ -f "$module" ]; then
	cp "$module" "$tmp/module"
	missing libfabrix libfabrix1
	missing libfabri2 libfabri2-1
	cp "$tmp/module" "$module"
fi

# A program that only reads captures loads no RDMA stack.
if [ -f "$tmp/ndx-reassembly" ] && ldd "$tmp/ndx-reassembly" | grep 'libndx\.so'; then
	echo "   ^ ndx-reassembly needs libndx"
	exit 1
fi
