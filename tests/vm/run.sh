#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: run.sh [-k 6.1|6.12] [-i] [-b BUILD] [-x PROGRAM]... [-o OUT] [-t SECONDS] [-c CPUS] [-m MB] -- COMMAND [ARGUMENT]...
# Run a command in a throw-away guest with two software RoCE devices, rxe0 and rxe1, and a link
# between them. The guest has a Debian kernel and runs in QEMU without hardware support; no root is
# needed, and nothing is left behind. docs/testing-without-hardware.md has the details.
#
#   -k  which kernel (6.1)            -b  the build tree whose programs the guest has (build)
#   -x  also this program of the host, or any file; may be repeated
#   -i  time is counted instructions: one processor, latencies that repeat exactly
#   -o  folder that the guest has as $OUT; it also gets the kernel's messages (console.log)
#   -t  time limit (300)              -c  processors (2)          -m  memory (1024)
#
# COMMAND as one word is a line for the shell. Programs of BUILD/bin that COMMAND names are packed
# with their libraries, and so are those of -x. The guest also has busybox, ip, tc, rdma and
#   wire cut|heal|empty|move|outage MS|delay MS|loss PERCENT|down|up
#
# Exit status: the command's; 124: time limit; 125: the guest died; 126: wrong arguments or a
# problem of this host; 77: this host cannot run the guest; the last line on stderr has the reason.
set -u
src=$(cd "$(dirname "$0")/../.." && pwd)
here=$src/tests/vm
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ndx-vm
PATH=$PATH:/usr/sbin:/sbin
flavour=6.1 build=$src/build icount=0 out='' limit=300 cpus=2 memory=1024
modules='virtio_pci virtio_console 9pnet_virtio 9p crc32_generic rdma_rxe ib_uverbs rdma_ucm veth sch_netem tcp_diag sch_prio cls_u32 sch_ingress cls_matchall act_skbedit'
applets='mount umount insmod ls cat dmesg poweroff mkdir sleep date stty sysctl cut grep sed awk head tail sort wc kill ps tr env seq timeout printf rm cp mv ln touch test expr nproc true false uname id od top free tee basename dirname find xargs mktemp sync chmod ping mkfifo readlink setsid usleep'

work=$(mktemp -d) || exit 126
guest=
# shellcheck disable=SC2317 # called by the trap
clean() {
	[ -z "$guest" ] || kill "$guest" 2>/dev/null
	rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM

wrong() {
	echo "run.sh: $*" >&2
	exit 126
}
skip() {
	echo "skip: $*" >&2
	exit 77
}

: >"$work/extras"
while getopts k:b:x:io:t:c:m: option; do
	case $option in
	k) flavour=$OPTARG ;;
	b) build=$OPTARG ;;
	x) echo "$OPTARG" >>"$work/extras" ;;
	i) icount=1 ;;
	o) out=$OPTARG ;;
	t) limit=$OPTARG ;;
	c) cpus=$OPTARG ;;
	m) memory=$OPTARG ;;
	*)
		sed -n '3s/^# //p' "$0" >&2
		exit 126
		;;
	esac
done
shift $((OPTIND - 1))
if [ $# -eq 0 ]; then
	sed -n '3s/^# //p' "$0" >&2
	exit 126
fi
case $flavour in
6.1) meta=linux-image-amd64 ;;
6.12) meta=linux-image-6.12-amd64 ;;
*) wrong "-k $flavour: there are 6.1 and 6.12" ;;
esac
[ "$(uname -m)" = x86_64 ] || skip "the guest is an x86_64, this host is not: its programs would not run there"

# need TOOL PACKAGE
need() {
	command -v "$1" >/dev/null || skip "no $1 here: install $2"
}
need qemu-system-x86_64 qemu-system-x86
need cpio cpio
need modprobe kmod
need xz xz-utils
need ip iproute2
need rdma iproute2
need tc iproute2
need dash dash
need busybox busybox-static
need dpkg-deb dpkg
busybox=$(command -v busybox)
if ldd "$busybox" >/dev/null 2>&1; then
	skip 'busybox needs libraries here: install busybox-static'
fi
driver=$(find /usr/lib -path '*/libibverbs/librxe-rdmav*.so' 2>/dev/null | head -n 1)
[ -n "$driver" ] || skip 'no software RoCE driver for libibverbs: install ibverbs-providers'

# ---- the kernel: fetched once, kept unpacked ----

# fetch: the kernel package, into $kernel/
fetch() {
	command -v apt-get >/dev/null || skip 'no apt-get here to fetch a kernel package with'
	package=$(apt-cache depends "$meta" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
	[ -n "$package" ] || skip "apt knows no $meta: try apt-get update"
	(cd "$kernel" && apt-get -q download "$package") >"$work/log" 2>&1 ||
		skip "$package cannot be downloaded: $(tail -n 1 "$work/log")"
}

# unpack: the files that a guest may need
unpack() {
	mkdir "$kernel/files"
	for deb in "$kernel"/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$kernel/files" --wildcards \
			'./boot/vmlinuz-*' './lib/modules/*/modules.*' \
			'./lib/modules/*/kernel/drivers/infiniband/*' \
			'./lib/modules/*/kernel/drivers/net/*' \
			'./lib/modules/*/kernel/drivers/virtio/*' \
			'./lib/modules/*/kernel/drivers/char/*' \
			'./lib/modules/*/kernel/net/*' './lib/modules/*/kernel/lib/*' \
			'./lib/modules/*/kernel/crypto/*' './lib/modules/*/kernel/arch/*' \
			'./lib/modules/*/kernel/fs/*' || wrong "cannot unpack $deb"
	done
	rm -f "$kernel"/*.deb
	for version in "$kernel"/files/lib/modules/*; do
		basename "$version" >"$kernel/version"
	done
	depmod -b "$kernel/files" "$(cat "$kernel/version")" || wrong 'depmod failed'
}

kernel=$cache/$flavour
mkdir -p "$cache" || wrong "cannot write to $cache"
exec 9>"$cache/lock"
flock -w 900 9 || wrong "$cache: another run.sh has been fetching a kernel for 15 minutes"
if [ ! -e "$kernel/complete" ]; then
	rm -rf "$kernel"
	mkdir "$kernel"
	fetch
	unpack
	touch "$kernel/complete"
fi
version=$(cat "$kernel/version")

# ---- content of the guest ----

is_elf() {
	[ "$(head -c 4 "$1" 2>/dev/null | tr -d '\177')" = ELF ]
}

# pack ROOT FILE...: copy files to the same place below ROOT, with the libraries that they need
pack() {
	root=$1
	shift
	for file; do
		mkdir -p "$root$(dirname "$file")"
		cp -rL "$file" "$root$file" || wrong "cannot pack $file"
		is_elf "$file" || continue
		ldd "$file" 2>/dev/null | sed -n 's/^[^/]*\(\/.*\) (0x[0-9a-f]*)$/\1/p' | while read -r library; do
			[ -e "$root$library" ] && continue
			mkdir -p "$root$(dirname "$library")"
			cp -L "$library" "$root$library" || exit 1
		done || wrong "cannot pack the libraries of $file"
	done
}

# archive ROOT: write ROOT as an initramfs to the standard output
archive() {
	(cd "$1" && find . | cpio -o -H newc -R 0:0 --quiet)
}

# base: busybox, modules and other files that all guests with this kernel have
base() {
	root=$work/base
	for folder in bin etc/libibverbs.d proc sys dev tmp run root modules out share usr/bin; do
		mkdir -p "$root/$folder"
	done
	cp "$busybox" "$root/bin/busybox"
	for applet in $applets; do
		ln -s busybox "$root/bin/$applet"
	done
	for module in $modules; do
		modprobe -d "$kernel/files" -S "$version" --show-depends "$module"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$work/modules"
	while read -r file; do
		name=$(basename "$file")
		case $name in
		*.xz)
			name=${name%.xz}
			xz -dc "$file" >"$root/modules/$name"
			;;
		*) cp "$file" "$root/modules/$name" ;;
		esac
		echo "$name" >>"$root/modules/list"
	done <"$work/modules"
	# busybox's shell would use its own ip and tc, which lack options
	for tool in dash ip tc rdma; do
		pack "$root" "$(command -v $tool)"
		[ -e "$root/bin/$tool" ] || ln -s "$(command -v $tool)" "$root/bin/$tool"
	done
	ln -s dash "$root/bin/sh"
	pack "$root" "$driver"
	# the end of a thread needs this library, and no program is linked with it
	pack "$root" "$(${CC:-cc} -print-file-name=libgcc_s.so.1 2>/dev/null | grep / || find /lib /usr/lib -name libgcc_s.so.1 | head -n 1)"
	cp /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/"
	echo '127.0.0.1 localhost' >"$root/etc/hosts"
	echo 'hosts: files' >"$root/etc/nsswitch.conf"
	echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
	cp "$here/wire.sh" "$root/bin/wire"
	cp "$here/init.sh" "$root/init"
	chmod +x "$root/bin/wire" "$root/init"
	rm -f "$kernel"/base-*
	archive "$root" | gzip -1 >"$work/base.gz"
	mv "$work/base.gz" "$1" || wrong "cannot write $1"
}

key=$({
	cat "$here/run.sh" "$here/init.sh" "$here/wire.sh" "$kernel/version"
	stat -c '%n %s %Y' "$busybox" "$(command -v ip)" "$(command -v tc)" "$(command -v rdma)" "$driver"
} | sha1sum | cut -c 1-16)
[ -e "$kernel/base-$key.gz" ] || base "$kernel/base-$key.gz"
cp "$kernel/base-$key.gz" "$work/initrd"
exec 9>&-

# quote WORD...: the words as a line for the shell
quote() {
	for word; do
		printf "'%s' " "$(printf '%s' "$word" | sed "s/'/'\\\\''/g")"
	done
	echo
}

payload=$work/payload
mkdir "$payload"
if [ $# -eq 1 ]; then
	printf '%s\n' "$1" >"$payload/command"
else
	quote "$@" >"$payload/command"
fi
build=$(cd "$build" 2>/dev/null && pwd) || wrong "no build tree at $build: build first, or name it with -b"
echo "$build/bin" >"$payload/path"
for program in "$build"/bin/*; do
	name=$(basename "$program")
	if [ -f "$program" ] && grep -qE "(^|[^a-zA-Z0-9_-])$name([^a-zA-Z0-9_-]|\$)" "$payload/command"; then
		pack "$payload" "$program"
	fi
done
while read -r extra; do
	path=$(command -v "$extra") || path=$extra
	[ -e "$path" ] || wrong "-x $extra: no such program or file"
	case $path in
	/*) ;;
	*) path=$PWD/$path ;;
	esac
	pack "$payload" "$path"
done <"$work/extras"

# An archive may follow another one, at a multiple of four bytes.
size=$(stat -c %s "$work/initrd")
head -c $((512 + (4 - size % 4) % 4)) /dev/zero >>"$work/initrd"
archive "$payload" >>"$work/initrd" || wrong 'cannot pack the programs'

# ---- the guest ----

share=$work/share
mkdir "$share"
if [ -z "$out" ]; then
	out=$work/out
fi
mkdir -p "$out" || wrong "cannot write to $out"
out=$(cd "$out" && pwd)
accel='tcg,thread=multi' clock=''
if [ $icount -eq 1 ]; then
	accel='tcg,thread=single' clock='-icount shift=0,sleep=off' cpus=1
fi

# folder PATH: quoted for QEMU's lists of options
folder() {
	printf '%s\n' "$1" | sed 's/,/,,/g'
}

# boot: run the guest to its end; $ended is QEMU's exit status
boot() {
	rm -f "$share/status" "$share/started"
	# shellcheck disable=SC2086 # $clock is a list
	timeout --foreground -k 5 "$limit" qemu-system-x86_64 -accel "$accel" $clock -cpu max \
		-smp "$cpus" -m "$memory" -kernel "$kernel/files/boot/vmlinuz-$version" \
		-initrd "$work/initrd" \
		-append 'console=ttyS0 panic=-1 oops=panic quiet random.trust_cpu=on mitigations=off' \
		-nodefaults -display none -no-reboot -serial "file:$out/console.log" \
		-device virtio-serial-pci -chardev stdio,id=c0,signal=off \
		-device virtconsole,chardev=c0 \
		-virtfs "local,path=$(folder "$out"),mount_tag=out,security_model=none" \
		-virtfs "local,path=$(folder "$share"),mount_tag=share,security_model=none" </dev/null &
	guest=$!
	wait $guest
	ended=$?
	guest=
}

# With several processors QEMU sometimes crashes a kernel that patches its own text while it boots.
# A guest that died before the command started has tested nothing, so boot it again.
tries=0
while :; do
	boot
	tries=$((tries + 1))
	if [ -e "$share/started" ] || [ $ended -eq 124 ] || [ $ended -eq 137 ] || [ $tries -eq 3 ]; then
		break
	fi
	echo "run.sh: the guest died while booting (QEMU ended with $ended), once more" >&2
done
if [ -s "$share/status" ]; then
	exit "$(cat "$share/status")"
fi
if [ "$ended" -eq 124 ] || [ "$ended" -eq 137 ]; then
	echo "run.sh: not finished after $limit s" >&2
	exit 124
fi
echo "run.sh: the guest died (QEMU ended with $ended); its last words:" >&2
tail -n 25 "$out/console.log" >&2
exit 125
