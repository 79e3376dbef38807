#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: build.sh SOURCE BUILD OUT
# Debian packages of what was built in BUILD, as OUT/*.deb. A package of debian/control has the files
# of the CMake component of its name; for libndx0.1 that is libndx. Where the build has no file of a
# component, there is no package. Only dpkg-dev is needed: nothing is compiled again.
set -eu
src=$(realpath "$1") build=$(realpath "$2") out=$(realpath -m "$3")
here=$(cd "$(dirname "$0")" && pwd)
export LC_ALL=C

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:[^=]*=//p' "$build/CMakeCache.txt")
revision=$version-0ndx1 # less than the first one that Debian itself would give
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
# The same tree gives the same packages.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(stat -c %Y "$src/docs/CHANGELOG.md")}
export SOURCE_DATE_EPOCH

# The folder that the tools of dpkg-dev expect; what they are given is made in debian/.
if [ -d "$out" ] && [ ! -f "$out/debian/control" ] && [ -n "$(ls -A "$out")" ]; then
	echo "build.sh: $out has files of others: name a folder that is new or empty" >&2
	exit 1
fi
rm -rf "$out"
mkdir -p "$out/debian"
cd "$out"
cp "$here/debian/control" debian/control
maintainer=$(sed -n 's/^Maintainer: //p' debian/control)
{
	echo "ndx ($revision) unstable; urgency=medium"
	printf '\n  * Version %s; changelog.gz has the changes.\n\n' "$version"
	echo " -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")"
} >debian/changelog
{
	cat "$here/debian/copyright"
	sed -n '/^Redistribution/,$p' "$src/LICENSE" | sed 's/^$/./; s/^/ /'
} >debian/copyright
gzip -9nc debian/changelog >debian/changelog.Debian.gz
gzip -9nc "$src/docs/CHANGELOG.md" >debian/changelog.gz
: >debian/files

# elves FOLDER: its programs and shared libraries
elves() {
	find "$1" -type f \( -name '*.so' -o -name '*.so.*' -o -perm -u+x \) ! -path '*/DEBIAN/*' |
		while read -r file; do
			[ "$(head -c 4 "$file" | tail -c 3)" != ELF ] || echo "$file"
		done
}

# 1. Stage the files.
packages=
names=$(sed -n 's/^Package: //p' debian/control)
for package in $names; do
	component=$package
	case $package in
	libndx[0-9]*) component=libndx ;;
	esac
	stage=debian/$package
	DESTDIR=$out/$stage cmake --install "$build" --component "$component" --prefix /usr >/dev/null
	[ -d "$stage/usr" ] || continue
	packages="$packages $package"
	elves "$stage" >"debian/$package.elves"
	if [ -s "debian/$package.elves" ]; then
		xargs cmake -P "$here/bare.cmake" <"debian/$package.elves" >/dev/null
		xargs strip --strip-unneeded -R .comment -R .note <"debian/$package.elves"
	fi
	find "$stage" -name '*.a' -exec strip --strip-debug -D {} +
	if [ -d "$stage/usr/share/man" ]; then
		find "$stage/usr/share/man" -type f -exec gzip -9n {} +
	fi
	mkdir -p "$stage/DEBIAN" "$stage/usr/share/doc/$package"
	cp debian/copyright debian/changelog.gz debian/changelog.Debian.gz \
		"$stage/usr/share/doc/$package/"
	for script in postinst prerm; do
		[ ! -f "$here/debian/$package.$script" ] ||
			install -m 755 "$here/debian/$package.$script" "$stage/DEBIAN/$script"
	done
	if [ -f "$here/debian/$package.lintian-overrides" ]; then
		mkdir -p "$stage/usr/share/lintian/overrides"
		cp "$here/debian/$package.lintian-overrides" "$stage/usr/share/lintian/overrides/$package"
	fi
done
library=$(echo "$packages" | tr ' ' '\n' | grep '^libndx[0-9]')

# 2. What the library promises to other packages: from which version on each symbol is there. The
# node NDX_PRIVATE is for files of exactly this version, so its symbols bring the second line.
for soname in "debian/$library/usr/lib/$multiarch"/libndx*.so.*.*; do
	[ -L "$soname" ] || continue
	file=$here/symbols/$(basename "$soname" | sed 's/\.so\..*//').symbols
	sed "1a| $library (= $revision)
s/\(@NDX_PRIVATE_[^ ]* .*\)/\1 1/" "$file"
done >debian/symbols
dpkg-gensymbols -q -c4 "-p$library" "-Pdebian/$library" "-v$version" -Idebian/symbols \
	"-Odebian/$library/DEBIAN/symbols"
for soname in "debian/$library/usr/lib/$multiarch"/libndx*.so.*.*; do
	[ -L "$soname" ] || continue
	basename "$soname" | sed "s/^\(.*\)\.so\.\(.*\)\$/\1 \2 $library (>= $version)/"
done >"debian/$library/DEBIAN/shlibs"
echo 'activate-noawait ldconfig' >"debian/$library/DEBIAN/triggers"

# 3. What each package needs.
providers=$(echo "$packages" | tr ' ' '\n' | grep '^ndx-provider-' | paste -s -d'|' - | sed 's/|/ | /g')
# pkg-config looks for what a .pc file requires, also where nothing is linked statically.
required=
if [ -d debian/libndx-dev ]; then
	required=$(sed -n 's/^Requires\.private: *//p' "debian/libndx-dev/usr/lib/$multiarch"/pkgconfig/*.pc |
		tr -s ', ' '\n' | sed 's/[<>=].*//' | sort -u | while read -r name; do
		folder=$(pkg-config --variable=pcfiledir "$name")
		dpkg-query -S "$folder/$name.pc" | sed 's/:.*//'
	done | paste -s -d, - | sed 's/,/, /g')
fi
for package in $packages; do
	substvars=debian/$package.substvars
	printf 'ndx:Providers?=%s\nndx:Required?=%s\nmisc:Depends?=\n' "$providers" "$required" >"$substvars"
	if [ -s "debian/$package.elves" ]; then
		sed 's/^/-e/' "debian/$package.elves" | xargs dpkg-shlibdeps "-T$substvars" \
			"-Sdebian/$library" "-ldebian/$library/usr/lib/$multiarch"
	fi
	stage=debian/$package
	(cd "$stage" && find usr -type f -printf '%p\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
	dpkg-gencontrol "-p$package" "-T$substvars" "-P$stage" -fdebian/files
	chmod -R u=rwX,go=rX "$stage"
	find "$stage" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	dpkg-deb --root-owner-group --build "$stage" . >/dev/null
done
