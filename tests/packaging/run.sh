#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: sh tests/packaging/run.sh [--long] [BUILD]
# Makes the Debian packages, looks at them with lintian, installs them into a bare root, uses them
# there (try.sh), and purges them. The packages are in BUILD/packaging/packages then. Exit code 77
# means that something is missing here for it; the last line says what.
#
# BUILD is a build tree that is configured as packages are (tests/run.sh makes such a one in build).
# Without BUILD, build is taken if it is one, and else the script builds build/packaging/build.
# The root has the files of packages that are installed on this machine: the essential ones, and
# what ours depend on, no more. --long takes a root that mmdebstrap makes from the packages of
# Debian's mirror instead, compiles with clang, too, runs all of the conformance, and lintian looks
# at the manual pages, too.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
src=$(cd "$here/../.." && pwd)
export LC_ALL=C
long=0
if [ "${1:-}" = --long ]; then
	long=1
	shift
fi
build=${1:-}

skip() {
	echo "skip: $*"
	exit 77
}
fail() {
	echo "FAILED: $*"
	exit 1
}

[ "$(id -u)" -eq 0 ] || skip 'installing packages into a root needs root'
for tool in dpkg-shlibdeps dpkg-gensymbols dpkg-deb lintian ip unshare chroot; do
	command -v $tool >/dev/null ||
		skip "$tool is missing (install dpkg-dev, lintian, iproute2 and util-linux)"
done
if [ $long -eq 1 ] && ! command -v mmdebstrap >/dev/null; then
	skip 'mmdebstrap is missing (install mmdebstrap)'
fi
unshare --mount --net --pid --fork true 2>/dev/null || skip 'no name spaces can be made here'

# cached NAME: a variable of the build tree
cached() {
	sed -n "s/^$1:[^=]*=//p" "$tree/CMakeCache.txt" 2>/dev/null
}
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
# suitable: is $tree configured as packages are, with all programs?
suitable() {
	[ "$(cached CMAKE_INSTALL_LIBDIR)" = "lib/$multiarch" ] && [ -z "$(cached NDX_SANITIZE)" ] &&
		[ "$(cached BUILD_TESTING)" = ON ] && [ "$(cached CMAKE_BUILD_TYPE)" != Debug ]
}
tree=${build:-$src/build}
if [ -n "$build" ]; then
	tree=$(cd "$build" && pwd)
	suitable || skip "$tree is not built for packages: cmake --preset release" \
		"-DCMAKE_INSTALL_LIBDIR=lib/$multiarch"
elif ! suitable; then
	tree=$src/build/packaging/build
	echo "== build, in $tree"
	mkdir -p "$tree"
	if ! cmake -S "$src" -B "$tree" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
		"-DCMAKE_INSTALL_LIBDIR=lib/$multiarch" >"$tree/said" 2>&1 ||
		! cmake --build "$tree" -j "${NDX_JOBS:-$(nproc)}" >"$tree/said" 2>&1; then
		tail -n 50 "$tree/said"
		fail 'the build'
	fi
fi
out=$tree/packaging
packages=$out/packages

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' HUP INT PIPE TERM
root=$work/root
mkdir "$root"
bad=0

echo '== packages'
sh "$here/build.sh" "$src" "$tree" "$packages"
for deb in "$packages"/*.deb; do
	# shellcheck disable=SC2016 # for dpkg-deb
	dpkg-deb --show --showformat '${Package} ${Version} ${Installed-Size} KB\n' "$deb"
	dpkg-deb --fsys-tarfile "$deb" | tar -t | grep -v '/$' | sed 's|^\./||' >"$work/files"
	sed 's/\.gz$//' "$work/files" | sed "s|\$| $(basename "$deb" | sed 's/_.*//')|"
	cat "$work/files" >>"$work/all"
done >"$work/said"
grep ' KB$' "$work/said"
grep -v ' KB$' "$work/said" | sort >"$work/packed"

# What cmake --install lays down is in one package, and nothing else is in any but what Debian asks for.
DESTDIR=$work/whole cmake --install "$tree" --prefix /usr >/dev/null
(cd "$work/whole" && find usr ! -type d) | sort >"$work/installed"
cut -d ' ' -f 1 "$work/packed" | uniq -d >"$work/twice"
cut -d ' ' -f 1 "$work/packed" | sort -u >"$work/once"
while read -r file; do
	echo "   in several packages: $(grep "^$file " "$work/packed" | tr '\n' ' ')"
	bad=1
done <"$work/twice"
comm -23 "$work/installed" "$work/once" >"$work/none"
sed 's/^/   in no package: /' "$work/none"
[ ! -s "$work/none" ] || bad=1
comm -13 "$work/installed" "$work/once" |
	grep -vE '^usr/share/(doc/[^/]*/(copyright|changelog|changelog\.Debian)|lintian/overrides/[^/]*)$' >"$work/more" || true
sed 's/^/   in a package, but not installed by CMake: /' "$work/more"
[ ! -s "$work/more" ] || bad=1
rm -rf "$work/whole"

echo '== lintian'
# check.man has looked at the manual pages already, the same way.
without='-X documentation/manual'
[ $long -eq 0 ] || without=
# shellcheck disable=SC2086 # a list
lintian --allow-root --fail-on error,warning $without "$packages"/*.deb || bad=1

# within COMMAND...: in the root, with a network that only has lo
within() {
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --net --pid --fork --kill-child sh -c 'set -e
		root=$1
		shift
		ip link set lo up
		mount -t proc proc "$root/proc"
		mount --bind /sys "$root/sys"
		mount -t tmpfs tmpfs "$root/tmp"
		mount -t tmpfs tmpfs "$root/dev"
		for device in null zero full random urandom; do
			: >"$root/dev/$device"
			mount --bind "/dev/$device" "$root/dev/$device"
		done
		mkdir -m 1777 "$root/dev/shm"
		ln -s /proc/self/fd "$root/dev/fd"
		mount --bind "$NDX_PACKAGES" "$root/srv"
		exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive LONG="$NDX_LONG" "$@"' within "$root" "$@"
}
export NDX_PACKAGES="$packages" NDX_LONG="$long"
mkdir "$packages/try"
cp "$here/try.sh" "$here/module.py" "$src/samples/server.sh" "$src"/tests/checks/consumer*.c "$packages/try"

# needs PACKAGE...: of ours; what they depend on that is not ours
needs() {
	for needed; do
		for field in Depends Pre-Depends; do
			dpkg-deb -f "$packages/$needed"_*.deb $field | tr ',' '\n'
		done
	done | sed 's/^ *\([^ (:|]*\).*/\1/' | sort -u | grep -vxF "$ours" || true
}
# extend PACKAGE...: the root has these of the host's packages, too, with all that they depend on
extend() {
	awk -v want="$*" -f "$here/closure.awk" /var/lib/dpkg/status | sort >"$work/wanted" ||
		fail 'the root cannot be made'
	comm -23 "$work/wanted" "$work/present" >"$work/new"
	mv "$work/wanted" "$work/present"
	# Without what only people read.
	xargs dpkg-query -L <"$work/new" | sort -u |
		grep -vE '^/usr/share/(doc|man|locale|info|lintian|bash-completion)/' |
		grep -vxE '/\.|/(bin|sbin|lib|lib32|lib64|libx32)|diverted by.*|package diverts.*' |
		sed 's|^/||' >"$work/paths"
	tar -C / --no-recursion --ignore-failed-read -cf - -T "$work/paths" 2>"$work/tar" |
		tar -C "$root" --keep-directory-symlink -xpf -
	awk 'FILENAME == ARGV[1] { present[$1] = 1; next }
		{ split($1, first, "\n"); sub(/^Package: /, "", first[1]) }
		first[1] in present { print $0 "\n" }' "$work/present" FS='\n\n' RS='' \
		/var/lib/dpkg/status >"$root/var/lib/dpkg/status"
	while read -r package; do
		for file in /var/lib/dpkg/info/"$package".* /var/lib/dpkg/info/"$package":*; do
			[ ! -e "$file" ] || cp -p "$file" "$root/var/lib/dpkg/info/"
		done
	done <"$work/new"
	# The links that their scripts have made.
	for file in /var/lib/dpkg/alternatives/*; do
		name=${file##*/}
		target=$(readlink "/etc/alternatives/$name") || continue
		[ -e "$root$target" ] || continue
		link=$(sed -n 2p "$file")
		mkdir -p "$root/etc/alternatives" "$root/var/lib/dpkg/alternatives" "$root${link%/*}"
		cp -PT "/etc/alternatives/$name" "$root/etc/alternatives/$name"
		cp "$file" "$root/var/lib/dpkg/alternatives/$name"
		ln -sfn "/etc/alternatives/$name" "$root$link"
	done
	# Their scripts do what the new files ask for, so that our packages find nothing to do.
	within sh -c 'ldconfig && dpkg --configure --pending' >"$work/said" 2>&1 || {
		cat "$work/said"
		fail 'the root cannot be made'
	}
}
# picture: what is in the root, but what dpkg, ldconfig and Python's own modules write for themselves
picture() {
	find "$root" -mindepth 1 \( -path "$root/var/log" -o -path "$root/var/lib/dpkg/triggers" \
		-o -path "$root/var/lib/dpkg/updates" -o -path "$root/var/cache/ldconfig" \) -prune -o \
		\( -type d -o -path "$root/var/lib/dpkg/info/*" \) -printf '%P %y %m %U %G\n' -o \
		-printf '%P %y %m %U %G %s %T@ %l\n' |
		grep -vE '^(var/lib/dpkg/(status|available|lock|diversions|statoverride|info/format)[^ ]*|etc/ld\.so\.cache|usr/(lib/python3\.|share/python3/)[^ ]*__pycache__[^ ]*) ' |
		sort
}
# purged: the packages that are installed, and nothing is left of them
purged() {
	within sh /srv/try/try.sh purge || bad=1
	picture >"$work/after"
	if ! diff "$work/before" "$work/after" >"$work/left"; then
		sed 's/^/   /' "$work/left"
		echo '   ^ is there after the purge, or is no more (< before, > after)'
		bad=1
	fi
}
# in_stages: first what a user of the tools has, then all packages, with compilers
in_stages() {
	picture >"$work/before"
	# shellcheck disable=SC2086 # a list
	within sh /srv/try/try.sh use $first || bad=1
	purged
	# shellcheck disable=SC2086,SC2046 # lists
	more
	picture >"$work/before"
	# shellcheck disable=SC2086 # a list
	within sh /srv/try/try.sh all $ours || bad=1
	purged
}

ours=$(cd "$packages" && for deb in *.deb; do echo "${deb%%_*}"; done)
library=$(echo "$ours" | grep '^libndx[0-9]')
first="$library ndx-tools"
if [ $long -eq 1 ]; then
	echo '== root, by mmdebstrap'
	compilers='gcc,g++,clang,make,cmake,pkg-config'
	# shellcheck disable=SC2086 # a list
	theirs=$(needs $ours | paste -s -d, -)
	mmdebstrap --quiet --variant=minbase --include="$compilers,$theirs" \
		"$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" >"$work/said" 2>&1 || {
		tail -n 5 "$work/said"
		skip 'no root can be made: no mirror of Debian, or one that lacks a package'
	}
	more() {
		:
	}
else
	echo '== root, of packages of this machine'
	for folder in bin sbin lib lib64; do
		case $(readlink /$folder) in
		# what is unpacked through such a link would be written outside the root
		/*) skip "/$folder is an absolute link on this host: use --long" ;;
		esac
		[ ! -L /$folder ] || cp -P /$folder "$root/"
	done
	mkdir -p "$root/proc" "$root/sys" "$root/tmp" "$root/dev" "$root/srv" "$root/usr/bin" "$root/usr/sbin" \
		"$root/usr/lib" "$root/usr/lib64" "$root/etc" "$root/var/cache/ldconfig" \
		"$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/triggers"
	cp -p /etc/passwd /etc/group "$root/etc/"
	for file in arch info/format triggers/ldconfig; do
		[ ! -e "/var/lib/dpkg/$file" ] || cp -p "/var/lib/dpkg/$file" "$root/var/lib/dpkg/$file"
	done
	: >"$work/present"
	# shellcheck disable=SC2046,SC2086 # lists
	extend $(needs $first)
	more() {
		# shellcheck disable=SC2046,SC2086 # lists
		extend gcc g++ make cmake pkg-config $(needs $ours)
	}
fi
in_stages
[ $bad -eq 0 ] || fail 'see above'
echo "the packages are in $packages"
