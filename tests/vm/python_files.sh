#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: python_files.sh BUILD
# Prints what a guest needs to run plugins in Python, a path on each line: the host plugin of the
# build tree, the interpreter and the part of its library that plugins and tests use. Prints nothing
# where the build has no such host.
host=$1/lib/ndx/ndx-host-py.so
[ -e "$host" ] || exit 0
version=$(ldd "$host" | sed -n 's/.*libpython\(3\.[0-9]*\)\.so.*/\1/p')
[ -n "$version" ] && [ -x "/usr/bin/python$version" ] && [ -d "/usr/lib/python$version" ] || exit 0
echo "$host"
echo "/usr/bin/python$version"
for file in "/usr/lib/python$version"/*.py; do
	[ "${file##*/}" = cgi.py ] || echo "$file" # names an interpreter that is not there
done
for folder in collections encodings importlib json lib-dynload re; do
	[ ! -d "/usr/lib/python$version/$folder" ] || echo "/usr/lib/python$version/$folder"
done
