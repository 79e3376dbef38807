#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The guest's first process: load modules, create devices and their link, run the command, shut
# down. The serial console has the messages of the kernel; the command has a console of its own.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root LANG=C
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmp /dev/shm
mount -t devpts pts /dev/pts
while read -r module; do
	insmod "/modules/$module" || echo "init: insmod $module failed"
done </modules/list
for folder in out share; do
	mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 $folder /$folder ||
		echo 'init: no shared folder'
done
stty -F /dev/hvc0 raw -echo
# shellcheck disable=SC3045 # dash has it
ulimit -l unlimited
# shellcheck disable=SC3045
ulimit -n 65536

# address FAMILY PREFIX BITS: route between PREFIX1 and PREFIX2 over the link, although both
# addresses are on this host. Two name spaces would be simpler, but software RoCE supports only the
# first one.
address() {
	ip "$1" rule add pref 100 lookup local
	ip "$1" rule del pref 0
	for host in 1 2; do
		ip "$1" rule add pref $((4 + host)) iif lo from "$2$host" to "$2$host" lookup local
		ip "$1" rule add pref $((9 + host)) iif lo to "$2$host/$3" lookup 10$host
	done
}

ip link set lo up
ip link add v0 type veth peer name v1
sysctl -qw net.ipv6.conf.v0.accept_dad=0 net.ipv6.conf.v1.accept_dad=0
for host in 1 2; do
	device=v$((host - 1))
	ip link set $device up
	ip addr add 10.9.0.$host/24 dev $device
	ip -6 addr add fd09::$host/64 dev $device nodad
done
for device in v0 v1; do # so that `wire move` may name any address
	tc qdisc add dev $device clsact
	tc filter add dev $device ingress matchall action skbedit ptype host
done
for device in all v0 v1; do
	sysctl -qw net.ipv4.conf.$device.accept_local=1 net.ipv4.conf.$device.rp_filter=0 \
		net.ipv4.conf.$device.arp_ignore=1 net.ipv4.conf.$device.arp_announce=2
done
address -4 10.9.0. 32
address -6 fd09:: 128
wire routes
# rdma_cm looks up the route by the device on which a packet arrived
ip -6 rule add pref 12 oif v1 to fd09::1 lookup 101
ip -6 rule add pref 13 oif v0 to fd09::2 lookup 102
for host in 0 1; do
	rdma link add rxe$host type rxe netdev v$host || echo "init: no rxe$host"
done
# Otherwise the first connection waits two seconds for neighbour discovery.
ping -c 1 -W 1 10.9.0.2 >/dev/null
ping -c 1 -W 1 -I 10.9.0.2 10.9.0.1 >/dev/null
ping -6 -c 1 -W 1 fd09::2 >/dev/null
ping -6 -c 1 -W 1 -I fd09::2 fd09::1 >/dev/null

PATH=$(cat /path):$PATH
PATH=${PATH#:}
export PATH OUT=/out
if [ -s /libraries ]; then
	LD_LIBRARY_PATH=$(cat /libraries)
	export LD_LIBRARY_PATH
fi
: >/share/started
(
	exec </dev/null >/dev/hvc0 2>&1
	cd "$(cat /folder)" && sh /command
)
echo $? >/share/status
sync
umount /out /share
poweroff -f
