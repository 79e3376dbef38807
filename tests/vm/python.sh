#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: python.sh SOURCE
# In the guest: the tests of the Python module that take an adapter, with a device of each stack in
# place of the adapters that need none. Not that of growing memory, which takes 20 s on each; and
# numpy is too large for a guest, so what needs it is skipped. Prints TAP.
set -u
src=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
skip() {
	echo "ok 1 - python.module # SKIP $1"
	echo 1..1
	exit 0
}

python=/usr/bin/python3
for found in /usr/bin/python3.[0-9]*; do
	[ ! -x "$found" ] || python=$found
done
[ -x "$python" ] || skip 'no Python here'
[ -d "$src/build/python/ndx" ] || skip 'the Python module was not built'
PYTHONPATH=$src/build/python PYTHONDONTWRITEBYTECODE=1 NDX_PLUGIN_PATH=$src/build/lib/ndx
NDX_BUILD=$src/build NDX_TEST_ADAPTERS='verbs:rxe0 ofi:verbs?iface=v0' COLUMNS=400
export PYTHONPATH PYTHONDONTWRITEBYTECODE NDX_PLUGIN_PATH NDX_BUILD NDX_TEST_ADAPTERS COLUMNS
"$python" -c 'import pytest' 2>"$log" || skip "no pytest here: $(tail -n 1 "$log")"

cd "$src/tests/python" || exit 1
timeout 300 "$python" -m pytest -v -p no:cacheprovider --tb=short --durations=3 -k 'verbs and not leave_no_memory' \
	test_adapter.py test_connection.py test_stream.py test_aio.py test_negotiation.py test_many.py \
	test_manager.py test_write_mode.py >"$log" 2>&1
ended=$?
awk '
	/^test_.*::.* (PASSED|FAILED|ERROR|SKIPPED)/ {
		name = $1
		sub(/^test_/, "", name)
		sub(/\.py::test_/, ".", name)
		verdict = $2
		reason = ""
		if (match($0, /SKIPPED \(.*\)/))
			reason = substr($0, RSTART + 9, RLENGTH - 10)
		sub(/ *$/, "", reason)
		count++
		print (verdict == "PASSED" || verdict == "SKIPPED" ? "ok " : "not ok ") count \
			" - python." name (verdict == "SKIPPED" ? " # SKIP " reason : "")
	}
	END { print "1.." count + 0 }' "$log"
[ $ended -eq 0 ] || sed 's/^/# /' "$log"
exit $ended
