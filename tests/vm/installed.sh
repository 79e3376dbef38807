#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: installed.sh SOURCE BUILD CC
# ndx-guest as it is installed, outside this tree, with the program of another project: libibverbs
# only, and a library of that project, on a kernel package that is there already. Without root and
# without a network, if this host lets us drop both. Output, exit status and the shared folder come
# back.
set -eu
src=$1 build=$2 cc=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() {
	echo "FAILED: $*"
	for file in "$tmp/out" "$tmp/said"; do
		[ ! -s "$file" ] || tail -n 40 "$file"
	done
	exit 1
}

cmake --install "$build" --prefix "$tmp/prefix" --component ndx-test >"$tmp/out" 2>&1 ||
	fail 'cannot be installed'
if ! pkg-config --exists libibverbs; then
	echo 'skip: no libibverbs to build the program with (install libibverbs-dev)'
	exit 77
fi
project=$tmp/project
mkdir -p "$project/lib" "$project/out"
cp "$src/docs/ci/rdma_test.c" "$project/"
cd "$project"
echo 'int answer(void) { return 7; }' >answer.c
echo 'extern int answer(void); int main(void) { return answer(); }' >ask.c
"$cc" -shared -fPIC -o lib/libanswer.so answer.c
# found as on this host: by its path in the program, or by LD_LIBRARY_PATH
"$cc" -o ask ask.c -Llib -lanswer
"$cc" -o rdma_test rdma_test.c -libverbs
# shellcheck disable=SC2016 # the variables are the script's
{
	echo '#!/bin/sh'
	echo './rdma_test "$1" || exit 1'
	echo 'id -u; echo "it ran" >"$OUT/note"; cat data; ./ask'
} >steps
chmod +x steps
echo 'data of the project' >data

# The kernel that there is, as a package: so the guest itself needs neither apt nor a network.
sh "$tmp/prefix/bin/ndx-guest" -n 2>"$tmp/said" || {
	ended=$?
	[ $ended -eq 77 ] || fail "ndx-guest -n ended with $ended"
	tail -n 1 "$tmp/said"
	exit 77
}
mkdir "$tmp/cache" "$tmp/kernel"
for kernel in "${XDG_CACHE_HOME:-$HOME/.cache}/ndx-vm/"*/files; do
	cp -r "$kernel/." "$tmp/kernel/"
	break
done
mkdir "$tmp/kernel/DEBIAN"
cat >"$tmp/kernel/DEBIAN/control" <<END
Package: linux-image-test
Version: 1
Architecture: amd64
Maintainer: test <test@localhost>
Description: kernel
END
dpkg-deb -Zgzip -z1 --root-owner-group -b "$tmp/kernel" "$tmp/kernel.deb" >"$tmp/out" || fail 'no package'
: >"$tmp/out"
set -- "$tmp/prefix/bin/ndx-guest" -K "$tmp/kernel.deb"
if [ "$(id -u)" -eq 0 ] && setpriv --reuid 65534 --clear-groups true 2>/dev/null; then
	chown -R 65534 "$tmp"
	set -- setpriv --reuid 65534 --clear-groups "$@"
fi
if unshare --net true 2>/dev/null; then
	set -- unshare --net "$@"
elif unshare --user --net true 2>/dev/null; then
	set -- unshare --user --net "$@"
fi
# guest ARGUMENT...: its exit status is in $ended
guest() {
	ended=0
	HOME=$tmp XDG_CACHE_HOME=$tmp/cache LD_LIBRARY_PATH=$project/lib "$@" >"$tmp/out" 2>"$tmp/said" ||
		ended=$?
}

# One processor: with several QEMU now and then crashes a kernel that patches its own text, and the
# program needs no second one.
guest "$@" -c 1 -t 600 -o out -x data -x ask -x rdma_test -- ./steps rxe1
[ $ended -eq 7 ] || fail "ended with $ended, not with 7 as the command"
for line in 'device rxe0' 'device rxe1' '64 bytes arrived' '0' 'data of the project'; do
	tr -d '\r' <"$tmp/out" | grep -qx "$line" || fail "the guest did not print '$line'"
done
[ "$(cat out/note)" = 'it ran' ] || fail "nothing in the shared folder"
grep -q . out/console.log || fail "no messages of the kernel"

rm lib/libanswer.so
guest "$@" -- ./ask
[ $ended -eq 126 ] || fail "ended with $ended, not with 126: a library is missing"
grep -qF 'needs libanswer.so, which this host does not find' "$tmp/said" || fail 'the library is not named'
guest "$@" -x no-such-file -- true
[ $ended -eq 126 ] || fail "ended with $ended, not with 126: a file is missing"
grep -qF -e '-x no-such-file: no such program or file' "$tmp/said" || fail 'the file is not named'
echo 'the program of another project sends in the installed guest'
