#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: missing.sh NDX-GUEST
# ndx-guest names everything that the host lacks, with the package to install, and what is wrong with
# a call. No guest is started.
set -u
guest=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
count=0 bad=0

commands=$tmp/commands # links to those of this host
mkdir "$commands"
ln -sf /bin/* /usr/bin/* "$commands/"

# path WITHOUT...: the commands of this host, but for these
path() {
	for tool in $hidden; do
		mv "$tmp/$tool" "$commands/"
	done
	hidden=$*
	for tool; do
		mv "$commands/$tool" "$tmp/" 2>/dev/null || ln -s /nonexistent "$tmp/$tool"
	done
}
hidden=

# told STATUS TEXT ARGUMENT...: ndx-guest ends so, and says that
told() {
	status=$1 text=$2
	shift 2
	count=$((count + 1))
	PATH=$commands XDG_CACHE_HOME=$tmp/cache sh "$guest" "$@" >"$tmp/out" 2>"$tmp/said"
	ended=$?
	if [ $ended -ne "$status" ] || ! grep -qF -e "$text" "$tmp/said" || [ -s "$tmp/out" ]; then
		echo "ndx-guest $*: ended with $ended, not $status, or did not say '$text', but:"
		cat "$tmp/said" "$tmp/out"
		bad=1
	fi
}

# What this host lacks anyway is a reason to skip what comes later; the messages are looked at always.
while read -r tool package; do
	case $(command -v "$tool") in
	/usr/sbin/* | /sbin/*) continue ;; # ndx-guest looks there by itself
	esac
	[ ! -e "/usr/sbin/$tool" ] || continue
	path "$tool"
	told 77 "ndx-guest: this host lacks $tool: install $package" -- true
	told 77 "skip: missing here: " -- true
done <<END
qemu-system-x86_64 qemu-system-x86
cpio cpio
xz xz-utils
busybox busybox-static
rdma iproute2
dash dash
dpkg-deb dpkg
END
path qemu-system-x86_64 cpio
told 77 'install qemu-system-x86 cpio' -- true
path
told 126 'which command?'
told 126 'Try: ndx-guest --help' -Z
told 126 "'x' is no number" -t x -- true
told 126 '-k x: give a version' -k x -- true

path
if PATH=$commands XDG_CACHE_HOME=$tmp/cache sh "$guest" -K /nonexistent -- true 2>&1 | grep -q '^skip: '; then
	echo "skip: this host lacks a tool that the guest needs; $count messages are right"
	[ $bad -eq 0 ] && exit 77
	exit 1
fi
told 126 '-K /nonexistent: there is no such file' -K /nonexistent -- true
echo 'no package' >"$tmp/kernel.deb"
told 126 'is it a kernel package of Debian?' -K "$tmp/kernel.deb" -- true
path apt-get
told 77 'no apt-get here to fetch one with: name a package' -- true
path
ln -sf /bin/false "$commands/apt-cache"
told 77 'try apt-get update, or name a package with -K' -- true
[ $bad -eq 0 ] && echo "$count messages are right"
exit $bad
