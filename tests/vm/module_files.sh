#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: module_files.sh SOURCE BUILD
# Prints what a guest needs to run the tests of the Python module, a path on each line: the module of
# the build tree, the interpreter, the part of its library that the tests use, and pytest. Prints
# nothing where the build has no such module, or Python no pytest.
src=$1 build=$2
ls "$build"/python/ndx/_ndx*.so >/dev/null 2>&1 || exit 0
version=$(readlink -f /usr/bin/python3)
version=${version#/usr/bin/python}
library=/usr/lib/python$version packages=/usr/lib/python3/dist-packages
[ -x "/usr/bin/python$version" ] && [ -d "$library" ] && [ -d "$packages/_pytest" ] || exit 0
echo "/usr/bin/python$version"
echo "$build/python/ndx"
echo "$src/tests/python"
for file in "$library"/*.py; do
	[ "${file##*/}" = cgi.py ] || echo "$file" # names an interpreter that is not there
done
for folder in __pycache__ asyncio collections concurrent ctypes email encodings html http importlib \
	json lib-dynload logging re unittest urllib xml; do
	[ ! -d "$library/$folder" ] || echo "$library/$folder"
done
for package in _pytest pytest pluggy iniconfig packaging attr py.py exceptiongroup tomli \
	typing_extensions.py; do
	[ ! -e "$packages/$package" ] || echo "$packages/$package"
done
