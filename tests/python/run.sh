#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: run.sh PYTHON BUILD FILE [SANITIZERS]
# The tests of a file, with the module of that build. If the build has the address sanitizer, its
# run-time library must be loaded before the interpreter's own.
set -eu
python=$1 build=$2 file=$3 sanitizers=${4:-}
PYTHONPATH=${NDX_PYTHON_TREE:-$build/python} # the variable: a module for another Python
PYTHONDONTWRITEBYTECODE=1
NDX_PLUGIN_PATH=$build/lib/ndx
NDX_BUILD=$build
export PYTHONPATH PYTHONDONTWRITEBYTECODE NDX_PLUGIN_PATH NDX_BUILD
case $sanitizers in
'') ;;
*address*)
	# Leaks, too: with PYTHONMALLOC=malloc each object of Python is an allocation of its own.
	LD_PRELOAD=$(${CC:-cc} -print-file-name=libasan.so):$(${CC:-cc} -print-file-name=libubsan.so)
	ASAN_OPTIONS=detect_leaks=1:${ASAN_OPTIONS:-}
	LSAN_OPTIONS=suppressions=$(cd "$(dirname "$0")" && pwd)/leaks.supp:print_suppressions=0
	PYTHONMALLOC=malloc
	export LD_PRELOAD ASAN_OPTIONS LSAN_OPTIONS PYTHONMALLOC
	;;
*)
	echo "skip: the interpreter is not built with -fsanitize=$sanitizers"
	exit 77
	;;
esac
exec "$python" -m pytest -q -p no:cacheprovider --durations=3 "$file"
